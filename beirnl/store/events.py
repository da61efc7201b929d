"""What happened in the runs of an experiment, one line of JSON an event: the driver alone writes it.

Lines are only ever appended. Durations and the order within a run come from the driver's monotonic clock; the
time of day is there for people, and nothing is computed from it: clocks jump.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from beirnl.errors import StoreError
from beirnl.store.places import Place, RemotePath, names
from beirnl.store.segments import AppendedFile, Segments, seal_left_behind

RUN_STARTED, RUN_ENDED = "run-started", "run-ended"
STAGE_STARTED, STAGE_ENDED = "stage-started", "stage-ended"
UNIT_DONE, UNIT_SET_ASIDE, ATTEMPT_DIED = "unit-done", "unit-set-aside", "attempt-died"
PROGRESS, BUDGET = "progress", "budget"


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One event; what it has nothing to say of is left out of its line.

    Attributes:
        event: its kind: a run or a stage has started or ended, a unit is done, an attempt at one has died
            with its worker, a unit that has killed as many as it may is set aside, how far the stage is
            (every so often), or what ``max_cost`` leaves is shared out.
        run: which run; the one that attempts and their markers are named by.
        at: seconds since the run started, by the driver's monotonic clock.
        time: time of day (UTC), for people.
        stage, label, key: of what artifact; a stage that starts may be making several at once.
        unit: its number, -1 for the reduction of an artifact.
        units, done: of the stage: all, and how many are finished, by earlier runs too.
        running, failed: units at work; attempts that have died.
        workers: of the stage.
        rows, bytes, prompt_tokens, completion_tokens: of the unit, or of the stage in this run so far.
        partly: rows of units at work.
        seconds: of the unit, by its worker's monotonic clock, what the worker loads not included.
        worker, node: ``host:process``, and the node of the cluster.
        deaths: attempts at the unit that have died in this run.
        money: spent by the experiment, or (budget) what each worker may spend from here.
        currency: of the money.
        error: why a stage or a run has ended before its end.
    """

    event: str
    run: str
    at: float
    time: str = ""
    stage: str = ""
    label: str = ""
    key: str = ""
    unit: int | None = None
    units: int = 0
    done: int = 0
    running: int = 0
    failed: int = 0
    workers: int = 0
    rows: int = 0
    partly: int = 0
    bytes: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    worker: str = ""
    node: str = ""
    deaths: int = 0
    money: float | None = None
    currency: str = ""
    error: str = ""

    @property
    def tokens(self) -> int:
        """Tokens that were asked and answered."""
        return self.prompt_tokens + self.completion_tokens


class EventLog:
    """The events of one run, as a context manager that writes its start and its end.

    What cannot be written is passed over: a full disk is met, and told, by what writes the result.

    Args:
        path: the file of the experiment, or its folder in an object store; None writes nothing.
        run: names the run.
    """

    def __init__(self, path: Place | None, run: str) -> None:
        self._path, self.run = path, run
        self._end: AppendedFile | Segments | None = None
        self._lock, self._begin = threading.Lock(), time.monotonic()

    def write(self, event: str, **about: Any) -> None:
        """Append an event; see :class:`Event` for what it may say. From any thread."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock:
            at = round(time.monotonic() - self._begin, 3)
            line = msgspec.json.encode(Event(event=event, run=self.run, at=at, time=now, **about)) + b"\n"
            if self._end:
                with contextlib.suppress(OSError, StoreError):
                    self._end.append(line)

    def __enter__(self) -> Self:
        if self._path:
            with contextlib.suppress(OSError, StoreError):
                self._end = _end_of(self._path, self.run)
        self.write(RUN_STARTED)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write(RUN_ENDED, error=said(value))
        with self._lock:
            end, self._end = self._end, None
            if end:
                with contextlib.suppress(OSError, StoreError):
                    end.close()


def said(error: BaseException | None) -> str:
    """An error in a line, empty for none."""
    return "" if error is None else str(error) or type(error).__name__


def _end_of(path: Place, run: str) -> AppendedFile | Segments:
    """Where the lines of a run go: in an object store, segments of its own, in order of time of day."""
    if isinstance(path, RemotePath):
        return Segments(path, f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{run}.jsonl")
    end = AppendedFile(path.parent, path.name)
    if not _ends_a_line(path):
        end.append(b"\n")
    return end


def _ends_a_line(path: Path) -> bool:
    """Whether a file is empty or whole; its last line may be that of a run that was killed."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return True
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def read_events(path: Place) -> Iterator[Event]:
    """The events of an experiment, oldest run first; none where it never ran. Torn lines are passed over."""
    decoder = msgspec.json.Decoder(Event)
    for line in _lines(path):
        with contextlib.suppress(msgspec.MsgspecError, ValueError):
            yield decoder.decode(line)


def _lines(path: Place) -> Iterator[bytes]:
    if isinstance(path, RemotePath):
        seal_left_behind(path)
        for name in sorted(names(path), key=lambda name: name.removesuffix(".jsonl")):
            yield from (path / name).read_bytes().splitlines()
        return
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        yield from file
