"""Texts and judgements in files of lines: JSON, or columns."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from beirnl.datasets.rows import Judgement, Record, decoded, identifier, lines, relevance
from beirnl.errors import DataError
from beirnl.wording import counted

_LABEL_HEADINGS = {"score", "relevance", "rel", "label", "qrel", "grade"}
_ID = str | int | float | None


class _Line(msgspec.Struct):
    """A document or query: BEIR's names, and those of Anserini's collections."""

    beir_id: _ID = msgspec.field(name="_id", default=None)
    id: _ID = None
    title: str | None = ""
    text: str | None = ""
    contents: str | None = ""


class _Judged(msgspec.Struct):
    query: _ID = msgspec.field(name="query-id", default=None)
    document: _ID = msgspec.field(name="corpus-id", default=None)
    score: str | int | float | None = None


def json_texts(path: Path) -> Iterator[Record]:
    """Documents or queries, a JSON object a line.

    Raises:
        DataError: a line that is not an object with ``_id``, is cut, holds a NUL byte or is not UTF-8.
    """
    for number, row in _objects(path, _Line, "_id, title and text as text"):
        name = row.id if row.beir_id is None else row.beir_id
        yield Record(number, identifier(name, path, number), row.title or "", row.text or row.contents or "")


def json_judgements(path: Path) -> Iterator[Judgement]:
    """Judgements, a JSON object a line; DataError as :func:`json_texts`."""
    for number, row in _objects(path, _Judged, "query-id, corpus-id and score"):
        ids = (identifier(row.query, path, number), identifier(row.document, path, number))
        yield Judgement(number, *ids, relevance(row.score, path, number))


def _objects(path: Path, kind: type, named: str) -> Iterator[tuple[int, Any]]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
    for number, line in lines(path):
        try:
            yield number, decoder.decode(decoded(line, path, number))
        except msgspec.MsgspecError as error:
            raise DataError(
                f"is not a JSON object with {named} ({error})",
                where=f"{path}:{number}",
                remedy="mend or remove the line",
            ) from error


def column_texts(path: Path) -> Iterator[Record]:
    """Documents or queries in columns that tabs separate: identifier and text, or identifier, title, text.

    Raises:
        DataError: another number of columns, a NUL byte, bytes that are not UTF-8.
    """
    for number, raw in lines(path):
        fields = decoded(raw, path, number).split("\t")
        if len(fields) not in (2, 3):
            raise DataError(
                f"has {counted(len(fields), 'column')}",
                where=f"{path}:{number}",
                remedy="write identifier and text (or identifier, title and text), separated by tabs",
            )
        title = fields[1] if len(fields) == 3 else ""
        yield Record(number, identifier(fields[0].strip(), path, number), title, fields[-1])


def column_judgements(path: Path) -> Iterator[Judgement]:
    """Judgements: ``query-id corpus-id score`` with or without a header, or TREC's four columns.

    Columns are separated by tabs, or by blanks where a line has no tab; a column in quotation marks is read
    with the csv module, as beir reads and writes it.

    Raises:
        DataError: another number of columns, or a label that is not a whole number.
    """
    for number, raw in lines(path):
        fields = _fields(decoded(raw, path, number))
        if len(fields) not in (3, 4):
            raise DataError(
                f"has {counted(len(fields), 'column')}",
                where=f"{path}:{number}",
                remedy="write query-id, corpus-id and score, separated by tabs",
            )
        query_id, doc_id, label = fields[0], fields[-2], fields[-1]
        if number == 1 and label.strip().lower() in _LABEL_HEADINGS:
            continue
        yield Judgement(number, query_id.strip(), doc_id.strip(), relevance(label, path, number))


def _fields(line: str) -> list[str]:
    if "\t" not in line:
        return line.split()
    quoted = next(csv.reader([line], delimiter="\t")) if '"' in line else []
    return quoted if len(quoted) in (3, 4) else line.split("\t")
