"""Approximate nearest neighbours: HNSW graphs of USearch, and how much of exact search they find.

A graph (Malkov and Yashunin 2018) only finds candidates, since it holds vectors in few bits. Of the
candidates of all graphs some more than wanted are kept, by the graphs' own scores; these are scored again
from the vectors as they were embedded, exactly as :mod:`beirnl.retrieval.exact` does. So a search of many
graphs reads hardly more vectors than that of one.

An index is a folder: ``index.usearch``, ``vectors.npy`` (and ``scales.npy``) with the embedded vectors,
``ids.arrow`` with the identifiers in ascending order, ``ranks.npy`` with each row's place among them. All of
it is mapped into memory and not read.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa

from beirnl.errors import DataError, StoreError
from beirnl.retrieval.exact import ExactSearch, exact_scores
from beirnl.retrieval.topk import TopHits, id_ranks, merge_runs
from beirnl.retrieval.vectors import RowVectors, VectorFiles
from beirnl.schema import RUN

Numbers = Literal["bf16", "i8"]

_FETCHED = {"bf16": 1.1, "i8": 2.0}  # candidates per hit: what few bits put in the wrong order
_EXHAUSTIVE = 16  # where candidates would be this part of all, all are scored: exact, and not slower
_QUERIES = 8192  # searched at a time
_IDS = pa.schema([("id", pa.string())])


def build(
    files: VectorFiles,
    folder: Path,
    *,
    numbers: Numbers,
    connectivity: int,
    expansion_add: int,
    tell: Callable[[int], None] = lambda done: None,
) -> None:
    """Index vectors, by one thread and in their order, so that the same vectors give the same files.

    Args:
        files: unit vectors and their identifiers.
        folder: where the unit is put; must be there and be empty.
        numbers: number format of the graph's vectors.
        connectivity: neighbours of a node (M of the paper).
        expansion_add: candidates looked at for a new node (efConstruction).
        tell: is told how many vectors are done.

    Raises:
        DataError: a vector holds NaN or infinity, or an id stands there twice.
    """
    from usearch.index import Index

    ranks, ascending = id_ranks(files.ids())
    index = Index(
        ndim=max(1, files.dimension),
        metric="ip",
        dtype=numbers,
        connectivity=connectivity,
        expansion_add=expansion_add,
        enable_key_lookups=False,
    )
    begin = 0
    for batch in RowVectors.write(files, folder):
        end = begin + len(batch.values)
        index.add(np.arange(begin, end, dtype=np.uint64), batch.vectors(), threads=1)
        begin = end
        tell(end)
    index.save(str(folder / "index.usearch"))
    np.save(folder / "ranks.npy", ranks.astype(np.int32))
    with pa.OSFile(str(folder / "ids.arrow"), "wb") as file, pa.ipc.new_file(file, _IDS) as writer:
        writer.write(pa.record_batch([ascending], schema=_IDS))


class AnnIndex:
    """An index, mapped into memory.

    Args:
        folder: what :func:`build` has made.
        expansion_search: candidates looked at for a query (ef of the paper).

    Attributes:
        ids: identifiers by rank (that is, ascending).
        ranks: rank of each row's identifier.
        vectors: the embedded vectors by row.

    Raises:
        StoreError: the index cannot be opened.
    """

    def __init__(self, folder: Path, expansion_search: int) -> None:
        self._index = _view(folder / "index.usearch")
        self._index.expansion_search = expansion_search  # is 64 after every opening, whatever was saved
        self._fetched = _FETCHED[self._index.dtype.name.lower()]
        self.vectors = RowVectors(folder)
        self.ranks = np.load(folder / "ranks.npy", mmap_mode="r")
        with pa.memory_map(str(folder / "ids.arrow")) as file:
            self.ids = pa.ipc.open_file(file).read_all()["id"].combine_chunks()

    def __len__(self) -> int:
        return len(self.vectors)

    def fetched(self, depth: int) -> int:
        """How many candidates to keep for so many hits."""
        return round(self._fetched * depth)

    def candidates(
        self, queries: np.ndarray, count: int, *, threads: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Documents that the graph leads to.

        Args:
            queries: vectors, [q, dimension] float32.
            count: candidates per query; fewer come back if there are fewer documents.
            threads: queries searched at once (by USearch's own, as it does not let Python's run).

        Returns:
            Numbers of queries (int64, ascending), rows (int64) and the graph's scores (float32), each [n].

        Raises:
            DataError: the documents have another dimension.
        """
        if len(self) and queries.shape[1] != self._index.ndim:
            raise DataError(
                f"documents have {self._index.ndim} dimensions, queries {queries.shape[1]}",
                remedy="embed both with one model",
            )
        if not len(queries) or count * _EXHAUSTIVE >= len(self):
            every = ExactSearch(queries, count, threads=threads, device="cpu")
            return self._all(every, np.arange(len(self))).hits()
        begins = range(0, len(queries), _QUERIES)
        found = [self._block(queries, begin, count, threads) for begin in begins]
        numbers, rows, scores = (np.concatenate(column) for column in zip(*found, strict=True))
        return numbers, rows, scores

    def exact(
        self, queries: np.ndarray, depth: int, *, own: np.ndarray | None = None, **settings: Any
    ) -> TopHits:
        """The best hits among all vectors; ``settings`` are those of :class:`ExactSearch`."""
        return self._all(ExactSearch(queries, depth, own=own, **settings), self.ranks)

    def _all(self, search: ExactSearch, ranks: np.ndarray) -> TopHits:
        for begin, vectors in self.vectors.blocks(search.block_rows):
            search.add(vectors, ranks[begin : begin + len(vectors)].astype(np.int64))
        return search.top

    def _block(
        self, queries: np.ndarray, begin: int, count: int, threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What :meth:`candidates` returns, for some of the queries."""
        found = self._index.search(queries[begin : begin + _QUERIES], count, threads=threads)
        # Of one query there comes no batch; short answers are filled up.
        keys, distances = np.atleast_2d(found.keys), np.atleast_2d(found.distances)
        counts = np.asarray(getattr(found, "counts", keys.shape[1])).reshape(-1, 1)
        real = np.arange(keys.shape[1]) < counts
        numbers = np.repeat(np.arange(begin, begin + len(keys)), keys.shape[1]).reshape(keys.shape)
        return numbers[real], keys[real].astype(np.int64), 1 - distances[real]


def rescored(
    indexes: Sequence[AnnIndex],
    found: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]],
    queries: np.ndarray,
    query_ids: pa.Array,
    depth: int,
    *,
    remove_self: bool = False,
    threads: int = 1,
) -> pa.Table:
    """The best of the candidates of all indexes, with exact scores.

    Args:
        indexes: all of a corpus.
        found: the candidates of each: numbers of queries, rows, and the graph's scores.
        queries: vectors, [q, dimension] float32.
        query_ids: their identifiers.
        depth: hits kept per query.
        remove_self: whether hits whose id is the query's are removed, before the cut.
        threads: pairs scored at once.

    Returns:
        ``RUN``, in the order of :func:`beirnl.retrieval.topk.merge_runs`.
    """
    kept = max((index.fetched(depth + remove_self) for index in indexes), default=depth)
    best, begins = TopHits(len(queries), kept), np.cumsum([0, *map(len, indexes)])
    for begin, (numbers, rows, scores) in zip(begins, found, strict=False):
        best.add(numbers, rows + begin, scores)
    numbers, places, _ = best.hits()

    def run(index: AnnIndex, begin: int) -> pa.Table:
        here = np.flatnonzero((places >= begin) & (places < begin + len(index)))
        here = here[np.argsort(places[here])]  # vectors are read in their order
        rows = places[here] - begin
        scores = exact_scores(queries, numbers[here], index.vectors.take, rows, threads)
        names = index.ids.take(pa.array(index.ranks[rows]))
        return pa.table([query_ids.take(pa.array(numbers[here])), names, scores], schema=RUN)

    runs = [run(index, int(begin)) for index, begin in zip(indexes, begins, strict=False)]
    return merge_runs(runs, depth, remove_self=remove_self)


def _view(path: Path) -> Any:
    from usearch.index import Index

    remedy = "delete the artifact's folder and run again"
    try:
        index = Index.restore(str(path), view=True)
    except (RuntimeError, ValueError) as error:
        raise StoreError(f"cannot be opened as an index ({error})", where=path, remedy=remedy) from error
    if index is None:
        raise StoreError("is no index that this version of usearch reads", where=path, remedy=remedy)
    return index


def recalls(found: pa.Table, exact: pa.Table) -> pl.DataFrame:
    """How much of exact search approximate search has found, per query.

    A hit counts if its score is at least the last exact one: which of equally good documents was found does
    not matter.

    Args:
        found: a run of approximate search, its scores exact.
        exact: the run of exact search of the same depth, for some of the queries, or all.

    Returns:
        Columns ``query_id`` and ``recall`` (0 to 1), one row per query that has an exact hit, by query id.
    """
    last = pl.DataFrame(exact).group_by("query_id").agg(pl.col("score").min().alias("last"), pl.len())
    hits = (
        pl.DataFrame(found)
        .join(last, on="query_id")
        .filter(pl.col("score") >= pl.col("last"))
        .group_by("query_id")
        .agg(pl.len().alias("hits"))
    )
    share = (pl.col("hits").fill_null(0) / pl.col("len")).alias("recall")
    return last.join(hits, on="query_id", how="left").select("query_id", share).sort("query_id")
