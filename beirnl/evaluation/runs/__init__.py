"""Runs that were made elsewhere: files in the formats of the field.

| name | format |
|---|---|
| `*.json` | ``{query_id: {doc_id: score}}``, as BEIR's and ranx's |
| `*.parquet` | columns ``query_id``, ``doc_id``, ``score`` (or ranx's ``q_id``) |
| any other | TREC's six columns, see :mod:`beirnl.evaluation.runs.trec` |

The first and the last may be compressed (`.gz`).
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from beirnl import schema
from beirnl.errors import DataError
from beirnl.evaluation.runs import trec

_COLUMNS = {"q_id": "query_id", "qid": "query_id", "docid": "doc_id", "docno": "doc_id"}
_SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
_ARROW = (pa.string(), pa.string(), pa.float64())
_JSON_FORM = 'write {"QUERY_ID": {"DOC_ID": SCORE}}'


def read(path: Path) -> pa.Table:
    """A run file.

    Args:
        path: its name tells the format, see the module's docstring.

    Returns:
        :data:`beirnl.schema.RUN`, ordered as it says, queries by first appearance.

    Raises:
        DataError: there is no such file, or not in the format that its name tells; a score is not a finite
            number; a document stands twice under one query. Names the line, or query and document.
    """
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind not in (".json", ".parquet"):
        return trec.read_run(path)
    frame = pl.DataFrame(_read_json(path) if kind == ".json" else _read_parquet(path), schema=_SCHEMA)
    _check(frame, path)
    return trec.ordered(frame.with_columns(pl.col("score").cast(pl.Float32))).to_arrow().cast(schema.RUN)


def _read_json(path: Path) -> dict[str, list[Any]]:
    """Columns of a JSON file; objects stay pairs, so that a name that stands twice is seen."""
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA}
    for query, hits in _pairs(_json(path), path):
        for document, score in _pairs(hits, f"{path}, query {query!r}"):
            if isinstance(score, bool) or not isinstance(score, int | float):
                raise DataError(
                    f"the score of document {document!r} is not a number",
                    where=f"{path}, query {query!r}",
                    remedy=_JSON_FORM,
                )
            for column, value in zip(columns.values(), (query, document, float(score)), strict=True):
                column.append(value)
    return columns


class _Object(list):
    """A JSON object as its pairs."""


def _json(path: Path) -> Any:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_Object)
    except FileNotFoundError as error:
        raise DataError("there is no such run file", where=path, remedy="check the path") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError("is not a whole gzip file", where=path, remedy="write or copy it again") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not JSON ({error})", where=path, remedy=_JSON_FORM) from error


def _pairs(value: Any, where: object) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, _Object):
        raise DataError("is not a JSON object", where=where, remedy=_JSON_FORM)
    yield from value


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        table = pq.read_table(path)
    except FileNotFoundError as error:
        raise DataError("there is no such run file", where=path, remedy="check the path") from error
    except pa.ArrowException as error:
        raise DataError(f"is not a Parquet file ({error})", where=path, remedy="write it again") from error
    table = table.rename_columns([_COLUMNS.get(name, name) for name in table.column_names])
    missing = [name for name in _SCHEMA if table.column_names.count(name) != 1]
    if missing:
        raise DataError(
            f"has no column {missing[0]}", where=path, remedy="give it query_id, doc_id and score"
        )
    try:
        columns = [table[name].cast(kind) for name, kind in zip(_SCHEMA, _ARROW, strict=True)]
    except pa.ArrowException as error:
        raise DataError(
            f"has a column of another type ({error})",
            where=path,
            remedy="make query_id and doc_id texts and score numbers",
        ) from error
    return pl.DataFrame(pl.from_arrow(pa.table(columns, names=list(_SCHEMA))))


def _check(frame: pl.DataFrame, path: Path) -> None:
    """DataError for the first row without an id, without a finite score, or that stands there twice."""
    finite = pl.col("score").cast(pl.Float32).is_finite().fill_null(False)
    twice = ~pl.struct("query_id", "doc_id").is_first_distinct()
    nameless = pl.any_horizontal(pl.col("query_id", "doc_id").fill_null("") == "")
    for bad, what in (
        (nameless, "a query or document has no id"),
        (~finite, "the score of document {1!r} is not a finite number ({2})"),
        (twice, "document {1!r} stands twice under one query"),
    ):
        rows = frame.filter(bad)
        if rows.height:
            row = rows.row(0)
            where = f"{path}, query {row[0]!r}"
            raise DataError(what.format(*row), where=where, remedy="mend the file, or write it again")


def names(files: Sequence[Path]) -> list[str]:
    """What the runs of several files are called: as their files, without the suffix.

    Files that are called alike, as exports are (``SYSTEM/DATASET.LANGUAGE.trec``), are called by the folder
    that tells them apart, the innermost there is; files that no folder tells apart keep their common name.

    Args:
        files: run files; none of them need be there.
    """
    stems = [file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in files]
    return [
        _telling(file, [other for other, its in zip(files, stems, strict=True) if its == stem]) or stem
        for file, stem in zip(files, stems, strict=True)
    ]


def _telling(file: Path, alike: Sequence[Path]) -> str:
    """The name of the innermost folder above a file that differs for all files alike, or nothing."""
    if len(alike) < 2:
        return ""
    above = zip(*(reversed(other.absolute().parts[1:-1]) for other in alike), strict=False)
    level = next((at for at, folders in enumerate(above) if len(set(folders)) == len(alike)), None)
    return "" if level is None else file.absolute().parents[level].name


def depth(run: pa.Table | pl.DataFrame) -> int:
    """The most hits that a query has."""
    frame = run if isinstance(run, pl.DataFrame) else pl.DataFrame(pl.from_arrow(run))
    counts = frame.group_by("query_id").len()["len"]
    return int(counts.max() or 0)  # type: ignore[arg-type]
