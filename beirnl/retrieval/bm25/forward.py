"""The forward index: per document and field its distinct terms, how often each occurs, and the norm.

Files of a field, all NumPy arrays: ``terms`` (uint64, ascending: hashes) and ``counts`` (int64: how many
documents each is in); ``offsets`` (int64, one more than documents) into ``numbers`` (int32: places in
``terms``, ascending within a document) and ``frequencies`` (the narrowest unsigned type); ``norms`` (uint8,
one per document).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

#: Entries that are merged at once (5 to 8 bytes each).
_MERGED = 4_000_000


def hashes(terms: pa.LargeStringArray) -> np.ndarray:
    """64 bits that stand for each term (uint64), the same everywhere.

    Eight bytes of a term at a time are mixed into them, by what MurmurHash3 (Appleby) ends with.
    """
    _, offsets, data = terms.buffers()
    bounds = np.frombuffer(offsets, np.int64)[terms.offset : terms.offset + len(terms) + 1]
    # One word from each byte on, whichever it is.
    padded = np.append(np.frombuffer(data or b"", np.uint8), np.zeros(8, np.uint8))
    words: np.ndarray = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
    lengths = np.diff(bounds)
    result = _mixed(lengths.astype(np.uint64))
    rows, done = np.flatnonzero(lengths), 0
    while len(rows):
        left = lengths[rows] - done
        beyond = 64 - 8 * np.minimum(left, 8)
        word = words[bounds[rows] + done] << beyond.astype(np.uint64)
        result[rows] = _mixed(result[rows] ^ word)
        rows, done = rows[left > 8], done + 8
    return result


def _mixed(numbers: np.ndarray) -> np.ndarray:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(numbers ^ (numbers >> np.uint64(33)))


class Forward(NamedTuple):
    """The arrays of a field."""

    terms: np.ndarray
    counts: np.ndarray
    offsets: np.ndarray
    numbers: np.ndarray
    frequencies: np.ndarray
    norms: np.ndarray

    @classmethod
    def open(cls, folder: Path, field: str) -> "Forward":
        """The arrays that are in a folder, memory-mapped."""
        return cls(*(mapped(file_of(folder, field, part)) for part in cls._fields))

    def save(self, folder: Path, field: str) -> None:
        """Writes the arrays into a folder."""
        for part, array in self._asdict().items():
            np.save(file_of(folder, field, part), array)

    def scores(
        self, rows: np.ndarray, numbers: np.ndarray, weights: np.ndarray, saturation: np.ndarray
    ) -> np.ndarray:
        """BM25 of documents for one query, as Lucene since version 8 (without the factor k1 + 1).

        A score is the sum of ``weight * tf / (tf + saturation of the norm)``, added up in the order of the
        terms' hashes: the same bits for the same document, whichever others are scored.

        Args:
            rows: documents, shape ``(n,)``.
            numbers: the query's distinct terms, as places in ``terms``, ascending, shape ``(m,)``.
            weights: idf times the frequency in the query, float64, shape ``(m,)``.
            saturation: ``k1 * (1 - b + b * length / mean length)`` of each document, float64, shape ``(n,)``.

        Returns:
            float64, shape ``(n,)``; 0 where no term occurs.
        """
        at, ends = self._entries(rows)
        found = self.numbers[at]
        place = np.searchsorted(numbers[1:], found, side="right")
        hit = np.flatnonzero(numbers[place] == found)
        document = np.searchsorted(ends, hit, side="right")
        frequency = self.frequencies[at[hit]].astype(np.float64)
        gain = weights[place[hit]] * (frequency / (frequency + saturation[document]))
        return np.bincount(document, gain, minlength=len(rows))

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """Terms of documents, with repetition: what a norm keeps four bits of; float64, shape ``(n,)``."""
        at, ends = self._entries(rows)
        document = np.repeat(np.arange(len(rows)), np.diff(ends, prepend=0))
        return np.bincount(document, self.frequencies[at], minlength=len(rows))

    def _entries(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the terms of documents are, one document after another, and where each of them ends."""
        starts = self.offsets[rows]
        counts = self.offsets[rows + 1] - starts
        ends = np.cumsum(counts)
        at = np.repeat(starts - (ends - counts), counts)
        at += np.arange(len(at))
        return at, ends


def merge(parts: Sequence[Forward], out: Path, field: str) -> None:
    """Writes the documents of all parts, one part after another, as one."""
    terms, counts = union(parts)
    entries = sum(len(part.numbers) for part in parts)
    frequency = np.result_type(np.uint8, *(part.frequencies for part in parts))
    numbers = _new_file(file_of(out, field, "numbers"), np.dtype(np.int32), entries)
    frequencies = _new_file(file_of(out, field, "frequencies"), frequency, entries)
    base, offsets, norms = 0, [np.zeros(1, np.int64)], [np.empty(0, np.uint8)]
    for part in parts:
        places = np.searchsorted(terms, part.terms).astype(np.int32)
        for start in range(0, len(part.numbers), _MERGED):
            here = slice(start, min(start + _MERGED, len(part.numbers)))
            there = slice(base + here.start, base + here.stop)
            numbers[there], frequencies[there] = places[part.numbers[here]], part.frequencies[here]
        offsets.append(part.offsets[1:] + base)
        norms.append(part.norms)
        base += len(part.numbers)
    small = {"terms": terms, "counts": counts}
    small |= {"offsets": np.concatenate(offsets), "norms": np.concatenate(norms)}
    for name, array in small.items():
        np.save(file_of(out, field, name), array)
    numbers.flush()
    frequencies.flush()


def union(parts: Sequence[Forward]) -> tuple[np.ndarray, np.ndarray]:
    """All terms of parts, ascending, and in how many documents each is."""
    terms = distinct(np.concatenate([np.empty(0, np.uint64), *(part.terms for part in parts)]))
    counts = np.zeros(len(terms), np.int64)
    for part in parts:
        counts[np.searchsorted(terms, part.terms)] += part.counts
    return terms, counts


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


def _new_file(file: Path, dtype: np.dtype, size: int) -> np.memmap:
    new: np.memmap = np.lib.format.open_memmap(file, "w+", dtype, (size,))  # type: ignore[no-untyped-call]
    return new
