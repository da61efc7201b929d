"""Measures of ranked retrieval, with the semantics of trec_eval, whoever computes them.

Gain is linear unless a name says otherwise, documents with equal scores are ordered by id descending, a label
above 0 is relevant. What trec_eval leaves to its options is fixed here as BEIR has it: the mean runs over all
judged queries, so a judged query without hits counts 0 (``trec_eval -c``), and so does a query without a
relevant document.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from beirnl.errors import DataError
from beirnl.evaluation.measures import providers
from beirnl.evaluation.names import Measure, parse

__all__ = [
    "Measure",
    "QrelsStats",
    "evaluate",
    "mean_of_parts",
    "parse",
    "qrels_stats",
    "summarise",
    "without_relevant",
]

_SCORES = {"query_id": pl.String, "measure": pl.String, "value": pl.Float64}
_PROVIDERS = {
    "trec_eval": providers.trec_eval,
    "counted": providers.counted,
    "ir_measures": providers.ir_measures,
}


class QrelsStats(NamedTuple):
    """Counts of a set of judgements; ``relevant``, ``mean``, ``least``, ``most`` count labels above 0 only.

    Attributes:
        judgements: lines, whatever their label.
        queries: queries with at least one line.
        without_relevant: queries whose labels are all 0 (or below).
        relevant: lines with a label above 0.
        mean: relevant documents per query, over ``queries``; None without queries.
        least: relevant documents of the query that has the fewest.
        most: relevant documents of the query that has the most.
    """

    judgements: int
    queries: int
    without_relevant: int
    relevant: int
    mean: float | None
    least: int
    most: int


def evaluate(
    run: pa.Table | pl.DataFrame,
    qrels: pa.Table | pl.DataFrame,
    measures: Iterable[str],
    queries: Collection[str] | None = None,
) -> pl.DataFrame:
    """Values of measures for every judged query.

    Scores are compared as float32, as trec_eval does; the order of rows does not matter. A query of the run
    without a line in the qrels is not scored.

    Args:
        run: columns query_id, doc_id, score.
        qrels: columns query_id, doc_id, relevance; labels below 0 count as 0, but to infAP and Bpref
            as pooled and not judged.
        measures: names, see :func:`beirnl.evaluation.names.parse`.
        queries: ids of the queries that exist; a judged query that is not among them is not scored.

    Returns:
        Columns query_id, measure, value (0 to 1): one row per judged query and measure, queries in the order
        of the qrels, measures in the order given.

    Raises:
        ConfigError: a measure is unknown.
        DataError: a document stands twice under one query, or a score is NaN.
    """
    wanted = parse(measures)
    judged = _frame(qrels).select("query_id", "doc_id", "relevance")
    if queries is not None:
        judged = judged.filter(pl.col("query_id").is_in(pl.Series(list(queries), dtype=pl.String).implode()))
    order = judged["query_id"].unique(maintain_order=True)
    hits = _frame(run).select("query_id", "doc_id", pl.col("score").cast(pl.Float32))
    hits = hits.filter(pl.col("query_id").is_in(order.implode()))
    _refuse_duplicates(judged, "qrels")
    _refuse_duplicates(hits, "run")
    _refuse_nan(hits)
    values = _values(providers.ranked(hits), judged, wanted)
    rows = [
        (query, one.name, values[one].get(query, {}).get(one.name, 0.0)) for query in order for one in wanted
    ]
    return pl.DataFrame(rows, schema=_SCORES, orient="row")


def _values(
    hits: pl.DataFrame, judged: pl.DataFrame, measures: Sequence[Measure]
) -> dict[Measure, providers.Values]:
    """Values by measure, each from its provider."""
    clipped = judged.with_columns(pl.col("relevance").clip(lower_bound=0))
    found: dict[Measure, providers.Values] = {}
    for provider, compute in _PROVIDERS.items():
        own = [measure for measure in measures if measure.provider == provider]
        if own:
            values = compute(hits, judged if provider == "ir_measures" else clipped, own)
            found |= dict.fromkeys(own, values)
    return found


def _frame(table: pa.Table | pl.DataFrame) -> pl.DataFrame:
    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(pl.from_arrow(table))


def _refuse_duplicates(frame: pl.DataFrame, kind: str) -> None:
    query, doc = pl.col("query_id"), pl.col("doc_id")
    if frame.select((query.hash(1) ^ doc.hash(2)).n_unique()).item() == len(frame):
        return  # no two pairs share as much as a hash
    pairs = frame.select(query, doc)
    twice = pairs.filter(pairs.is_duplicated())
    if len(twice):
        query_id, doc_id = twice.row(0)
        raise DataError(
            f"document {doc_id!r} stands twice under query {query_id!r}",
            where=kind,
            remedy="keep one of the lines",
        )


def _refuse_nan(hits: pl.DataFrame) -> None:
    bad = hits.filter(pl.col("score").is_null() | pl.col("score").is_nan())
    if len(bad):
        query, doc, _ = bad.row(0)
        raise DataError(
            f"document {doc!r} of query {query!r} has no score", where="run", remedy="check the retriever"
        )


def without_relevant(qrels: pa.Table | pl.DataFrame) -> pl.Series:
    """Ids of the judged queries that have no document with a label above 0, in the order of the qrels."""
    relevant = _per_query(qrels).filter(pl.col("relevant") == 0)
    return relevant["query_id"]


def _per_query(qrels: pa.Table | pl.DataFrame) -> pl.DataFrame:
    count = (pl.col("relevance") > 0).sum().cast(pl.Int64).alias("relevant")
    return _frame(qrels).group_by("query_id", maintain_order=True).agg(count)


def summarise(scores: pl.DataFrame, qrels: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """Means over the judged queries, with and without the queries that have no relevant document.

    Args:
        scores: what :func:`evaluate` returns.
        qrels: the judgements it was given.

    Returns:
        Columns measure, mean, queries, without_relevant (number of such queries), mean_with_relevant (the
        mean without them; null if no query remains): one row per measure, in their order of appearance.
    """
    answerable = ~pl.col("query_id").is_in(without_relevant(qrels).implode())
    return scores.group_by("measure", maintain_order=True).agg(
        pl.col("value").mean().alias("mean"),
        pl.len().cast(pl.Int64).alias("queries"),
        (~answerable).sum().cast(pl.Int64).alias("without_relevant"),
        pl.col("value").filter(answerable).mean().alias("mean_with_relevant"),
    )


def qrels_stats(qrels: pa.Table | pl.DataFrame) -> QrelsStats:
    """Counts a set of judgements; only labels above 0 count as relevant."""
    counts = _per_query(qrels)["relevant"].to_numpy()
    return QrelsStats(
        judgements=len(qrels),
        queries=len(counts),
        without_relevant=int((counts == 0).sum()),
        relevant=int(counts.sum()),
        mean=float(counts.mean()) if len(counts) else None,
        least=int(counts.min(initial=counts.max(initial=0))),
        most=int(counts.max(initial=0)),
    )


def mean_of_parts(parts: Mapping[str, float | None], expected: Sequence[str]) -> float | None:
    """Plain mean over the parts of a dataset, whatever their numbers of queries (CQADupStack: its 12 forums).

    Args:
        parts: value of each part that was evaluated.
        expected: all parts of the dataset.

    Returns:
        The mean, or None (incomplete) if a part is missing or has no value.
    """
    values = [parts.get(part) for part in expected]
    known = [value for value in values if value is not None and not math.isnan(value)]
    if not expected or len(known) < len(values):
        return None
    return math.fsum(known) / len(known)
