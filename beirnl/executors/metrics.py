"""What a cluster's Prometheus endpoint shows of a run; Ray puts ``ray_`` before the names.

Units are counted where they end, in the workers; how far a stage is, the driver tells. Counters are of one
worker each and end with it: rates are right, sums over a run are in its events.
"""

from typing import Any, Literal, NamedTuple

from beirnl.errors import BeirnlError, BudgetError
from beirnl.stages.base import SetAsideError, StoppedError, Task
from beirnl.store.artifacts import Receipt
from beirnl.tally import Tally

_SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)


class Metric(NamedTuple):
    """A metric: its kind, what it is, and its labels."""

    kind: Literal["counter", "histogram", "gauge"]
    what: str
    labels: tuple[str, ...] = ()


METRICS: dict[str, Metric] = {
    "beirnl_units_total": Metric(
        "counter",
        "Units that have ended: done, failed, set aside, stopped or out of budget.",
        ("stage", "outcome"),
    ),
    "beirnl_rows_total": Metric("counter", "Rows that finished units have read.", ("stage",)),
    "beirnl_bytes_total": Metric("counter", "Bytes that finished units have written.", ("stage",)),
    "beirnl_tokens_total": Metric(
        "counter", "Tokens that finished units have paid for: prompt or completion.", ("stage", "kind")
    ),
    "beirnl_unit_seconds": Metric("histogram", "Seconds that a finished unit took.", ("stage",)),
    "beirnl_stage_units": Metric(
        "gauge", "Units of the stage that is made: done, running, pending, failed.", ("stage", "state")
    ),
    "beirnl_stage_seconds_left": Metric("gauge", "Seconds until it is done, if it goes on so.", ("stage",)),
    "beirnl_money_spent": Metric("gauge", "Money that the experiment has spent.", ("currency",)),
}


class Metrics:
    """The metrics of one process, a worker or the driver; each is made when it is first used."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def ended(self, task: Task, outcome: Receipt | BeirnlError) -> None:
        """Count a unit that has ended here."""
        stage = {"stage": task.stage}
        self._add("beirnl_units_total", 1, {**stage, "outcome": _name(outcome)})
        if isinstance(outcome, Receipt):
            self._add("beirnl_rows_total", outcome.rows_in, stage)
            self._add("beirnl_bytes_total", outcome.size, stage)
            for kind in ("prompt", "completion"):
                tokens = outcome.counts.get(f"{kind} tokens", 0)
                self._add("beirnl_tokens_total", tokens, {**stage, "kind": kind})
            self._metric("beirnl_unit_seconds").observe(outcome.seconds, tags=stage)

    def observe(self, stage: str, tally: Tally) -> None:
        """Show how far a stage is."""
        for state in ("done", "running", "pending", "failed"):
            self._metric("beirnl_stage_units").set(
                getattr(tally, state), tags={"stage": stage, "state": state}
            )
        if tally.left is not None:
            self._metric("beirnl_stage_seconds_left").set(tally.left, tags={"stage": stage})
        if tally.money is not None:
            self._metric("beirnl_money_spent").set(tally.money, tags={"currency": tally.currency})

    def _add(self, name: str, number: float, labels: dict[str, str]) -> None:
        if number > 0:  # a counter takes nothing else
            self._metric(name).inc(number, tags=labels)

    def _metric(self, name: str) -> Any:
        if name not in self._made:
            from ray.util import metrics

            told = METRICS[name]
            kinds = {"counter": metrics.Counter, "gauge": metrics.Gauge, "histogram": metrics.Histogram}
            more = {"boundaries": list(_SECONDS)} if told.kind == "histogram" else {}
            self._made[name] = kinds[told.kind](name, description=told.what, tag_keys=told.labels, **more)
        return self._made[name]


def _name(outcome: Receipt | BeirnlError) -> str:
    if isinstance(outcome, Receipt):
        return "done"
    if isinstance(outcome, StoppedError):
        return "stopped"
    if isinstance(outcome, SetAsideError):
        return "set-aside"
    return "budget" if isinstance(outcome, BudgetError) else "failed"
