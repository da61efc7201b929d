"""The labelling page in a browser: keys, notes, going on after a reload, two annotators, hostile texts."""

import threading
import time

import pytest
from audit_sheets import item, sheet
from browser import browser

from beirnl.audit.labels import Labels
from beirnl.audit.server import AuditServer

ATTACK = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
PATIENCE = 30  # seconds
ARROWS = {"ArrowLeft": 37, "ArrowRight": 39, "Escape": 27}
LONG = (
    "Cardiovascular diseases are the leading cause of death worldwide. Regular physical activity lowers "
    "blood pressure and improves the balance of lipids in the blood, even where body weight does not change. "
)
ITEMS = [
    item(
        "scifact",
        "4983",
        source_title="Exercise and the heart",
        source_text=LONG * 2 + "\n\n" + LONG,
        title="Beweging en het hart",
        text="Hart- en vaatziekten zijn wereldwijd de belangrijkste doodsoorzaak. " * 6 + "\n\nSlot.",
        size=5183,
    ),
    item("scifact", "q1", kind="query", source_title="", title="", source_text="0-dimensional biomaterials"),
    item("scifact", "5", source_title=ATTACK, source_text=ATTACK, title=ATTACK, text=f"</div>{ATTACK}"),
    item("cqadupstack", "7", part="android", title="", text=""),
    item(
        "cqadupstack", "8", part="english", language="ar", title="عنوان", text="هذا نص باللغة العربية (BM25)."
    ),
]


@pytest.fixture(scope="module")
def page():
    with browser() as opened:
        yield opened


@pytest.fixture
def path(tmp_path):
    return sheet(tmp_path / "audit.jsonl", ITEMS)


@pytest.fixture
def server(path):
    with AuditServer(path, port=0) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def opened(page, server):
    """The page, as someone who has never been here sees it."""
    page.open(server.url)
    page.evaluate("localStorage.clear()")
    page.errors.clear()
    page.requests.clear()
    page.open(server.url)
    return page


def until(page, condition):
    """Waits until a script's expression is true."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(condition):
        assert time.monotonic() < end, (
            f"never: {condition}; the page: {page.evaluate('document.body.innerText')}"
        )
        time.sleep(0.02)


def text(page, selector):
    return page.evaluate(f"document.querySelector({selector!r}).innerText")


def press(page, key, **more):
    code = {"windowsVirtualKeyCode": ARROWS[key]} if key in ARROWS else {"text": key}
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, **code, **more)


def write(page, words):
    page.call("Input.insertText", text=words)


def enter(page, name):
    until(page, "document.activeElement === document.getElementById('annotator')")
    page.evaluate("document.getElementById('annotator').select()")
    write(page, name)
    page.press("Enter")


def at(page, number):
    until(page, f"document.getElementById('where').innerText.startsWith('Item {number} of 5')")


def given(path, annotator):
    """Label and note of each item by its place on the sheet."""
    found = Labels(path).read(annotator)
    places = {one.key: place for place, one in enumerate(ITEMS, 1)}
    return {places[key]: (one.label, one.note) for key, one in found.items()}


def test_labels_are_given_by_keys_and_the_page_goes_on_where_it_stood(opened, path):
    enter(opened, "Anna")
    at(opened, 1)
    assert text(opened, "#where").endswith("scifact (nl), document 4983")
    press(opened, "c")
    at(opened, 2)
    press(opened, "2")
    at(opened, 3)
    press(opened, "n")
    write(opened, "leaves out ‘in mice’")
    press(opened, "Escape")
    press(opened, "j")
    at(opened, 4)
    assert given(path, "anna") == {1: ("correct", ""), 2: ("minor", ""), 3: ("major", "leaves out ‘in mice’")}
    assert text(opened, "#count") == "3 of 5 labelled"
    assert opened.evaluate("[...document.querySelectorAll('#datasets button')].map((b) => b.innerText)") == [
        "scifact (nl) 3/3",
        "cqadupstack (nl) 0/1",
        "cqadupstack (ar) 0/1",
    ]

    opened.open(opened.evaluate("location.href"))
    at(opened, 4)
    press(opened, "ArrowLeft")
    at(opened, 3)
    assert opened.evaluate("document.getElementById('note').value") == "leaves out ‘in mice’"
    assert opened.evaluate("document.querySelector('[aria-pressed=true]').dataset.label") == "major"
    press(opened, "1")
    at(opened, 4)
    assert given(path, "anna")[3] == ("correct", "leaves out ‘in mice’")
    press(opened, "c")
    at(opened, 5)
    press(opened, "c")
    until(opened, "document.getElementById('count').innerText.startsWith('All 5 items are labelled')")
    assert not opened.errors


def test_a_note_is_saved_without_a_label_and_no_key_acts_while_writing(opened, path):
    enter(opened, "anna")
    at(opened, 1)
    press(opened, "n")
    for key in "cmj1":
        press(opened, key)
    until(opened, "document.getElementById('said').innerText.startsWith('Saved: note')")
    assert given(path, "anna") == {1: (None, "cmj1")}
    press(opened, "Escape")
    press(opened, "c", modifiers=2)  # with Ctrl it is the browser's
    press(opened, "c", autoRepeat=True)  # a key held down labels nothing
    assert opened.evaluate("saves.then(() => true)")
    press(opened, "ArrowRight")
    at(opened, 2)
    assert given(path, "anna") == {1: (None, "cmj1")}


def test_a_note_that_was_just_typed_is_saved_when_the_page_is_left(opened, path):
    enter(opened, "anna")
    at(opened, 1)
    press(opened, "n")
    write(opened, "stiff")
    opened.open(opened.evaluate("location.href"))
    at(opened, 1)
    end = time.monotonic() + PATIENCE
    while given(path, "anna") != {1: (None, "stiff")}:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_two_annotators_are_apart(opened, path):
    enter(opened, "Anna")
    at(opened, 1)
    press(opened, "c")
    at(opened, 2)
    opened.evaluate("document.getElementById('change').click()")
    enter(opened, "Ben")
    at(opened, 1)
    assert text(opened, "#name") == "ben"
    assert opened.evaluate("location.search") == "?annotator=ben"
    press(opened, "j")
    at(opened, 2)
    assert (given(path, "anna"), given(path, "ben")) == ({1: ("correct", "")}, {1: ("major", "")})


def test_a_name_that_is_none_is_said_on_the_page(opened):
    enter(opened, "../anna")
    until(opened, "document.getElementById('refused').innerText.includes('is no name')")
    enter(opened, "anna")
    at(opened, 1)


def test_texts_are_shown_and_never_run(opened, server):
    enter(opened, "anna")
    at(opened, 1)
    for number in (2, 3):
        press(opened, "ArrowRight")
        at(opened, number)
    assert text(opened, "#source .text") == ATTACK
    assert text(opened, "#translation .text") == f"</div>{ATTACK}"
    assert opened.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert opened.evaluate("document.title") == "Check of translations"
    origin = server.url
    assert all(url.startswith((origin, "data:")) for url in opened.requests)
    assert not opened.errors


def test_languages_directions_and_gaps_are_marked(opened):
    enter(opened, "anna")
    at(opened, 1)
    marks = "[...document.querySelectorAll('#source, #translation')].flatMap((e) => [e.lang, e.dir])"
    assert opened.evaluate(marks) == ["en", "ltr", "nl", "ltr"]
    press(opened, "ArrowRight")
    at(opened, 2)
    assert opened.evaluate("document.querySelector('#source .title').hidden") is True
    for number in (3, 4):
        press(opened, "ArrowRight")
        at(opened, number)
    assert (text(opened, "#translation .title"), text(opened, "#translation .text")) == (
        "no title",
        "no text",
    )
    assert text(opened, "#where").endswith("cqadupstack (nl) / android, document 7")
    press(opened, "ArrowRight")
    at(opened, 5)
    assert opened.evaluate(marks) == ["en", "ltr", "ar", "rtl"]
    assert text(opened, "#translation-head") == "Translation (Arabic)"


def test_a_source_that_was_kept_is_said_and_nothing_else_of_the_checks(page, tmp_path):
    statuses = ["ok", "numbers", "title-lost", "refusal,language"]
    rows = [item("scifact", str(n), status=status) for n, status in enumerate(statuses)]
    with AuditServer(sheet(tmp_path / "kept.jsonl", rows), port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        page.open(server.url + "?annotator=dora")
        said = []
        for number in range(1, 5):
            until(page, f"document.getElementById('where').innerText.startsWith('Item {number} of 4')")
            said.append(text(page, "#kept"))
            hidden = page.evaluate("document.getElementById('kept').hidden")
            assert hidden is (said[-1] == "")
            heads = (
                text(page, "#translation-head"),
                page.evaluate("document.getElementById('translation').lang"),
            )
            assert heads == ("Translation (Dutch)", "en" if number == 4 else "nl")
            press(page, "ArrowRight")
        server.shutdown()
        thread.join()
    assert said == [
        "",
        "",
        "The title is that of the source: no answer had one (title-lost).",
        "Not translated: the source was kept, since no answer was good enough (refusal, language).",
    ]


def test_a_server_that_has_gone_is_said_and_nothing_is_lost(page, path):
    with AuditServer(path, port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        page.open(server.url + "?annotator=carl")
        at(page, 1)
        server.shutdown()
        thread.join()
        port = server.server_port
    press(page, "m")
    until(
        page,
        "document.getElementById('failed').innerText.startsWith('Not saved: the server does not answer')",
    )
    at(page, 1)
    with AuditServer(path, port=port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        press(page, "m")
        at(page, 2)
        server.shutdown()
        thread.join()
    assert given(path, "carl") == {1: ("minor", "")}


def test_all_is_reached_by_tab_and_keys_can_be_switched_off(opened, path):
    enter(opened, "anna")
    at(opened, 1)
    opened.evaluate("document.getElementById('keys').click()")
    press(opened, "c")
    assert opened.evaluate("saves.then(() => true)")
    at(opened, 1)
    opened.evaluate("document.getElementById('where').focus()")
    reached = []
    for _ in range(8):
        opened.press("Tab")
        reached.append(opened.evaluate("document.activeElement.dataset.label ?? document.activeElement.id"))
        if reached[-1] == "minor":
            opened.press("Enter")
            break
    assert reached == ["correct", "minor"]
    at(opened, 2)
    assert given(path, "anna") == {1: ("minor", "")}
    controls = "[...document.querySelectorAll('button, input, textarea, progress')]"
    assert opened.evaluate(f"{controls}.every((e) => e.labels?.length || e.innerText.trim())")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window_and_stands_out(page, server, width, dark):
    page.open(f"{server.url}?annotator=eva", width=width, height=800, dark=dark)
    at(page, 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('.verdict').getBoundingClientRect().height") < 400
    light = "getComputedStyle({at}).{what}.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"
    ground = page.evaluate(light.format(at="document.body", what="backgroundColor"))
    assert (ground < 200) is dark
    assert abs(page.evaluate(light.format(at="document.body", what="color")) - ground) > 450
