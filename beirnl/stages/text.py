"""Stages on text: import of a retrieval set, translation, checks."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from beirnl.datasets import beir, importing
from beirnl.errors import DataError
from beirnl.schema import ANSWERS, CORPUS, QRELS, QUERIES, TRANSLATED
from beirnl.specs import CheckSpec, Spec, TranslationSpec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.store.artifacts import OpenPart
from beirnl.store.journal import Journal
from beirnl.store.keys import digest, spec_fields
from beirnl.store.parquet import read_table
from beirnl.store.workspace import Workspace


class CorpusSpec(Spec):
    """A corpus file: known by its content, found at ``folder``."""

    sha256: str
    shards: int
    folder: Path = Field(exclude=True)


class JudgedSpec(Spec):
    """Queries and judgements of one split: known by their content, found in ``folder``."""

    split: str
    queries_sha256: str
    qrels_sha256: str
    folder: Path = Field(exclude=True)


class ChecksSpec(Spec):
    """Checks on what a translation answered."""

    checks: CheckSpec
    translation: TranslationSpec


def import_corpus(unit: Unit) -> None:
    """``corpus.jsonl`` into shards by content; one unit, a part per shard."""
    spec = unit.task.spec
    assert isinstance(spec, CorpusSpec)
    path = spec.folder / "corpus.jsonl"
    parts = [unit.out.open() for _ in range(spec.shards)]
    writers = [pq.ParquetWriter(part.path, CORPUS, compression="zstd") for part in parts]

    def write(shard: int, table: pa.Table) -> None:
        writers[shard].write_table(table)
        parts[shard].rows += table.num_rows

    partitioner = importing.Partitioner(spec.shards, write)
    empty = []
    for row, record in enumerate(beir.read_records(path)):
        partitioner.add(row, record)
        unit.out.rows_in += 1
        if not record.title and not record.text:
            empty.append(record.id)
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
    queries = beir.queries_path(spec.folder)
    table, warnings = importing.read_queries(queries, judged)
    if not table.num_rows:
        raise DataError(
            f"holds none of the {len(judged)} queries that {qrels.name} judges",
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
    ids = (
        pl.Series("id", shard["id"].to_pylist(), dtype=pl.String) for shard in unit.inputs["corpus"].tables()
    )
    unit.out.rows_in = table.num_rows
    unit.out.warnings += importing.qrels_warnings(frame, ids)
    unit.out.write(table, QRELS)


def shards(spec: Spec, inputs: Inputs) -> int:
    """A unit per shard of the rows that go in."""
    return len(inputs["rows"].parts)


def translation_pool(spec: TranslationSpec, inputs: Mapping[str, str]) -> str:
    """One pool per engine and model, for documents and queries of all datasets."""
    return digest(spec_fields(spec.llm))


def load_translator(task: Task) -> object:
    """The LLM of a translation."""
    from beirnl.llm import load_llm

    assert isinstance(task.spec, TranslationSpec)
    return load_llm(task.spec.llm, threads=task.runtime.worker_threads)


def translate(unit: Unit) -> None:
    """Ask the LLM for every row of a shard, through the journal; no row is dropped."""
    from beirnl.llm.asking import ask
    from beirnl.translation import answers_table, requests_for

    spec = unit.task.spec
    assert isinstance(spec, TranslationSpec)
    rows = unit.inputs["rows"].read(unit.number)
    folder = Workspace(unit.task.workspace).journal / digest(spec_fields(spec.llm))
    number_of_shards = len(unit.inputs["rows"].parts)
    with Journal(folder, unit.number, number_of_shards, unit.out.attempt) as journal:
        answers, asked = ask(unit.resource, requests_for(rows, spec), spec.llm.model, journal, unit.number)
    unit.out.rows_in = rows.num_rows
    unit.out.count("asked", asked)
    unit.out.count("prompt tokens", sum(answer.prompt_tokens for answer in answers))
    unit.out.count("completion tokens", sum(answer.completion_tokens for answer in answers))
    unit.out.write(answers_table(rows, answers), ANSWERS)


def check(unit: Unit) -> None:
    """Judge every answer of a shard; what cannot be used keeps its source text, with its status."""
    from beirnl.translation import checked_table

    spec = unit.task.spec
    assert isinstance(spec, ChecksSpec)
    answers = unit.inputs["rows"].read(unit.number)
    table = checked_table(answers, spec.translation, spec.checks)
    unit.out.rows_in = answers.num_rows
    for status in table["status"].to_pylist():
        unit.out.count(status)
    unit.out.write(table, TRANSLATED)
