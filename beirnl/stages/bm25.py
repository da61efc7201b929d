"""Stages of BM25: index and search."""

from collections.abc import Mapping
from typing import Literal

import pyarrow as pa

from beirnl.schema import RUN
from beirnl.specs import Bm25Spec, Spec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.stages.searching import SearchSpec, run_of

INDEX_UNITS = 8  # more segments answer fewer queries a second
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


class Bm25SearchSpec(SearchSpec):
    """A search of a BM25 index."""

    bm25: Bm25Spec


def index_units(spec: Spec, inputs: Inputs) -> int:
    """At most ``INDEX_UNITS`` groups of shards."""
    return min(INDEX_UNITS, len(inputs["rows"].parts))


def _group(number: int, units: int, parts: int) -> range:
    """The shards of a unit: consecutive, as even as can be."""
    return range(number * parts // units, (number + 1) * parts // units)


def build_index(unit: Unit) -> None:
    """Index a group of shards into a segment."""
    from beirnl.retrieval.bm25 import UnitWriter

    spec = unit.task.spec
    assert isinstance(spec, IndexSpec)
    corpus = unit.inputs["rows"]
    group = _group(unit.number, index_units(spec, unit.inputs), len(corpus.parts))
    part = unit.out.open(suffix="", rows=sum(corpus.parts[number].rows for number in group))
    first_row = sum(shard.rows for shard in corpus.parts[: group.start])
    writer = UnitWriter(part.path, spec.bm25, first_row)
    for number in group:
        shard = corpus.read(number)
        writer.add(*(shard[name].to_pylist() for name in ("id", "title", "text")))
    writer.close()
    unit.out.rows_in = part.rows


def combine_index(unit: Unit) -> None:
    """Place the segments of all units together as one index with the statistics of the whole."""
    from beirnl.retrieval.bm25 import combine
    from beirnl.store.artifacts import Artifact

    spec = unit.task.spec
    assert isinstance(spec, IndexSpec)
    part = unit.out.open(suffix="", rows=unit.inputs["rows"].rows)
    combine(Artifact(unit.task.directory).unit_paths(), part.path, spec.bm25)


def query_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``QUERIES_PER_UNIT`` queries."""
    return max(1, -(-inputs["queries"].rows // QUERIES_PER_UNIT))


def index_pool(spec: Spec, inputs: Mapping[str, str]) -> str:
    """Workers keep one index open."""
    return inputs["index"]


def load_index(task: Task) -> object:
    """Open the index of a search, memory-mapped."""
    from beirnl.retrieval.bm25 import Bm25Index

    assert isinstance(task.spec, Bm25SearchSpec)
    return Bm25Index.open(task.inputs["index"].reduced_path(), task.spec.bm25)


def search_bm25(unit: Unit) -> None:
    """Search a block of queries."""
    spec = unit.task.spec
    assert isinstance(spec, Bm25SearchSpec)
    queries = unit.inputs["queries"].table().slice(unit.number * QUERIES_PER_UNIT, QUERIES_PER_UNIT)
    ids, texts = queries["id"].to_pylist(), queries["text"].to_pylist()
    exclude = ids if spec.remove_self_matches else None
    results = unit.resource.search(texts, spec.depth, exclude)
    tables = [run_of(query, *hits) for query, hits in zip(ids, results, strict=True)]
    unit.out.rows_in = len(ids)
    unit.out.count("queries without hits", sum(table.num_rows == 0 for table in tables))
    unit.out.write(pa.concat_tables([RUN.empty_table(), *tables]), RUN)
