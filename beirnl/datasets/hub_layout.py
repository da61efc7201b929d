"""The hub's Parquet layout of a retrieval set, as BEIR-NL's and MTEB's repositories have it.

    corpus/*.parquet                _id, title, text
    queries/*.parquet               _id, text
    qrels/SPLIT-*.parquet           query-id, corpus-id, score; or data/SPLIT-*.parquet

:mod:`beirnl.datasets.beir` reads all layouts through one place.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from beirnl.datasets.rows import BATCH, TEXTS, Judgement, identifier, relevance
from beirnl.errors import DataError

CORPUS, QUERIES = "corpus", "queries"
_ID, _TITLE, _TEXT = ("_id", "id"), ("title",), ("text",)
_JUDGED = (("query-id", "query_id", "qid"), ("corpus-id", "corpus_id", "pid"), ("score", "relevance"))


def count_rows(files: list[Path]) -> int:
    """Rows of several files, from their footers; DataError where one is not Parquet, or is cut."""
    return sum(_rows_of(file) for file in files)


def _rows_of(file: Path) -> int:
    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error


def read_texts(files: list[Path], path: Path) -> Iterator[pa.RecordBatch]:
    """Documents or queries of the files of one table, as batches of schema ``TEXTS``; rows count from 1.

    Args:
        files: in order.
        path: what errors name.

    Raises:
        DataError: a file that is not Parquet, or lacks a column; a text that is not UTF-8 or holds a NUL
            byte.
    """
    number = 1
    for file in files:
        for batch in _batches(file, [_ID, _TITLE, _TEXT], optional=_TITLE):
            title, text = (_text(column, file, path, number) for column in batch[1:])
            lines = pa.array(range(number, number + len(text)), pa.int64())
            yield pa.record_batch([lines, _identifiers(batch[0], path, number), title, text], schema=TEXTS)
            number += len(text)


def read_judgements(files: list[Path], path: Path) -> Iterator[Judgement]:
    """Judgements of the files of one split; DataError as :func:`read_texts`."""
    number = 0
    for file in files:
        for batch in _batches(file, list(_JUDGED)):
            for query_id, doc_id, label in zip(*(column.to_pylist() for column in batch), strict=True):
                number += 1
                ids = (identifier(query_id, path, number), identifier(doc_id, path, number))
                yield Judgement(number, *ids, relevance(label, path, number))


def _batches(
    file: Path, wanted: list[tuple[str, ...]], optional: tuple[str, ...] = ()
) -> Iterator[list[pa.Array]]:
    """Columns of one batch after another; of several names for a column the first that is there is taken."""
    try:
        with pq.ParquetFile(file) as opened:
            present = set(opened.schema_arrow.names)
            names = [next((name for name in group if name in present), "") for group in wanted]
            for group, name in zip(wanted, names, strict=True):
                if not name and group != optional:
                    raise DataError(
                        f"has no column {group[0]!r} (present: {', '.join(sorted(present))})",
                        where=file,
                        remedy="give a folder in the hub's layout",
                    )
            for batch in opened.iter_batches(BATCH, columns=[name for name in names if name]):
                empty = pa.nulls(batch.num_rows, pa.string())
                yield [batch.column(name) if name else empty for name in names]
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> DataError:
    return DataError(f"cannot be read as Parquet ({error})", where=file, remedy="fetch or publish it again")


def _text(column: pa.Array, file: Path, path: Path, first: int) -> pa.Array:
    """A column as text, null as the empty text; ``first`` is the number of its first row."""
    try:
        text = column.cast(pa.binary()).fill_null(b"") if _is_text(column) else column.cast(pa.string())
    except pa.ArrowException as error:
        raise _unreadable(file, error) from error
    text = text.fill_null("" if text.type == pa.string() else b"")
    try:
        text = text.cast(pa.string())
    except pa.ArrowInvalid:
        damaged = next(n for n, value in enumerate(text.to_pylist()) if not _is_utf8(value))
        raise DataError(
            "holds a byte that is not UTF-8", where=f"{path}:{first + damaged}", remedy="re-encode the row"
        ) from None
    damaged = pc.index(pc.match_substring(text, "\0"), value=True).as_py()
    if damaged >= 0:
        where = f"{path}:{first + damaged}"
        raise DataError("holds a NUL byte", where=where, remedy="mend or remove the row")
    return text


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _identifiers(column: pa.Array, path: Path, first: int) -> pa.Array:
    """Identifiers as text; numbers become text as everywhere."""
    if not _is_text(column) and not pa.types.is_integer(column.type):
        values = [identifier(value, path, first + n) for n, value in enumerate(column.to_pylist())]
        return pa.array(values, pa.string())
    names = _text(column, path, path, first)
    missing = pc.index(pc.equal(names, ""), value=True).as_py()
    if missing >= 0:
        identifier("", path, first + missing)
    return names
