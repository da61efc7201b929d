"""Inverting a part of a corpus: pieces of text are numbered, the distinct ones analysed, terms counted."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from beirnl.retrieval.analysis import Analyzer
from beirnl.retrieval.bm25.lists import Lists, code_type, term_hash
from beirnl.retrieval.bm25.stats import FieldStats, norms


class _Batch(NamedTuple):
    """Texts cut at white space: how many pieces each has, and the pieces, numbered."""

    counts: np.ndarray
    pieces: pa.DictionaryArray


class _Vocabulary(NamedTuple):
    """The terms of all distinct pieces.

    Attributes:
        hashes: of the distinct terms, ascending.
        starts, counts: where the terms of a piece are in ``terms``, by the number of the piece.
        terms: places in ``hashes``.
    """

    hashes: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    terms: np.ndarray


class Segment:
    """Documents of a unit that are inverted together; 4 bytes per word of text, and some per distinct one.

    Args:
        fields: names of the fields.
        first_row: number of the first document.

    Attributes:
        pieces: pieces of text so far.
    """

    def __init__(self, fields: tuple[str, ...], first_row: int) -> None:
        self.pieces = 0
        self._first_row = first_row
        self._batches: dict[str, list[_Batch]] = {field: [] for field in fields}

    def add(self, field: str, texts: pa.LargeStringArray) -> None:
        """Adds the next documents' texts in a field; each ends in a blank."""
        batch = _split(texts)
        self.pieces += len(batch.pieces)
        self._batches[field].append(batch)

    def save(self, folder: Path, analyzer: Analyzer) -> dict[str, FieldStats]:
        """Writes the inverted lists of every field into a new folder; returns the fields' statistics."""
        chunks = [batch.pieces for batches in self._batches.values() for batch in batches]
        unified = pa.chunked_array(chunks, _PIECES).unify_dictionaries().chunks
        vocabulary = _analyse(unified[0].dictionary if unified else pa.array([], pa.large_string()), analyzer)
        numbers = iter(unified)
        folder.mkdir(parents=True)
        stats = {}
        for field, batches in self._batches.items():
            counted = [_count(batch.counts, next(numbers).indices, vocabulary) for batch in batches]
            lists, stats[field] = _invert(counted, vocabulary.hashes, self._first_row)
            lists.save(folder, field)
        return stats


_PIECES = pa.dictionary(pa.int32(), pa.large_string())


def _split(texts: pa.LargeStringArray) -> _Batch:
    """Cuts texts behind each white space of ASCII, without copying them."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    begin = bounds[0] if len(bounds) else 0
    characters = np.frombuffer(data, np.uint8)[begin : bounds[-1]] if data else np.empty(0, np.uint8)
    # In UTF-8 these bytes are never part of another character.
    cuts = np.append(begin, begin + 1 + np.flatnonzero(characters <= ord(" ")))
    pieces = pa.LargeStringArray.from_buffers(len(cuts) - 1, pa.py_buffer(cuts), data)
    counts = np.diff(np.searchsorted(cuts, bounds))
    return _Batch(counts, pieces.dictionary_encode())


def _analyse(pieces: pa.LargeStringArray, analyzer: Analyzer) -> _Vocabulary:
    lengths, found = analyzer.pieces(pieces.to_pylist())
    counts = np.array(lengths, np.int64)
    terms = pa.array(found, pa.large_string()).dictionary_encode()
    hashes = np.fromiter(map(term_hash, terms.dictionary.to_pylist()), np.uint64, len(terms.dictionary))
    order = np.argsort(hashes)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return _Vocabulary(hashes[order], np.cumsum(counts) - counts, counts, rank[terms.indices.to_numpy()])


class _Counted(NamedTuple):
    """Documents as distinct terms: how many each has, which, how often, and the documents' lengths."""

    counts: np.ndarray
    terms: np.ndarray
    frequencies: np.ndarray
    lengths: np.ndarray


def _count(pieces_of: np.ndarray, pieces: pa.Array, vocabulary: _Vocabulary) -> _Counted:
    numbers = pieces.to_numpy()
    counts = vocabulary.counts[numbers]
    total = np.cumsum(counts)
    at = np.repeat(vocabulary.starts[numbers] - (total - counts), counts)
    at += np.arange(len(at))
    documents = np.repeat(np.repeat(np.arange(len(pieces_of), dtype=np.uint64), pieces_of), counts)
    # One sort of (document, term) in one number brings equal terms of a document together.
    keys = documents << np.uint64(32) | vocabulary.terms[at].astype(np.uint64)
    keys.sort()
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    frequencies = np.diff(np.append(first, len(keys)))
    keys = keys[first]
    found = np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=len(pieces_of))
    lengths = np.bincount(documents.astype(np.int64), minlength=len(pieces_of))
    return _Counted(found, keys.astype(np.uint32).astype(np.int32), frequencies.astype(np.int32), lengths)


def _invert(counted: list[_Counted], hashes: np.ndarray, first_row: int) -> tuple[Lists, FieldStats]:
    from scipy.sparse import csr_array

    empty = _Counted(*(np.empty(0, np.int32) for _ in _Counted._fields))
    counts, terms, frequencies, lengths = map(np.concatenate, zip(empty, *counted, strict=True))
    pairs, codes = _pairs(frequencies, np.repeat(norms(lengths), counts))
    rows = np.append(0, np.cumsum(counts)).astype(np.int32)
    columns = csr_array((codes, terms, rows), shape=(len(counts), len(hashes))).tocsc()
    used = np.flatnonzero(np.diff(columns.indptr))
    offsets = np.append(columns.indptr[used], len(terms)).astype(np.int64)
    documents = (columns.indices + first_row).astype(np.int32)
    stats = FieldStats(documents=int(np.count_nonzero(lengths)), tokens=int(lengths.sum()))
    return Lists(hashes[used], offsets, documents, columns.data, pairs), stats


def _pairs(frequencies: np.ndarray, norms_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct (frequency, norm), and which of them each posting has."""
    values, places = _distinct(frequencies)
    found, codes = _distinct(places * 256 + norms_of)
    pairs = values[found >> 8] * 256 + (found & 255)
    return pairs, codes.astype(code_type(pairs))


def _distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values of small numbers, ascending, and the place of each number among them."""
    present = np.zeros(numbers.max(initial=-1) + 1, bool)
    present[numbers] = True
    return np.flatnonzero(present), (np.cumsum(present, dtype=np.int32) - 1)[numbers]
