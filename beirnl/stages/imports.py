"""Stages that import a retrieval set, or a parallel text."""

from itertools import islice
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from beirnl.datasets import beir, importing
from beirnl.errors import DataError
from beirnl.schema import CORPUS, QRELS, QUERIES
from beirnl.specs import Spec
from beirnl.stages.base import Unit
from beirnl.store.parquet import read_table
from beirnl.store.writing import OpenPart
from beirnl.wording import counted


class CorpusSpec(Spec):
    """A corpus: known by its content, found at ``folder``; ``source`` says where it was fetched from."""

    sha256: str
    shards: int
    folder: Path = Field(exclude=True)
    source: str = Field(default="", exclude=True)


class JudgedSpec(Spec):
    """Queries and judgements of one split: known by their content, found in ``folder``."""

    split: str
    queries_sha256: str
    qrels_sha256: str
    folder: Path = Field(exclude=True)
    source: str = Field(default="", exclude=True)


class LinesSpec(Spec):
    """A file with one segment a line: known by its content, found at ``file``."""

    sha256: str
    limit: int | None = None
    file: Path = Field(exclude=True)


def import_corpus(unit: Unit) -> None:
    """A corpus into shards by content; one unit, a part per shard."""
    spec = unit.task.spec
    assert isinstance(spec, CorpusSpec)
    path = beir.corpus_path(spec.folder)
    parts = [unit.out.open() for _ in range(spec.shards)]
    writers = [pq.ParquetWriter(part.path, CORPUS, compression="zstd") for part in parts]

    def write(shard: int, table: pa.Table) -> None:
        writers[shard].write_table(table)
        parts[shard].rows += table.num_rows

    partitioner = importing.Partitioner(spec.shards, write)
    empty = []
    for batch in beir.read_batches(path):
        partitioner.add(batch)
        unit.out.rows_in += len(batch)
        unit.tell(unit.out.rows_in)
        empty += importing.empty_ids(batch)
    partitioner.flush()
    if not unit.out.rows_in:
        raise DataError("holds no documents", where=path, remedy="check the dataset's path")
    for writer in writers:
        writer.close()
    repeated = partitioner.duplicates(path)
    if repeated:
        _drop_repeated(parts)
    unit.out.count("empty", len(empty))
    unit.out.warnings += importing.corpus_warnings(repeated, empty)


def _drop_repeated(parts: list[OpenPart]) -> None:
    """Keep the first of documents with one identifier and one text; they share a shard."""
    for part in parts:
        frame = pl.from_arrow(read_table(part.path))
        assert isinstance(frame, pl.DataFrame)
        kept = frame.unique("id", keep="first", maintain_order=True)
        if kept.height < frame.height:
            pq.write_table(kept.to_arrow().cast(CORPUS), part.path, compression="zstd")
            part.rows = kept.height


def import_queries(unit: Unit) -> None:
    """The judged queries of a split."""
    spec = unit.task.spec
    assert isinstance(spec, JudgedSpec)
    qrels = beir.qrels_path(spec.folder, spec.split)
    judged = {judgement.query_id for judgement in beir.read_qrels(qrels)}
    if not judged:
        raise DataError("holds no judgements", where=qrels, remedy="check the file, or name another split")
    queries = beir.queries_path(spec.folder)
    table, warnings = importing.read_queries(queries, judged)
    if not table.num_rows:
        raise DataError(
            f"holds none of the {counted(len(judged), 'query')} that {qrels.name} judges",
            where=queries,
            remedy="check that queries and qrels belong together",
        )
    unit.out.rows_in = table.num_rows
    unit.out.warnings += warnings
    unit.out.write(table, QUERIES)


def import_qrels(unit: Unit) -> None:
    """The judgements of the imported queries, checked against the corpus."""
    spec = unit.task.spec
    assert isinstance(spec, JudgedSpec)
    queries = set(unit.inputs["queries"].table()["id"].to_pylist())
    table = importing.read_judgements(beir.qrels_path(spec.folder, spec.split), queries)
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    corpus = unit.inputs["corpus"]
    ids = (pl.Series(pl.from_arrow(shard["id"])) for shard in corpus.tables(["id"]))
    unit.out.rows_in = table.num_rows
    unit.out.warnings += importing.qrels_warnings(frame, ids)
    unit.out.write(table, QRELS)


def import_lines(unit: Unit) -> None:
    """The lines of one side of a parallel text; a line's number (from 1) is its identifier."""
    spec = unit.task.spec
    assert isinstance(spec, LinesSpec)
    with spec.file.open(encoding="utf-8-sig", newline="\n") as file:
        try:
            lines = [line.strip() for line in islice(file, spec.limit)]
        except UnicodeDecodeError as error:
            raise DataError("is not UTF-8", where=spec.file, remedy="re-encode the file") from error
    if not lines:
        raise DataError("holds no lines", where=spec.file, remedy="check the path")
    ids = [str(number) for number in range(1, len(lines) + 1)]
    columns = [list(range(len(lines))), ids, [""] * len(lines), lines]
    unit.out.rows_in = len(lines)
    unit.out.write(pa.table(columns, schema=CORPUS), CORPUS)
