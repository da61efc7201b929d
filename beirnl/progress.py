"""Progress of a run: bars with rates and time left on a terminal, plain lines in a log."""

import sys
import time
from typing import Any, Protocol

from beirnl.tally import Tally, duration, pause
from beirnl.wording import counted


class Progress(Protocol):
    """What the pipeline tells about its work, from one thread at a time."""

    def start(self, stage: str, label: str, tally: Tally) -> None:
        """A stage begins or goes on."""

    def show(self, tally: Tally) -> None:
        """How far it is: told whenever a unit is done, and every few seconds."""

    def finish(self, note: str = "") -> None:
        """The stage is finished."""

    def say(self, line: str) -> None:
        """A line for the user."""


class Silent:
    """Tells nothing; for use from Python."""

    def start(self, stage: str, label: str, tally: Tally) -> None:
        """Nothing."""

    def show(self, tally: Tally) -> None:
        """Nothing."""

    def finish(self, note: str = "") -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""


class Lines:
    """Plain lines on standard error: start, how far it is at growing intervals, end."""

    def __init__(self) -> None:
        self._heading = ""
        self._begin = self._told = 0.0

    def start(self, stage: str, label: str, tally: Tally) -> None:
        """Say what begins."""
        self._heading = f"{stage:14} {label}"
        self._begin = self._told = time.monotonic()
        rest = f", {tally.done} of them finished before" if tally.done else ""
        self.say(f"{self._heading}: {counted(tally.units, 'unit')}{rest}")

    def show(self, tally: Tally) -> None:
        """Say how far it is, if it was not said a while ago; see :func:`beirnl.tally.pause`."""
        now = time.monotonic()
        if now - self._told >= pause(now - self._begin):
            self._told = now
            self.say(f"{self._heading}: {tally.line()}")

    def finish(self, note: str = "") -> None:
        """Say how long it took."""
        took = duration(time.monotonic() - self._begin)
        self.say(f"{self._heading}: done in {took}{note and ', ' + note}")

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)


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
            TextColumn("{task.fields[left]}"),
            console=self._console,
        )
        self._progress.start()
        self._task: Any = None

    def start(self, stage: str, label: str, tally: Tally) -> None:
        """A new bar."""
        self._task = self._progress.add_task(
            label, total=tally.units, completed=tally.done, stage=stage, rate="", left=""
        )

    def show(self, tally: Tally) -> None:
        """Units, rates and time left beside the bar."""
        atwork = [f"{tally.running:,} running"] if tally.running else []
        failed = [f"{tally.failed:,} failed"] if tally.failed else []
        rate = ", ".join(filter(None, [*atwork, *failed, tally.rates()]))
        left = "" if tally.left is None else f"{duration(tally.left)} left"
        self._progress.update(self._task, completed=tally.done, rate=rate, left=left)

    def finish(self, note: str = "") -> None:
        """The bar is full."""
        self._progress.update(self._task, left="")
        if note:
            self._progress.update(self._task, rate=note)

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._console.print(line, markup=False, highlight=False)

    def stop(self) -> None:
        """Leave the bars as they are."""
        self._progress.stop()
