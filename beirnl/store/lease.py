"""One driver at a time on a workspace: a lease with a counter that its holder renews.

An observer judges a lease stale by its own monotonic clock, when the counter has not moved for ``STALE``
seconds; clocks of two machines are never compared. A holder on the same host whose process is gone is stale
at once, so that a killed run can be taken up without waiting.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from beirnl.errors import StoreError
from beirnl.store.files import disk_errors, write_atomically, write_once
from beirnl.store.places import Place

RENEW, STALE = 10.0, 60.0
UNKNOWN: dict[str, Any] = {"host": "unknown", "pid": 0, "counter": -1}


def _process_start(pid: int) -> str | None:
    """Start time of a live process in clock ticks since boot (Linux), None where there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rsplit(")", 1)[1].split()
        return None if fields[0] == "Z" else fields[19]
    except FileNotFoundError:
        return None if Path("/proc/self").exists() else "unknown"
    except (OSError, IndexError):
        return "unknown"


def alive_here(holder: dict[str, Any]) -> bool | None:
    """Whether the holder lives; None if it is on another host, where only its counter can tell."""
    if holder.get("host") != socket.gethostname():
        return None
    start = _process_start(int(holder["pid"]))
    return start is not None and start in (holder.get("start"), "unknown")


def this_process() -> dict[str, Any]:
    """Names this process among those of all hosts and times."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "start": _process_start(os.getpid())}


def name_of(holder: dict[str, Any]) -> str:
    """A holder in words."""
    return f"process {holder.get('pid')} on {holder.get('host')}"


def watching(holder: dict[str, Any]) -> str:
    """What a user is told while a holder of another host is watched."""
    return f"the workspace was held by {name_of(holder)}; watching for {STALE:.0f} s whether it still runs"


def refusal(holder: dict[str, Any], workspace: Place) -> StoreError:
    """Another run holds a workspace."""
    return StoreError(
        f"another run holds this workspace: {name_of(holder)}",
        where=workspace,
        remedy="wait for it, stop it, or use another workspace",
    )


class Lease:
    """Context manager that holds the lease of a workspace.

    Args:
        path: the lease file.
        say: called with a line for the user while another holder is being watched.

    Raises:
        StoreError: another run holds the workspace; names it.
    """

    def __init__(self, path: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self._path, self._say = path, say
        self._me = {**this_process(), "token": uuid.uuid4().hex}
        self._stop = threading.Event()
        self._counter = 0

    def __enter__(self) -> "Lease":
        with disk_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            while not self._create():
                self._wait_or_refuse()
        threading.Thread(target=self._renew, daemon=True, name="lease").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        holder = self.holder(self._path)
        if holder and holder.get("token") == self._me["token"]:
            self._path.unlink(missing_ok=True)

    @staticmethod
    def holder(path: Path) -> dict[str, Any] | None:
        """Who holds the lease at ``path``, or None."""
        try:
            return {**UNKNOWN, **json.loads(path.read_bytes())}
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            return UNKNOWN

    def _create(self) -> bool:
        """Put the lease in place whole, or not at all; whether it is this run's."""
        return write_once(self._path, json.dumps({**self._me, "counter": 0}).encode())

    def _wait_or_refuse(self) -> None:
        """Remove a stale lease, or refuse where its holder lives."""
        first = self.holder(self._path)
        if first is None:
            return
        alive = alive_here(first)
        if alive is None:
            self._say(watching(first))
            alive = self._counter_moves(first)
        if alive:
            raise refusal(first, self._path.parent)
        now = self.holder(self._path)
        if now and now.get("token") == first.get("token"):
            self._path.unlink(missing_ok=True)

    def _counter_moves(self, first: dict[str, Any]) -> bool:
        end = time.monotonic() + STALE
        while time.monotonic() < end:
            time.sleep(min(2.0, STALE / 10))
            if self.holder(self._path) != first:
                return True
        return False

    def _renew(self) -> None:
        while not self._stop.wait(RENEW):
            holder = self.holder(self._path)
            if not holder or holder.get("token") != self._me["token"]:
                return
            self._counter += 1
            with contextlib.suppress(OSError):  # a full disk is met, and told, by the stage that writes
                write_atomically(self._path, json.dumps({**self._me, "counter": self._counter}).encode())
