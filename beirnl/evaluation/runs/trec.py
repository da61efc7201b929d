"""Run and qrels files in the formats of TREC, which trec_eval and most tools of the field read.

A run line is ``query_id Q0 doc_id rank score tag``, a qrels line ``query_id 0 doc_id relevance``. Columns are
parted by blanks, so an id cannot hold one. Ids are therefore written with a reversible escape: a whitespace
character (and NUL, and the byte order mark) becomes ``%`` and two upper-case hexadecimal digits for each byte
of its UTF-8 form, and a ``%`` before two hexadecimal digits becomes ``%25``. Any other id stays as it is.
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from beirnl import schema
from beirnl.errors import DataError
from beirnl.store.files import write_atomically
from beirnl.wording import counted

_SPECIAL = "\0\ufeff" + "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_ESCAPES = {char: "".join(f"%{byte:02X}" for byte in char.encode()) for char in _SPECIAL}
_UNESCAPES = {escape: char for char, escape in _ESCAPES.items()} | {"%25": "%"}
_TO_ESCAPE = re.compile(f"[{re.escape(_SPECIAL)}]|%(?=[0-9A-Fa-f]{{2}})")
_TO_UNESCAPE = re.compile("|".join([*_ESCAPES.values(), "%25(?=[0-9A-Fa-f]{2})"]))
_RUN_COLUMNS = 6
_FORM = "query_id Q0 doc_id rank score tag"


def escape(text: str) -> str:
    """An id as it stands in a file: without whitespace, see the module's docstring."""
    return _TO_ESCAPE.sub(lambda match: _ESCAPES.get(match[0], "%25"), text)


def unescape(text: str) -> str:
    """The id that :func:`escape` wrote; what it cannot have written is left alone."""
    return _TO_UNESCAPE.sub(lambda match: _UNESCAPES[match[0]], text)


def write_run(path: Path, table: pa.Table | pl.DataFrame, tag: str) -> None:
    """Writes a run: queries in the order of the table, hits by score, then id, both descending, ranks from 1.

    Scores are written with the fewest digits that read back as the same float32. The file appears whole or
    not at all; a name that ends in ``.gz`` is compressed.

    Args:
        path: where to; its folder is made.
        table: columns query_id, doc_id, score.
        tag: name of the system, escaped as ids are.

    Raises:
        DataError: an id is empty or a score is not a finite number.
    """
    frame = ordered(_frame(table).select("query_id", "doc_id", pl.col("score").cast(pl.Float32)))
    bad = frame.filter(~pl.col("score").is_finite().fill_null(False))
    if len(bad):
        query, doc, score = bad.row(0)
        raise DataError(
            f"score {score} of document {doc!r}, query {query!r}, is not a finite number",
            where=path,
            remedy="check the retriever",
        )
    lines = frame.select(
        _escaped(frame, "query_id", path),
        pl.lit("Q0").alias("q0"),
        _escaped(frame, "doc_id", path),
        pl.int_range(1, pl.len() + 1).over("query_id").alias("rank"),
        pl.col("score").cast(pl.String),
        pl.lit(escape(tag) or "beirnl").alias("tag"),
    )
    _write(path, lines)


def write_qrels(path: Path, table: pa.Table | pl.DataFrame) -> None:
    """Writes judgements in the four columns of TREC, in the order of the table.

    Args:
        path: where to; a name that ends in ``.gz`` is compressed.
        table: columns query_id, doc_id, relevance.

    Raises:
        DataError: an id is empty.
    """
    frame = _frame(table)
    query, doc = _escaped(frame, "query_id", path), _escaped(frame, "doc_id", path)
    _write(path, frame.select(query, pl.lit("0").alias("iteration"), doc, pl.col("relevance")))


def read_run(path: Path, *, extra_columns: bool = False) -> pa.Table:
    """Reads a run.

    Args:
        path: a file in six columns, compressed if its name ends in ``.gz``; blank lines are skipped.
        extra_columns: ignore what follows the sixth column, as trec_eval does, instead of refusing it (an id
            with a blank that another program wrote unescaped looks the same, so the default refuses).

    Returns:
        :data:`beirnl.schema.RUN`, ordered as it says, queries by first appearance. Rank and tag are dropped:
        trec_eval takes the order from the scores.

    Raises:
        DataError: a line lacks columns or has too many, is not UTF-8, its score is not a finite number, or it
            repeats a document; names file and line.
    """
    queries, docs, scores, places = [], [], [], []
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            query, doc, score = _fields(line, f"{path}:{number}", extra_columns)
            queries.append(query)
            docs.append(doc)
            scores.append(score)
            places.append(number)
    frame = pl.DataFrame(
        {"query_id": queries, "doc_id": docs, "score": _float32(scores)},
        schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float32},
    )
    _refuse(~frame["score"].is_finite(), path, places, "score of {!r} is not a finite number", docs)
    twice = ~frame.select(pl.struct("query_id", "doc_id").is_first_distinct()).to_series()
    _refuse(twice, path, places, "document {!r} stands twice under one query", docs)
    return ordered(frame).to_arrow().cast(schema.RUN)


def _float32(scores: list[float]) -> np.ndarray:
    with np.errstate(over="ignore"):  # becomes infinite, which is refused
        return np.asarray(scores, np.float64).astype(np.float32)


def _refuse(bad: pl.Series, path: Path, places: list[int], what: str, docs: list[str]) -> None:
    """Raises a DataError for the first bad row, at its line."""
    if bad.any():
        at = int(bad.arg_max() or 0)
        raise DataError(what.format(docs[at]), where=f"{path}:{places[at]}", remedy="mend or remove the line")


def _fields(line: bytes, where: str, extra_columns: bool) -> tuple[str, str, float]:
    fields = line.split()
    if len(fields) < _RUN_COLUMNS or (len(fields) > _RUN_COLUMNS and not extra_columns):
        remedy = f"a line is {_FORM}; blanks inside ids are written %20"
        raise DataError(
            f"{counted(len(fields), 'column')} instead of {_RUN_COLUMNS}", where=where, remedy=remedy
        )
    try:
        query, doc = fields[0].decode(), fields[2].decode()
    except UnicodeDecodeError as error:
        raise DataError("is not UTF-8", where=where, remedy="convert the file to UTF-8") from error
    try:
        score = float(fields[4])
    except ValueError as error:
        what = f"score {fields[4].decode('utf-8', 'replace')!r} is not a number"
        raise DataError(what, where=where, remedy=f"a line is {_FORM}") from error
    if b"%" in line:
        query, doc = unescape(query), unescape(doc)
    return query, doc, score


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except FileNotFoundError as error:
        raise DataError("there is no such run file", where=path, remedy="check the path") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError("is not a whole gzip file", where=path, remedy="write or copy it again") from error


def ordered(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of a run by query (first appearance), score descending, id descending (in bytes, as strcmp)."""
    first = pl.int_range(pl.len()).min().over("query_id").alias("first")
    return (
        frame.with_columns(first)
        .sort("first", "score", "doc_id", descending=[False, True, True])
        .drop("first")
    )


def _escaped(frame: pl.DataFrame, column: str, path: Path) -> pl.Series:
    ids = frame[column]
    if ids.null_count() or (ids == "").any():
        raise DataError(f"a {column} is empty", where=path, remedy="give every query and document an id")
    if ids.str.contains(r"[\s%\x00-\x20\x{FEFF}]").any():
        ids = ids.map_elements(escape, return_dtype=pl.String)
    return ids


def _write(path: Path, lines: pl.DataFrame) -> None:
    buffer = io.BytesIO()
    lines.write_csv(buffer, include_header=False, separator=" ", quote_style="never")
    data = buffer.getvalue()
    write_atomically(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _frame(table: pa.Table | pl.DataFrame) -> pl.DataFrame:
    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(pl.from_arrow(table))
