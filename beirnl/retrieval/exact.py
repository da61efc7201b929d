"""Exact nearest neighbours by blocks of matrix product.

The product finds candidates; their scores are then computed again, each on its own, in float64 and rounded to
float32. A score so depends on two vectors and not on the block that the matrix product happened to cut, and
any partition of the corpus gives the run of the search in one piece, ties included.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beirnl.errors import DataError
from beirnl.retrieval.topk import merge_runs
from beirnl.schema import RUN

_MARGIN = 16  # candidates fetched beyond the cutoff, so that ties and rounding rarely need more
_ROUNDING = 1e-4  # a float32 product of unit vectors differs from the exact one by far less
_QUERY_BLOCK = 256
_DOCUMENT_BLOCK = 65_536


class ExactSearch:
    """Collects the top of shards, one after another, in memory of one block and the answers.

    Args:
        query_ids: identifiers, [q].
        queries: unit vectors, [q, dimension] float32.
        depth: hits kept per query.
        remove_self: drop hits whose id is the query's, before the cut.
        threads: threads of the matrix product.
        device: ``cpu``, ``cuda`` or ``auto``.
    """

    def __init__(
        self,
        query_ids: Sequence[str],
        queries: np.ndarray,
        depth: int,
        *,
        remove_self: bool = False,
        threads: int | None = None,
        device: str = "auto",
    ) -> None:
        import torch

        if threads:
            torch.set_num_threads(threads)
        cuda = device == "cuda" or (device == "auto" and torch.cuda.is_available())
        self._device = "cuda" if cuda else "cpu"
        self._query_ids, self._queries = list(query_ids), _checked(queries)
        self._depth, self._remove_self = depth, remove_self
        self._best = RUN.empty_table()

    def add(self, ids: Sequence[str], vectors: np.ndarray) -> None:
        """Search a shard: identifiers [n] and unit vectors [n, dimension].

        Raises:
            DataError: the vectors have another dimension than the queries', or hold NaN.
        """
        vectors = _checked(vectors)
        if len(ids) and vectors.shape[1] != self._queries.shape[1]:
            raise DataError(
                f"documents have {vectors.shape[1]} dimensions, queries {self._queries.shape[1]}",
                remedy="embed both with one model",
            )
        for begin in range(0, len(ids), _DOCUMENT_BLOCK):
            block = slice(begin, begin + _DOCUMENT_BLOCK)
            self._add_block(ids[block], vectors[block])

    def result(self) -> pa.Table:
        """The run so far."""
        return self._best

    def _add_block(self, ids: Sequence[str], vectors: np.ndarray) -> None:
        import torch

        documents = torch.from_numpy(vectors).to(self._device)
        found = [self._best]
        for begin in range(0, len(self._query_ids), _QUERY_BLOCK):
            block = self._queries[begin : begin + _QUERY_BLOCK]
            products = torch.from_numpy(block).to(self._device) @ documents.T
            rows, columns = _candidates(products, self._depth + self._remove_self)
            scores = _exact_scores(block[rows], vectors[columns])
            names = [self._query_ids[begin + row] for row in rows]
            found.append(pa.table([names, [ids[column] for column in columns], scores], schema=RUN))
        self._best = merge_runs(found, self._depth, remove_self=self._remove_self)


def _checked(vectors: np.ndarray) -> np.ndarray:
    if not np.isfinite(vectors).all():
        raise DataError("vectors hold NaN or infinity", remedy="embed again, in float32 if they were float16")
    return np.require(vectors, np.float32, ["C", "W"])


def _candidates(products: Any, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns that may belong to the top ``depth`` once scores are exact and ties are ordered."""
    import torch

    width = products.shape[1]
    fetched = min(depth + _MARGIN, width)
    values, columns = torch.topk(products, fetched, dim=1, sorted=True)
    bound = values[:, min(depth, width) - 1 : min(depth, width)] - _ROUNDING
    rows = torch.arange(len(products), device=products.device).unsqueeze(1).expand_as(columns)
    kept = values >= bound
    if fetched < width:
        crowded = values[:, -1:] >= bound  # more ties than the margin: take all of that row
        kept &= ~crowded
        more_rows, more_columns = torch.nonzero((products >= bound) & crowded, as_tuple=True)
    else:
        more_rows = more_columns = torch.zeros(0, dtype=torch.long, device=products.device)
    all_rows = torch.cat([rows[kept], more_rows])
    all_columns = torch.cat([columns[kept], more_columns])
    return all_rows.cpu().numpy(), all_columns.cpu().numpy()


def _exact_scores(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Inner products row by row, [n] float32 rounded from float64."""
    scores = np.empty(len(queries), np.float32)
    for begin in range(0, len(queries), _QUERY_BLOCK * 16):
        block = slice(begin, begin + _QUERY_BLOCK * 16)
        scores[block] = np.einsum(
            "ij,ij->i", queries[block].astype(np.float64), documents[block].astype(np.float64)
        )
    return scores
