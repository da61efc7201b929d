"""The end of a file to which lines are appended: a file, or segments in an object store.

An object cannot be appended to. What comes in is gathered in a file of this node, and that is sealed (put as
an object) after ``SEAL_SECONDS`` or ``SEAL_BYTES``, whichever is first, and when the journal is closed. So a
node that vanishes takes half a minute of answers with it at most; a process that dies leaves its file, which
the next reader on this node seals.
"""

import contextlib
import hashlib
import os
import threading
import time
from pathlib import Path
from typing import IO

from beirnl.errors import StoreError
from beirnl.store.cache import cache
from beirnl.store.files import node_folder
from beirnl.store.places import RemotePath

SEAL_SECONDS, SEAL_BYTES = 30.0, 8 << 20


class AppendedFile:
    """A file of this machine.

    Args:
        folder: made if absent.
        name: of the file, which is made or continued.
    """

    SYNC_SECONDS = 1.0

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / name).open("ab", buffering=0)
        self._synced = time.monotonic()

    def append(self, line: bytes) -> None:
        """Write a line; within a second it is on the disk if others follow."""
        self._file.write(line)
        if time.monotonic() - self._synced > self.SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Force what was written to the disk now."""
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Force it to the disk, and close it."""
        self.sync()
        self._file.close()


class Segments:
    """Segments in an object store; several threads may append.

    Args:
        folder: where they are put.
        name: of the first one; the others have a number, too.
    """

    def __init__(self, folder: RemotePath, name: str) -> None:
        self._folder, self._name = folder, name
        self._lock = threading.RLock()
        self._number = 0
        self._open: tuple[Path, IO[bytes]] | None = None
        self._timer: threading.Timer | None = None

    def append(self, line: bytes) -> None:
        """Add a line to the open segment, and seal it when it is large."""
        with self._lock:
            _, file = self._open or self._begin()
            file.write(line)
            if file.tell() >= SEAL_BYTES:
                self.sync()

    def _begin(self) -> tuple[Path, IO[bytes]]:
        stem = self._name.removesuffix(".jsonl")
        path = _waiting(self._folder) / (f"{stem}-{self._number:03d}.jsonl" if self._number else self._name)
        path.parent.mkdir(parents=True, exist_ok=True)
        cache().pin(path.name)
        self._open = path, path.open("ab", buffering=0)
        self._number += 1
        self._start_timer()
        return self._open

    def _start_timer(self) -> None:
        self._timer = threading.Timer(SEAL_SECONDS, self._seal_in_time)
        self._timer.daemon = True
        self._timer.start()

    def _seal_in_time(self) -> None:
        with self._lock:
            try:
                self.sync()
            except StoreError:  # tried again; told when the journal is closed
                self._start_timer()

    def sync(self) -> None:
        """Seal the open segment now.

        Raises:
            StoreError: the store does not take it; what it holds stays on this node.
        """
        with self._lock:
            if self._open is None:
                return
            path, file = self._open
            _seal(path, self._folder)
            self._end(path, file)

    def close(self) -> None:
        """Seal what is open, as :meth:`sync`."""
        with self._lock:
            try:
                self.sync()
            finally:
                if self._open:
                    self._end(*self._open)

    def _end(self, path: Path, file: IO[bytes]) -> None:
        if self._timer:
            self._timer.cancel()
        file.close()
        self._open = None
        cache().unpin(path.name)


def seal_left_behind(folder: RemotePath) -> None:
    """Seal what processes of this node that have died were gathering for a folder."""
    with contextlib.suppress(FileNotFoundError):
        for path in _waiting(folder).iterdir():
            if not cache().is_pinned(path.name):
                with contextlib.suppress(FileNotFoundError):  # somebody else has done it meanwhile
                    _seal(path, folder)


def _waiting(folder: RemotePath) -> Path:
    """Where this node gathers what is to be put into a folder."""
    name = hashlib.blake2b(str(folder).encode(), digest_size=10).hexdigest()
    return node_folder().with_name("journal") / name


def _seal(path: Path, folder: RemotePath) -> None:
    (folder / path.name).write_bytes(path.read_bytes())
    path.unlink()
