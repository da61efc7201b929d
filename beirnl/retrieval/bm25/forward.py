"""The forward index: per document and field its distinct terms, how often each occurs, and the norm.

Files of a field, all NumPy arrays that are memory-mapped: ``offsets`` (int64, one more than documents) into
``terms`` (uint64, hashes, each once in a document) and ``frequencies`` (uint16 or uint32); ``norms``
(uint8, one per document).
"""

from array import array
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import numpy as np

from beirnl.retrieval.bm25.stats import LENGTHS, FieldStats, norms

PARTS = ("offsets", "terms", "frequencies", "norms")
#: Terms that a unit's writer numbers before it begins anew; their numbers are not kept.
_MAX_VOCABULARY = 4_000_000


def term_hash(term: str) -> int:
    """64 bits that stand for a term; the same in every process."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little")


class _Vocabulary(dict[str, int]):
    """Numbers terms as they come, and knows the hash of each number."""

    def __init__(self) -> None:
        self.hashes = array("Q")

    def __missing__(self, term: str) -> int:
        self[term] = number = len(self)
        self.hashes.append(term_hash(term))
        return number


class ForwardWriter:
    """Collects the documents of one field of a unit; about 12 bytes per posting until saved."""

    def __init__(self) -> None:
        self._vocabulary = _Vocabulary()
        self._counts: list[np.ndarray] = []
        self._terms: list[np.ndarray] = []
        self._frequencies: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []

    def add(self, batch: Sequence[Sequence[str]]) -> None:
        """Adds documents, given as lists of terms."""
        if len(self._vocabulary) > _MAX_VOCABULARY:
            self._vocabulary = _Vocabulary()
        lengths = np.fromiter(map(len, batch), np.int64, len(batch))
        tokens = np.fromiter(
            map(self._vocabulary.__getitem__, chain.from_iterable(batch)), np.int64, lengths.sum()
        )
        # One sort of (document, term) in one number brings equal tokens of a document together.
        size = max(len(self._vocabulary), 1)
        tokens += np.repeat(np.arange(len(batch)) * size, lengths)
        postings, frequencies = np.unique(tokens, return_counts=True)
        document, number = np.divmod(postings, size)
        self._counts.append(np.bincount(document, minlength=len(batch)))
        self._terms.append(np.asarray(self._vocabulary.hashes)[number])
        self._frequencies.append(frequencies.astype(np.uint32))
        self._lengths.append(lengths)

    def save(self, folder: Path, field: str) -> FieldStats:
        """Writes the arrays of the field and returns its statistics."""
        lengths = _joined(self._lengths, np.int64)
        frequencies = _joined(self._frequencies, np.uint32)
        narrow = np.uint16 if frequencies.max(initial=0) < 2**16 else np.uint32
        arrays = {
            "offsets": np.append(0, np.cumsum(_joined(self._counts, np.int64))),
            "terms": _joined(self._terms, np.uint64),
            "frequencies": frequencies.astype(narrow),
            "norms": norms(lengths),
        }
        for part in PARTS:
            np.save(_file(folder, field, part), arrays[part])
        return FieldStats(documents=int(np.count_nonzero(lengths)), tokens=int(lengths.sum()))


class ForwardIndex:
    """Scores documents exactly in one field.

    Args:
        folder, field: where the arrays are.
        stats: the field's statistics over the whole index.
        k1, b: parameters of BM25.
    """

    def __init__(self, folder: Path, field: str, stats: FieldStats, k1: float, b: float) -> None:
        self._offsets, self._terms, self._frequencies, self._norms = (
            _mapped(_file(folder, field, part)) for part in PARTS
        )
        self._saturation = k1 * (1 - b + b * LENGTHS / stats.mean)

    def scores(self, rows: np.ndarray, terms: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """BM25 of documents for one query, as Lucene since version 8 (without the factor k1 + 1).

        A score is the sum of ``weight * tf / (tf + k1 * (1 - b + b * length / mean length))``, added up in
        the order of the terms' hashes: the same bits for the same document, whichever others are scored.

        Args:
            rows: documents, shape ``(n,)``.
            terms: hashes of the query's distinct terms, ascending, shape ``(m,)``.
            weights: idf times the frequency in the query, float64, shape ``(m,)``.

        Returns:
            float64, shape ``(n,)``; 0 where no term occurs.
        """
        starts = self._offsets[rows]
        counts = self._offsets[rows + 1] - starts
        ends = np.cumsum(counts)
        at = np.arange(ends[-1]) + np.repeat(starts - (ends - counts), counts)
        found = self._terms[at]
        place = np.searchsorted(terms[1:], found, side="right")
        hit = np.flatnonzero(terms[place] == found)
        document = np.searchsorted(ends, hit, side="right")
        order = np.lexsort((place[hit], document))
        hit, document = hit[order], document[order]
        frequency = self._frequencies[at[hit]].astype(np.float64)
        saturation = self._saturation[self._norms[rows]][document]
        gain = weights[place[hit]] * (frequency / (frequency + saturation))
        return np.bincount(document, gain, minlength=len(rows))


def concatenate(units: Sequence[Path], out: Path, field: str) -> None:
    """Joins the arrays of units, in that order, without reading them whole."""
    sources = {part: [_mapped(_file(unit, field, part)) for unit in units] for part in PARTS}
    for part, arrays in sources.items():
        extra = part == "offsets"
        shape = (sum(len(array) - extra for array in arrays) + extra,)
        dtype = np.result_type(*arrays)
        joined = _new_file(_file(out, field, part), dtype, shape)
        at = base = 0
        for source in arrays:
            joined[at : at + len(source)] = source + base if extra else source
            at += len(source) - extra
            base += int(source[-1]) if extra else 0
        joined.flush()


def _file(folder: Path, field: str, part: str) -> Path:
    return folder / f"{field}.{part}.npy"


def _joined(arrays: list[np.ndarray], dtype: type[np.generic]) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *arrays])


def _mapped(file: Path) -> np.ndarray:
    # Without the subclass memmap, whose every slice is slow; an empty array cannot be mapped.
    array = np.load(file, mmap_mode="r") if file.stat().st_size > 128 else np.load(file)
    return np.asarray(array)


def _new_file(file: Path, dtype: np.dtype, shape: tuple[int]) -> np.memmap:
    new: np.memmap = np.lib.format.open_memmap(file, "w+", dtype, shape)  # type: ignore[no-untyped-call]
    return new
