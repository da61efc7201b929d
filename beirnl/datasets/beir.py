"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``.

Every error names the file and the line. A byte order mark, CRLF line ends and blank lines are read over;
identifiers that are numbers become text.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from beirnl.errors import DataError

_BOM = b"\xef\xbb\xbf"
_LABEL_HEADINGS = {"score", "relevance", "rel", "label", "qrel", "grade"}
_LARGEST_LABEL = 2**31
_QRELS_SUFFIXES = (".tsv", ".txt", ".qrels")


class Record(NamedTuple):
    """A document or query with the line that it came from (from 1). ``title`` is empty for queries."""

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
    """The BEIR folders in ``folder``: itself under the name ``""``, or its parts by name.

    Raises:
        DataError: the folder is not there, or holds no ``corpus.jsonl`` at either level.
    """
    if not folder.is_dir():
        raise DataError(
            "is not there", where=folder, remedy="set path (or BEIRNL_DATA) to a folder with corpus.jsonl"
        )
    if (folder / "corpus.jsonl").exists():
        return {"": folder}
    parts = {path.parent.name: path.parent for path in sorted(folder.glob("*/corpus.jsonl"))}
    if not parts:
        raise DataError(
            "holds no corpus.jsonl, nor do its sub-folders", where=folder, remedy="give a folder in BEIR form"
        )
    return parts


def qrels_path(folder: Path, split: str) -> Path:
    """The qrels file of a split.

    Raises:
        DataError: there is none; lists the splits that are there.
    """
    present = sorted(p for p in (folder / "qrels").glob("*") if p.suffix in _QRELS_SUFFIXES)
    for path in present:
        if path.stem == split:
            return path
    names = ", ".join(path.stem for path in present) or "none"
    raise DataError(
        f"has no split {split!r} (present: {names})",
        where=folder / "qrels",
        remedy="set split to one of these",
    )


def queries_path(folder: Path) -> Path:
    """The queries file of a BEIR folder; DataError where it is not there."""
    path = folder / "queries.jsonl"
    if not path.exists():
        raise DataError("is not there", where=path, remedy="a BEIR folder needs it; check the folder")
    return path


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
            if text:
                yield number, text


def read_records(path: Path) -> Iterator[Record]:
    """Documents or queries of a JSON-lines file, in order.

    Raises:
        DataError: a line that is not a JSON object with ``_id``, is cut, holds a NUL byte or is not UTF-8.
    """
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


def _identifier(value: str | int | float, path: Path, line: int) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value == "":
        raise DataError("has an empty _id", where=f"{path}:{line}", remedy="give every record an identifier")
    return str(value)


def read_qrels(path: Path) -> Iterator[Judgement]:
    """Judgements: ``query-id corpus-id score`` with or without a header, or TREC's four columns.

    Columns are separated by tabs, or by blanks where a line has no tab. ``1.0`` is a whole number.

    Raises:
        DataError: another number of columns, or a label that is not a whole number.
    """
    for number, raw in _lines(path):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError("is not UTF-8", where=f"{path}:{number}", remedy="re-encode the file") from error
        fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) not in (3, 4):
            raise DataError(
                f"has {len(fields)} columns",
                where=f"{path}:{number}",
                remedy="write query-id, corpus-id and score, separated by tabs",
            )
        query_id, doc_id, label = fields[0], fields[-2], fields[-1]
        if number == 1 and label.strip().lower() in _LABEL_HEADINGS:
            continue
        relevance = _label(label)
        if relevance is None:
            raise DataError(
                f"label {label!r} is not a whole number, nor is the line a header",
                where=f"{path}:{number}",
                remedy="write the label as 0, 1 or 2",
            )
        yield Judgement(number, query_id.strip(), doc_id.strip(), relevance)


def _label(text: str) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() and abs(value) < _LARGEST_LABEL else None
