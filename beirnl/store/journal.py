"""Answers already paid for: append-only files, one per attempt at a unit, looked up by what was asked.

    journal/<request-spec>/<low>-<high>-<attempt>.jsonl

``low`` and ``high`` bound the 12-bit buckets of the source texts whose answers a file holds. Shards are cut
by the leading bits of a text's digest, so that a shard of one dataset finds the answers that the same texts
got in another one in the files whose range meets its own. A torn last line is ignored.

In an object store, where nothing can be appended to, a file is a segment that holds what was answered in a
while: see :mod:`beirnl.store.segments`.
"""

import contextlib
import io
from collections.abc import Container, Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol

import msgspec

from beirnl.errors import StoreError
from beirnl.store.files import disk_errors, write_atomically
from beirnl.store.places import Place, RemotePath, names, sizes
from beirnl.store.segments import AppendedFile, Segments, seal_left_behind

BUCKETS = 1 << 12
REFUSALS = 3  # as often is a request asked through batch files that the provider refuses


class Entry(msgspec.Struct, frozen=True):
    """One answer: the key of its request and what came back; log-probabilities where they were told."""

    key: str
    text: str
    finish_reason: Literal["stop", "length", "error"]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    logprobs: tuple[tuple[str, float], ...] | msgspec.UnsetType = msgspec.UNSET


def bucket_range(shard: int, shards: int) -> tuple[int, int]:
    """The buckets of a shard among ``shards`` (a power of two): first, and last plus one."""
    low = shard * BUCKETS // shards
    return low, low + max(1, BUCKETS // shards)


class Journal:
    """The journal of one unit: reads what others have written, appends what this attempt is answered.

    Args:
        folder: ``journal/<request-spec>``.
        low, high: buckets of the unit's texts, from the first up to, not including, the last; see
            :func:`bucket_range`.
        writer: the attempt, which names the file.
    """

    def __init__(self, folder: Place, low: int, high: int, writer: str) -> None:
        self.folder, self.low, self.high = folder, low, high
        self._name = journal_name(low, high, writer)
        self._end: _End | None = None

    def known(self, keys: Container[str]) -> dict[str, Entry]:
        """The answers to the requests with these keys that are there already, by key.

        A refusal (``finish_reason`` ``error``) may pass; after :data:`REFUSALS` of them it is the answer.
        """
        answers: dict[str, Entry] = {}
        refused: dict[str, list[Entry]] = {}
        for entry in (entry for path in self._files() for entry in read_entries(path)):
            if entry.key in keys and entry.finish_reason != "error":
                answers[entry.key] = entry
            elif entry.key in keys:
                refused.setdefault(entry.key, []).append(entry)
        final = {key: found[-1] for key, found in refused.items() if len(found) >= REFUSALS}
        return final | answers

    def append(self, entry: Entry) -> None:
        """Record an answer: at once safe from the death of this process, within a second from that of the
        machine (in an object store: within half a minute), and at the latest when the journal closes."""
        with disk_errors(self.folder):
            if self._end is None:
                self._end = _end_of(self.folder, self._name)
            self._end.append(encode(entry))

    def sync(self) -> None:
        """Make what was written safe from the death of the machine now."""
        if self._end:
            self._end.sync()

    def _files(self) -> Iterator[Place]:
        if isinstance(self.folder, RemotePath):
            seal_left_behind(self.folder)
        for name in sorted(name for name in names(self.folder) if name.endswith(".jsonl")):
            low, high = (int(bound, 16) for bound in name.split("-")[:2])
            if low < self.high and self.low < high:
                yield self.folder / name

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end:
            with disk_errors(self.folder):
                self._end.close()


class _End(Protocol):
    """Where answers are appended."""

    def append(self, line: bytes) -> None: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


def _end_of(folder: Place, name: str) -> _End:
    return Segments(folder, name) if isinstance(folder, RemotePath) else AppendedFile(folder, name)


def journal_name(low: int, high: int, writer: str) -> str:
    """Name of the file in which ``writer`` keeps answers of the buckets from ``low`` up to ``high``."""
    return f"{low:03x}-{high:03x}-{writer}.jsonl"


def encode(entry: Entry) -> bytes:
    """An entry as a line."""
    return msgspec.json.encode(entry) + b"\n"


class Totals(msgspec.Struct):
    """Sums over journal files."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __iadd__(self, other: "Totals | Entry") -> "Totals":
        self.answers += other.answers if isinstance(other, Totals) else 1
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        return self


class _Known(msgspec.Struct):
    size: int
    totals: Totals


def totals(folder: Place) -> Totals:
    """What all answers of a journal folder add up to.

    Sums of files are remembered in ``totals.json`` by their size: only files that have grown are read.
    """
    memory = folder / "totals.json"
    try:
        known = msgspec.json.decode(memory.read_bytes(), type=dict[str, _Known])
    except (OSError, msgspec.MsgspecError):
        known = {}
    everything, found = Totals(), {}
    for name, size in sizes(folder).items():
        if name.endswith(".jsonl"):
            old = known.get(name)
            found[name] = old if old and old.size == size else _Known(size, _sum(folder / name))
            everything += found[name].totals
    if found != known:
        with contextlib.suppress(OSError, StoreError):  # a read-only workspace can be looked at, only slower
            write_atomically(memory, msgspec.json.encode(found))
    return everything


def _sum(path: Place) -> Totals:
    result = Totals()
    for entry in read_entries(path):
        if entry.finish_reason != "error":
            result += entry
    return result


def read_entries(path: Place) -> Iterator[Entry]:
    """The entries of a journal file; what cannot be read (a torn tail) is passed over."""
    decoder = msgspec.json.Decoder(Entry)
    with path.open("rb") if isinstance(path, Path) else io.BytesIO(path.read_bytes()) as file:
        for line in file:
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, ValueError):
                continue
