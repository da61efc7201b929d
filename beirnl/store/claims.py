"""One driver at a time on a workspace in an object store, by claims that each contender puts and lists.

    lease/<token>.json

There is no request by which only one of two can put an object (none that every store has, and pyarrow asks
for none). So a contender puts a claim of its own, then lists all of them, and holds the workspace if his is
the only one. This is safe because a claim is seen by every listing that begins after it was put: of two that
contend, the one who lists later has listed after both had put, and sees the other's claim, unless that one
has withdrawn it. So at most one finds himself alone. Of two who see each other before either holds, the one
with the greater token withdraws and is refused, and the other waits until that has happened: he does not hold
before a listing shows him alone.

A claim is renewed from when it is put. Those of processes of this host that are gone are removed at once;
those of other hosts when their counter has not moved for ``STALE`` seconds of the observer's own monotonic
clock. Only a run that slept for longer than that can lose its claim to another one; it finds that out before
it holds, or else renews no more, and what it still commits harms nobody, since parts carry their attempt.
"""

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any

from beirnl.errors import StoreError
from beirnl.store import lease
from beirnl.store.places import RemotePath, names

_POLL = 0.5  # seconds between looks at a claim


class Claim:
    """Context manager that holds the lease of a workspace in an object store.

    Args:
        folder: of the claims.
        say: called with a line for the user while another holder is being watched.

    Raises:
        StoreError: another run holds the workspace; names it.
    """

    def __init__(self, folder: RemotePath, say: Callable[[str], None] = lambda _: None) -> None:
        self._folder, self._say = folder, say
        self._me = {**lease.this_process(), "token": uuid.uuid4().hex}
        self._place = folder / f"{self._me['token']}.json"
        self._counter, self._held = 0, False
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True, name="lease")

    def __enter__(self) -> "Claim":
        self._put()
        self._thread.start()
        try:
            while others := self._others():
                for other in others:
                    self._contend(other)
        except BaseException:
            self._withdraw()
            raise
        self._held = True
        self._put()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(StoreError):  # it goes stale
            self._withdraw()

    def _withdraw(self) -> None:
        self._stop.set()
        self._thread.join()  # else it could put the claim again after it is gone
        self._place.unlink(missing_ok=True)

    def _put(self) -> None:
        with self._lock:
            claim = {**self._me, "held": self._held, "counter": self._counter}
            self._place.write_bytes(json.dumps(claim).encode())

    def _others(self) -> list[RemotePath]:
        """The claims of others, in a listing that shows this one's."""
        listed = sorted(names(self._folder))
        if self._place.name not in listed:
            raise StoreError(
                "another run took this one for dead", where=self._folder, remedy="run the same command again"
            )
        return [self._folder / name for name in listed if name != self._place.name]

    def _contend(self, place: RemotePath) -> None:
        """Wait until a claim is withdrawn, remove one that is stale, or give way to one that is renewed.

        Raises:
            StoreError: its run holds the workspace, or is to hold it.
        """
        now = first = read_claim(place)
        end = time.monotonic() + lease.STALE
        while now and first:
            alive = lease.alive_here(now)
            if alive is None and now["counter"] != first["counter"]:
                alive = True
            if alive and (now["held"] or now["token"] < self._me["token"]):
                raise lease.refusal(now, self._folder.parent)
            if alive is False or (alive is None and time.monotonic() > end):
                place.unlink(missing_ok=True)
                return
            if alive is None and now is first:
                self._say(lease.watching(now))
            time.sleep(min(_POLL, lease.STALE / 10))
            now = read_claim(place)

    def _renew(self) -> None:
        while not self._stop.wait(lease.RENEW):
            with contextlib.suppress(StoreError):  # met, and told, by what reads and writes parts
                if read_claim(self._place) is None:
                    return
                self._counter += 1
                self._put()


def read_claim(place: RemotePath) -> dict[str, Any] | None:
    """A claim, or None where there is none any more."""
    try:
        return {**lease.UNKNOWN, "held": True, "token": "", **json.loads(place.read_bytes())}
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        return {**lease.UNKNOWN, "held": True, "token": ""}


def holder(folder: RemotePath) -> dict[str, Any] | None:
    """Who holds the workspace whose claims lie in a folder, or None: of several claims one that is held."""
    claims = [claim for name in names(folder) if (claim := read_claim(folder / name))]
    return max(claims, key=lambda claim: bool(claim["held"]), default=None)
