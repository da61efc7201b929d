"""Parts of an object store as files of this node: fetched once, verified, and removed when room is needed.

    <node folder>/<part>-<checksum>       a part: a file, or the folder that was packed
    <node folder>/.<attempt>              what is being fetched, packed or written

All processes of a node share the folder. Whoever uses an entry holds a shared lock of the operating system on
a byte of the file ``pins`` that the entry's name picks; the lock goes with the process, however it ends. An
entry is removed only by who gets that byte for himself: least recently used first, until all is within the
limit, and what a dead process has left unfinished at once.
"""

import fcntl
import hashlib
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from beirnl.errors import ConfigError
from beirnl.store.files import node_folder

LIMIT_VARIABLE = "BEIRNL_CACHE_GB"
_DEFAULT_SHARE = 0.5  # of the disk
_SLACK = 0.02  # of the limit may be added before it is looked at again
_STRIPES = 64  # entries that are fetched at the same time


class Pins:
    """Entries that are in use until they are released."""

    def __init__(self) -> None:
        self._names: list[tuple[Cache, str]] = []

    def add(self, cache: "Cache", name: str) -> None:
        """Take note of an entry that has been pinned."""
        self._names.append((cache, name))

    def release(self) -> None:
        """Let them be removed."""
        while self._names:
            cache, name = self._names.pop()
            cache.unpin(name)


_pins: ContextVar[Pins | None] = ContextVar("pins", default=None)


@contextmanager
def collected() -> Iterator[Pins]:
    """What is opened in the block stays on this node until the caller releases it."""
    pins = Pins()
    token = _pins.set(pins)
    try:
        yield pins
    finally:
        _pins.reset(token)


@contextmanager
def pinned() -> Iterator[None]:
    """What is opened in the block stays on this node until its end."""
    with collected() as pins:
        try:
            yield
        finally:
            pins.release()


class Cache:
    """The copies on this node.

    Args:
        folder: where they lie; made if absent.
        limit: bytes that they take together, as far as what is in use allows.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.limit = folder, limit
        self._descriptor = os.open(folder / "pins", os.O_RDWR | os.O_CREAT, 0o644)
        self._held: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._added = float("inf")  # bytes since the limit was looked at: it is looked at first

    def use(self, name: str) -> Path:
        """The path of an entry, there or not, which nobody removes for as long as the block around it says
        (:func:`pinned`, :func:`collected`), or else as this process lives."""
        self.pin(name)
        if pins := _pins.get():
            pins.add(self, name)
        path = self.folder / name
        with suppress(FileNotFoundError):
            os.utime(path)  # it has been used now
        return path

    def pin(self, name: str) -> None:
        """Keep an entry from being removed, by whatever process of this node."""
        with self._lock:
            if not self._held[name]:
                fcntl.lockf(self._descriptor, fcntl.LOCK_SH, 1, _byte(name))
            self._held[name] += 1

    def unpin(self, name: str) -> None:
        """Undo a :meth:`pin`."""
        with self._lock:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _byte(name))

    def is_pinned(self, name: str) -> bool:
        """Whether this process or another one of this node uses an entry, or anything of that name."""
        with self._lock:
            if self._held.get(name):
                return True
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name))
            except OSError:
                return True
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _byte(name))
            return False

    @contextmanager
    def fetching(self, name: str) -> Iterator[None]:
        """One process or thread of this node at a time: who waits finds what another one has fetched."""
        from filelock import FileLock

        with FileLock(self.folder / f"fetching.{_byte(name) % _STRIPES}"):
            yield

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """A folder for what is not whole yet; removed at the end, or by others when this process has died."""
        path = self.begin(name)
        try:
            yield path
        finally:
            self.end(path)

    def begin(self, name: str) -> Path:
        """As :meth:`scratch`, until :meth:`end`."""
        self.pin(f".{name}")
        path = self.folder / f".{name}"
        path.mkdir(exist_ok=True)
        return path

    def end(self, scratch: Path) -> None:
        """Remove a scratch folder, if it is still there."""
        shutil.rmtree(scratch, ignore_errors=True)
        self.unpin(scratch.name)

    def keep(self, made: Path, name: str) -> None:
        """Make what lies in a scratch folder the entry of this name."""
        entry = self.folder / name
        try:
            made.rename(entry)
        except OSError:
            if not entry.is_dir():  # a folder that is there already is the same
                raise
        self._added += _size(entry)
        if self._added > _SLACK * self.limit:
            self.shrink()

    def shrink(self) -> None:
        """Remove what dead processes have left, and what has not been used for longest, down to the limit."""
        self._added = 0.0
        entries = []
        for path in self.folder.iterdir():
            if path.name.startswith("."):
                self._remove(path)
            elif not path.name.startswith(("pins", "fetching")):
                with suppress(FileNotFoundError):
                    entries.append((path.lstat().st_mtime, path, _size(path)))
        excess = sum(size for _, _, size in entries) - self.limit
        for _, path, size in sorted(entries):
            if excess <= 0:
                break
            if self._remove(path):
                excess -= size

    def _remove(self, path: Path) -> bool:
        """Remove an entry if nobody uses it."""
        with self._lock:
            if self._held.get(path.name):
                return False
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(path.name))
            except OSError:
                return False  # in use by another process
            try:
                doomed = path.with_name(f".removed-{os.getpid()}-{time.monotonic_ns()}")
                with suppress(FileNotFoundError):
                    path.rename(doomed)
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _byte(path.name))
        if doomed.is_dir():
            shutil.rmtree(doomed, ignore_errors=True)
        doomed.unlink(missing_ok=True)
        return True


def cache() -> Cache:
    """The cache of this node, as the environment says."""
    return _cache(node_folder(), os.environ.get(LIMIT_VARIABLE, ""), os.getpid())


@lru_cache(maxsize=4)
def _cache(folder: Path, limit: str, process: int) -> Cache:
    """One per process: locks of the operating system belong to a process."""
    made = Cache(folder, 0)
    made.limit = _limit(limit, shutil.disk_usage(folder).total)
    return made


def _limit(text: str, disk: int) -> int:
    if not text:
        return int(_DEFAULT_SHARE * disk)
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = -1.0
    if not gigabytes > 0:
        remedy = "give gigabytes, as 50"
        raise ConfigError(f"{text!r} is no size", where=LIMIT_VARIABLE, remedy=remedy)
    return int(gigabytes * 1e9)


def _byte(name: str) -> int:
    """The byte of the file of pins that stands for an entry."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest())


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.exists() else 0
