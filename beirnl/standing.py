"""Where an experiment stands, stage by stage, also while another process runs it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from beirnl.graph import Node
from beirnl.history import Group, runs
from beirnl.pipeline import Pipeline
from beirnl.spending import Spending
from beirnl.stages import STAGES
from beirnl.stages.translate import llm_of
from beirnl.states import Status
from beirnl.store.artifacts import REDUCE
from beirnl.store.attempts import attempts_by_unit, rows_in_flight, unit_name
from beirnl.store.events import UNIT_DONE, Event, read_events
from beirnl.tally import Tally

State = Literal["done", "running", "pending", "waiting"]


@dataclass
class Standing:
    """Where a stage stands.

    Attributes:
        stage: its name.
        artifacts: how many it has to make, and how many are ``made``.
        tally: units, and what they have read, written and cost, in whatever run.
        unknown: whether more units will be known when what comes before is done.
        live: of the run that is at it now: what it has done so far, with rates and time left.
    """

    stage: str
    artifacts: int = 0
    made: int = 0
    tally: Tally = field(default_factory=Tally)
    unknown: bool = False
    live: Tally | None = None

    @property
    def state(self) -> State:
        """In a word."""
        if self.made == self.artifacts:
            return "done"
        if self.live:
            return "running"
        return "waiting" if self.unknown and not self.tally.units else "pending"


def standings(pipeline: Pipeline, states: Sequence[Status]) -> list[Standing]:
    """Where every stage stands, in the order of the stage table.

    Args:
        pipeline: of the experiment.
        states: its plan.
    """
    events = list(read_events(pipeline.workspace.events_path(pipeline.experiment.name)))
    told = {(event.key, event.unit): event for event in events if event.event == UNIT_DONE}
    by_key: dict[str, list[Event]] = {}
    for event in told.values():
        by_key.setdefault(event.key, []).append(event)
    spending = Spending.of(pipeline.experiment, pipeline.graph, pipeline.workspace)
    found: dict[str, Standing] = {}
    for status in states:
        standing = found.setdefault(status.node.stage, Standing(status.node.stage))
        _add(standing, status)
        for counted in _counted(pipeline, status, by_key.get(status.node.key, ())):
            _count(standing.tally, status.node, counted, spending)
    history = runs(events)
    for group in history[-1].groups if history else ():
        if group.stage in found:
            found[group.stage].tally.failed += len(group.deaths)
    if history and history[-1].open and history[-1].groups and pipeline.workspace.is_running():
        group = history[-1].groups[-1]
        if group.stage in found:
            found[group.stage].live = _live(found[group.stage], group, history[-1].name, states, pipeline)
    return [found[name] for name in STAGES if name in found]


def _add(standing: Standing, status: Status) -> None:
    standing.artifacts += 1
    standing.made += status.state == "done"
    standing.tally.units += status.units or 0
    standing.tally.done += status.done
    standing.unknown |= status.units is None


def _counted(pipeline: Pipeline, status: Status, events: Sequence[Event]) -> Iterator[Event]:
    """What the units of an artifact did: by its manifest, or while it grows by the events."""
    manifest = pipeline.states.manifest(status.node) if status.state == "done" else None
    if manifest is None:
        yield from events
        return
    for receipt in [*manifest.receipts, *([manifest.reduced] if manifest.reduced else [])]:
        yield Event(
            event=UNIT_DONE,
            run="",
            at=0.0,
            rows=receipt.rows_in,
            bytes=receipt.size,
            prompt_tokens=receipt.counts.get("prompt tokens", 0),
            completion_tokens=receipt.counts.get("completion tokens", 0),
        )


def _count(tally: Tally, node: Node, unit: Event, spending: Spending) -> None:
    tally.rows, tally.bytes = tally.rows + unit.rows, tally.bytes + unit.bytes
    tally.prompt_tokens += unit.prompt_tokens
    tally.completion_tokens += unit.completion_tokens
    if STAGES[node.stage].asks:
        cost = spending.cost(llm_of(node.spec), unit.prompt_tokens, unit.completion_tokens)
        if cost is not None:
            tally.money, tally.currency = (tally.money or 0.0) + cost, spending.currency


def _live(standing: Standing, group: Group, run: str, states: Sequence[Status], pipeline: Pipeline) -> Tally:
    """How fast the stage goes: by the group that is being made, and by what its workers are at."""
    tally = standing.tally
    aside = {(event.key, unit_name(event.unit or 0)) for event in group.aside}
    for status in states:
        if status.node.stage == standing.stage and status.state == "pending":
            artifact = status.node.artifact(pipeline.workspace)
            begun = attempts_by_unit(artifact.directory, run).keys()
            at_work = {unit for unit in begun if (status.node.key, unit) not in aside}
            tally.running += len({f"{unit}.json" for unit in at_work} - artifact.committed())
            tally.partly += rows_in_flight(artifact.directory, run)
    told = group.pulse  # counts also what units at work have asked
    return replace(
        tally,
        before=tally.done - sum(unit.unit != REDUCE for unit in group.units),
        rows=sum(unit.rows for unit in group.units),
        prompt_tokens=max(told.prompt_tokens if told else 0, sum(u.prompt_tokens for u in group.units)),
        completion_tokens=max(
            told.completion_tokens if told else 0, sum(u.completion_tokens for u in group.units)
        ),
        seconds=group.end - group.begin,
    )
