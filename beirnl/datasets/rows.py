"""Rows of a retrieval set as they are read, and the rules that hold for every form of file."""

import gzip
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from beirnl.errors import DataError

#: What readers of documents and queries yield: no value is null, and an absent title is empty.
TEXTS = pa.schema([("line", pa.int64()), ("id", pa.string()), ("title", pa.string()), ("text", pa.string())])
BATCH = 8_192

_BOM = b"\xef\xbb\xbf"
_LARGEST_LABEL = 2**31


class Record(NamedTuple):
    """A document or query, and the line (or row) it came from, from 1. ``title`` is empty for queries."""

    line: int
    id: str
    title: str
    text: str


class Judgement(NamedTuple):
    """A line of the qrels."""

    line: int
    query_id: str
    doc_id: str
    relevance: int


def batches(records: Iterable[Record]) -> Iterator[pa.RecordBatch]:
    """Records as batches of schema ``TEXTS``."""
    remaining = iter(records)
    while some := list(islice(remaining, BATCH)):
        columns = [list(column) for column in zip(*some, strict=True)]
        yield pa.record_batch(columns, schema=TEXTS)


def records(found: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    """The rows of batches of schema ``TEXTS``."""
    for batch in found:
        columns = [column.to_pylist() for column in batch.columns]
        yield from map(Record, *columns)


def open_bytes(path: Path) -> IO[bytes]:
    """A file, decompressed where its name ends in ``.gz``."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines (from 1) that are not blank, without the white space around them and a byte order mark.

    Raises:
        DataError: a compressed file that is cut or is none.
    """
    try:
        with open_bytes(path) as file:
            for number, line in enumerate(file, 1):
                text = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
                if text:
                    yield number, text
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataError(
            f"cannot be decompressed ({error})", where=path, remedy="fetch the file again"
        ) from error


def decoded(line: bytes, path: Path, number: int) -> str:
    """A line as text.

    Raises:
        DataError: it is not UTF-8, or holds a NUL byte.
    """
    if b"\0" in line:
        raise DataError("holds a NUL byte", where=f"{path}:{number}", remedy="mend or remove the line")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte {error.start + 1} is not UTF-8", where=f"{path}:{number}", remedy="re-encode the file"
        ) from error


def identifier(value: Any, path: Path, line: int) -> str:
    """An identifier as text: 44 and 44.0 are ``44``.

    Raises:
        DataError: there is none.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value == "" or value is None:
        raise DataError("has an empty _id", where=f"{path}:{line}", remedy="give every record an identifier")
    return str(value)


def relevance(label: Any, path: Path, line: int) -> int:
    """A label of the qrels; ``1.0`` is a whole number.

    Raises:
        DataError: it is not a whole number.
    """
    try:
        value = float(label)
        if value.is_integer() and abs(value) < _LARGEST_LABEL:
            return int(value)
    except (TypeError, ValueError):
        pass
    raise DataError(
        f"label {str(label)!r} is not a whole number, nor is the line a header",
        where=f"{path}:{line}",
        remedy="write the label as 0, 1 or 2",
    )
