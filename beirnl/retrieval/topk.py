"""The order of hits and the cut at k: the one place that knows them.

The order is trec_eval's (``form_res_rels.c``): score descending, then document id descending, by code points.
It is total, so that a cut does not depend on how the documents were divided.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from beirnl.errors import DataError
from beirnl.schema import RUN


def top(scores: np.ndarray, ids: Sequence[str], k: int, *, exclude: str | None = None) -> list[int]:
    """Positions of the k best hits of one query, best first.

    Args:
        scores: one number per candidate, shape ``(n,)``; all n are sorted, so leave out hopeless ones before.
        ids: their document ids; of an id that stands there twice the best score counts.
        k: how many to keep; fewer come back if there are fewer.
        exclude: an id to leave out before the cut (the query's own, where self matches are removed).

    Raises:
        DataError: a score is NaN.
    """
    pairs = list(zip(np.asarray(scores).tolist(), ids, strict=True))
    bad = next((doc_id for score, doc_id in pairs if score != score), None)
    if bad is not None:
        raise DataError("a score is NaN", where=f"document {bad}")
    best: list[int] = []
    seen = {exclude}
    for position in sorted(range(len(pairs)), key=pairs.__getitem__, reverse=True):
        if len(best) == k:
            break
        if ids[position] not in seen:
            seen.add(ids[position])
            best.append(position)
    return best


def merge_runs(tables: Sequence[pa.Table], k: int, *, remove_self: bool = False) -> pa.Table:
    """One run with the k best hits per query out of partial runs.

    The result equals the cut of the run in one piece, however that was divided, if each part holds its own
    k best (k + 1 where self matches are removed here).

    Args:
        tables: runs with the columns of ``RUN``; a (query, document) pair found twice counts once, with its
            better score.
        k: cutoff.
        remove_self: whether hits whose document id is the query's id are removed, before the cut.

    Returns:
        ``RUN``, by query id ascending and trec_eval's order within a query.

    Raises:
        DataError: a score is NaN or missing.
    """
    parts = [table.select(RUN.names).cast(RUN) for table in tables]
    run = pl.DataFrame(pa.concat_tables(parts) if parts else RUN.empty_table())
    # Adding 0 makes -0.0 tie with 0.0.
    run = run.with_columns(pl.col("score") + 0.0)
    bad = run.filter(pl.col("score").is_nan() | pl.col("score").is_null())
    if bad.height:
        query_id, doc_id, _ = bad.row(0)
        raise DataError("a score is NaN or missing", where=f"query {query_id}, document {doc_id}")
    if remove_self:
        run = run.filter(pl.col("query_id") != pl.col("doc_id"))
    best = (
        run.sort("query_id", "score", "doc_id", descending=[False, True, True])
        .unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        .group_by("query_id", maintain_order=True)
        .head(k)
    )
    return best.select(RUN.names).to_arrow().cast(RUN)
