"""Events: appended line by line, whole again after a kill, and indifferent to the time of day."""

import json
from datetime import UTC, datetime

import pytest

from beirnl.errors import StageError
from beirnl.store import events
from beirnl.store.events import EventLog, read_events


def kinds(path):
    return [(event.run, event.event) for event in read_events(path)]


def test_a_run_is_between_its_start_and_its_end(tmp_path):
    path = tmp_path / "experiments" / "set.events.jsonl"
    with EventLog(path, "one") as log:
        log.write("unit-done", stage="embed", unit=0, rows=7, seconds=0.5, worker="host:1")
    with EventLog(path, "two"):
        pass
    assert kinds(path) == [
        ("one", "run-started"),
        ("one", "unit-done"),
        ("one", "run-ended"),
        ("two", "run-started"),
        ("two", "run-ended"),
    ]
    line = json.loads(path.read_text().splitlines()[1])
    assert line.pop("time").startswith("20") and line.pop("at") >= 0
    unit = {"stage": "embed", "unit": 0, "rows": 7, "seconds": 0.5, "worker": "host:1"}
    assert line == {"event": "unit-done", "run": "one", **unit}


def test_why_a_run_ended_is_told(tmp_path):
    with pytest.raises(StageError), EventLog(tmp_path / "events", "run"):
        raise StageError("unit 3 failed", where="embed set/nl")
    assert list(read_events(tmp_path / "events"))[-1].error == "embed set/nl: unit 3 failed"


def test_a_torn_line_is_passed_over_and_takes_no_other_with_it(tmp_path):
    path = tmp_path / "events"
    with EventLog(path, "killed"):
        pass
    path.write_bytes(path.read_bytes() + b'{"event":"unit-done","run":"kil')
    with EventLog(path, "next"):
        pass
    started = [("killed", "run-started"), ("killed", "run-ended")]
    assert kinds(path) == [*started, ("next", "run-started"), ("next", "run-ended")]


def test_fields_of_a_newer_version_are_passed_over(tmp_path):
    path = tmp_path / "events"
    path.write_text('{"event":"new","run":"r","at":1,"colour":"red"}\n{"event":7}\n')
    assert [(event.event, event.at) for event in read_events(path)] == [("new", 1.0)]


def test_a_clock_that_jumps_back_changes_only_the_time_of_day(tmp_path, monkeypatch):
    class Jumping(datetime):
        years = iter((2026, 2026, 2019, 2019))

        @classmethod
        def now(cls, zone=None):
            return datetime(next(cls.years), 1, 1, tzinfo=UTC)

    monkeypatch.setattr(events, "datetime", Jumping)
    with EventLog(tmp_path / "events", "run") as log:
        log.write("stage-started", stage="embed")
        log.write("stage-ended", stage="embed")
    found = list(read_events(tmp_path / "events"))
    assert [event.time[:4] for event in found] == ["2026", "2026", "2019", "2019"]
    assert [event.at for event in found] == sorted(event.at for event in found)


def test_a_place_that_cannot_be_written_ends_no_run(tmp_path):
    (tmp_path / "file").touch()
    with EventLog(tmp_path / "file" / "events", "run") as log:
        log.write("stage-started")
    with EventLog(None, "run") as log:
        log.write("stage-started")
    assert list(read_events(tmp_path / "absent")) == []
