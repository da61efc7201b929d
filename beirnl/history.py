"""What the events of an experiment say: its runs on one time axis, and where the time of each stage went.

The axis is that of the drivers' monotonic clocks, one run after another; the hours between runs are left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from beirnl.store.attempts import unit_in_words
from beirnl.store.events import (
    ATTEMPT_DIED,
    PROGRESS,
    RUN_ENDED,
    RUN_STARTED,
    STAGE_ENDED,
    STAGE_STARTED,
    UNIT_DONE,
    UNIT_SET_ASIDE,
    Event,
)

Interval = tuple[float, float]


@dataclass
class Group:
    """What was made together in one run.

    Attributes:
        stage, label: as its events say.
        begin, end: on the time axis; the end is that of its last event.
        units: what was done, each with the end of its interval as ``at``.
        deaths: attempts that have died, at the time that was noticed.
        aside: units that were set aside.
        pulse: how far it was when it was last told, with ``at`` on the time axis.
        open: whether it has not ended, as far as the events go.
        error: why it ended early.
    """

    stage: str
    label: str
    begin: float
    end: float
    units: list[Event] = field(default_factory=list)
    deaths: list[Event] = field(default_factory=list)
    aside: list[Event] = field(default_factory=list)
    pulse: Event | None = None
    open: bool = True
    error: str = ""

    def span(self, unit: Event) -> Interval:
        """When a unit was at work: until it was told, for as long as its worker says, within the group."""
        return max(self.begin, unit.at - max(0.0, unit.seconds)), unit.at


@dataclass
class Run:
    """One run: where it begins and ends on the time axis, its groups, and whether it has not ended."""

    name: str
    begin: float
    end: float
    groups: list[Group] = field(default_factory=list)
    open: bool = True


def runs(events: Iterable[Event]) -> list[Run]:
    """The runs that events tell of, one after another on the time axis."""
    found: list[Run] = []
    for event in events:
        if event.event == RUN_STARTED or not found or found[-1].name != event.run:
            begin = found[-1].end if found else 0.0
            found.append(Run(event.run, begin, begin))
        run = found[-1]
        at = run.begin + max(0.0, event.at)
        run.end = max(run.end, at)
        _take(run, msgspec.structs.replace(event, at=at))
    return found


def _take(run: Run, event: Event) -> None:
    if event.event == STAGE_STARTED:
        run.groups.append(Group(event.stage, event.label, event.at, event.at))
    if event.event == RUN_ENDED:
        run.open = False
    if not run.groups or not event.stage:
        return
    group = run.groups[-1]
    group.end = max(group.end, event.at)
    if event.event == UNIT_DONE:
        group.units.append(event)
    elif event.event == ATTEMPT_DIED:
        group.deaths.append(event)
    elif event.event == UNIT_SET_ASIDE:
        group.aside.append(event)
    elif event.event == PROGRESS:
        group.pulse = event
    elif event.event == STAGE_ENDED:
        group.open, group.error = False, event.error


class Failure(NamedTuple):
    """An attempt that died, a unit that was set aside, or a stage that ended early: when, and what is
    known of it."""

    at: float
    what: str


@dataclass
class StageTime:
    """Where the time of a stage went, in all runs together.

    Attributes:
        stage: its name.
        units, rows, bytes, tokens: that were done (reductions are no units).
        wall: seconds between start and end.
        open: when it was being made.
        lanes: busy intervals, sorted and apart, of so many workers as there were at the same time.
        workers: how many processes worked on it.
        failures: in order.
    """

    stage: str
    units: int = 0
    rows: int = 0
    bytes: int = 0
    tokens: int = 0
    wall: float = 0.0
    open: list[Interval] = field(default_factory=list)
    lanes: list[list[Interval]] = field(default_factory=list)
    workers: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def work(self) -> float:
        """Worker-seconds: how long workers had at least one unit, summed."""
        return sum(end - begin for lane in self.lanes for begin, end in lane)

    @property
    def busy(self) -> float:
        """Share of the workers' time in which they had a unit; the rest is idle, or loading."""
        return min(1.0, self.work / max(1e-9, self.wall * max(1, len(self.lanes))))


def stage_times(history: Sequence[Run]) -> list[StageTime]:
    """Where the time went, by stage in the order of their first start."""
    found: dict[str, StageTime] = {}
    workers: dict[str, dict[str, list[Interval]]] = {}
    for group in (group for run in history for group in run.groups):
        made = found.setdefault(group.stage, StageTime(group.stage))
        made.wall += group.end - group.begin
        made.open.append((group.begin, group.end))
        for unit in group.units:
            made.units += unit.unit != -1
            made.rows, made.bytes, made.tokens = (
                made.rows + unit.rows,
                made.bytes + unit.bytes,
                made.tokens + unit.tokens,
            )
            workers.setdefault(group.stage, {}).setdefault(unit.worker, []).append(group.span(unit))
        made.failures += _failures(group)
    for stage, made in found.items():
        busy = [merged(spans) for spans in workers.get(stage, {}).values()]
        made.workers, made.lanes = len(busy), lanes(busy)
    return list(found.values())


def _failures(group: Group) -> list[Failure]:
    """What failed in a group, in order."""
    deaths = [Failure(e.at, f"{_unit(e)}: its worker died") for e in group.deaths]
    aside = [Failure(e.at, f"{_unit(e)}: set aside after {e.deaths} deaths") for e in group.aside]
    ended = [Failure(group.end, group.error)] if group.error else []
    return sorted([*deaths, *aside, *ended], key=lambda failure: failure.at)


def _unit(event: Event) -> str:
    return f"{event.label} {unit_in_words(event.unit or 0)}"


def merged(spans: Iterable[Interval], gap: float = 0.0) -> list[Interval]:
    """The union of intervals, sorted; those nearer than ``gap`` become one."""
    joined: list[Interval] = []
    for begin, end in sorted(spans):
        if joined and begin - joined[-1][1] <= gap:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((begin, end))
    return joined


def lanes(workers: Iterable[list[Interval]]) -> list[list[Interval]]:
    """Workers on as few lanes as hold them without two at the same time: every pool has processes of its own,
    and one that follows another takes its place."""
    found: list[list[Interval]] = []
    for spans in sorted(spans for spans in workers if spans):
        free = next((lane for lane in found if lane[-1][1] <= spans[0][0]), None)
        if free is None:
            found.append(list(spans))
        else:
            free.extend(spans)
    return found
