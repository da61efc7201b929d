"""The order of hits and the cut at k: the one place that knows them.

The order is trec_eval's (``form_res_rels.c``): score descending, then document id descending, by code points.
It is total, so that a cut does not depend on how the documents were divided.

While a search is under way its hits are integers. The *rank* of a document is the place of its id among the
ids of the search, ascending, and the *key* of a hit is one int64: its score's float32 bits, made to order as
integers do, above its document's rank. The greater key is the better hit, and no two hits of a query tie.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.errors import DataError
from beirnl.schema import RUN

_NO_HIT = np.iinfo(np.int64).min  # a key below that of every score


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
    numbers = np.asarray(scores)
    if np.isnan(numbers).any():
        raise DataError("a score is NaN", where=f"document {ids[int(np.flatnonzero(np.isnan(numbers))[0])]}")
    best: dict[str, int] = {}
    for _, doc_id, position in sorted(zip(numbers.tolist(), ids, range(len(ids)), strict=True), reverse=True):
        best.setdefault(doc_id, position)
    if exclude is not None:
        best.pop(exclude, None)
    return list(best.values())[:k]


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


def merge_each(tables: Iterable[pa.Table], k: int, *, remove_self: bool = False) -> pa.Table:
    """:func:`merge_runs` of partial runs that are read one after another, in memory of two of them."""
    best = RUN.empty_table()
    for table in tables:
        best = merge_runs([best, table], k, remove_self=remove_self)
    return best


class TopHits:
    """The k best hits of many queries, in the order of this module, while candidates arrive.

    Args:
        queries: number of queries.
        k: hits kept per query; int64 [queries, k] is all that it holds.
    """

    def __init__(self, queries: int, k: int) -> None:
        self.k = k
        self._keys = np.full((queries, k), _NO_HIT, np.int64)

    def add(self, queries: np.ndarray, ranks: np.ndarray, scores: np.ndarray) -> None:
        """Take candidates: query numbers (ascending), ranks of documents and float32 scores, each [n].

        A document must not come twice for one query.

        Raises:
            DataError: a score is NaN.
        """
        keys = _keys(scores, ranks)
        begins = np.flatnonzero(np.diff(queries, prepend=-1))
        counts = np.diff(begins, append=len(queries))
        rows, place = queries[begins], np.arange(len(queries)) - np.repeat(begins, counts)
        if counts.max(initial=0) > self.k:
            keys = keys[np.lexsort((~keys, queries))]  # ~ descends and cannot overflow
            kept = place < self.k
            keys, place, counts = keys[kept], place[kept], np.minimum(counts, self.k)
        if not len(keys):
            return
        fresh = np.full((len(rows), int(counts.max())), _NO_HIT, np.int64)
        fresh[np.repeat(np.arange(len(rows)), counts), place] = keys
        both = np.concatenate([self._keys[rows], fresh], axis=1)
        both.sort(axis=1)
        self._keys[rows] = both[:, -self.k :]

    def thresholds(self) -> np.ndarray:
        """The k-th best score of every query, [queries] float32; minus infinity where there are fewer."""
        lowest = self._keys.min(axis=1)
        return np.where(lowest == _NO_HIT, np.float32(-np.inf), _scores(lowest))

    def hits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Query numbers, ranks and float32 scores, each [n]: by query, best first."""
        keys = np.sort(self._keys, axis=1)[:, ::-1]
        queries, places = np.nonzero(keys != _NO_HIT)
        found = keys[queries, places]
        return queries, found & 0x7FFFFFFF, _scores(found)

    def run(self, query_ids: pa.Array, ids: pa.Array) -> pa.Table:
        """The hits as a ``RUN``: query ids by number, and document ids by rank (that is, ascending)."""
        queries, ranks, scores = self.hits()
        return pa.table([query_ids.take(pa.array(queries)), ids.take(pa.array(ranks)), scores], schema=RUN)


def id_ranks(ids: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """The rank of each id, [n] int64, and the ids by rank.

    Raises:
        DataError: an id stands there twice.
    """
    order = pl.Series(ids).arg_sort().to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    ascending = ids.take(pa.array(order))
    if len(ids) > 1 and (twice := pc.index(pc.equal(ascending[:-1], ascending[1:]), True).as_py()) >= 0:
        raise DataError("two vectors have this id", where=f"document {ascending[twice]}")
    return ranks, ascending


def own_ranks(query_ids: pa.Array, ascending: pa.Array) -> np.ndarray:
    """The rank of the document that has the query's id, [q] int64; -1 where there is none."""
    return np.asarray(pc.fill_null(pc.index_in(query_ids, value_set=ascending), -1), np.int64)


def _keys(scores: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, np.float32) + np.float32(0)  # -0.0 ties with 0.0
    if np.isnan(scores).any():
        raise DataError("a score is NaN")
    bits = scores.view(np.int32)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys: np.ndarray = (ordered.astype(np.int64) << 32) | ranks
    return keys


def _scores(keys: np.ndarray) -> np.ndarray:
    ordered = (keys >> 32).astype(np.int32)
    bits: np.ndarray = ordered ^ ((ordered >> 31) & 0x7FFFFFFF)
    return bits.view(np.float32)
