"""What a run says of units at work: that they load, that they are at work, how many rows they have done."""

import pytest

from beirnl import progress
from beirnl.config import Runtime
from beirnl.progress import Lines
from beirnl.specs import Spec
from beirnl.stages.base import Stage, StoppedError, Task, Unit, execute
from beirnl.store.attempts import is_loading, rows_in_flight
from beirnl.tally import Tally


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_lines_say_what_is_done_while_there_are_no_rows(clock, capsys):
    lines, tally = Lines(), Tally(units=2, running=1)
    lines.start("embed", "set/en tiny", tally)
    for seconds, rows, doing in ((5, 0, "loading"), (12, 0, "loading"), (30, 0, ""), (50, 1000, "")):
        clock[0] = tally.seconds = seconds
        tally.partly, tally.doing = rows, doing
        lines.show(tally)
    assert [line.split(": ")[-1] for line in capsys.readouterr().err.splitlines()] == [
        "2 units",
        "0/2 units done, 1 running, 1 pending, loading for 12 s",
        "0/2 units done, 1 running, 1 pending",
        "0/2 units done, 1 running, 1 pending, 20 rows/s",
    ]


def test_a_unit_says_that_it_loads_and_then_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("beirnl.store.writing.PartWriter.TELL", -1.0)
    task = Task("embed", "set/en", Spec(), tmp_path, {}, 0, "run", tmp_path, Runtime())
    seen = []

    def look():
        seen.append(
            (is_loading(tmp_path, "run"), is_loading(tmp_path, "other"), rows_in_flight(tmp_path, "run"))
        )

    def run(unit):
        look()
        unit.tell(7)
        look()

    stage = Stage("embed", 1, run, load=lambda task: look())
    execute(stage, task, lambda: stage.load(task))
    assert seen == [(True, False, 0), (False, False, 0), (False, False, 7)]
    assert not is_loading(tmp_path, "run"), "nothing is at work"


def test_a_unit_that_tells_is_stopped_with_the_run():
    class Out:
        def tell(self, rows):
            raise AssertionError("told after the run was stopped")

    unit = Unit(None, Out(), None)
    unit.stop.set()
    with pytest.raises(StoppedError):
        unit.tell(1)
