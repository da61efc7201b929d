"""Stages of approximate search: an index per group of shards; search, and its recall beside exact search."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field

from beirnl.errors import StageError
from beirnl.retrieval.ann import AnnIndex, Numbers, build, recalls, rescored
from beirnl.retrieval.topk import merge_each, own_ranks
from beirnl.retrieval.vectors import VectorFiles
from beirnl.schema import RUN
from beirnl.specs import Spec
from beirnl.stages.base import Inputs, Unit
from beirnl.stages.dense import query_vectors
from beirnl.stages.searching import SearchSpec, group
from beirnl.store.artifacts import Artifact
from beirnl.store.parquet import read_table
from beirnl.wording import counted

#: In graphs of a million clustered vectors about one in a hundred could not be reached from anywhere, however
#: many candidates were looked at; in graphs of this size none.
VECTORS_PER_INDEX = 250_000
#: How much of exact search was found, for every query where both were asked.
RECALL = pa.schema([("query_id", pa.string()), ("recall", pa.float64())])

#: What the graph of a unit leads to: numbers of queries and rows, and the graph's scores.
CANDIDATES = pa.schema([("query", pa.int64()), ("row", pa.int64()), ("score", pa.float32())])

_RESAMPLES = 2_000


class AnnIndexSpec(Spec):
    """An approximate index.

    Attributes:
        numbers: number format of the graph's vectors; scores come from the embedded ones.
        connectivity: neighbours of a node of the graph.
        expansion_add: candidates looked at while a vector is added.
    """

    numbers: Numbers = "bf16"
    connectivity: int = 16
    expansion_add: int = 128


class AnnSearchSpec(SearchSpec):
    """An approximate search. Its recall is part of its result, and so is the sample that it is measured on.

    Attributes:
        expansion_search: candidates looked at for a query, in each index.
        recall_queries: the recall is measured on so many queries, drawn by a fixed seed; on all if fewer.
        min_recall: the lower end of the recall's interval must reach it; judges, and is not part of the key.
    """

    expansion_search: int = 256
    recall_queries: int = 1_000
    min_recall: float = Field(default=0.95, exclude=True)


class Recall(NamedTuple):
    """Mean recall over queries, its 95 % bootstrap interval over queries, and how many were measured."""

    mean: float
    low: float
    high: float
    queries: int


def ann_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``VECTORS_PER_INDEX``, of whole shards."""
    rows = inputs["rows"]
    return max(1, min(len(rows.parts), -(-rows.rows // VECTORS_PER_INDEX)))


def build_ann(unit: Unit) -> None:
    """Index a group of shards."""
    spec, corpus = unit.task.spec, unit.inputs["rows"]
    assert isinstance(spec, AnnIndexSpec)
    shards = group(unit.number, ann_units(spec, unit.inputs), len(corpus.parts))
    files = VectorFiles([corpus.path(corpus.parts[number]) for number in shards])
    part = unit.out.open(suffix="", rows=files.rows)
    part.path.mkdir()
    build(
        files,
        part.path,
        numbers=spec.numbers,
        connectivity=spec.connectivity,
        expansion_add=spec.expansion_add,
        tell=unit.tell,
    )
    unit.out.rows_in = files.rows


def ann_search_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per index."""
    return len(inputs["index"].parts)


def search_ann(unit: Unit) -> None:
    """All queries in one index: candidates, and a run of exact search for the queries that are measured."""
    spec, runtime = unit.task.spec, unit.task.runtime
    assert isinstance(spec, AnnSearchSpec)
    query_ids, queries = query_vectors(unit)
    index = _open(unit, unit.number)
    count = index.fetched(spec.depth + spec.remove_self_matches)
    found = index.candidates(queries, count, threads=runtime.worker_threads)
    unit.out.write(pa.table(list(found), schema=CANDIDATES), CANDIDATES)
    asked = _sample(len(queries), spec.recall_queries)
    exact = index.exact(
        queries[asked],
        spec.depth,
        own=own_ranks(query_ids, index.ids)[asked] if spec.remove_self_matches else None,
        threads=runtime.worker_threads,
        device=runtime.device,
        products=runtime.products,
        memory=runtime.search_memory_mb << 20,
    )
    unit.out.write(exact.run(query_ids.take(pa.array(asked)), index.ids), RUN)
    unit.out.rows_in = len(index)


def _open(unit: Unit, number: int) -> AnnIndex:
    spec, artifact = unit.task.spec, unit.inputs["index"]
    assert isinstance(spec, AnnSearchSpec)
    return AnnIndex(artifact.path(artifact.parts[number]), spec.expansion_search)


def _sample(queries: int, size: int) -> np.ndarray:
    """Numbers of the queries whose recall is measured, ascending."""
    return np.sort(np.random.default_rng(0).permutation(queries)[:size])


def merge_ann(unit: Unit) -> None:
    """Two parts: the best of all candidates, scored exactly, and the recall per query.

    Raises:
        StageError: the recall is under the spec's threshold.
    """
    spec, done = unit.task.spec, Artifact(unit.task.directory)
    assert isinstance(spec, AnnSearchSpec)

    def tables(part: int) -> Iterator[pa.Table]:
        return (read_table(done.path(receipt.parts[part])) for receipt in done.receipts())

    query_ids, queries = query_vectors(unit)
    run = rescored(
        [_open(unit, number) for number in range(ann_search_units(spec, unit.inputs))],
        (tuple(column.to_numpy() for column in table.columns) for table in tables(0)),
        queries,
        query_ids,
        spec.depth,
        remove_self=spec.remove_self_matches,
        threads=unit.task.runtime.worker_threads,
    )
    frame = recalls(run, merge_each(tables(1), spec.depth))
    check_recall(spec, recall_of(frame), unit.task.label)
    unit.out.write(run, RUN)
    unit.out.write(frame.to_arrow(), RECALL)


def recalls_of(artifact: Artifact) -> pl.DataFrame:
    """The recalls that stand beside a run of approximate search: columns ``query_id`` and ``recall``."""
    reduced = artifact.manifest.reduced
    assert reduced is not None
    frame = pl.from_arrow(read_table(artifact.path(reduced.parts[1])))
    assert isinstance(frame, pl.DataFrame)
    return frame


def recall_of(frame: pl.DataFrame) -> Recall | None:
    """The mean over queries of a column ``recall``, with its interval; None for no queries."""
    from beirnl.evaluation.uncertainty.resampling import interval, resampled_sums

    if not frame.height:
        return None
    values = frame["recall"].to_numpy()
    low, high = interval(resampled_sums(values, _RESAMPLES, 0) / len(values))
    return Recall(float(values.mean()), low, high, len(values))


def check_recall(spec: AnnSearchSpec, recall: Recall | None, where: str) -> None:
    """Judge a recall by the spec's threshold.

    Raises:
        StageError: its interval's lower end is under it.
    """
    if recall is not None and recall.low < spec.min_recall:
        raise StageError(
            f"approximate search finds {recall.mean:.4f} of the exact top {spec.depth} (95 % interval "
            f"{recall.low:.4f} to {recall.high:.4f}, {counted(recall.queries, 'query')}), less than "
            f"min_recall = {spec.min_recall}",
            where=where,
            remedy=f"raise expansion_search above {spec.expansion_search}, then connectivity and "
            'expansion_add, or use search = "exact"',
        )
