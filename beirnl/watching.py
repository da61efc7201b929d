"""A group of nodes while it is made: what is told of it to the user, the events and the cluster's metrics."""

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from beirnl.progress import Progress
from beirnl.spending import Paid
from beirnl.stages.base import Allowance, Task
from beirnl.store.artifacts import REDUCE, Receipt
from beirnl.store.attempts import MAX_DEATHS, at_work, attempts_by_unit, outlives_its_unit, unit_name
from beirnl.store.events import (
    ATTEMPT_DIED,
    BUDGET,
    PROGRESS,
    STAGE_ENDED,
    STAGE_STARTED,
    UNIT_DONE,
    UNIT_SET_ASIDE,
    EventLog,
    said,
)
from beirnl.store.places import Place
from beirnl.tally import Tally, pause

_LOOK = 3.0  # seconds between two looks at units at work


class Target(NamedTuple):
    """An artifact that is being made: its label, key and folder."""

    label: str
    key: str
    directory: Place


class Watch:
    """Follows a group of artifacts of one stage, as a context manager.

    Args:
        stage, heading: what is made, and for what.
        places: the artifacts.
        tally: with the units that there are, and those that are done.
        log: where events are appended.
        progress: is told how far it is.
        observe: gets stage and tally every so often; of the executor, for its metrics.
        paid: what the stage's answers have cost so far, or None where it asks nobody.
        workers: at most.
    """

    def __init__(
        self,
        stage: str,
        heading: str,
        places: Sequence[Target],
        tally: Tally,
        *,
        log: EventLog,
        progress: Progress,
        observe: Callable[[str, Tally], None],
        paid: Callable[[], Paid] | None = None,
        workers: int = 1,
    ) -> None:
        self._stage, self._heading, self._places, self._tally = stage, heading, places, tally
        self._log, self._progress, self._observe, self._paid = log, progress, observe, paid
        self._workers = workers
        self._keys = {place.directory: place.key for place in places}
        self._finished: set[tuple[Place, str]] = set()
        self._aside: set[tuple[Place, str]] = set()
        self._deaths: dict[tuple[Place, str], int] = {}
        self._lock, self._end = threading.RLock(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True, name="progress")

    def __enter__(self) -> Self:
        tally = self._tally
        self._begin = self._told = time.monotonic()
        self._before = self._paid() if self._paid else Paid()
        counted = {"units": tally.units, "done": tally.done, "workers": self._workers}
        self._log.write(STAGE_STARTED, stage=self._stage, label=self._heading, **counted)
        self._progress.start(self._stage, self._heading, tally)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        self._update(last=True)
        tally = self._tally
        ended = {"stage": self._stage, "label": self._heading, "units": tally.units, "done": tally.done}
        self._log.write(STAGE_ENDED, **ended, failed=tally.failed, error=said(value))
        if value is None:
            self._progress.finish(tally.note())

    def finished(self, task: Task, receipt: Receipt) -> None:
        """A unit is done."""
        with self._lock:
            tally = self._tally
            self._record(task, receipt)
            tally.done += 1
            tally.running = min(tally.running, tally.units - tally.done)  # until the next look
            tally.rows, tally.bytes = tally.rows + receipt.rows_in, tally.bytes + receipt.size
            tally.work += receipt.seconds
            tally.seconds = time.monotonic() - self._begin
            self._progress.show(tally)

    def reduced(self, task: Task, receipt: Receipt) -> None:
        """An artifact is reduced."""
        with self._lock:
            self._record(task, receipt)
            self._tally.bytes += receipt.size

    def set_aside(self, task: Task) -> None:
        """A unit has killed as many workers as it may; the others go on without it."""
        with self._lock:
            self._aside.add((task.directory, unit_name(task.unit)))
        about = {"stage": task.stage, "label": task.label, "key": self._keys.get(task.directory, "")}
        self._log.write(UNIT_SET_ASIDE, **about, unit=task.unit, deaths=MAX_DEATHS)

    def budget(self, allowance: Allowance | None) -> None:
        """What each worker may spend from here; None: no limit."""
        if allowance:
            self._log.write(BUDGET, stage=self._stage, label=self._heading, money=allowance.money)

    def _record(self, task: Task, receipt: Receipt) -> None:
        self._finished.add((task.directory, unit_name(task.unit)))
        prompt, completion = _tokens(receipt)
        self._log.write(
            UNIT_DONE,
            stage=task.stage,
            label=task.label,
            key=self._keys.get(task.directory, ""),
            unit=task.unit,
            rows=receipt.rows_in,
            bytes=receipt.size,
            prompt_tokens=prompt,
            completion_tokens=completion,
            seconds=receipt.seconds,
            worker=receipt.worker,
            node=receipt.node,
        )

    def _look(self) -> None:
        while not self._end.wait(_LOOK):
            self._update()

    def _update(self, last: bool = False) -> None:
        """Look at units at work; tell the events and the metrics if it was not done a while ago."""
        with self._lock:  # before the listing: a marker is removed before its unit is told
            finished, aside = set(self._finished), set(self._aside)
        running = self._count_attempts(finished, aside)
        folders = [] if last else [place.directory for place in self._places]
        partly, doing = at_work(folders, self._log.run)
        now = time.monotonic()
        pulse = last or now - self._told >= pause(now - self._begin)
        paid = self._paid() if self._paid and pulse else None
        with self._lock:
            tally = self._tally
            tally.running, tally.partly, tally.seconds = 0 if last else running, partly, now - self._begin
            tally.doing = doing
            if paid:
                tally.prompt_tokens = paid.prompt_tokens - self._before.prompt_tokens
                tally.completion_tokens = paid.completion_tokens - self._before.completion_tokens
                tally.money, tally.currency = paid.money, paid.currency
            self._progress.show(tally)
            if pulse:
                self._told = now
                self._pulse(tally)

    def _pulse(self, tally: Tally) -> None:
        self._observe(self._stage, tally)
        self._log.write(
            PROGRESS,
            stage=self._stage,
            label=self._heading,
            units=tally.units,
            done=tally.done,
            running=tally.running,
            failed=tally.failed,
            rows=tally.rows,
            partly=tally.partly,
            bytes=tally.bytes,
            prompt_tokens=tally.prompt_tokens,
            completion_tokens=tally.completion_tokens,
            money=tally.money,
            currency=tally.currency,
        )

    def _count_attempts(self, finished: set[tuple[Place, str]], aside: set[tuple[Place, str]]) -> int:
        """Units at work. A marker beyond that of the attempt at work is of a death, and so is every one of a
        unit that is finished or set aside; but for that of the attempt that finished it, where it stays."""
        running = 0
        for label, key, directory in self._places:
            for unit, attempts in attempts_by_unit(directory, self._log.run).items():
                done = (directory, unit) in finished
                at_work = not done and (directory, unit) not in aside
                running += at_work
                deaths = attempts - (at_work or (done and outlives_its_unit(directory)))
                for number in range(self._deaths.get((directory, unit), 0), deaths):
                    self._died(label, key, directory, unit, number + 1)
        return running

    def _died(self, label: str, key: str, directory: Place, unit: str, deaths: int) -> None:
        with self._lock:
            self._tally.failed += 1
            self._deaths[directory, unit] = deaths
        number = int(unit) if unit.isdigit() else REDUCE
        self._log.write(ATTEMPT_DIED, stage=self._stage, label=label, key=key, unit=number, deaths=deaths)


def _tokens(receipt: Receipt) -> tuple[int, int]:
    return receipt.counts.get("prompt tokens", 0), receipt.counts.get("completion tokens", 0)
