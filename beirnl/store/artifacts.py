"""Artifacts: a directory of parts, the receipts that commit them, and the manifest that closes it.

<artifact>/
  part-00042-00-<attempt>.parquet, or a directory of that name
  receipts/00042.json, receipts/reduced.json
  attempts/00042-<run>-<attempt>
  manifest.json                                   written last; then only it is read

In an object store a directory is packed, as part-....tar; markers (attempts/00042/<run>-<attempt>) stay until
the manifest is there, since deleting is dear.
"""

import contextlib
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from beirnl.errors import StoreError
from beirnl.store.attempts import REDUCE as REDUCE
from beirnl.store.attempts import marker, unit_name
from beirnl.store.cache import cache, pinned
from beirnl.store.failpoints import failpoint
from beirnl.store.files import disk_errors, fsync_path, write_atomically
from beirnl.store.keys import digest, file_sha256
from beirnl.store.parquet import read_table
from beirnl.store.places import Place, RemotePath, in_parallel, names, place_of, remove, remove_tree
from beirnl.store.transport import deliver, fetch, object_name
from beirnl.store.verification import FileState, states, verify

FORMAT = 1
_RECEIPT = re.compile(r"(\d{5,}|reduced)\.json")

_Record = TypeVar("_Record", bound=BaseModel)


class Part(BaseModel):
    """A file or directory that a receipt has committed; ``files`` are its files as they were then."""

    model_config = ConfigDict(frozen=True)
    file: str
    rows: int
    sha256: str
    files: tuple[FileState, ...] = ()


class Receipt(BaseModel):
    """What one unit made: its parts, how many rows went in and out, and what there is to tell."""

    model_config = ConfigDict(frozen=True)
    unit: int
    attempt: str
    parts: tuple[Part, ...]
    rows_in: int = 0
    rows_out: int = 0
    counts: dict[str, int] = {}
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    finished: float = 0.0
    worker: str = ""


class InputRef(BaseModel):
    """An input of an artifact: its key, and the digest of its content when it was read."""

    key: str
    content: str


class _Format(BaseModel):
    format: int


class Manifest(BaseModel):
    """The closing record of an artifact; ``source`` is where imported rows were fetched from, or empty."""

    format: int = FORMAT
    stage: str
    label: str
    key: str
    spec: dict[str, Any]
    inputs: dict[str, InputRef]
    versions: dict[str, str]
    content: str
    receipts: tuple[Receipt, ...]
    reduced: Receipt | None = None
    source: str = ""


def receipt_name(unit: int) -> str:
    """File name of a unit's receipt."""
    return f"{unit_name(unit)}.json"


class Artifact:
    """What a stage has made under one key, read through its manifest (or receipts while it grows)."""

    def __init__(self, directory: Place) -> None:
        self.directory = place_of(directory)

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest; StoreError where the artifact is not finished or was written by a newer version."""
        manifest = self.find_manifest()
        if manifest is None:
            raise StoreError("has no manifest", where=self.directory, remedy="run the stage that makes it")
        return manifest

    def find_manifest(self) -> Manifest | None:
        """The manifest, or None while the artifact is not finished; read once."""
        if found := self.__dict__.get("manifest"):  # where cached_property keeps it
            return cast(Manifest, found)
        path = self.directory / "manifest.json"
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        format = _parse(_Format, data, path).format
        if format > FORMAT:
            raise StoreError(
                f"was written by a newer version (format {format}, this one reads {FORMAT})",
                where=path,
                remedy="upgrade beirnl or use another workspace",
            )
        self.manifest = _parse(Manifest, data, path)
        return self.manifest

    def committed(self) -> set[str]:
        """Names of the receipts that are in place."""
        return {name for name in names(self.directory / "receipts") if _RECEIPT.fullmatch(name)}

    def receipt(self, unit: int) -> Receipt | None:
        """The receipt of a unit, or None where it is pending."""
        path = self.directory / "receipts" / receipt_name(unit)
        try:
            return _parse(Receipt, path.read_bytes(), path)
        except FileNotFoundError:
            return None

    def receipts(self) -> list[Receipt]:
        """All receipts of units in order, from the manifest where there is one."""
        if manifest := self.find_manifest():
            return list(manifest.receipts)
        units = sorted(int(name[:-5]) for name in self.committed() if name != "reduced.json")
        return [receipt for receipt in in_parallel(self.receipt, units, self.directory) if receipt]

    @cached_property
    def parts(self) -> list[Part]:
        """The parts of all units, in order of unit."""
        return [part for receipt in self.manifest.receipts for part in receipt.parts]

    @property
    def rows(self) -> int:
        """Number of rows in all parts."""
        return sum(part.rows for part in self.parts)

    def path(self, part: Part) -> Path:
        """Path of a part, or of its copy on this node; StoreError where it is not what was committed, with
        how to make it again."""
        if isinstance(self.directory, RemotePath):
            return fetch(self.directory, part)
        path = self.directory / part.file
        verify(path, part.sha256, part.files)
        return path

    def read(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Part ``number`` as an Arrow table, or some of its columns."""
        with pinned():
            return read_table(self.path(self.parts[number]), columns)

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Every part in turn, or some of its columns."""
        for number in range(len(self.parts)):
            yield self.read(number, columns)

    def table(self) -> pa.Table:
        """All parts as one table, or the reduction where there is one; for artifacts that are small."""
        if self.manifest.reduced:
            return self.read_reduced()
        return pa.concat_tables(list(self.tables()))

    def read_reduced(self) -> pa.Table:
        """The reduction as an Arrow table."""
        with pinned():
            return read_table(self.reduced_path())

    def reduced_path(self) -> Path:
        """Path of the reduction, its checksum verified."""
        reduced = self.manifest.reduced
        if reduced is None:
            raise StoreError("has not been reduced", where=self.directory)
        return self.path(reduced.parts[0])

    def unit_paths(self) -> list[Path]:
        """Paths of the first part of every committed unit, verified, before the manifest: for a reduction."""
        return [self.path(receipt.parts[0]) for receipt in self.receipts()]


def _parse(kind: type[_Record], data: bytes, path: Place) -> _Record:
    try:
        return kind.model_validate_json(data)
    except ValueError as error:
        raise StoreError("is damaged", where=path, remedy="delete it and run again") from error


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
        """Make the parts safe, then put the receipt in place: from here on the unit is done."""
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
        write_atomically(target, receipt.model_dump_json().encode())
        failpoint("after-receipt", self.unit)
        if isinstance(self._marker, Path):
            self._marker.unlink(missing_ok=True)
        self._leave()
        return receipt

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


def close_artifact(directory: Place, manifest: Manifest) -> None:
    """Write the manifest, then remove what no receipt names (parts and files of dead attempts, markers)."""
    write_atomically(directory / "manifest.json", manifest.model_dump_json(indent=1).encode())
    receipts = [*manifest.receipts, *([manifest.reduced] if manifest.reduced else [])]
    parts = [part for receipt in receipts for part in receipt.parts]
    remote = isinstance(directory, RemotePath)
    named = {object_name(part) if remote else part.file for part in parts}
    for name in names(directory):
        if name.startswith("part-") and name not in named:
            remove(directory / name)
    if isinstance(directory, Path):
        for unfinished in (*directory.glob(".*"), *directory.glob("receipts/.*")):
            unfinished.unlink(missing_ok=True)
    remove_tree(directory / "attempts")


def content_digest(receipts: list[Receipt], reduced: Receipt | None) -> str:
    """Digest of an artifact's content: of the checksums of its parts in order."""
    everything = [*receipts, *([reduced] if reduced else [])]
    return digest([part.sha256 for receipt in everything for part in receipt.parts])
