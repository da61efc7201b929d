"""Stages of BM25: index and search, in one piece or by document shards.

One index is what all queries read, spread over workers. Where it does not fit one node's disk,
``index-shards`` makes an index of each part of the corpus and counts in how many documents of all parts each
term is; with those counts ``search-shards`` searches every part for all queries, and keeps the best of all.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from beirnl.retrieval.topk import merge_runs
from beirnl.schema import RUN
from beirnl.specs import Bm25Spec, Spec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.stages.searching import SearchSpec, group, run_of
from beirnl.store.keys import digest, spec_fields

if TYPE_CHECKING:
    from beirnl.retrieval.bm25 import Bm25Index

# Each unit is a segment of the index, and a search takes longer the more there are.
INDEX_UNITS, UNIT_DOCUMENTS = 8, 500_000
QUERIES_PER_UNIT = 1000


class IndexSpec(Spec):
    """What a BM25 index depends on; k1, b and the tie breaker belong to the search."""

    profile: Literal["elasticsearch", "flat"]
    analyzer: str
    analyzer_version: int

    @property
    def bm25(self) -> Bm25Spec:
        """The conditions that the builder reads."""
        return Bm25Spec(profile=self.profile, analyzer=self.analyzer)


class ShardedIndexSpec(IndexSpec):
    """BM25 indexes of as many parts of a corpus."""

    shards: int


class Bm25SearchSpec(SearchSpec):
    """A search of a BM25 index."""

    bm25: Bm25Spec


def index_units(spec: Spec, inputs: Inputs) -> int:
    """As :func:`units_of`."""
    rows = inputs["rows"]
    return units_of(len(rows.parts), rows.rows)


def units_of(parts: int, documents: int) -> int:
    """Units of an index: from 2 to ``INDEX_UNITS``, of ``UNIT_DOCUMENTS`` where it has as many."""
    return min(parts, INDEX_UNITS, max(2, documents // UNIT_DOCUMENTS))


def shard_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per document shard, of at least one shard of the corpus."""
    assert isinstance(spec, ShardedIndexSpec)
    return min(spec.shards, len(inputs["rows"].parts))


def _write(unit: Unit, shards: range, out: Path, first_row: int) -> None:
    """Index a group of shards."""
    from beirnl.retrieval.bm25 import UnitWriter

    spec = unit.task.spec
    assert isinstance(spec, IndexSpec)
    writer = UnitWriter(out, spec.bm25, first_row)
    done = 0
    for number in shards:
        shard = unit.inputs["rows"].read(number)
        writer.add(shard["id"], shard["title"], shard["text"])
        done += shard.num_rows
        unit.tell(done)
    writer.close()
    unit.out.rows_in = done


def build_index(unit: Unit) -> None:
    """Index a group of shards."""
    parts = unit.inputs["rows"].parts
    shards = group(unit.number, index_units(unit.task.spec, unit.inputs), len(parts))
    part = unit.out.open(suffix="", rows=sum(parts[number].rows for number in shards))
    _write(unit, shards, part.path, sum(shard.rows for shard in parts[: shards.start]))


def _reduced(unit: Unit, reduction: Callable[[Sequence[Path], Path, Bm25Spec], object]) -> None:
    """Make one folder of those of all units, whose checksums are verified."""
    from beirnl.store.artifacts import Artifact

    spec = unit.task.spec
    assert isinstance(spec, IndexSpec)
    done = Artifact(unit.task.directory)
    part = unit.out.open(suffix="", rows=unit.inputs["rows"].rows)
    reduction([done.path(receipt.parts[0]) for receipt in done.receipts()], part.path, spec.bm25)


def combine_index(unit: Unit) -> None:
    """Merge all units into one index with the statistics of the whole."""
    from beirnl.retrieval.bm25 import combine

    _reduced(unit, combine)


def build_shard(unit: Unit) -> None:
    """Index a document shard: as one index, of which nothing outside the shard is part."""
    from beirnl.retrieval.bm25 import combine

    spec = unit.task.spec
    assert isinstance(spec, ShardedIndexSpec)
    parts = unit.inputs["rows"].parts
    shards = group(unit.number, shard_units(spec, unit.inputs), len(parts))
    part = unit.out.open(suffix="", rows=sum(parts[number].rows for number in shards))
    _write(unit, shards, part.path / "unit", 0)
    combine([part.path / "unit"], part.path, spec.bm25)
    shutil.rmtree(part.path / "unit")


def count_shards(unit: Unit) -> None:
    """Count in how many documents of all shards each term is."""
    from beirnl.retrieval.bm25 import count_terms

    _reduced(unit, count_terms)


def query_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``QUERIES_PER_UNIT`` queries."""
    return max(1, -(-inputs["queries"].rows // QUERIES_PER_UNIT))


def index_pool(spec: Bm25SearchSpec, inputs: Mapping[str, str]) -> str:
    """Workers keep one index open, with the parameters of one search."""
    return digest([inputs["index"], spec_fields(spec.bm25)])


def load_index(task: Task) -> object:
    """Open the index of a search, memory-mapped."""
    from beirnl.retrieval.bm25 import Bm25Index

    assert isinstance(task.spec, Bm25SearchSpec)
    return Bm25Index.open(task.inputs["index"].reduced_path(), task.spec.bm25)


def search_bm25(unit: Unit) -> None:
    """Search a block of queries."""
    queries = unit.inputs["queries"].table().slice(unit.number * QUERIES_PER_UNIT, QUERIES_PER_UNIT)
    unit.out.rows_in = queries.num_rows
    run = _run(unit, unit.resource, queries)
    unit.out.count("queries without hits", queries.num_rows - len(run["query_id"].unique()))
    unit.out.write(run, RUN)


def _run(unit: Unit, index: "Bm25Index", queries: pa.Table, before: int = 0) -> pa.Table:
    """The run of some of a unit's queries; so many came before them."""
    spec = unit.task.spec
    assert isinstance(spec, Bm25SearchSpec)
    ids, texts = queries["id"].to_pylist(), queries["text"].to_pylist()
    own = ids if spec.remove_self_matches else None
    results = index.search(texts, spec.depth, own, lambda done: unit.tell(before + done))
    tables = [run_of(query, *hits) for query, hits in zip(ids, results, strict=True)]
    return pa.concat_tables([RUN.empty_table(), *tables])


def searched_shards(spec: Spec, inputs: Inputs) -> int:
    """A unit per document shard."""
    return len(inputs["index"].parts)


def search_shard(unit: Unit) -> None:
    """Search a document shard for all queries, with the statistics of the whole: a partial run."""
    from beirnl.retrieval.bm25 import Bm25Index

    spec, artifact = unit.task.spec, unit.inputs["index"]
    assert isinstance(spec, Bm25SearchSpec)
    index = Bm25Index.open(artifact.path(artifact.parts[unit.number]), spec.bm25, artifact.reduced_path())
    queries = unit.inputs["queries"].table()
    runs = [RUN.empty_table()]
    for start in range(0, queries.num_rows, QUERIES_PER_UNIT):
        runs.append(_run(unit, index, queries.slice(start, QUERIES_PER_UNIT), start))
    unit.out.rows_in = queries.num_rows
    unit.out.write(pa.concat_tables(runs), RUN)


def merge_shards(unit: Unit) -> None:
    """The best of all document shards."""
    from beirnl.store.artifacts import Artifact
    from beirnl.store.parquet import read_table

    spec, done = unit.task.spec, Artifact(unit.task.directory)
    assert isinstance(spec, Bm25SearchSpec)
    partial = [read_table(done.path(receipt.parts[0])) for receipt in done.receipts()]
    run = merge_runs(partial, spec.depth)
    queries = unit.inputs["queries"].rows
    unit.out.count("queries without hits", queries - len(run["query_id"].unique()))
    unit.out.write(run, RUN)
