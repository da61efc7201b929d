"""Everything that ir_datasets knows by its id, written once as a folder in the hub's layout.

ir_datasets fetches, verifies and parses; its iterators are streamed into Parquet, so that nothing is held in
memory. The id says which split it is (``beir/scifact/test``): its judgements are called ``test``.
"""

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from beirnl.datasets.rows import BATCH
from beirnl.errors import ConfigError, DataError, PrerequisiteError, nearest
from beirnl.models.cache import cache_directory

_TEXTS = pa.schema([("_id", pa.string()), ("title", pa.string()), ("text", pa.string())])
_QRELS = pa.schema([("query-id", pa.string()), ("corpus-id", pa.string()), ("score", pa.int32())])
_Row = tuple[Any, ...]
_BODY = ("text", "body", "abstract")
_FILES = {
    "docs": "corpus/00000.parquet",
    "queries": "queries/00000.parquet",
    "qrels": "qrels/test.parquet",
}


def fetch(name: str) -> tuple[Path, str]:
    """A dataset of ir_datasets as a folder, and what it is: ``irds:ID`` with the version of ir_datasets.

    Args:
        name: its id.

    Raises:
        ConfigError: no such id.
        DataError: it has no documents, queries or judgements.
        PrerequisiteError: ir_datasets is not installed, or cannot get the data.
    """
    dataset, version = _load(name)
    source = f"{name}@{version}"
    folder = cache_directory().parent / "datasets" / "irds" / source.replace("/", "--")
    if not folder.is_dir():
        missing = [what for what in _FILES if not getattr(dataset, f"has_{what}")()]
        if missing:
            raise DataError(
                f"has no {' and no '.join(missing)}",
                where=f"irds:{name}",
                remedy="give the id of a split with judgements, such as beir/scifact/test",
            )
        _write(dataset, folder, name)
    return folder, f"irds:{source}"


def _load(name: str) -> tuple[Any, str]:
    try:
        import ir_datasets
    except ImportError as error:
        raise PrerequisiteError(
            "the package ir_datasets is not installed",
            where=f"irds:{name}",
            remedy="pip install 'beirnl[irds]'",
        ) from error
    try:
        return ir_datasets.load(name), ir_datasets.__version__
    except KeyError as error:
        near = nearest(name, sorted(str(key) for key in ir_datasets.registry))
        raise ConfigError("ir_datasets has no such id", where=f"irds:{name}", remedy=near) from error


def _write(dataset: Any, folder: Path, name: str) -> None:
    """Write the three tables under another name, and rename them when they are whole."""
    made = folder.with_name(f".{folder.name}-{uuid.uuid4().hex[:8]}")
    tables: list[tuple[str, pa.Schema, Callable[[], Iterable[_Row]]]] = [
        ("docs", _TEXTS, lambda: map(_document, dataset.docs_iter())),
        ("queries", _TEXTS, lambda: ((q.query_id, "", q.default_text()) for q in dataset.queries_iter())),
        ("qrels", _QRELS, lambda: ((q.query_id, q.doc_id, q.relevance) for q in dataset.qrels_iter())),
    ]
    try:
        for what, schema, rows in tables:
            _write_table(made / _FILES[what], schema, _said(rows, name))
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _document(doc: Any) -> tuple[str, str, str]:
    """Title and text of a document of any type; one without a field for its text gives all that it has."""
    text = next((str(getattr(doc, field)) for field in _BODY if hasattr(doc, field)), None)
    if text is None:
        return doc.doc_id, "", doc.default_text()
    return doc.doc_id, str(getattr(doc, "title", "") or ""), text


def _said(rows: Callable[[], Iterable[_Row]], name: str) -> Iterator[_Row]:
    """Rows; what stops ir_datasets from giving them, as one line."""
    try:
        yield from rows()  # some collections fetch as soon as they are asked, others with the first row
    except (OSError, RuntimeError, ImportError) as error:
        raise PrerequisiteError(
            f"ir_datasets cannot give it ({type(error).__name__}: {error})",
            where=f"irds:{name}",
            remedy="run where its files can be fetched, or put them into IR_DATASETS_HOME as its page says",
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 ({error})", where=f"irds:{name}", remedy="re-encode it") from error


def _write_table(file: Path, schema: pa.Schema, rows: Iterable[_Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    remaining = iter(rows)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while some := list(islice(remaining, BATCH)):
            columns = [list(column) for column in zip(*some, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
