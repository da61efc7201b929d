"""The report page in a browser: whole, without requests, usable by keyboard and on a telephone."""

import re

import pytest
from browser import browser

from beirnl.evaluation.page import render, write_page
from beirnl.evaluation.records import (
    Conditions,
    Example,
    Record,
    Report,
    RunFile,
    Timing,
    Translations,
)

ATTACK = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
VALUES = {"BM25": 0.61, "E5": None, ATTACK: 0.7, "M3": 0.09}


def _record(system, language, value):
    stated = Conditions(dataset_hash="abc", search="exact", self_matches="removed", note=ATTACK)
    return Record(
        dataset="scifact",
        language=language,
        system=system,
        measure="nDCG@10",
        value=value,
        queries=2,
        low=value and value / 2,
        high=value and value + 0.1,
        conditions=stated,
    )


@pytest.fixture(scope="module")
def report():
    return Report(
        name=f"A report {ATTACK}",
        records=[_record(s, language, v) for s, v in VALUES.items() for language in ("en", "nl")],
        translations={
            "scifact": Translations(
                {"ok": 99, ATTACK: 1}, [Example("ok", ATTACK, ATTACK, "</table>" + ATTACK)]
            )
        },
        warnings=[f"a warning {ATTACK}"],
        runs=[RunFile("scifact", "nl", "BM25", "runs/x.run.gz")],
        notes=["a note"],
        timings=[Timing("translate", "scifact", 1234.5, 3)],
    )


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(path, report)
    return path.as_uri()


@pytest.fixture(scope="module")
def page():
    with browser() as opened:
        yield opened


@pytest.fixture
def opened(page, address):
    page.errors.clear()
    page.requests.clear()
    page.open(address)
    return page


COLUMN = "[...document.querySelector('table').tBodies[0].rows].map((row) => row.cells[{at}].innerText.trim())"
HEAD = "document.querySelector('table th[data-column=\"{at}\"] button')"


def test_the_page_loads_without_errors_and_asks_for_nothing(opened, address):
    opened.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert opened.errors == []
    assert [url for url in opened.requests if url != address and not url.startswith("data:")] == []


def test_no_resource_from_elsewhere_is_named(opened, report):
    named = opened.evaluate(
        "[...document.querySelectorAll('*')].flatMap((e) => [...e.attributes])"
        ".filter((a) => ['src', 'href', 'xlink:href', 'action', 'srcset'].includes(a.name))"
        ".map((a) => a.value)"
    )
    assert named
    assert [target for target in named if not target.startswith(("#", "data:"))] == []
    assert not re.search(r"@import|url\((?!#)", render(report))


def test_untrusted_text_is_shown_not_run(opened):
    assert opened.evaluate("document.title") == f"A report {ATTACK}"
    assert opened.evaluate("document.querySelectorAll('img').length") == 0
    assert opened.evaluate("document.querySelectorAll('script').length") == 1
    assert opened.evaluate("document.body.innerText").count(ATTACK) >= 6


def test_a_script_that_slipped_in_would_be_refused(opened):
    script = (
        "const s = document.createElement('script'); s.text = 'window.slipped = 1'; document.body.append(s);"
    )
    assert opened.evaluate(f"{script} window.slipped === undefined") is True


def test_cells_warnings_and_plots_are_there(opened):
    assert opened.evaluate(COLUMN.format(at=2)) == ["0.6100", "incomplete", "0.7000", "0.0900"]
    assert opened.evaluate("document.querySelectorAll('tbody strong').length") == 2
    assert opened.evaluate("document.querySelector('.warnings li').innerText").startswith("a warning")
    assert opened.evaluate("document.querySelectorAll('figure svg').length") == 3
    labels = opened.evaluate("[...document.querySelectorAll('[role=img]')].map((e) => e.ariaLabel)")
    assert "BM25, nl: 0.6100 (95% interval" in labels[0]
    assert opened.evaluate(
        "new Set([...document.querySelectorAll('[id]')].map((e) => e.id)).size"
    ) == opened.evaluate("document.querySelectorAll('[id]').length")


def test_pressing_a_head_sorts_numbers_downwards_then_upwards_with_gaps_last(opened):
    opened.evaluate(HEAD.format(at=2) + ".click()")
    assert opened.evaluate(COLUMN.format(at=2)) == ["0.7000", "0.6100", "0.0900", "incomplete"]
    assert opened.evaluate(HEAD.format(at=2) + ".closest('th').ariaSort") == "descending"
    opened.evaluate(HEAD.format(at=2) + ".click()")
    assert opened.evaluate(COLUMN.format(at=2)) == ["0.0900", "0.6100", "0.7000", "incomplete"]
    opened.evaluate(HEAD.format(at=0) + ".click()")
    assert opened.evaluate(COLUMN.format(at=0)) == [ATTACK, "BM25", "E5", "M3"]
    assert (
        opened.evaluate("document.querySelectorAll('table')[0].querySelectorAll('[aria-sort]').length") == 1
    )


def test_the_keyboard_reaches_and_presses_a_head(opened):
    for _ in range(30):
        opened.press("Tab")
        if opened.evaluate(f"document.activeElement === {HEAD.format(at=1)}"):
            break
    else:
        pytest.fail("the head is not in the order of the Tab key")
    opened.press("Enter")
    assert opened.evaluate(COLUMN.format(at=1)) == ["0.7000", "0.6100", "0.0900", "incomplete"]


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_is_no_wider_than_the_window(page, address, width):
    page.open(address, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_plots_stand_out_from_the_ground_in_both_schemes(page, address, dark):
    page.open(address, dark=dark)
    light = "getComputedStyle({at}).{what}.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"
    ground = page.evaluate(light.format(at="document.body", what="backgroundColor"))
    assert (ground < 200) is dark
    for place, what in (("document.body", "color"), ("document.querySelector('svg text')", "fill")):
        ink = page.evaluate(light.format(at=place, what=what))
        assert abs(ink - ground) > 450, place


def test_an_empty_report_is_a_page(tmp_path, page):
    write_page(tmp_path / "new" / "empty.html", Report("nothing yet"))
    page.open((tmp_path / "new" / "empty.html").as_uri())
    assert page.evaluate("document.querySelector('h1').innerText") == "nothing yet"
