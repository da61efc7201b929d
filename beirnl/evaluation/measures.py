"""Measures of ranked retrieval, with the semantics of trec_eval (which computes them, through pytrec_eval).

Gain is linear, documents with equal scores are ordered by id descending, a label above 0 is relevant. What
trec_eval leaves to its options is fixed here as BEIR has it: the mean runs over all judged queries, so a
judged query without hits counts 0 (``trec_eval -c``), and so does a query without a relevant document.
"""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from beirnl.errors import ConfigError, DataError

#: Name in ir_measures -> trec_eval's name without and with a cutoff (None: there is no such form).
_FAMILIES: Mapping[str, tuple[str | None, str | None]] = {
    "nDCG": ("ndcg", "ndcg_cut"),
    "AP": ("map", "map_cut"),
    "RR": ("recip_rank", "recip_rank"),
    "R": (None, "recall"),
    "P": (None, "P"),
    "Success": (None, "success"),
    "Rprec": ("Rprec", None),
}
_ALIASES = {"NDCG": "nDCG", "MAP": "AP", "MRR": "RR", "Recall": "R", "Precision": "P", "RPrec": "Rprec"}
_SCORES = {"query_id": pl.String, "measure": pl.String, "value": pl.Float64}
_COMMON = (
    "nDCG@10",
    "nDCG@100",
    "R@10",
    "R@100",
    "R@1000",
    "AP",
    "AP@10",
    "P@1",
    "P@5",
    "P@10",
    "RR",
    "RR@10",
)


class Measure(NamedTuple):
    """A measure as parsed from its name.

    Attributes:
        name: canonical name, ``nDCG@10``.
        trec: what trec_eval calls it, ``ndcg_cut_10``.
        cutoff: number of hits looked at, None for all.
    """

    name: str
    trec: str
    cutoff: int | None


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


def parse(names: Iterable[str]) -> tuple[Measure, ...]:
    """Reads measures by the names of ir_measures: ``nDCG@10``, ``R@100``, ``AP``, ``P@5``, ``RR``.

    Args:
        names: names with or without a cutoff; repeated ones are dropped.

    Raises:
        ConfigError: a name is unknown, or its cutoff is missing, superfluous or not a positive integer.
    """
    return tuple(dict.fromkeys(_parse(name) for name in names))


def _parse(name: str) -> Measure:
    match = re.fullmatch(r"([A-Za-z]+)(?:@([1-9][0-9]*))?", name)
    family = _ALIASES.get(match[1], match[1]) if match else ""
    if match is None or family not in _FAMILIES:
        nearest = difflib.get_close_matches(name.lower(), [common.lower() for common in _COMMON], 1, 0.0)
        meant = next(common for common in _COMMON if common.lower() == nearest[0])
        raise ConfigError(f"unknown measure {name!r}", remedy=f"did you mean {meant}?")
    cutoff = int(match[2]) if match[2] else None
    plain, cut = _FAMILIES[family]
    if cutoff is None:
        if plain is None:
            raise ConfigError(f"measure {name!r} needs a cutoff", remedy=f"write {family}@10")
        return Measure(family, plain, None)
    if cut is None:
        raise ConfigError(f"measure {name!r} takes no cutoff", remedy=f"write {family}")
    return Measure(f"{family}@{cutoff}", cut if cut == "recip_rank" else f"{cut}_{cutoff}", cutoff)


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
        qrels: columns query_id, doc_id, relevance; negative labels count as 0.
        measures: names, see :func:`parse`.
        queries: ids of the queries that exist; a judged query that is not among them is not scored.

    Returns:
        Columns query_id, measure, value (0 to 1): one row per judged query and measure, queries in the order
        of the qrels, measures in the order given.

    Raises:
        ConfigError: a measure is unknown.
        DataError: a document stands twice under one query, or a score is NaN.
    """
    wanted = parse(measures)
    judged = _frame(qrels).select("query_id", "doc_id", pl.col("relevance").clip(lower_bound=0))
    if queries is not None:
        judged = judged.filter(pl.col("query_id").is_in(pl.Series(list(queries), dtype=pl.String).implode()))
    hits = _frame(run).select("query_id", "doc_id", pl.col("score").cast(pl.Float32))
    hits = hits.join(judged.select("query_id").unique(), on="query_id", how="semi")
    _refuse_duplicates(judged, "qrels")
    _refuse_duplicates(hits, "run")
    _refuse_nan(hits)
    values = _trec_eval(_nested(hits, "score"), _nested(judged, "relevance"), wanted)
    order = judged["query_id"].unique(maintain_order=True).to_list()
    rows = [
        (query, measure.name, _value(values.get(query, {}), measure)) for query in order for measure in wanted
    ]
    return pl.DataFrame(rows, schema=_SCORES, orient="row")


def _trec_eval(
    run: dict[str, dict[str, Any]], qrels: dict[str, dict[str, Any]], measures: Sequence[Measure]
) -> dict[str, dict[str, float]]:
    """Values by query and trec_eval's measure name, of the queries that have hits."""
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {measure.trec for measure in measures})
    values: dict[str, dict[str, float]] = evaluator.evaluate(run)
    return values


def _value(values: Mapping[str, float], measure: Measure) -> float:
    value = values.get(measure.trec, 0.0)
    if measure.trec == "recip_rank" and measure.cutoff and value < 1 / measure.cutoff:
        return 0.0  # trec_eval has no cutoff for it: the first relevant hit lies below
    return value


def _nested(frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    groups = frame.group_by("query_id", maintain_order=True).agg("doc_id", value)
    return {query: dict(zip(docs, values, strict=True)) for query, docs, values in groups.iter_rows()}


def _frame(table: pa.Table | pl.DataFrame) -> pl.DataFrame:
    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(pl.from_arrow(table))


def _refuse_duplicates(frame: pl.DataFrame, kind: str) -> None:
    pairs = frame.select("query_id", "doc_id")
    twice = pairs.filter(pairs.is_duplicated())
    if len(twice):
        query, doc = twice.row(0)
        raise DataError(
            f"document {doc!r} stands twice under query {query!r}", where=kind, remedy="keep one of the lines"
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


def bootstrap_interval(
    values: Sequence[float] | np.ndarray, *, samples: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean over queries (Efron and Tibshirani 1993, chapter 13).

    Args:
        values: one value per query, at least one.
        samples: number of resamples.
        level: share of the resampled means inside the interval.
        seed: of the resampling; equal seeds give equal intervals.

    Returns:
        Lower and upper end.
    """
    data = np.asarray(values, dtype=np.float64)
    generator = np.random.default_rng(seed)
    means = [data[generator.integers(0, len(data), len(data))].mean() for _ in range(samples)]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
