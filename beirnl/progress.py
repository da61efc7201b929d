"""Progress of a run: bars with rates and time left on a terminal, plain lines in a log."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

_LOOK = 3.0  # seconds between two looks at units at work


class Progress(Protocol):
    """What the pipeline tells about its work. A stage counts units; rows give the rate."""

    def start(self, stage: str, label: str, units: int, done: int) -> None:
        """A stage begins or goes on with ``done`` of ``units`` finished."""

    def advance(self, rows: int, seconds: float) -> None:
        """A unit is finished."""

    def partly(self, rows: int, doing: str = "") -> None:
        """Rows of units that are not finished yet, or what is done before there are any; may be called from
        another thread."""

    def finish(self, note: str = "") -> None:
        """The stage is finished."""

    def say(self, line: str) -> None:
        """A line for the user."""


class Silent:
    """Tells nothing; for use from Python."""

    def start(self, stage: str, label: str, units: int, done: int) -> None:
        """Nothing."""

    def advance(self, rows: int, seconds: float) -> None:
        """Nothing."""

    def partly(self, rows: int, doing: str = "") -> None:
        """Nothing."""

    def finish(self, note: str = "") -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""


def duration(seconds: float) -> str:
    """Seconds as people say them: ``42 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@contextmanager
def watched(progress: Progress, look: Callable[[], tuple[int, str]]) -> Iterator[None]:
    """Tell of units at work, every few seconds, while the block runs.

    Args:
        progress: is told.
        look: gives rows of units at work, and what is done before there are any.
    """
    end = threading.Event()

    def watch() -> None:
        while not end.wait(_LOOK):
            progress.partly(*look())

    thread = threading.Thread(target=watch, daemon=True, name="progress")
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _since(doing: str, seconds: float) -> str:
    return f", {doing or 'at work'} for {duration(seconds)}"


class Lines:
    """Plain lines on standard error: start, every ten seconds, end."""

    EVERY = 10.0

    def __init__(self) -> None:
        self._stage = self._label = ""
        self._units = self._done = self._first = self._rows = 0
        self._begin = self._told = 0.0

    def start(self, stage: str, label: str, units: int, done: int) -> None:
        """Say what begins."""
        self._stage, self._label, self._units = stage, label, units
        self._done = self._first = done
        self._rows, self._begin = 0, time.monotonic()
        self._told = self._begin
        rest = f", {done} of them finished before" if done else ""
        self.say(f"{stage:14} {label}: {units} unit{'s' * (units != 1)}{rest}")

    def advance(self, rows: int, seconds: float) -> None:
        """Say how far it is, at most every ten seconds."""
        self._done, self._rows = self._done + 1, self._rows + rows
        if time.monotonic() - self._told > self.EVERY:
            self._told = time.monotonic()
            self.say(f"{self._stage:14} {self._label}: {self._done}/{self._units} units, {self._rate()}")

    def partly(self, rows: int, doing: str = "") -> None:
        """Say how far the units at work are, or that they are at work, at most every ten seconds."""
        if time.monotonic() - self._told > self.EVERY:
            self._told = time.monotonic()
            elapsed = max(1e-6, time.monotonic() - self._begin)
            done = f"{self._done}/{self._units} units"
            rate = f" and {rows} rows, {(self._rows + rows) / elapsed:.0f} rows/s"
            self.say(f"{self._stage:14} {self._label}: {done}{rate if rows else _since(doing, elapsed)}")

    def finish(self, note: str = "") -> None:
        """Say how long it took."""
        took = duration(time.monotonic() - self._begin)
        self.say(f"{self._stage:14} {self._label}: done in {took}{note and ', ' + note}")

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)

    def _rate(self) -> str:
        elapsed = max(1e-6, time.monotonic() - self._begin)
        new = max(1, self._done - self._first)
        left = duration((self._units - self._done) * elapsed / new)
        return f"{self._rows / elapsed:.0f} rows/s, {left} left"


class Bars:
    """Bars of rich on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress

        self._console = Console(stderr=True)
        self._progress = RichProgress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.fields[stage]:14}"),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._progress.start()
        self._task: Any = None
        self._rows, self._begin = 0, 0.0

    def start(self, stage: str, label: str, units: int, done: int) -> None:
        """A new bar."""
        self._rows, self._begin = 0, time.monotonic()
        self._task = self._progress.add_task(label, total=units, completed=done, stage=stage, rate="")

    def advance(self, rows: int, seconds: float) -> None:
        """One unit further."""
        self._rows += rows
        rate = f"{self._rows / max(1e-6, time.monotonic() - self._begin):.0f} rows/s"
        self._progress.update(self._task, advance=1, rate=rate)

    def partly(self, rows: int, doing: str = "") -> None:
        """Show the rows of units at work, or what is done before there are any."""
        done = self._rows + rows
        rate = f"{done} rows, {done / max(1e-6, time.monotonic() - self._begin):.0f} rows/s"
        self._progress.update(self._task, rate=rate if done else doing)

    def finish(self, note: str = "") -> None:
        """The bar is full."""
        if note:
            self._progress.update(self._task, rate=note)

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._console.print(line, markup=False, highlight=False)

    def stop(self) -> None:
        """Leave the bars as they are."""
        self._progress.stop()
