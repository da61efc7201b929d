"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, or the hub's Parquet layout.

Both layouts are found and read through the functions of this module. Every error names the file and the line
(or row). A byte order mark, CRLF line ends and blank lines are read over; identifiers that are numbers become
text.
"""

import csv
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from beirnl.datasets import hub_layout
from beirnl.errors import DataError

#: The two folders of a published set.
PUBLISHED = ("beir", "hub")

_BOM = b"\xef\xbb\xbf"
_LABEL_HEADINGS = {"score", "relevance", "rel", "label", "qrel", "grade"}
_LARGEST_LABEL = 2**31
_QRELS_SUFFIXES = (".tsv", ".txt", ".qrels")


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


class _Line(msgspec.Struct):
    id: str | int | float = msgspec.field(name="_id")
    title: str | None = ""
    text: str | None = ""


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
    if _holds_corpus(folder):
        return {"": folder}
    parts = {path.name: path for path in sorted(folder.iterdir()) if path.is_dir() and _holds_corpus(path)}
    if not parts:
        raise DataError(
            "holds no corpus.jsonl (or corpus/*.parquet), nor do its sub-folders",
            where=folder,
            remedy="give a folder in BEIR form",
        )
    return parts


def _holds_corpus(folder: Path) -> bool:
    return (folder / "corpus.jsonl").exists() or hub_layout.is_hub_layout(folder)


def corpus_path(folder: Path) -> Path:
    """Where the documents of a set lie: ``corpus.jsonl``, or a folder of Parquet files."""
    return _texts_path(folder, hub_layout.CORPUS)


def queries_path(folder: Path) -> Path:
    """Where the queries of a set lie; DataError where they are not there."""
    return _texts_path(folder, hub_layout.QUERIES)


def _texts_path(folder: Path, name: str) -> Path:
    path = folder / f"{name}.jsonl"
    if not path.exists() and hub_layout.parquet_files(folder / name):
        return folder / name
    if not path.exists():
        raise DataError("is not there", where=path, remedy="a BEIR folder needs it; check the folder")
    return path


def qrels_path(folder: Path, split: str) -> Path:
    """The qrels file of a split; of several numbered Parquet files the first, which stands for all.

    Raises:
        DataError: there is none; lists the splits that are there.
    """
    lines = sorted(p for p in (folder / "qrels").glob("*") if p.suffix in _QRELS_SUFFIXES)
    present = {path.stem: path for path in lines}
    present |= {hub_layout.split_of(path): path for path in hub_layout.qrels_files(folder) if not lines}
    if split not in present:
        raise DataError(
            f"has no split {split!r} (present: {', '.join(present) or 'none'})",
            where=folder / "qrels",
            remedy="set split to one of these",
        )
    return present[split]


def content_sha256(path: Path, sha256: Callable[[Path], str]) -> str:
    """SHA-256 of what a path of this module stands for: that of its file, or over those of its files.

    Args:
        path: as the functions above give it.
        sha256: of one file.
    """
    files = hub_layout.parquet_files(path) or [path]
    if len(files) == 1:
        return sha256(files[0])
    return hashlib.sha256("\n".join(map(sha256, files)).encode()).hexdigest()


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
            if text:
                yield number, text


def read_records(path: Path) -> Iterator[Record]:
    """Documents or queries of a JSON-lines file or of a folder of Parquet files, in order.

    Raises:
        DataError: a line that is not a JSON object with ``_id``, is cut, holds a NUL byte or is not UTF-8; a
            file that is not Parquet or lacks a column.
    """
    if not path.is_dir():
        yield from _read_json_lines(path)
        return
    for number, identifier, title, text in hub_layout.read_texts(path):
        yield Record(number, _identifier(identifier, path, number), title or "", text or "")


def _read_json_lines(path: Path) -> Iterator[Record]:
    decoder = msgspec.json.Decoder(_Line)
    for number, line in _lines(path):
        try:
            if b"\0" in line:
                raise ValueError("holds a NUL byte")
            record = decoder.decode(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise DataError(
                f"byte {error.start + 1} is not UTF-8", where=f"{path}:{number}", remedy="re-encode the file"
            ) from error
        except (msgspec.MsgspecError, ValueError) as error:
            raise DataError(
                f"is not a JSON object with _id, title and text as text ({error})",
                where=f"{path}:{number}",
                remedy="mend or remove the line",
            ) from error
        yield Record(number, _identifier(record.id, path, number), record.title or "", record.text or "")


def _identifier(value: Any, path: Path, line: int) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value == "" or value is None:
        raise DataError("has an empty _id", where=f"{path}:{line}", remedy="give every record an identifier")
    return str(value)


def read_qrels(path: Path) -> Iterator[Judgement]:
    """Judgements: ``query-id corpus-id score`` with or without a header, or TREC's four columns; or Parquet.

    Columns are separated by tabs, or by blanks where a line has no tab; a column in quotation marks is read
    with the csv module, as beir reads and writes it. ``1.0`` is a whole number.

    Raises:
        DataError: another number of columns, or a label that is not a whole number.
    """
    if path.suffix == ".parquet":
        for number, query_id, doc_id, label in hub_layout.read_qrels(path):
            ids = (_identifier(query_id, path, number), _identifier(doc_id, path, number))
            yield Judgement(number, *ids, _relevance(str(label), path, number))
        return
    for number, raw in _lines(path):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError("is not UTF-8", where=f"{path}:{number}", remedy="re-encode the file") from error
        fields = _fields(line)
        if len(fields) not in (3, 4):
            raise DataError(
                f"has {len(fields)} columns",
                where=f"{path}:{number}",
                remedy="write query-id, corpus-id and score, separated by tabs",
            )
        query_id, doc_id, label = fields[0], fields[-2], fields[-1]
        if number == 1 and label.strip().lower() in _LABEL_HEADINGS:
            continue
        yield Judgement(number, query_id.strip(), doc_id.strip(), _relevance(label, path, number))


def _fields(line: str) -> list[str]:
    if "\t" not in line:
        return line.split()
    quoted = next(csv.reader([line], delimiter="\t")) if '"' in line else []
    return quoted if len(quoted) in (3, 4) else line.split("\t")


def _relevance(label: str, path: Path, line: int) -> int:
    try:
        value = float(label)
        if value.is_integer() and abs(value) < _LARGEST_LABEL:
            return int(value)
    except ValueError:
        pass
    raise DataError(
        f"label {label!r} is not a whole number, nor is the line a header",
        where=f"{path}:{line}",
        remedy="write the label as 0, 1 or 2",
    )
