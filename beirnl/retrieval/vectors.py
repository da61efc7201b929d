"""Stored vectors: quantising them, and reading them back in blocks that bound memory.

They are stored as float32, float16, or int8 with one scale per vector. The scale restores the vector's
length, not its largest entry, so that a score stays the cosine with the direction that int8 can express.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib.format import open_memmap

from beirnl.errors import DataError

_LARGEST = 127  # of int8, symmetric
_BATCH = 16_384  # rows decoded at a time


def quantise(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors [n, dimension] as int8 [n, dimension] and float32 scales [n]; zero vectors have scale 0."""
    vectors = np.asarray(vectors, np.float32)
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    steps = np.divide(_LARGEST, largest, out=np.zeros_like(largest), where=largest > 0)
    values = np.rint(vectors * steps).astype(np.int8)
    lengths = np.linalg.norm(values.astype(np.float32), axis=1)
    scales = np.linalg.norm(vectors, axis=1)
    np.divide(scales, lengths, out=scales, where=lengths > 0)
    return values, scales


def dequantise(values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The vectors, float32 [n, dimension], that int8 values and their scales stand for."""
    vectors: np.ndarray = values.astype(np.float32) * scales[:, None]
    return vectors


def vector_columns(vectors: np.ndarray, dtype: str) -> dict[str, pa.Array]:
    """Vectors [n, dimension] as columns of an embeddings table: ``vector``, with ``scale`` for int8."""
    scales = None
    if dtype == "int8":
        vectors, scales = quantise(vectors)
    numbers = pa.array(np.ascontiguousarray(vectors, dtype).reshape(-1))
    item = pa.field("item", numbers.type, nullable=False)
    columns = {
        "vector": pa.FixedSizeListArray.from_arrays(numbers, type=pa.list_(item, vectors.shape[1])),
    }
    return columns if scales is None else {**columns, "scale": pa.array(scales)}


def is_compressible(dtype: str) -> bool:
    """Whether vectors are compressed in their files: those of floats would be 3 to 5 % smaller, and be read
    at a half to a quarter of the speed; bytes, which Parquet has not, would take four times their room."""
    return dtype == "int8"


class Stored(NamedTuple):
    """Vectors as they are stored: numbers [n, dimension], with a scale [n] each where they are int8."""

    values: np.ndarray
    scales: np.ndarray | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "Stored":
        """The vectors of a batch of an embeddings table."""
        column = batch.column("vector")
        values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
        return cls(values, batch.column("scale").to_numpy() if values.dtype == np.int8 else None)

    @property
    def numbers(self) -> np.ndarray:
        """The numbers among which NaN can be, [n] or [n, dimension]."""
        return self.values if self.scales is None else self.scales

    def vectors(self) -> np.ndarray:
        """What they stand for, float32 [n, dimension]."""
        if self.scales is not None:
            return dequantise(self.values, self.scales)
        return np.asarray(self.values, np.float32)


class Block(NamedTuple):
    """Some consecutive vectors: the first one's row in all files, and float32 [n, dimension].

    The array may be used again for the next block.
    """

    begin: int
    vectors: np.ndarray


class VectorFiles:
    """Vectors in Parquet files with the columns of an embeddings table, in their order.

    Args:
        paths: files whose vectors have one dimension and one number format.

    Attributes:
        dimension: of the vectors; 0 without files.
        dtype: number format in which they are stored.
        rows: number of vectors.

    Raises:
        DataError: a file has vectors of another dimension or format than the first.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self.dimension, self.dtype = 0, np.dtype(np.float32)
        self.rows = 0
        for number, path in enumerate(self.paths):
            with pq.ParquetFile(path) as file:
                kind = file.schema_arrow.field("vector").type
                self.rows += file.metadata.num_rows
            found = kind.list_size, np.dtype(kind.value_type.to_pandas_dtype())
            if number == 0:
                self.dimension, self.dtype = found
            elif found != (self.dimension, self.dtype):
                raise DataError(
                    f"vectors are {found[1]} of {found[0]} dimensions, those of {self.paths[0].name} "
                    f"{self.dtype} of {self.dimension}",
                    where=path,
                    remedy="embed all shards with one model and one setting of vectors",
                )

    @property
    def scaled(self) -> bool:
        """Whether each vector has a scale."""
        return self.dtype == np.int8

    def ids(self) -> pa.Array:
        """Identifiers of all rows."""
        columns = [pq.read_table(path, columns=["id"])["id"].combine_chunks() for path in self.paths]
        return pa.concat_arrays(columns) if columns else pa.array([], pa.string())

    def blocks(self, rows: int) -> Iterator[Block]:
        """All vectors, ``rows`` at a time (the last block has fewer), whatever the files hold.

        Raises:
            DataError: a vector holds NaN or infinity.
        """
        buffer = np.empty((rows, self.dimension), np.float32)
        begin = filled = 0
        for batch in self.batches():
            vectors, taken = batch.vectors(), 0
            while taken < len(vectors):
                part = vectors[taken : taken + rows - filled]
                buffer[filled : filled + len(part)] = part
                taken, filled = taken + len(part), filled + len(part)
                if filled == rows:
                    yield Block(begin, buffer)
                    begin, filled = begin + rows, 0
        if filled:
            yield Block(begin, buffer[:filled])

    def batches(self) -> Iterator[Stored]:
        """All vectors as they are stored, some at a time.

        Raises:
            DataError: a vector holds NaN or infinity.
        """
        for path in self.paths:
            begin = 0
            with pq.ParquetFile(path) as file:
                columns = ["vector", "scale"] if self.scaled else ["vector"]
                for batch in file.iter_batches(_BATCH, columns=columns):
                    stored = Stored.of(batch)
                    if not _finite(stored.numbers):
                        raise _not_finite(path, begin, stored.numbers)
                    begin += batch.num_rows
                    yield stored


class RowVectors:
    """Vectors in a folder of plain arrays, mapped into memory: any rows are read without the others.

    Args:
        folder: where :meth:`write` has put them.
    """

    def __init__(self, folder: Path) -> None:
        self._values = np.asarray(np.load(folder / "vectors.npy", mmap_mode="r"))
        scales = folder / "scales.npy"
        self._scales = np.asarray(np.load(scales, mmap_mode="r")) if scales.exists() else None

    @staticmethod
    def write(files: VectorFiles, folder: Path) -> Iterator[Stored]:
        """Write all vectors of files to a folder, and hand them on, batch by batch."""
        shape = (files.rows, files.dimension)
        values = _mapped(folder / "vectors.npy", files.dtype, shape)
        scales = _mapped(folder / "scales.npy", np.float32, shape[:1]) if files.scaled else None
        begin = 0
        for batch in files.batches():
            part = slice(begin, begin + len(batch.values))
            values[part] = batch.values
            if scales is not None:
                scales[part] = batch.scales
            begin = part.stop
            yield batch

    def __len__(self) -> int:
        return len(self._values)

    def take(self, rows: np.ndarray | slice) -> np.ndarray:
        """The vectors of rows, float32 [n, dimension]."""
        scales = None if self._scales is None else self._scales[rows]
        return Stored(_rows(self._values, rows), scales).vectors()

    def blocks(self, rows: int) -> Iterator[Block]:
        """All vectors, ``rows`` at a time."""
        for begin in range(0, len(self), rows):
            yield Block(begin, self.take(slice(begin, begin + rows)))


def vectors_of(table: pa.Table) -> np.ndarray:
    """All vectors of an embeddings table, float32 [n, dimension]; for tables that are small."""
    parts = [Stored.of(batch).vectors() for batch in table.to_batches()]
    return np.concatenate([np.empty((0, table.schema.field("vector").type.list_size), np.float32), *parts])


def _rows(values: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
    return values[rows] if isinstance(rows, slice) else values.take(rows, axis=0)  # take is twice as fast


def _mapped(path: Path, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    array: np.ndarray = open_memmap(path, "w+", dtype, shape)  # type: ignore[no-untyped-call]
    return array


def _finite(numbers: np.ndarray) -> bool:
    """Whether all numbers are finite; the sum tells it in one pass, unless it overflows itself."""
    with np.errstate(all="ignore"):
        total = numbers.sum(dtype=np.float32)
    return bool(np.isfinite(total)) or bool(np.isfinite(numbers).all())


def _not_finite(path: Path, begin: int, numbers: np.ndarray) -> DataError:
    row = begin + int(np.argwhere(~np.isfinite(numbers))[0, 0])
    name = pq.read_table(path, columns=["id"])["id"][row].as_py()
    return DataError(
        f"the vector of {name} holds NaN or infinity",
        where=path,
        remedy='embed again with dtype = "float32" and vectors = "float32"',
    )
