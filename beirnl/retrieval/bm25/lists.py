"""Inverted lists on disk: of a field, which documents a term is in, and how often.

Files of a field, all NumPy arrays: ``terms`` (uint64, ascending: hashes), ``offsets`` (int64, one more than
terms) into ``documents`` (int32, ascending within a term) and ``codes`` (uint16 or uint32): places in
``pairs`` (int64, ascending), each a frequency times 256 plus the norm of a document's length.
"""

from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from beirnl.retrieval.bm25.stats import LENGTHS, FieldStats


def term_hash(term: str) -> int:
    """64 bits that stand for a term; the same in every process."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little")


def code_type(pairs: np.ndarray) -> np.dtype:
    """The narrowest type of codes into so many pairs."""
    return np.dtype(np.uint16 if len(pairs) <= 2**16 else np.uint32)


class Lists(NamedTuple):
    """The arrays of a field."""

    terms: np.ndarray
    offsets: np.ndarray
    documents: np.ndarray
    codes: np.ndarray
    pairs: np.ndarray

    @classmethod
    def open(cls, folder: Path, field: str) -> "Lists":
        """The arrays that are in a folder, memory-mapped."""
        return cls(*(mapped(file_of(folder, field, part)) for part in cls._fields))

    def save(self, folder: Path, field: str) -> None:
        """Writes the arrays into a folder."""
        for part, array in self._asdict().items():
            np.save(file_of(folder, field, part), array)

    def gains(self, stats: FieldStats, k1: float, b: float) -> np.ndarray:
        """What a term adds to a score for each of ``pairs``, before its weight; float64 in 0 to 1.

        ``tf / (tf + k1 * (1 - b + b * length / mean length))``: BM25 as in Lucene since version 8, without
        the factor k1 + 1.
        """
        frequencies = (self.pairs >> 8).astype(np.float64)
        return np.asarray(
            frequencies / (frequencies + k1 * (1 - b + b * LENGTHS[self.pairs & 255] / stats.mean))
        )


def distinct(numbers: np.ndarray) -> np.ndarray:
    """Distinct numbers, ascending; faster than ``np.unique``, which hashes before it sorts."""
    ordered = np.sort(numbers)
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return np.asarray(ordered[first])


def find(terms: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of terms among sorted ones, and whether they are there at all."""
    places = np.searchsorted(terms, wanted)
    here = places < len(terms)
    here[here] = terms[places[here]] == wanted[here]
    return places, here


def file_of(folder: Path, field: str, part: str) -> Path:
    """Where an array of a field is."""
    return folder / f"{field}.{part}.npy"


def mapped(file: Path) -> np.ndarray:
    """An array on disk, memory-mapped; an empty one cannot be, and is read."""
    array = np.load(file, mmap_mode="r") if file.stat().st_size > 128 else np.load(file)
    return np.asarray(array)  # without the subclass memmap, whose every slice is slow


def new_file(file: Path, dtype: np.dtype, size: int) -> np.memmap:
    """An array on disk to be filled."""
    new: np.memmap = np.lib.format.open_memmap(file, "w+", dtype, (size,))  # type: ignore[no-untyped-call]
    return new
