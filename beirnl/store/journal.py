"""Answers already paid for: append-only files, one per attempt at a unit, looked up by what was asked.

    journal/<request-spec>/<low>-<high>-<attempt>.jsonl

``low`` and ``high`` bound the 12-bit buckets of the source texts whose answers a file holds. Shards are cut
by the leading bits of a text's digest, so that a shard of one dataset finds the answers that the same texts
got in another one in the files whose range meets its own. A torn last line is ignored.
"""

import contextlib
import os
import time
from collections.abc import Container, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Literal

import msgspec

from beirnl.store.files import disk_errors, write_atomically

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

    SYNC_SECONDS = 1.0

    def __init__(self, folder: Path, low: int, high: int, writer: str) -> None:
        self.folder, self.low, self.high = folder, low, high
        self._writer = writer
        self._file: IO[bytes] | None = None
        self._synced = time.monotonic()

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
        machine, and at the latest when the journal closes."""
        with disk_errors(self.folder):
            if self._file is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                name = journal_name(self.low, self.high, self._writer)
                self._file = (self.folder / name).open("ab", buffering=0)
            self._file.write(encode(entry))
            if time.monotonic() - self._synced > self.SYNC_SECONDS:
                self.sync()

    def sync(self) -> None:
        """Force what was written to the disk now."""
        if self._file:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _files(self) -> Iterator[Path]:
        if not self.folder.is_dir():
            return
        for name in sorted(name for name in os.listdir(self.folder) if name.endswith(".jsonl")):
            low, high = (int(bound, 16) for bound in name.split("-")[:2])
            if low < self.high and self.low < high:
                yield self.folder / name

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            with disk_errors(self.folder):
                self.sync()
                self._file.close()


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


def totals(folder: Path) -> Totals:
    """What all answers of a journal folder add up to.

    Sums of files are remembered in ``totals.json`` by their size: only files that have grown are read.
    """
    memory = folder / "totals.json"
    try:
        known = msgspec.json.decode(memory.read_bytes(), type=dict[str, _Known])
    except (OSError, msgspec.MsgspecError):
        known = {}
    everything, found = Totals(), {}
    for path in folder.glob("*.jsonl"):
        size = path.stat().st_size
        old = known.get(path.name)
        found[path.name] = old if old and old.size == size else _Known(size, _sum(path))
        everything += found[path.name].totals
    if found != known:
        with contextlib.suppress(OSError):  # a read-only workspace can be looked at, only slower
            write_atomically(memory, msgspec.json.encode(found))
    return everything


def _sum(path: Path) -> Totals:
    result = Totals()
    for entry in read_entries(path):
        if entry.finish_reason != "error":
            result += entry
    return result


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a journal file; what cannot be read (a torn tail) is passed over."""
    decoder = msgspec.json.Decoder(Entry)
    with path.open("rb") as file:
        for line in file:
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, ValueError):
                continue
