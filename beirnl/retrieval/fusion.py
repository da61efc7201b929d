"""Fusion: several runs of the same queries as one.

- ``rrf``: reciprocal rank, the sum of 1 / (k + rank) over the runs that found the document, with ranks from 1
  and k = 60 (Cormack, Clarke and Büttcher, SIGIR 2009).
- ``min-max``: the sum of (score - min) / (max - min) (CombSUM of Fox and Shaw, TREC-2, on scores normalised
  as by Lee, SIGIR 1997). Where a run gives a query equal scores, each is its maximum, 1.
- ``z-score``: the sum of (score - mean) / standard deviation of the population (ZMUV of Montague and Aslam,
  CIKM 2001). Where a run gives a query equal scores, each is the mean, 0.

Minimum, mean and so on are those of one query's hits in one run. A document that a run has not found gets 0
from it, as CombSUM has it: with ``z-score`` that is the mean of the hits, so runs should be deep.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import polars as pl
import pyarrow as pa

from beirnl.errors import ConfigError
from beirnl.retrieval.topk import merge_runs
from beirnl.schema import RUN
from beirnl.wording import counted

Method = Literal["rrf", "min-max", "z-score"]


def fuse(
    runs: Sequence[pa.Table],
    depth: int,
    *,
    method: Method = "rrf",
    weights: Sequence[float] = (),
    k: int = 60,
    remove_self: bool = False,
) -> pa.Table:
    """Fuse runs.

    Args:
        runs: tables with the columns of ``RUN``; their queries need not be the same.
        depth: hits kept per query.
        method: how a hit counts, see above.
        weights: of the runs, in their order; none: each counts 1.
        k: of ``rrf``: how little the first ranks stand out.
        remove_self: whether hits whose document id is the query's are removed, before anything is counted.

    Returns:
        ``RUN``, ordered by :func:`beirnl.retrieval.topk.merge_runs`: by the scores as rounded to float32.

    Raises:
        ConfigError: the method is unknown, or there is not one finite weight per run.
        DataError: a score is NaN or missing.
    """
    weights = tuple(weights) or (1.0,) * len(runs)
    _check(method, weights, len(runs))
    fused = pl.DataFrame(RUN.empty_table()).drop("score")
    for number, run in enumerate(runs):
        hits = _counted(run, method, k, remove_self).rename({"score": str(number)})
        fused = fused.join(hits, on=["query_id", "doc_id"], how="full", coalesce=True)
    score = pl.lit(0.0)
    for number, weight in enumerate(weights):  # in the order of the runs, so that sums are repeatable
        score = score + weight * pl.col(str(number)).fill_null(0.0)
    table = fused.select("query_id", "doc_id", score.cast(pl.Float32).alias("score"))
    return merge_runs([table.to_arrow()], depth)


def _check(method: str, weights: Sequence[float], runs: int) -> None:
    if method not in get_args(Method):
        raise ConfigError(
            f"no method of fusion is called {method!r}", remedy=f"use one of: {', '.join(get_args(Method))}"
        )
    if len(weights) != runs or not all(abs(weight) < float("inf") for weight in weights):
        raise ConfigError(
            f"{counted(runs, 'run is', 'runs are')} fused with the weights {', '.join(map(str, weights))}",
            remedy="give one finite weight per run, in their order",
        )


def _counted(run: pa.Table, method: Method, k: int, remove_self: bool) -> pl.DataFrame:
    """What each hit of a run counts: query_id, doc_id, score (float64)."""
    ordered = pl.DataFrame(merge_runs([run], max(1, run.num_rows), remove_self=remove_self))
    score = pl.col("score").cast(pl.Float64)
    low, high = score.min(), score.max()
    rank = pl.int_range(1, pl.len() + 1)
    counts = {
        "rrf": 1.0 / (k + rank).cast(pl.Float64),
        "min-max": pl.when(high > low).then((score - low) / (high - low)).otherwise(1.0),
        "z-score": pl.when(high > low).then((score - score.mean()) / score.std(ddof=0)).otherwise(0.0),
    }
    return ordered.with_columns(counts[method].over("query_id").alias("score"))
