"""How far a stage is, in words and numbers."""

import pytest

from beirnl.progress import Lines
from beirnl.tally import Tally, duration, pause, rate_text


@pytest.mark.parametrize(
    ("tally", "left"),
    [
        (Tally(units=10, seconds=5), None),  # nothing tells
        (Tally(units=10, before=5, done=5, seconds=5), None),
        (Tally(units=10, done=5, seconds=20), 20),
        (Tally(units=10, before=4, done=5, seconds=3), 15),  # earlier runs have no say in the pace
        (Tally(units=10, done=4, running=2, rows=400, partly=100, seconds=10), 10),  # a unit's worth is begun
        (Tally(units=10, done=1, running=2, rows=1, partly=10**6, seconds=3), 7),  # no more than is running
        (Tally(units=10, done=10, seconds=20), 0),
    ],
)
def test_time_left_is_that_of_the_pace_so_far(tally, left):
    assert tally.left == (None if left is None else pytest.approx(left))


def test_a_line_says_all_that_there_is_to_say():
    tally = Tally(
        units=200,
        before=10,
        done=60,
        running=4,
        failed=1,
        rows=4500,
        partly=500,
        bytes=12_300_000,
        prompt_tokens=60_000,
        completion_tokens=40_000,
        work=190,
        money=0.4249,
        currency="USD",
        seconds=100,
    )
    assert tally.line() == (
        "60/200 units done, 4 running, 136 pending, 1 failed, 50 rows/s, 1,000 tokens/s, 12.3 MB, "
        "0.42 USD spent, 4 min 12 s left"
    )
    assert tally.note() == "24 rows/s per worker, 1 failed attempt"
    assert Tally(units=3).line() == "0/3 units done, 0 running, 3 pending"


def test_a_log_of_days_has_hundreds_of_lines():
    at, told = 0.0, 0
    while at < 3 * 86400:
        at, told = at + pause(at), told + 1
    assert 500 < told < 1000 and pause(0) == 10 and pause(10**6) == 300


def test_lines_are_told_at_the_pace_of_the_log(capsys, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("beirnl.progress.time.monotonic", lambda: now[0])
    lines, tally = Lines(), Tally(units=4000)
    lines.start("embed", "set/nl", tally)
    for _ in range(3600):
        now[0] += 1
        tally.done, tally.seconds = tally.done + 1, tally.seconds + 1
        lines.show(tally)
    lines.finish("fine")
    first, *told, last = capsys.readouterr().err.splitlines()
    assert first == "embed          set/nl: 4000 units"
    assert told[0] == "embed          set/nl: 10/4,000 units done, 0 running, 3,990 pending, 1 h 06 min left"
    assert 60 < len(told) < 120
    assert last == "embed          set/nl: done in 1 h 00 min, fine"


def test_durations():
    said = ["0.0 s", "9.9 s", "10 s", "3 min 05 s", "2 h 10 min", "47 h 59 min", "3 d 04 h"]
    assert [duration(s) for s in (0, 9.9, 10, 185, 7800, 172_790, 273_600)] == said


def test_rates():
    assert [rate_text(r) for r in (0.004, 0.42, 0.996, 4.2, 9.96, 42, 4200)] == [
        "0.00",
        "0.42",
        "1.0",
        "4.2",
        "10",
        "42",
        "4,200",
    ]
