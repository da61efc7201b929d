"""The page of the service in a browser: keys, systems side by side, marks, steps; without a network."""

import time

import pytest
from browser import browser
from serving import listening, service, translated

PATIENCE = 60  # seconds


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    return translated(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def url(pipeline):
    with listening(service(pipeline)) as address:
        yield address


@pytest.fixture(scope="module")
def page():
    with browser() as opened:
        yield opened


@pytest.fixture
def opened(page, url):
    page.open(f"{url}/", width=1500)
    until(page, "document.querySelectorAll('#queries tbody tr').length")
    page.errors.clear()
    return page


def until(page, condition):
    end = time.monotonic() + PATIENCE
    while not page.evaluate(condition):
        assert time.monotonic() < end, (condition, page.evaluate("document.body.innerText"))
        time.sleep(0.02)


def press(page, key):
    """A letter, pressed where the focus is."""
    for kind in ("keyDown", "keyUp"):
        text = {"text": key} if kind == "keyDown" else {}
        page.call(
            "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=ord(key.upper()), **text
        )


def choose(page, dataset):
    page.evaluate(
        f"document.getElementById('dataset').value = '{dataset}';"
        "document.getElementById('dataset').dispatchEvent(new Event('change'))"
    )
    until(page, f"state.queries.length && dataset().name === '{dataset}' ")


def searched(page):
    until(
        page,
        "document.querySelectorAll('main section').length === 2 && !document.querySelector('[aria-busy]')",
    )


def column(page, number=0):
    return page.evaluate(
        f"[...document.querySelectorAll('main section')[{number}].querySelectorAll('li')].map((li) => ({{"
        "id: li.querySelectorAll('.facts span')[1].innerText, mark: li.className,"
        "bodies: [...li.querySelectorAll('.body')].map((b) => [b.parentNode.lang, b.innerText])}))"
    )


def test_a_question_is_typed_and_every_system_answers_beside_the_other(opened, url, tmp_path):
    assert opened.evaluate("document.activeElement.id") == "q"
    opened.call("Input.insertText", text="Why is the sky blue?")
    opened.press("Enter")
    searched(opened)
    assert opened.evaluate("[...document.querySelectorAll('main h2')].map((h) => h.innerText)") == [
        "bm25",
        "flat",
    ]
    lefts = opened.evaluate(
        "[...document.querySelectorAll('main section')].map((s) => s.getBoundingClientRect().left)"
    )
    tops = opened.evaluate(
        "[...document.querySelectorAll('main section')].map((s) => s.getBoundingClientRect().top)"
    )
    assert lefts[1] > lefts[0] + 200 and tops[0] == tops[1]
    assert column(opened) and not any(hit["mark"] for hit in column(opened))
    assert not opened.errors and all(
        request.startswith((url, "data:", "about:")) for request in opened.requests
    )
    opened.screenshot(tmp_path / "question.png")


def test_judged_queries_are_stepped_through_by_keys_and_their_documents_are_marked(opened, tmp_path):
    choose(opened, "sample/nl")
    opened.evaluate("document.activeElement.blur()")
    seen = []
    for key in ("n", "n", "p"):
        press(opened, key)
        searched(opened)
        until(opened, "document.getElementById('status').innerText.includes('relevant documents')")
        assert opened.evaluate("document.getElementById('q').value") == opened.evaluate(
            "document.querySelector('tr[aria-current] button').innerText"
        )
        seen.append(opened.evaluate("state.current"))
    assert seen == [0, 1, 0]
    hits = [hit for number in (0, 1) for hit in column(opened, number)]
    assert {hit["mark"] for hit in hits} >= {"relevant"}
    # the translation stands beside its source
    assert all([language for language, _ in hit["bodies"]] == ["nl", "en"] for hit in hits)
    assert any(made != source for (_, made), (_, source) in (hit["bodies"] for hit in hits))
    places = opened.evaluate(
        "[...document.querySelectorAll('main li:first-child .texts > div')].slice(0, 2)"
        ".map((d) => d.getBoundingClientRect().left)"
    )
    assert places[1] > places[0] + 50
    opened.screenshot(tmp_path / "translated.png")
    assert not opened.errors


def test_what_is_wrong_is_said_on_the_page(opened):
    opened.evaluate("document.getElementById('q').value = 'x'; document.getElementById('k').value = '500'")
    opened.evaluate("search({ q: 'x' })")
    until(opened, "document.getElementById('status').className === 'problem'")
    assert "k: input should be less than or equal to 100" in opened.evaluate(
        "document.getElementById('status').innerText"
    )


def test_everything_can_be_reached_by_keyboard_and_has_a_name(opened):
    names = opened.evaluate(
        "[...document.querySelectorAll('input, select, button, [role=region]')].map((e) =>"
        "(e.labels?.[0]?.innerText || e.innerText || e.getAttribute('aria-label') ||"
        "document.getElementById(e.getAttribute('aria-labelledby'))?.innerText || '').trim())"
    )
    assert len(names) > 30 and all(names)
    reached = []
    for _ in range(9):
        opened.press("Tab")
        reached.append(
            opened.evaluate(
                "(({ id, innerText, value }) => id || innerText || value)(document.activeElement)"
            )
        )
    assert reached == ["dataset", "k", "Search", "bm25", "flat", "order", "next", "queries", reached[-1]]
    assert opened.evaluate("document.activeElement.closest('tr') !== null")


@pytest.mark.parametrize("width", [390, 800])
def test_the_page_fits_a_telephone(page, url, width):
    page.open(f"{url}/", width=width)
    until(page, "document.querySelectorAll('#queries tbody tr').length")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_api_is_shown_without_a_network(page, url):
    page.errors.clear()
    page.requests.clear()
    page.open(f"{url}/docs")
    until(page, "document.querySelectorAll('#routes h2').length === 7")
    assert "k" in page.evaluate("document.querySelector('#routes dl').innerText")
    assert "integer, from 1, to 100, default 10" in page.evaluate("document.body.innerText").replace(
        "at most", "to"
    )
    assert not page.errors and all(request.startswith((url, "data:")) for request in page.requests)
