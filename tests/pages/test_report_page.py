"""The report page in a browser: whole, without requests, usable by keyboard and on a telephone."""

import re

import pytest
from browser import browser

from beirnl.evaluation.page import render, write_page
from beirnl.evaluation.page.query_views import Document, QueryView, View
from beirnl.evaluation.records import (
    Conditions,
    Example,
    Record,
    Report,
    RunFile,
    Speed,
    Timing,
    Translations,
)

ATTACK = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
VALUES = {"BM25": 0.61, "E5": None, ATTACK: 0.7, "M3": 0.09}


#: Three queries, two systems: A wins the first, B the third; E5 finds what BM25 does not.
VIEW = View(
    "scifact",
    "nl",
    ["R@5", "nDCG@10"],
    ["BM25", ATTACK],
    [100, 50],
    40,
    [[(0, 0, 40), (9, 8, 23), (8, 9, 23), (0, 0, 40)]] * 2,
    [
        QueryView("q2", "koffie?", [[1, 1], [0.25, 0.5]], [["d1"], ["d2", "d1"]], {"d1": 0}, {}, 0),
        QueryView(
            "q1",
            f"thee {ATTACK}",
            [[1, 0], [0.75, 0.25]],
            [["d1", "d2"], []],
            {"d1": 2, "d3": 1, "d4": 1},
            {"d1": [1, 0], "d3": [0, 7], "d4": [0, 0]},
            3,
        ),
        QueryView("q3", "", [[0, 0], [0, 0]], [[], []], {}, {}, 0),
    ],
    {f"d{n}": Document(f"d{n}", f"title {n} </script>", ATTACK) for n in range(1, 5)},
)


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
        speeds=[Speed("scifact", "nl", system, 20.0, rate) for system, rate in (("BM25", 90.0), (ATTACK, 3))],
    )


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(path, report, [VIEW])
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


TABLE = "document.querySelector('#section1 ~ div table')"
COLUMN = f"[...{TABLE}.tBodies[0].rows].map((row) => row.cells[{{at}}].innerText.trim())"
HEAD = f"{TABLE}.querySelector('th[data-column=\"{{at}}\"] button')"


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
    assert opened.evaluate("document.querySelectorAll('script:not([type])').length") == 1
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
    assert opened.evaluate("document.querySelectorAll('figure svg').length") == 5
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
    assert opened.evaluate(f"{TABLE}.querySelectorAll('[aria-sort]').length") == 1


def test_the_keyboard_reaches_and_presses_a_head(opened):
    for _ in range(40):
        opened.press("Tab")
        if opened.evaluate(f"document.activeElement === {HEAD.format(at=1)}"):
            break
    else:
        pytest.fail("the head is not in the order of the Tab key")
    opened.press("Enter")
    assert opened.evaluate(COLUMN.format(at=1)) == ["0.7000", "0.6100", "0.0900", "incomplete"]


QUERIES = "[...document.querySelectorAll('#per-query tbody tr')].map((row) => row.innerText.split('\\t'))"
ARTICLE = "document.querySelector('#per-query article')"
CHOOSE = "const s = document.querySelector('#per-query [name={name}]'); s.value = '{at}';"
CHOOSE += "s.dispatchEvent(new Event('change'))"


def test_queries_are_ordered_by_the_difference_of_the_two_systems(opened):
    rows = opened.evaluate(QUERIES)
    assert [row[0] for row in rows] == [f"thee {ATTACK}", "q3", "koffie?"]
    assert rows[0][1:] == ["0.7500", "0.2500", "+0.5000"] and rows[2][3] == "-0.2500"
    assert "A is better on 9, B on 8, and they are equal on 23 (nDCG@10)" in opened.evaluate(
        "document.querySelector('#per-query [role=status]').innerText"
    )
    opened.evaluate(f"{{ {CHOOSE.format(name='a', at=1)} }}; {{ {CHOOSE.format(name='b', at=0)} }}")
    assert [row[3] for row in opened.evaluate(QUERIES)] == ["+0.2500", "0.0000", "-0.5000"]
    opened.evaluate(f"{{ {CHOOSE.format(name='measure', at=0)} }}")
    assert sorted(row[3] for row in opened.evaluate(QUERIES)) == ["-1.0000", "0.0000", "0.0000"]


def test_a_chosen_query_shows_what_both_found_and_what_neither_did(opened):
    opened.evaluate("document.querySelector('#per-query tbody button').click()")
    said = opened.evaluate(
        f"[...{ARTICLE}.querySelectorAll('h3, h4, li strong, .label')].map((e) => e.innerText)"
    )
    assert said == [
        f"thee {ATTACK}",
        "A: BM25, nDCG@10 0.7500",
        "title 1 </script>",
        "✓ relevant (2)",
        "title 2 </script>",
        "not judged",
        f"B: {ATTACK}, nDCG@10 0.2500",
        "Relevant documents that neither found",
        "title 4 </script>",
        "✓ relevant (1)",
    ]
    whole = opened.evaluate(f"{ARTICLE}.innerText")
    assert "first 100 of A or the first 50 of B" in whole and "3 further relevant documents" in whole
    assert opened.evaluate("document.activeElement.tagName") == "H3"
    assert opened.evaluate("document.title") == f"A report {ATTACK}" and opened.errors == []
    opened.evaluate("document.querySelectorAll('#per-query tbody button')[2].click()")
    assert opened.evaluate(f"[...{ARTICLE}.querySelectorAll('.irrelevant')].length") == 2
    assert opened.evaluate("document.querySelectorAll('#per-query [aria-current]').length") == 1


#: What is shown of a query: heading, identifier, hits of A, of B and missed, and which row is marked.
SHOWN = f"""[
    {ARTICLE}.querySelector('h3').innerText, {ARTICLE}.querySelector('h3 + p').innerText,
    [...{ARTICLE}.querySelectorAll('section')].map((one) => one.querySelectorAll('li').length),
    [...document.querySelectorAll('#per-query [aria-current]')].map((one) => one.innerText),
]"""


def test_queries_are_stepped_through_forth_and_back(opened):
    thee = [f"thee {ATTACK}", "Query q1", [2, 0, 1], [f"thee {ATTACK}"]]
    none = ["q3", "Query q3", [0, 0, 0], ["q3"]]
    coffee = ["koffie?", "Query q2", [1, 2, 0], ["koffie?"]]
    rows = [thee, none, coffee]
    for at in (0, 1, 2, 1, 0):
        opened.evaluate(f"document.querySelectorAll('#per-query tbody button')[{at}].click()")
        assert opened.evaluate(SHOWN) == rows[at]
    opened.evaluate("document.querySelectorAll('#per-query tbody button')[2].focus()")
    opened.press("Enter")
    assert opened.evaluate(SHOWN) == coffee and opened.errors == []
    opened.evaluate(f"{{ {CHOOSE.format(name='a', at=1)} }}")
    assert opened.evaluate(f"{ARTICLE}.innerText").startswith("Choose a query")
    assert opened.evaluate("document.querySelectorAll('#per-query [aria-current]').length") == 0


def test_the_form_has_labels_and_tables_have_captions(opened):
    unlabelled = "[...document.querySelectorAll('select')].filter((e) => !e.labels[0]?.innerText).length"
    assert opened.evaluate(unlabelled) == 0
    bare = "[...document.querySelectorAll('table')].filter((e) => !e.caption?.innerText).length"
    assert opened.evaluate(bare) == 0


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_is_no_wider_than_the_window(page, address, width):
    page.open(address, width=width)
    page.evaluate("document.querySelector('#per-query tbody button').click()")
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
