"""Approximate nearest neighbours: an HNSW graph of USearch per unit, and how much of exact search it finds.

The graph (Malkov and Yashunin 2018) only finds candidates, since it holds vectors in few bits. Some more than
wanted are taken from it, and scored again from the vectors as they were embedded, exactly as
:mod:`beirnl.retrieval.exact` does.

A unit is a folder: ``index.usearch``, ``vectors.npy`` (and ``scales.npy``) with the embedded vectors,
``ids.arrow`` with the identifiers in ascending order, ``ranks.npy`` with each row's place among them. All of
it is mapped into memory and not read.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa

from beirnl.errors import DataError, StoreError
from beirnl.retrieval.exact import ExactSearch, inner_products
from beirnl.retrieval.topk import TopHits, id_ranks
from beirnl.retrieval.vectors import RowVectors, VectorFiles

Numbers = Literal["bf16", "i8"]

_FETCHED = {"bf16": 1.1, "i8": 2.0}  # candidates per hit: what few bits put in the wrong order
_EXHAUSTIVE = 16  # where candidates would be this part of all, all are scored: exact, and not slower
_QUERIES = 128  # searched by a thread at a time
_IDS = pa.schema([("id", pa.string())])


def build(
    files: VectorFiles, folder: Path, *, numbers: Numbers, connectivity: int, expansion_add: int
) -> None:
    """Index vectors, by one thread and in their order, so that the same vectors give the same files.

    Args:
        files: unit vectors and their identifiers.
        folder: where the unit is put; must be there and be empty.
        numbers: number format of the graph's vectors.
        connectivity: neighbours of a node (M of the paper).
        expansion_add: candidates looked at for a new node (efConstruction).

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
    index.save(str(folder / "index.usearch"))
    np.save(folder / "ranks.npy", ranks.astype(np.int32))
    with pa.OSFile(str(folder / "ids.arrow"), "wb") as file, pa.ipc.new_file(file, _IDS) as writer:
        writer.write(pa.record_batch([ascending], schema=_IDS))


class AnnIndex:
    """The index of a unit, mapped into memory.

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

    def search(
        self, queries: np.ndarray, depth: int, *, own: np.ndarray | None = None, threads: int = 1
    ) -> TopHits:
        """The best hits that the graph leads to, with exact scores.

        Args:
            queries: vectors, [q, dimension] float32.
            depth: hits kept per query; fewer come back if there are fewer documents.
            own: rank of each query's own document, [q], which is left out before the cut; -1 for none.
            threads: queries searched at once.

        Raises:
            DataError: the documents have another dimension.
        """
        if len(self.vectors) and queries.shape[1] != self._index.ndim:
            raise DataError(
                f"documents have {self._index.ndim} dimensions, queries {queries.shape[1]}",
                remedy="embed both with one model",
            )
        wanted = depth + (own is not None)
        fetched = min(len(self.vectors), max(wanted, round(self._fetched * wanted)))
        if fetched * _EXHAUSTIVE >= len(self.vectors):
            return self.exact(queries, depth, own=own, threads=threads, device="cpu")
        top = TopHits(len(queries), depth)
        parts = np.array_split(np.arange(len(queries)), -(-len(queries) // _QUERIES) or 1)
        with ThreadPoolExecutor(threads) as pool:
            for rows, columns, scores in pool.map(lambda part: self._block(queries, part, fetched), parts):
                found = self.ranks[columns].astype(np.int64)
                kept = slice(None) if own is None else found != own[rows]
                top.add(rows[kept], found[kept], scores[kept])
        return top

    def exact(
        self, queries: np.ndarray, depth: int, *, own: np.ndarray | None = None, **settings: Any
    ) -> TopHits:
        """The best hits among all vectors; ``settings`` are those of :class:`ExactSearch`."""
        search = ExactSearch(queries, depth, own=own, **settings)
        for begin, vectors in self.vectors.blocks(search.block_rows):
            search.add(vectors, self.ranks[begin : begin + len(vectors)].astype(np.int64))
        return search.top

    def _block(self, queries: np.ndarray, part: np.ndarray, fetched: int) -> tuple[np.ndarray, ...]:
        rows, columns, scores = [part[:0]], [part[:0]], [np.empty(0, np.float32)]
        for row, keys in zip(part, _matches(self._index, queries[part], fetched), strict=True):
            places = np.sort(keys.astype(np.int64))
            rows.append(np.full(len(places), row))
            columns.append(places)
            scores.append(inner_products(queries[row].astype(np.float64), self.vectors.take(places)))
        return np.concatenate(rows), np.concatenate(columns), np.concatenate(scores)


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


def _matches(index: Any, queries: np.ndarray, count: int) -> Iterator[np.ndarray]:
    """Keys found for each query, without those that fill up a short answer."""
    if not len(queries):
        return
    found = index.search(queries, count, threads=1)
    if found.keys.ndim == 1:  # of one query there comes no batch
        yield found.keys
        return
    for keys, number in zip(found.keys, found.counts, strict=True):
        yield keys[:number]


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
