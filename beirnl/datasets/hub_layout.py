"""The hub's Parquet layout of a retrieval set, as BEIR-NL's and MTEB's repositories have it.

    corpus/*.parquet                _id, title, text
    queries/*.parquet               _id, text
    qrels/SPLIT-*.parquet           query-id, corpus-id, score; or data/SPLIT-*.parquet

:mod:`beirnl.datasets.beir` reads both layouts through one place.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from beirnl.errors import DataError

CORPUS, QUERIES = "corpus", "queries"
_QRELS = ("qrels", "data")
_NUMBERED = re.compile(r"(.+?)(?:-\d{5}-of-\d{5})?")
_BATCH = 8_192
_ID = ("_id", "id")


def is_hub_layout(folder: Path) -> bool:
    """Whether a folder holds a corpus in this layout."""
    return bool(parquet_files(folder / CORPUS))


def parquet_files(path: Path) -> list[Path]:
    """The Parquet files of a table in order: of a folder, or all numbered files of the split of a file."""
    if path.suffix != ".parquet":
        return sorted(path.glob("*.parquet")) if path.is_dir() else []
    return [other for other in sorted(path.parent.glob("*.parquet")) if split_of(other) == split_of(path)]


def split_of(path: Path) -> str:
    """The split that a file belongs to: ``test`` for ``test-00000-of-00002.parquet``."""
    match = _NUMBERED.fullmatch(path.stem)
    return match.group(1) if match else path.stem


def qrels_files(folder: Path) -> list[Path]:
    """The first file of every split that the folder judges."""
    files = [path for name in _QRELS for path in sorted((folder / name).glob("*.parquet"))]
    return list({split_of(path): path for path in reversed(files)}.values())[::-1]


def count_rows(path: Path) -> int:
    """Rows of a table, from the footers of its files."""
    return sum(pq.read_metadata(file).num_rows for file in parquet_files(path))


def read_texts(path: Path) -> Iterator[tuple[int, Any, Any, Any]]:
    """Number (from 1), id, title and text of every row, in order of the files; a missing title is None.

    Raises:
        DataError: a file that is not Parquet, or lacks a column.
    """
    for number, row in _rows(path, [_ID, ("title",), ("text",)], optional="title"):
        yield number, *row


def read_qrels(path: Path) -> Iterator[tuple[int, Any, Any, Any]]:
    """Number (from 1), query, document and label of every judgement of a split.

    Raises:
        DataError: as :func:`read_texts`.
    """
    for number, row in _rows(path, [("query-id",), ("corpus-id",), ("score",)]):
        yield number, *row


def _rows(path: Path, wanted: list[tuple[str, ...]], optional: str = "") -> Iterator[tuple[int, list[Any]]]:
    number = 0
    for file in parquet_files(path):
        for columns in _batches(file, wanted, optional):
            for row in zip(*columns, strict=True):
                number += 1
                yield number, list(row)


def _batches(file: Path, wanted: list[tuple[str, ...]], optional: str) -> Iterator[list[list[Any]]]:
    """Columns of one batch after another; of several names for a column the first that is there is taken."""
    try:
        with pq.ParquetFile(file) as opened:
            present = set(opened.schema_arrow.names)
            names = [next((name for name in group if name in present), "") for group in wanted]
            for group, name in zip(wanted, names, strict=True):
                if not name and optional not in group:
                    raise DataError(
                        f"has no column {group[0]!r} (present: {', '.join(sorted(present))})",
                        where=file,
                        remedy="give a folder in the hub's layout",
                    )
            for batch in opened.iter_batches(_BATCH, columns=[name for name in names if name]):
                yield [_values(batch, name) for name in names]
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"cannot be read as Parquet ({error})", where=file, remedy="fetch or publish it again"
        ) from error


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column as text; identifiers as they are, and None where there is no such column."""
    if not name:
        return [None] * batch.num_rows
    column = batch.column(name)
    return list((column if name in _ID else column.cast("string")).to_pylist())
