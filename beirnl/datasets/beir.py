"""Retrieval sets on this machine, in the layout of BEIR, of the hub, or of TREC.

BEIR has ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``; the hub Parquet files; TREC documents,
topics and qrels. All are found and read through the functions of this module, in any mixture. Every error
names the file and the line (or row). A byte order mark, CRLF line ends and blank lines are read over;
identifiers that are numbers become text.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from beirnl.datasets import files, hub_layout, rows, sgml, text_forms
from beirnl.datasets.rows import Judgement, Record
from beirnl.errors import DataError

__all__ = [
    "PUBLISHED",
    "Judgement",
    "Record",
    "content_sha256",
    "corpus_path",
    "count_rows",
    "locate",
    "qrels_path",
    "queries_path",
    "read_batches",
    "read_qrels",
    "read_records",
    "splits",
]

#: The two folders of a published set.
PUBLISHED = ("beir", "hub")

_TEXT_READERS = {"json": text_forms.json_texts, "trec": sgml.read, "columns": text_forms.column_texts}
_QRELS_READERS = {".jsonl": text_forms.json_judgements, ".jsonl.gz": text_forms.json_judgements}


def locate(folder: Path) -> dict[str, Path]:
    """The retrieval sets in ``folder``: itself under the name ``""``, or its parts by name.

    A folder as ``beirnl publish`` writes it, with one set in both layouts, is read in BEIR's.

    Raises:
        DataError: the folder is not there, or holds no corpus at either level.
    """
    if not folder.is_dir():
        raise DataError(
            "is not there", where=folder, remedy="set path (or BEIRNL_DATA) to a folder with corpus.jsonl"
        )
    if all((folder / layout).is_dir() for layout in PUBLISHED):
        return locate(folder / PUBLISHED[0])
    if files.find_texts(folder, "corpus"):
        return {"": folder}
    inside = (path for path in sorted(folder.iterdir()) if path.is_dir())
    parts = {path.name: path for path in inside if files.find_texts(path, "corpus")}
    if not parts:
        raise DataError(
            "holds no corpus.jsonl (or corpus/*.parquet, or docs.*), nor do its sub-folders",
            where=folder,
            remedy="give a folder in BEIR's or TREC's form",
        )
    return parts


def corpus_path(folder: Path) -> Path:
    """The table of documents of a set, as :mod:`beirnl.datasets.files` has it."""
    return _texts_path(folder, hub_layout.CORPUS)


def queries_path(folder: Path) -> Path:
    """The table of queries of a set; DataError where it is not there."""
    return _texts_path(folder, hub_layout.QUERIES)


def _texts_path(folder: Path, name: str) -> Path:
    path = files.find_texts(folder, name)
    if path is None:
        raise DataError(
            "is not there", where=folder / f"{name}.jsonl", remedy="a BEIR folder needs it; check the folder"
        )
    return path


def splits(folder: Path) -> tuple[str, ...]:
    """The splits that a folder judges."""
    return tuple(files.find_judgements(folder))


def qrels_path(folder: Path, split: str) -> Path:
    """The table of judgements of a split.

    Raises:
        DataError: there is none; lists the splits that are there.
    """
    present = files.find_judgements(folder)
    if split not in present:
        raise DataError(
            f"has no split {split!r} (present: {', '.join(present) or 'none'})",
            where=folder / "qrels",
            remedy="set split to one of these",
        )
    return present[split]


def content_sha256(path: Path, sha256: Callable[[Path], str]) -> str:
    """SHA-256 of a table: that of its file, or over those of its files.

    Args:
        path: as the functions above give it.
        sha256: of one file.
    """
    found = files.files_of(path)
    if len(found) == 1:
        return sha256(found[0])
    return hashlib.sha256("\n".join(map(sha256, found)).encode()).hexdigest()


def count_rows(path: Path) -> int:
    """How many rows a table has in Parquet; of text its lines, blank ones included, or records that begin."""
    found = files.files_of(path)
    if found and files.suffix_of(found[0]) == ".parquet":
        return hub_layout.count_rows(found)
    return sum(sgml.count(file) if files.form_of(file) == "trec" else _count_lines(file) for file in found)


def _count_lines(file: Path) -> int:
    with rows.open_bytes(file) as opened:
        return sum(block.count(b"\n") for block in iter(lambda: opened.read(1 << 20), b"")) + 1


def read_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Documents or queries of a table in order, as batches of schema :data:`beirnl.datasets.rows.TEXTS`.

    Raises:
        DataError: as :func:`read_records`.
    """
    found = files.files_of(path)
    if files.suffix_of(found[0]) == ".parquet":
        return hub_layout.read_texts(found, path)
    return rows.batches(_read_lines(found))


def read_records(path: Path) -> Iterator[Record]:
    """Documents or queries of a table, in order.

    Raises:
        DataError: a line that is not a record of its form, is cut, holds a NUL byte or is not UTF-8; a file
            that is not Parquet or lacks a column.
    """
    found = files.files_of(path)
    if files.suffix_of(found[0]) == ".parquet":
        return rows.records(hub_layout.read_texts(found, path))
    return _read_lines(found)


def _read_lines(found: list[Path]) -> Iterator[Record]:
    for file in found:
        yield from _TEXT_READERS[files.form_of(file)](file)


def read_qrels(path: Path) -> Iterator[Judgement]:
    """Judgements of a table: columns with or without a header, TREC's four columns, JSON lines or Parquet.

    Raises:
        DataError: another number of columns, or a label that is not a whole number.
    """
    found = files.files_of(path)
    if files.suffix_of(path) == ".parquet":
        yield from hub_layout.read_judgements(found, path)
        return
    for file in found:
        yield from _QRELS_READERS.get(files.suffix_of(file), text_forms.column_judgements)(file)
