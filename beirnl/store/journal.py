"""Answers already paid for: append-only files, one per attempt at a unit, looked up by what was asked.

    journal/<request-spec>/<low>-<high>-<attempt>.jsonl

``low`` and ``high`` bound the 12-bit buckets of the source texts whose answers a file holds. Shards are cut
by the leading bits of a text's digest, so that a shard of one dataset finds the answers that the same texts
got in another one in the files whose range meets its own. A torn last line is ignored.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Literal

import msgspec

from beirnl.store.files import disk_errors

BUCKETS = 1 << 12


class Entry(msgspec.Struct, frozen=True):
    """One answer: the key of its request and what came back."""

    key: str
    text: str
    finish_reason: Literal["stop", "length", "error"]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""


class Journal:
    """The journal of one unit: reads what others have written, appends what this attempt is answered.

    Args:
        folder: ``journal/<request-spec>``.
        shard: number of the shard, of ``shards`` (a power of two).
        shards: number of shards.
        writer: the attempt, which names the file.
    """

    SYNC_SECONDS = 1.0

    def __init__(self, folder: Path, shard: int, shards: int, writer: str) -> None:
        width = max(1, BUCKETS // shards)
        self._low = shard * BUCKETS // shards
        self._high = self._low + width
        self._folder, self._writer = folder, writer
        self._file: IO[bytes] | None = None
        self._synced = time.monotonic()

    def known(self) -> dict[str, Entry]:
        """Every answer that may concern this shard, by key."""
        return {entry.key: entry for path in self._files() for entry in read_entries(path)}

    def append(self, entry: Entry) -> None:
        """Record an answer; it is on the disk within a second, and at the latest when the journal closes."""
        with disk_errors(self._folder):
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                name = f"{self._low:03x}-{self._high:03x}-{self._writer}.jsonl"
                self._file = (self._folder / name).open("ab")
            self._file.write(msgspec.json.encode(entry) + b"\n")
            if time.monotonic() - self._synced > self.SYNC_SECONDS:
                self.sync()

    def sync(self) -> None:
        """Flush to the disk now."""
        if self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _files(self) -> Iterator[Path]:
        if not self._folder.is_dir():
            return
        for name in sorted(os.listdir(self._folder)):
            low, high = (int(bound, 16) for bound in name.split("-")[:2])
            if low < self._high and self._low < high:
                yield self._folder / name

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            with disk_errors(self._folder):
                self.sync()
                self._file.close()


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a journal file; what cannot be read (a torn tail) is passed over."""
    decoder = msgspec.json.Decoder(Entry)
    with path.open("rb") as file:
        for line in file:
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, ValueError):
                continue
