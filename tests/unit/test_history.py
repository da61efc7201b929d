"""The time axis of several runs, and where the time of a stage went, against what was laid out by hand."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from beirnl.history import lanes, merged, runs, stage_times
from beirnl.store.events import Event


def event(kind, at, run="one", **about):
    return Event(event=kind, run=run, at=at, **about)


def unit(at, seconds, worker, run="one", stage="embed", number=0):
    about = {"stage": stage, "unit": number, "rows": 100, "bytes": 10, "prompt_tokens": 3}
    return event("unit-done", at, run, seconds=seconds, worker=worker, **about)


EVENTS = [
    event("run-started", 0),
    event("stage-started", 1, stage="embed", label="a"),
    unit(4, 2, "h:1"),
    unit(5, 4, "h:2", number=1),
    event("attempt-died", 6, stage="embed", label="a", unit=2, deaths=1),
    unit(9, 3, "h:3", number=2),  # in the place of h:1
    event("progress", 10, stage="embed", done=3),  # and the driver is killed
    event("run-started", 0, "two"),
    event("stage-started", 0, "two", stage="embed", label="a"),
    unit(2, 50, "h:9", "two", number=3),  # begun before the run, as far as its worker says
    unit(3, 1, "h:9", "two", number=-1),
    event("stage-ended", 4, "two", stage="embed"),
    event("stage-started", 4, "two", stage="index", label="b"),
    event("stage-ended", 6, "two", stage="index", error="index b: the disk is full"),
    event("run-ended", 7, "two", error="index b: the disk is full"),
]


def test_runs_follow_each_other_on_one_axis():
    one, two = runs(EVENTS)
    assert (one.begin, one.end, one.open) == (0, 10, True) and (two.begin, two.end, two.open) == (
        10,
        17,
        False,
    )
    assert [(group.stage, group.begin, group.end, group.open) for group in one.groups + two.groups] == [
        ("embed", 1, 10, True),
        ("embed", 10, 14, False),
        ("index", 14, 16, False),
    ]
    assert one.groups[0].pulse.done == 3


def test_where_the_time_of_a_stage_went():
    embed, index = stage_times(runs(EVENTS))
    assert (embed.units, embed.rows, embed.bytes, embed.tokens) == (4, 500, 50, 15)
    assert embed.wall == 13 and embed.workers == 4
    assert embed.lanes == [[(1, 5), (6, 9), (10, 13)], [(2, 4)]]
    assert embed.work == 4 + 3 + 3 + 2 and embed.busy == 12 / 26
    assert [(failure.at, failure.what) for failure in embed.failures] == [(6, "a unit 2: its worker died")]
    assert (index.wall, index.work, index.busy) == (2, 0, 0)
    assert [(failure.at, failure.what) for failure in index.failures] == [(16, "index b: the disk is full")]


def test_a_unit_that_was_set_aside_is_a_failure_of_its_stage():
    about = {"stage": "index", "label": "a/nl", "deaths": 3}
    (index,) = stage_times(
        runs(
            [
                event("run-started", 0),
                event("stage-started", 1, stage="index", label="a/nl"),
                event("unit-set-aside", 5, unit=0, **about),
                event("attempt-died", 3, unit=-1, **about),
                event("unit-set-aside", 7, unit=-1, **about),
            ]
        )
    )
    assert [(failure.at, failure.what) for failure in index.failures] == [
        (3, "a/nl the reduction: its worker died"),
        (5, "a/nl unit 0: set aside after 3 deaths"),
        (7, "a/nl the reduction: set aside after 3 deaths"),
    ]


def test_an_event_whose_run_has_no_start_begins_one():
    (run,) = runs(EVENTS[1:3])
    assert run.groups[0].units and stage_times([run])[0].units == 1


SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda s: (s[0], s[0] + s[1])), max_size=30
)


@given(SPANS)
def test_merged_intervals_cover_what_was_covered(spans):
    found = merged(spans)
    assert all(a[1] < b[0] for a, b in pairwise(found))
    inside = {tick for tick in range(70) if any(a <= tick < b for a, b in spans)}
    assert {tick for tick in range(70) if any(a <= tick < b for a, b in found)} == inside
    assert sum(b - a for a, b in found) == len(inside)


@given(st.lists(SPANS.map(merged), max_size=12))
def test_lanes_are_as_many_as_workers_at_the_same_time(workers):
    found = lanes(workers)
    assert sorted(span for lane in found for span in lane) == sorted(
        span for spans in workers for span in spans
    )
    for lane in found:
        assert all(a[1] <= b[0] for a, b in pairwise(lane))
    hulls = [(spans[0][0], spans[-1][1]) for spans in workers if spans]
    most = max((sum(a <= at < b or a == at for a, b in hulls) for at in range(70)), default=0)
    assert len(found) <= most


def test_ten_thousand_units_are_read_at_once():
    made = [event("run-started", 0), event("stage-started", 0, stage="embed")]
    drawn = random.Random(7)
    made += [unit(i / 10, drawn.random(), f"h:{i % 8}", number=i) for i in range(10_000)]
    (embed,) = stage_times(runs(made))
    assert embed.units == 10_000 and len(embed.lanes) == 8 and 0.5 < embed.busy < 0.7
