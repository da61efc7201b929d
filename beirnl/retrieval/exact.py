"""Exact nearest neighbours by blocks of matrix product.

The product finds candidates; their scores are then computed again, each on its own, in float64 and rounded to
float32. A score so depends on two vectors and not on the block that the matrix product happened to cut, and
any partition of the corpus gives the run of the search in one piece, ties included.

No hit is lost, whatever the products' number format, because every document is a candidate whose product
reaches the best k scores so far less a bound on the product's error. For a query q and documents d, rounded
to q' and d', Cauchy and Schwarz bound it by

    |qd - q'd'| <= |q - q'| |d| + |q'| |d - d'|,

to which accumulating n float32 products adds at most n u / (1 - n u) |q'| |d'|, u = 2**-24 (Higham, Accuracy
and Stability of Numerical Algorithms, section 3.1). A product that is stored in bfloat16 is rounded once
more; rounding is monotone, so it is enough to round the bound, too. As soon as k scores are known, most
blocks hold few candidates: the maxima of tiles of 64 products tell where.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

import numpy as np

from beirnl.errors import DataError
from beirnl.retrieval.topk import TopHits

Products = Literal["auto", "float32", "bfloat16"]

MEMORY = 384 << 20  # bytes that blocks of documents and products may take
_TILE = 64
_PAIRS = 128  # scored again at a time, so that they stay in the cache
_TASK = 64 * _PAIRS  # what a thread takes at a time
_UNIT_ROUNDOFF = 2.0**-24  # of float32
_BF16_ROUNDOFF = 2.0**-8


class ExactSearch:
    """Collects the best hits of blocks of documents, one after another, in bounded memory.

    Args:
        queries: vectors, [q, dimension] float32; scores are inner products.
        depth: hits kept per query.
        own: rank of each query's own document, [q] int64, which is left out before the cut; -1 for none.
        products: number format of the matrix products, which only decides the speed: hits and scores are the
            same. ``auto`` takes the faster one.
        threads: threads of the matrix product.
        device: ``cpu``, ``cuda`` or ``auto``.
        memory: bytes that blocks of documents and of products may take.

    Attributes:
        block_rows: how many documents to hand over at a time, for the best speed in that memory.
        top: the hits so far.

    Raises:
        DataError: the queries hold NaN or infinity.
    """

    def __init__(
        self,
        queries: np.ndarray,
        depth: int,
        *,
        own: np.ndarray | None = None,
        products: Products = "auto",
        threads: int | None = None,
        device: str = "auto",
        memory: int = MEMORY,
    ) -> None:
        import torch

        if threads:
            torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False  # the bound excludes it
        self._threads = torch.get_num_threads()
        cuda = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
        self._device = (device if device != "auto" else "cuda") if cuda else "cpu"
        self.queries = np.require(queries, np.float32, ["C"])
        self.top, self._own = TopHits(len(queries), depth), own
        self._dtype = _dtype(products, self.queries.shape[1], self._device)
        self._rounded = _Rounded(torch.from_numpy(self.queries).to(self._device), self._dtype)
        _check_finite(self._rounded.norms)
        self.block_rows, self._query_rows = _block(self.queries.shape, memory)
        self._workspace = torch.empty(0, dtype=self._dtype, device=self._device)

    def add(self, vectors: np.ndarray, ranks: np.ndarray) -> None:
        """Search a block: vectors [n, dimension] float32 and the ranks [n] of their ids.

        Raises:
            DataError: the vectors have another dimension than the queries', or hold NaN or infinity.
        """
        if len(vectors) and vectors.shape[1] != self.queries.shape[1]:
            raise DataError(
                f"documents have {vectors.shape[1]} dimensions, queries {self.queries.shape[1]}",
                remedy="embed both with one model",
            )
        for begin in range(0, len(vectors), self.block_rows):
            block = slice(begin, begin + self.block_rows)
            self._add_block(np.require(vectors[block], np.float32, ["C", "W"]), ranks[block])

    def _add_block(self, vectors: np.ndarray, ranks: np.ndarray) -> None:
        import torch

        documents = _Rounded(torch.from_numpy(vectors).to(self._device), self._dtype)
        _check_finite(documents.norms)
        errors = self._rounded.product_errors(documents)
        known = torch.from_numpy(self.top.thresholds()).to(self._device)
        for begin in range(0, len(self.queries), self._query_rows):
            part = slice(begin, begin + self._query_rows)
            products = self._multiply(self._rounded.values[part], documents.values)
            bounds = self._bounds(products, len(vectors), known[part], errors[part])
            rows, columns = (index.cpu().numpy() for index in _reaching(products, bounds))
            real = columns < len(vectors)  # the last tile may be filled up
            self._score(rows[real] + begin, columns[real], vectors, ranks)

    def _multiply(self, queries: Any, documents: Any) -> Any:
        """Products [queries, documents], the latter filled up to whole tiles with minus infinity."""
        import torch

        width = -(-len(documents) // _TILE) * _TILE
        if self._workspace.numel() < len(queries) * width:
            self._workspace = torch.empty(len(queries) * width, dtype=self._dtype, device=self._device)
        products = self._workspace[: len(queries) * width].view(len(queries), width)
        if width == len(documents):
            return torch.mm(queries, documents.T, out=products)
        products[:, len(documents) :] = -torch.inf
        products[:, : len(documents)] = queries @ documents.T
        return products

    def _bounds(self, products: Any, width: int, known: Any, errors: Any) -> Any:
        """What a product must reach, [queries]: the k-th score so far, or of this block, less the error."""
        import torch

        needed = self.top.k + (self._own is not None)
        bounds = known - errors
        if width < needed or torch.isfinite(known).all():
            return bounds
        kth = torch.topk(products, needed, dim=1, sorted=True).values[:, -1].float()
        rounding = kth.abs() * _BF16_ROUNDOFF if self._dtype == torch.bfloat16 else 0
        return torch.maximum(bounds, kth - rounding - 2 * errors)

    def _score(self, rows: np.ndarray, columns: np.ndarray, vectors: np.ndarray, ranks: np.ndarray) -> None:
        found = ranks[columns]
        if self._own is not None:
            others = found != self._own[rows]
            rows, columns, found = rows[others], columns[others], found[others]
        scores = exact_scores(self.queries, rows, partial(vectors.take, axis=0), columns, self._threads)
        self.top.add(rows, found, scores)


class _Rounded:
    """Vectors [n, dimension] in the products' number format, their lengths, and how far rounding moved them.

    Attributes:
        values: the rounded vectors.
        norms: lengths of the vectors as they were, [n].
        moved: lengths of the differences, [n]; zeros where nothing was rounded.
    """

    def __init__(self, vectors: Any, dtype: Any) -> None:
        import torch

        self.values = vectors.to(dtype)
        self.norms = torch.linalg.vector_norm(vectors, dim=1)
        self.moved = torch.zeros_like(self.norms)
        if dtype != vectors.dtype:
            for begin in range(0, len(vectors), 2048):  # stays in the cache
                part = slice(begin, begin + 2048)
                difference = vectors[part] - self.values[part]
                self.moved[part] = torch.linalg.vector_norm(difference, dim=1)

    def product_errors(self, documents: "_Rounded") -> Any:
        """By how much a product with any of the documents may differ from the exact one, [n] float32."""
        terms = self.values.shape[1] + 8  # some more for the rounding of scores and of this bound itself
        length, moved = documents.norms.max(), documents.moved.max()
        accumulated = 2 * terms * _UNIT_ROUNDOFF * (self.norms + self.moved) * (length + moved)
        return (self.moved * length + (self.norms + self.moved) * moved + accumulated) * 1.001


def exact_scores(
    queries: np.ndarray,
    rows: np.ndarray,
    vectors: Callable[[np.ndarray], np.ndarray],
    columns: np.ndarray,
    threads: int = 1,
) -> np.ndarray:
    """Inner products of pairs, each on its own: [n] float32 rounded from float64.

    Args:
        queries: vectors, [q, dimension] float32.
        rows: of the queries, [n].
        vectors: gives the vectors of documents, float32 [m, dimension], by their columns [m].
        columns: of the documents, [n].
        threads: how many share the work.
    """
    scores = np.empty(len(rows), np.float32)

    def score(begin: int) -> None:
        for start in range(begin, min(begin + _TASK, len(rows)), _PAIRS):
            part = slice(start, start + _PAIRS)
            scores[part] = inner_products(queries.take(rows[part], axis=0), vectors(columns[part]))

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(score, range(0, len(rows), _TASK)):
            pass  # an error is raised here
    return scores


def inner_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Inner products over the last axis, float32 rounded from float64: what a score is, wherever computed."""
    products: np.ndarray = np.vecdot(left.astype(np.float64, copy=False), right.astype(np.float64))
    return products.astype(np.float32)


def _check_finite(norms: Any) -> None:
    if not norms.isfinite().all():
        raise DataError("vectors hold NaN or infinity", remedy="embed again, in float32 if they were float16")


def _reaching(products: Any, bounds: Any) -> tuple[Any, Any]:
    """Rows (ascending) and columns of the products that reach their row's bound."""
    import torch

    bounds = bounds.to(products.dtype).unsqueeze(1)
    tiles = products.view(len(products), -1, _TILE)
    if products.dtype == torch.bfloat16 and bounds.min() > 0:
        # Positive numbers order as their bits do, negative ones stay below them: and integers are faster.
        maxima = tiles.view(torch.int16).amax(2) >= bounds.view(torch.int16)
    else:
        maxima = tiles.amax(2) >= bounds
    rows, places = torch.nonzero(maxima, as_tuple=True)
    found, inside = torch.nonzero(tiles[rows, places] >= bounds[rows], as_tuple=True)
    return rows[found], places[found] * _TILE + inside


def _block(shape: tuple[int, ...], memory: int) -> tuple[int, int]:
    """Documents and queries of a block of products."""
    queries, dimension = shape
    documents = max(1, memory // 2 // (6 * max(1, dimension) * _TILE)) * _TILE
    documents = min(documents, 1 << 17)
    return documents, max(1, min(queries, memory // 4 // (4 * documents)))


def _dtype(products: Products, dimension: int, device: str) -> Any:
    """The number format of the products; the faster of the two by a try of some milliseconds."""
    import torch

    if products != "auto":
        return getattr(torch, products)
    seconds = {dtype: _try_product(dtype, dimension, device) for dtype in (torch.float32, torch.bfloat16)}
    return min(seconds, key=lambda dtype: seconds[dtype])


def _try_product(dtype: Any, dimension: int, device: str) -> float:
    import torch

    left = torch.ones(256, max(1, dimension), dtype=dtype, device=device)
    right = torch.ones(4096, max(1, dimension), dtype=dtype, device=device)
    result = []
    for _ in range(3):
        begin = time.perf_counter()
        (left @ right.T)[0, 0].item()
        result.append(time.perf_counter() - begin)
    return min(result)
