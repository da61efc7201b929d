"""Exhaustive search by MaxSim.

As in exact search, blocks of matrix product only find candidates. Their scores are then computed one by one,
in float64 and rounded to float32, so that a score depends on a query and a document, not on the block.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from beirnl.errors import DataError
from beirnl.retrieval.encoders import torch_device
from beirnl.retrieval.late.vectors import TokenVectors, maxsim
from beirnl.retrieval.topk import merge_runs
from beirnl.schema import RUN

_QUERY_TOKENS = 2048  # in one block of MaxSim
_DOCUMENT_TOKENS = 16_384
_DOCUMENTS = 1024  # scored before candidates are chosen
_ROUNDING = 2e-5  # of the norms: a float32 inner product differs from the exact one by far less


class LateSearch:
    """Exhaustive MaxSim: collects the top of shards, one after another.

    Memory is that of one block of products (2,048 query tokens by 16,384 document tokens, or one text where
    that is longer), the queries' vectors twice, and 1,024 scores per query.

    Args:
        query_ids: identifiers, [q].
        queries: their vectors.
        depth: hits kept per query.
        remove_self: drop hits whose id is the query's, before the cut.
        threads: threads of the matrix product.
        device: ``cpu``, ``cuda`` or ``auto``.
    """

    def __init__(
        self,
        query_ids: Sequence[str],
        queries: TokenVectors,
        depth: int,
        *,
        remove_self: bool = False,
        threads: int | None = None,
        device: str = "auto",
    ) -> None:
        self._device = torch_device(device, threads)
        self._query_ids, self._queries = list(query_ids), _checked(queries)
        self._depth, self._remove_self = depth, remove_self
        self._best = RUN.empty_table()
        self._bound = np.full(len(self._query_ids), -np.inf)
        norms = np.linalg.norm(self._queries.vectors, axis=1)
        self._norms = np.array([norms[a:b].sum() for a, b in _spans(self._queries)])
        self._blocks = [
            (block, self._padded(self._queries, block, zeros=True))
            for block in _even_blocks(np.diff(self._queries.offsets), _QUERY_TOKENS)
        ]

    def add(self, ids: Sequence[str], documents: TokenVectors) -> None:
        """Search documents: identifiers [n], and their vectors.

        Raises:
            DataError: the vectors have another dimension than the queries', or hold NaN.
        """
        documents = _checked(documents)
        if len(ids) and documents.vectors.shape[1] != self._queries.vectors.shape[1]:
            raise DataError(
                f"documents have {documents.vectors.shape[1]} dimensions, queries "
                f"{self._queries.vectors.shape[1]}",
                remedy="embed both with one model",
            )
        for begin in range(0, len(ids), _DOCUMENTS):
            offsets = documents.offsets[begin : begin + _DOCUMENTS + 1]
            some = TokenVectors(documents.vectors[offsets[0] : offsets[-1]], offsets - offsets[0])
            self._add(ids[begin : begin + _DOCUMENTS], some)

    def result(self) -> pa.Table:
        """The run so far."""
        return self._best

    def _add(self, ids: Sequence[str], documents: TokenVectors) -> None:
        products = np.empty((len(self._query_ids), len(ids)), np.float32)
        for block in _even_blocks(np.diff(documents.offsets), _DOCUMENT_TOKENS):
            padded = self._padded(documents, block, zeros=False)
            for some, queries in self._blocks:
                products[np.ix_(some, block)] = _products(queries, padded)
        rows, columns = np.nonzero(products >= self._least(products, documents)[:, None])
        scores = [maxsim(self._queries.of(r), documents.of(c)) for r, c in zip(rows, columns, strict=True)]
        names = [[self._query_ids[row] for row in rows], [ids[column] for column in columns]]
        found = pa.table([*names, pa.array(scores, pa.float32())], schema=RUN)
        self._best = merge_runs([self._best, found], self._depth, remove_self=self._remove_self)
        self._raise_bound()

    def _least(self, products: np.ndarray, documents: TokenVectors) -> np.ndarray:
        """Per query, the product under which no document can be among the best."""
        kept = self._depth + self._remove_self
        bound = self._bound
        if kept <= products.shape[1]:
            bound = np.maximum(bound, np.partition(products, -kept, axis=1)[:, -kept])
        longest = np.linalg.norm(documents.vectors, axis=1).max(initial=0.0)
        least: np.ndarray = bound - _ROUNDING * self._norms * longest
        return least

    def _raise_bound(self) -> None:
        """Remember the score of the last hit of each query that has ``depth`` of them."""
        best = pl.DataFrame(self._best).group_by("query_id").agg(pl.len(), pl.col("score").min())
        full = dict(best.filter(pl.col("len") == self._depth).select("query_id", "score").iter_rows())
        self._bound = np.array([full.get(query, -np.inf) for query in self._query_ids])

    def _padded(self, texts: TokenVectors, block: np.ndarray, *, zeros: bool) -> Any:
        """Vectors of some texts, [texts, longest, dimension] float32 on the device.

        What is missing are zeros, which add nothing to a query's sum, or the text's first vector again, which
        changes no maximum.
        """
        import torch

        lengths = np.diff(texts.offsets)[block]
        step = np.arange(lengths.max(initial=1))
        inside = step < lengths[:, None]
        vectors = texts.vectors[texts.offsets[block][:, None] + np.where(inside, step, 0)]
        if zeros:
            vectors = vectors * inside[:, :, None]
        return torch.from_numpy(vectors.astype(np.float32, copy=False)).to(self._device)


def _products(queries: Any, documents: Any) -> np.ndarray:
    """MaxSim of padded vectors, [queries, documents]."""
    texts, tokens, dimension = queries.shape
    products = queries.reshape(-1, dimension) @ documents.reshape(-1, dimension).T
    best = products.view(texts, tokens, len(documents), -1).amax(dim=3).sum(dim=1)
    result: np.ndarray = best.cpu().numpy()
    return result


def _even_blocks(lengths: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    """Places in blocks of like lengths, longest first; padded, a block has at most ``tokens``, or one."""
    order = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(order):
        size = max(1, tokens // max(1, int(lengths[order[begin]])))
        yield order[begin : begin + size]
        begin += size


def _spans(texts: TokenVectors) -> Iterator[tuple[int, int]]:
    yield from zip(texts.offsets[:-1].tolist(), texts.offsets[1:].tolist(), strict=True)


def _checked(texts: TokenVectors) -> TokenVectors:
    if not np.isfinite(texts.vectors).all():
        raise DataError("vectors hold NaN or infinity", remedy='embed again, with vectors = "float32"')
    return texts
