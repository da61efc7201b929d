"""Writing an artifact's parts: those of a unit, which its receipt commits."""

import contextlib
import os
import socket
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from beirnl.errors import StoreError
from beirnl.store.artifacts import Part, Receipt, receipt_name
from beirnl.store.attempts import marker, unit_name
from beirnl.store.cache import cache
from beirnl.store.failpoints import failpoint
from beirnl.store.files import disk_errors, fsync_path, write_once
from beirnl.store.keys import file_sha256
from beirnl.store.places import Place, RemotePath, remove
from beirnl.store.transport import deliver
from beirnl.store.verification import states


@dataclass
class OpenPart:
    """A part that is being written."""

    path: Path
    rows: int = 0


class PartWriter:
    """Writes the parts of one unit and commits them by their receipt.

    Args:
        directory: the artifact's directory.
        unit: number of the unit, or ``REDUCE``.
        run_id: identifies the driver, so that attempts are counted per run.
    """

    TELL = 2.0

    def __init__(self, directory: Place, unit: int, run_id: str) -> None:
        self._directory, self.unit = directory, unit
        self.attempt = uuid.uuid4().hex[:8]
        self.counts: dict[str, int] = {}
        self.warnings: list[str] = []
        self.rows_in = 0
        self._parts: list[OpenPart] = []
        self.start()
        self._marker = marker(directory, unit, run_id, self.attempt)
        with disk_errors(directory):
            self._marker.parent.mkdir(parents=True, exist_ok=True)
            self._marker.write_bytes(b"")
            self._folder = cache().begin(self.attempt) if isinstance(directory, RemotePath) else directory

    def start(self) -> None:
        """Count the time of the unit from here."""
        self._start = self._told = time.monotonic()

    def open(self, suffix: str = ".parquet", rows: int = 0) -> "OpenPart":
        """The next part, which the caller writes to its path and whose ``rows`` it may still raise."""
        name = f"part-{unit_name(self.unit)}-{len(self._parts):03d}-{self.attempt}{suffix}"
        self._parts.append(OpenPart(self._folder / name, rows))
        return self._parts[-1]

    def tell(self, rows: int) -> None:
        """Say how many rows of the unit are done, in its attempt's marker; at most every ``TELL`` seconds.

        An object store is not told: every time would be a request.
        """
        now = time.monotonic()
        if now - self._told > self.TELL and isinstance(self._marker, Path):
            self._told = now
            with contextlib.suppress(OSError):  # a full disk is met, and told, by what writes the part
                self._marker.write_text(str(rows), encoding="ascii")

    def doing(self, what: str) -> None:
        """Say what is done before there are rows to tell of; empty: nothing but the unit itself."""
        if isinstance(self._marker, Path):
            with contextlib.suppress(OSError):
                self._marker.write_text(what, encoding="ascii")

    def write(self, table: pa.Table, schema: pa.Schema, *, compress: bool = True) -> None:
        """Write ``table`` as the next part, cast to ``schema``."""
        import pyarrow.parquet as pq

        path = self.open(rows=table.num_rows).path
        compression = "zstd" if compress else "none"
        pq.write_table(table.cast(schema), path, compression=compression, use_dictionary=compress)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count that the receipt will hold."""
        self.counts[name] = self.counts.get(name, 0) + number

    def abandon(self) -> None:
        """Forget the attempt: it has ended by an error that was caught, which is no death of its worker."""
        with contextlib.suppress(StoreError):  # what ended the attempt is told, not what follows from it
            self._marker.unlink(missing_ok=True)
        self._leave()

    def _leave(self) -> None:
        if isinstance(self._directory, RemotePath):
            cache().end(self._folder)

    def commit(self) -> Receipt:
        """Make the parts safe, then put the receipt in place: from here on the unit is done.

        The first receipt stays. Who comes second (a worker that has outlived its driver) removes its parts,
        and is given the receipt that is there.
        """
        parts = self._safe_parts()
        failpoint("after-part", self.unit)
        receipt = Receipt(
            unit=self.unit,
            attempt=self.attempt,
            parts=parts,
            rows_in=self.rows_in,
            rows_out=sum(part.rows for part in self._parts),
            counts=self.counts,
            warnings=tuple(self.warnings),
            seconds=round(time.monotonic() - self._start, 3),
            finished=round(time.time(), 3),
            worker=f"{socket.gethostname()}:{os.getpid()}",
        )
        target = self._directory / "receipts" / receipt_name(self.unit)
        if not write_once(target, receipt.model_dump_json().encode()):
            return self._give_way(target)
        failpoint("after-receipt", self.unit)
        if isinstance(self._marker, Path):
            self._marker.unlink(missing_ok=True)
        self._leave()
        return receipt

    def _give_way(self, target: Place) -> Receipt:
        for part in self._parts:
            remove(part.path)
        self.abandon()
        return Receipt.model_validate_json(target.read_bytes())

    def _safe_parts(self) -> tuple[Part, ...]:
        """The parts, on the disk or in the object store."""
        done = []
        for part in self._parts:
            path = part.path
            if isinstance(self._directory, Path):
                _flush(path)
            done.append(Part(file=path.name, rows=part.rows, files=states(path), sha256=file_sha256(path)))
            if isinstance(self._directory, RemotePath):
                deliver(path, self._directory, done[-1])
        if isinstance(self._directory, Path):
            fsync_path(self._directory)
        return tuple(done)


def _flush(path: Path) -> None:
    if path.is_dir():
        for file in path.rglob("*"):
            if file.is_file():
                fsync_path(file)
    fsync_path(path)
