"""The timeline: its table adds up, its chart stays small however many units there were."""

import random
from xml.etree import ElementTree

import pytest

from beirnl.history import Failure, Run, StageTime
from beirnl.reporting.timeline import chart, strip, table

EMBED = StageTime(
    "embed", units=1200, rows=5000, bytes=2_000_000, tokens=400, wall=80.0, open=[(0, 80)], workers=2
)
EMBED.lanes = [[(10.0, 80.0)], [(10.0, 20.0), (60.0, 80.0)]]
EMBED.failures = [Failure(30, "set/nl unit 3: its worker died")]
INDEX = StageTime("index", units=1, wall=10.0, open=[(85, 95)], lanes=[[(85, 95)]], workers=1)
HISTORY = [Run("one", 0, 60), Run("two", 60, 100)]


def test_the_table_adds_up():
    made = table(HISTORY, [EMBED, INDEX], strips=True)
    embed, index, rest = ([cell.text for cell in row] for row in made.rows)
    head = [column.name for column in made.columns]
    assert dict(zip(head, embed, strict=True)) == {
        "stage": "embed",
        "units": "1,200",
        "failed": "1",
        "wall": "1 min 20 s",
        "share": "80.0%",
        "worker-seconds": "100.0",
        "workers": "2",
        "busy": "62%",
        "rows/s": "62",
        "tokens/s": "5.0",
        "written": "2.0 MB",
        "when": strip(EMBED, 100),
    }
    assert index[3:8] == ["10 s", "10.0%", "10.0", "1", "100%"]
    assert rest[:5] == ["between stages", "", "", "10 s", "10.0%"]
    assert made.caption.startswith("2 runs, 1 min 40 s of wall time.")
    plain = table(HISTORY, [EMBED, INDEX], strips=False)
    assert [len(row) for row in plain.rows] == [len(plain.columns)] * 3 == [len(head) - 1] * 3


@pytest.mark.parametrize(("stage", "drawn"), [(EMBED, "·█▄▄▄▄██"), (INDEX, "        ▄▄")])
def test_a_strip_shows_busy_workers(stage, drawn):
    assert strip(stage, 100, width=10) == drawn


def bars(svg):
    """How many bars and crosses an SVG draws."""
    root = ElementTree.fromstring(svg)
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    return names.count("path") + names.count("use")


def test_a_chart_of_a_hundred_thousand_units_can_be_opened():
    drawn, stages = random.Random(7), []
    for name in ("translate", "embed", "rerank"):
        stage = StageTime(name, open=[(0, 10_000)], wall=10_000.0, workers=40)
        for _ in range(40):
            at = sorted(drawn.uniform(0, 10_000) for _ in range(800))
            stage.lanes.append([(begin, begin + 1) for begin in at])
        stage.failures = [Failure(drawn.uniform(0, 10_000), "died") for _ in range(50)]
        stages.append(stage)
    plot = chart([Run("one", 0, 10_000)], stages)
    assert 2_000 < bars(plot.svg) < 22_000 and len(plot.svg) < 4_000_000
    assert "24 of 40 workers of embed" in plot.title and "embed 2 h 46 min, 40 workers" in plot.alt


def test_a_chart_shows_runs_stages_and_failures():
    svg = chart(HISTORY, [EMBED, INDEX]).svg
    assert all(name in svg for name in ("embed", "index", "stroke-dasharray", "currentColor"))
    assert bars(svg) > bars(chart(HISTORY[:1], [INDEX]).svg) + 3
