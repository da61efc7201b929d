"""What computes measures from hits in trec_eval's order: trec_eval, ir_measures' providers, and counts.

Every function takes hits that :func:`ranked` has put in order and gives values by query and measure; a query
or measure that is not there counts 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from beirnl.errors import DataError
from beirnl.evaluation.names import Measure

#: Values by query, then by name of the measure.
Values = dict[str, dict[str, float]]

_BATCH = 500_000  # hits that stand in dictionaries at once
_POOLED = ("infAP", "Bpref")  # to them a label below 0 is a document that was pooled and not judged


def ranked(hits: pl.DataFrame) -> pl.DataFrame:
    """Hits in trec_eval's order, queries together: by score, then by id (in bytes), both descending.

    Args:
        hits: columns query_id, doc_id, score (float32).

    Returns:
        The same columns, and ``rank`` from 0.
    """
    if not _in_order(hits):
        hits = hits.sort("query_id", "score", "doc_id", descending=[False, True, True])
    starts = _starts(hits)
    sizes = np.diff(np.append(starts, len(hits)))
    ranks = np.arange(len(hits), dtype=np.int64) - np.repeat(starts, sizes)
    return hits.with_columns(pl.Series("rank", ranks))


def _in_order(hits: pl.DataFrame) -> bool:
    query, score, doc = (pl.col(name) for name in ("query_id", "score", "doc_id"))
    falls = (score < score.shift()) | ((score == score.shift()) & (doc < doc.shift()))
    found = hits.select(
        ((query != query.shift()) | falls).fill_null(True).all().alias("falling"),
        query.n_unique().alias("queries"),
    )
    return bool(found["falling"][0]) and len(_starts(hits)) == found["queries"][0]


def _starts(hits: pl.DataFrame) -> np.ndarray:
    """Where the hits of each query begin."""
    if hits.is_empty():
        return np.zeros(0, np.int64)
    changes = hits.select((pl.col("query_id") != pl.col("query_id").shift()).fill_null(True))
    return np.flatnonzero(changes.to_series().to_numpy())


def trec_eval(hits: pl.DataFrame, judged: pl.DataFrame, measures: Sequence[Measure]) -> Values:
    """Measures that trec_eval computes without options, through pytrec_eval.

    To these measures hits without a label are all alike, and those below the last hit with one, or below the
    deepest cutoff, do not count. So trec_eval gets the ranks of what has a label, and between them the same
    few names for every query, instead of millions of ids.

    Args:
        hits: what :func:`ranked` gives.
        judged: columns query_id, doc_id, relevance; no label below 0.
        measures: of provider ``trec_eval``.
    """
    import pytrec_eval

    labelled = hits.join(judged, on=["query_id", "doc_id"], how="semi")
    depths = [measure.cutoff for measure in measures]
    if None not in depths:
        labelled = labelled.filter(pl.col("rank") < max(depth for depth in depths if depth))
    evaluator = pytrec_eval.RelevanceEvaluator(_nested(judged), {measure.trec for measure in measures})
    values: Values = {}
    for run in _runs(labelled):
        for query, found in evaluator.evaluate(run).items():
            values[query] = {measure.name: _value(found, measure) for measure in measures}
    return values


def _runs(labelled: pl.DataFrame) -> Iterator[dict[str, dict[str, float]]]:
    """Parts of a run for pytrec_eval, about ``_BATCH`` hits each: hits with a label keep id and rank."""
    prefix = "\1"
    while labelled["doc_id"].str.starts_with(prefix).any():
        prefix += "\1"
    deepest = labelled["rank"].max()
    names = [f"{prefix}{rank}" for rank in range(int(deepest) + 1 if isinstance(deepest, int) else 0)]
    scores = [-float(rank) for rank in range(len(names))]
    run: dict[str, dict[str, float]] = {}
    held = 0
    places = labelled.group_by("query_id", maintain_order=True).agg("doc_id", "rank")
    for query, docs, ranks in places.iter_rows():
        run[query] = dict(zip(names[: max(ranks) + 1], scores, strict=False))
        for doc, rank in zip(docs, ranks, strict=True):
            del run[query][names[rank]]
            run[query][doc] = scores[rank]
        held += len(run[query])
        if held >= _BATCH:
            yield run
            run, held = {}, 0
    yield run


def _value(found: Mapping[str, float], measure: Measure) -> float:
    value = found[measure.trec]
    if measure.trec == "recip_rank" and measure.cutoff and value < 1 / measure.cutoff:
        return 0.0  # trec_eval has no cutoff for it: the first relevant hit lies below
    return value


def _nested(judged: pl.DataFrame) -> dict[str, dict[str, Any]]:
    groups = judged.group_by("query_id", maintain_order=True).agg("doc_id", "relevance")
    return {query: dict(zip(docs, labels, strict=True)) for query, docs, labels in groups.iter_rows()}


def counted(hits: pl.DataFrame, judged: pl.DataFrame, measures: Sequence[Measure]) -> Values:
    """``R_cap@k`` and ``hole@k`` as in BEIR (Thakur et al. 2021, its custom metrics), and ``Judged@k``.

    ``R_cap@k`` divides the relevant documents found by the smaller of k and their number. ``hole@k`` is the
    share of k that is taken by documents without a label under *any* query. ``Judged@k`` is the share of the
    hits down to k with a label under *this* query.

    Args:
        hits: what :func:`ranked` gives.
        judged: columns query_id, doc_id, relevance.
        measures: of provider ``counted``.
    """
    deepest = max(measure.cutoff or len(hits) for measure in measures)
    annotated = judged.select(pl.col("doc_id").unique(), annotated=pl.lit(True))
    relevant = judged.group_by("query_id").agg((pl.col("relevance") > 0).sum().alias("relevant"))
    frame = hits.filter(pl.col("rank") < deepest)
    frame = frame.join(judged, on=["query_id", "doc_id"], how="left").join(annotated, on="doc_id", how="left")
    found = (
        frame.group_by("query_id")
        .agg(_counts(measure) for measure in measures)
        .join(relevant, on="query_id", how="left")
        .with_columns(_capped(measure) for measure in measures if measure.name.startswith("R_cap"))
    )
    names = [measure.name for measure in measures]
    return {
        query: dict(zip(names, row, strict=True)) for query, *row in found.select("query_id", *names).rows()
    }


def _counts(measure: Measure) -> pl.Expr:
    inside = pl.col("rank") < measure.cutoff if measure.cutoff else pl.col("rank") >= 0
    if measure.name.startswith("hole"):
        value = (inside & pl.col("annotated").is_null()).sum() / measure.cutoff
    elif measure.name.startswith("Judged"):
        value = (inside & pl.col("relevance").is_not_null()).sum() / inside.sum()
    else:
        value = (inside & (pl.col("relevance") > 0)).sum().cast(pl.Float64)
    return value.alias(measure.name)


def _capped(measure: Measure) -> pl.Expr:
    relevant = pl.col("relevant").clip(upper_bound=measure.cutoff)
    return pl.when(relevant > 0).then(pl.col(measure.name) / relevant).otherwise(0.0).alias(measure.name)


def ir_measures(hits: pl.DataFrame, judged: pl.DataFrame, measures: Sequence[Measure]) -> Values:
    """Everything else, by the providers of ir_measures (MacAvaney et al. 2022).

    Providers break ties each in their own way and some read only numbers as ids of queries, so they get
    numbers: in place of ids, and in place of scores the ranks from the last hit.

    Args:
        hits: what :func:`ranked` gives.
        judged: columns query_id, doc_id, relevance; labels may be below 0.
        measures: of provider ``ir_measures``.

    Raises:
        DataError: Accuracy is asked for, and all hits of a query are relevant.
    """
    import ir_measures as library

    number: dict[str, str] = {}
    queries: dict[str, str] = {}
    run: dict[str, dict[str, float]] = {}
    for query, docs in hits.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows():
        key = queries.setdefault(query, str(len(queries) + 1))
        run[key] = {
            number.setdefault(doc, str(len(number))): float(len(docs) - rank) for rank, doc in enumerate(docs)
        }
    names = {number_: query for query, number_ in queries.items()}
    values: Values = {}
    for pooled in (False, True):
        wanted = [one.name for one in measures if one.name.startswith(_POOLED) is pooled]
        labels = pl.col("relevance") if pooled else pl.col("relevance").clip(lower_bound=0)
        nested = _nested(judged.filter(pl.col("query_id").is_in(list(queries))).with_columns(labels))
        qrels = {
            queries[query]: {number.setdefault(doc, str(len(number))): label for doc, label in docs.items()}
            for query, docs in nested.items()
        }
        parsed = {library.parse_measure(name): name for name in wanted}
        try:
            metrics = list(library.iter_calc(list(parsed), qrels, run)) if parsed and run else []
        except ZeroDivisionError as error:
            raise DataError(
                "Accuracy is not defined where all hits of a query are relevant", remedy="use another measure"
            ) from error
        for metric in metrics:
            found = values.setdefault(names[metric.query_id], {})
            found[parsed[metric.measure]] = float(metric.value)
    return values
