"""What is told of a stage while it is made: units, deaths by the markers they leave, money by the journal."""

import itertools

import pytest

from beirnl.config import Runtime
from beirnl.specs import Spec
from beirnl.spending import Paid
from beirnl.stages.base import SetAsideError, Task
from beirnl.store.artifacts import Part, Receipt
from beirnl.store.events import EventLog, read_events
from beirnl.store.verification import FileState
from beirnl.store.writing import PartWriter
from beirnl.tally import Tally
from beirnl.watching import Target, Watch


class Told:
    """A progress that keeps what it is told."""

    def __init__(self):
        self.shown, self.ended = [], []

    def start(self, stage, label, tally):
        self.heading = stage, label

    def show(self, tally):
        self.shown.append((tally.done, tally.running, tally.failed))

    def finish(self, note=""):
        self.ended.append(note)

    def say(self, line):
        raise AssertionError(line)


def watch(tmp_path, log, told, observed, **more):
    return Watch(
        "embed",
        "set/nl",
        [Target("set/nl", "key", tmp_path / "embed")],
        Tally(units=5, before=1, done=1),
        log=log,
        progress=told,
        observe=lambda stage, tally: observed.append((stage, tally.done, tally.money)),
        **more,
    )


def task(tmp_path, unit):
    return Task("embed", "set/nl", Spec(), tmp_path / "embed", {}, unit, "run", tmp_path, Runtime())


def receipt(unit):
    part = Part(file="p", rows=10, sha256="", files=(FileState(".", 300, 0),))
    counts = {"prompt tokens": 7, "completion tokens": 2}
    return Receipt(
        unit=unit, attempt="a", parts=(part,), rows_in=10, counts=counts, seconds=1.5, worker="h:1", node="n"
    )


def mark(tmp_path, unit, run="run"):
    return PartWriter(tmp_path / "embed", unit, run)


def test_units_and_deaths_are_counted_told_and_written(tmp_path):
    told, observed, path = Told(), [], tmp_path / "events"
    with EventLog(path, "run") as log, watch(tmp_path, log, told, observed, workers=2) as seen:
        mark(tmp_path, 0, "earlier")
        mark(tmp_path, 1)
        mark(tmp_path, 2)
        seen._update()
        mark(tmp_path, 2)  # the first attempt at 2 has died, the second one is at work
        seen._update()
        seen._update()  # and is told once
        seen.finished(task(tmp_path, 2), receipt(2))
    # unit 2 has left two markers: had the attempt that committed it left none, one
    assert told.shown[:4] == [(1, 2, 0), (1, 2, 1), (1, 2, 1), (2, 2, 1)]
    assert told.shown[-1] == (2, 0, 2) and told.ended == ["7 rows/s per worker, 2 failed attempts"]
    assert observed == [("embed", 2, None)]
    found = list(read_events(path))
    (unit,) = (event for event in found if event.event == "unit-done")
    assert (unit.stage, unit.label, unit.key, unit.unit) == ("embed", "set/nl", "key", 2)
    assert (unit.rows, unit.bytes, unit.tokens, unit.seconds) == (10, 300, 9, 1.5)
    assert (unit.worker, unit.node) == ("h:1", "n")
    assert [(e.unit, e.deaths) for e in found if e.event == "attempt-died"] == [(2, 1), (2, 2)]
    (start,) = (event for event in found if event.event == "stage-started")
    assert (start.units, start.done, start.workers) == (5, 1, 2)
    assert [e.event for e in found][-3:] == ["progress", "stage-ended", "run-ended"]
    assert (found[-2].done, found[-2].failed, found[-2].error) == (2, 2, "")


def test_a_unit_that_is_set_aside_has_died_as_often_as_it_may(tmp_path):
    told, path = Told(), tmp_path / "events"
    with pytest.raises(SetAsideError), EventLog(path, "run") as log, watch(tmp_path, log, told, []) as seen:
        mark(tmp_path, 4)  # at work when the run ends
        for _ in range(3):
            mark(tmp_path, 3)
        seen.set_aside(task(tmp_path, 3))
        seen._update()
        assert told.shown[-1] == (1, 1, 3), "only unit 4 is at work"
        raise SetAsideError("unit 3 has killed its worker 3 times")
    found = list(read_events(path))
    assert [(e.unit, e.deaths) for e in found if e.event == "attempt-died"] == [(3, 1), (3, 2), (3, 3)]
    (aside,) = (event for event in found if event.event == "unit-set-aside")
    assert (aside.stage, aside.label, aside.key, aside.unit, aside.deaths) == ("embed", "set/nl", "key", 3, 3)
    assert found[-2].error == found[-1].error == "unit 3 has killed its worker 3 times"
    assert told.ended == []


def test_the_marker_of_the_attempt_that_finished_a_unit_is_no_death_where_it_stays(tmp_path, monkeypatch):
    monkeypatch.setattr("beirnl.watching.outlives_its_unit", lambda directory: True)
    told, path = Told(), tmp_path / "events"
    with EventLog(path, "run") as log, watch(tmp_path, log, told, []) as seen:
        for unit in (1, 2, 2):
            mark(tmp_path, unit)
        for unit in (1, 2):
            seen.finished(task(tmp_path, unit), receipt(unit))
    assert told.shown[-1] == (3, 0, 1) and told.ended == ["7 rows/s per worker, 1 failed attempt"]
    assert [(e.unit, e.deaths) for e in read_events(path) if e.event == "attempt-died"] == [(2, 1)]


def test_tokens_and_money_are_those_of_the_journal(tmp_path):
    answered = itertools.count(1)
    observed, path = [], tmp_path / "events"

    def paid():
        number = next(answered)
        return Paid(100 * number, 10 * number, 0.5 * number, "EUR")

    with EventLog(path, "run") as log, watch(tmp_path, log, Told(), observed, paid=paid):
        pass
    assert observed == [("embed", 1, 1.0)]
    (told,) = (event for event in read_events(path) if event.event == "progress")
    assert (told.prompt_tokens, told.completion_tokens, told.money, told.currency) == (100, 10, 1.0, "EUR")


def test_a_reduction_is_no_unit(tmp_path):
    told, path = Told(), tmp_path / "events"
    with EventLog(path, "run") as log, watch(tmp_path, log, told, []) as seen:
        seen.reduced(task(tmp_path, -1), receipt(-1))
    (unit,) = (event for event in read_events(path) if event.event == "unit-done")
    assert unit.unit == -1 and told.shown[-1] == (1, 0, 0)
