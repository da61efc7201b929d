"""The page of a timeline in a browser: without requests, within a narrow window, each bar in its place."""

from browser import browser

from beirnl.evaluation.page import render
from beirnl.evaluation.records import Report
from beirnl.history import Failure, Run, StageTime
from beirnl.reporting.timeline import chart, table

ATTACK = "<img src=x onerror=\"document.title='taken'\">"
HISTORY = [Run("one", 0, 60), Run("two", 60, 100)]


def stage(name, begin, end, lanes=1):
    made = StageTime(name, units=lanes, wall=end - begin, open=[(begin, end)], workers=lanes)
    made.lanes = [[(begin, begin + (end - begin) * (n + 1) / lanes)] for n in range(lanes)]
    return made


def test_the_page_is_whole_in_a_narrow_window(tmp_path):
    stages = [stage("import-corpus", 0, 10), stage("translate", 10, 90, 4), stage(ATTACK, 90, 100)]
    stages[1].failures = [Failure(50, f"set/nl unit 3: {ATTACK}")]
    report = Report(
        name="set: timeline",
        tables=[table(HISTORY, stages, strips=False)],
        plots=[chart(HISTORY, stages)],
        warnings=[ATTACK],
    )
    path = tmp_path / "timeline.html"
    path.write_text(render(report), encoding="utf-8")
    with browser() as page:
        page.open(path.as_uri(), width=400)
        assert page.errors == [] and page.evaluate("document.title") == "set: timeline"
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        texts = page.evaluate("[...document.querySelectorAll('figure svg text')].map(t => t.textContent)")
        assert {"import-corpus", "translate", "0.0 s"} <= set(texts)
        rows = page.evaluate("[...document.querySelectorAll('tbody tr th')].map(t => t.innerText)")
        assert rows == ["import-corpus", "translate", ATTACK, "between stages"]
