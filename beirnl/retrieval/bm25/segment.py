"""A segment of a unit: pieces of text are numbered, the distinct ones analysed, documents put together again.

What is done per word of a text is done on arrays; per document only Tantivy is called.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.retrieval.analysis import Analyzer
from beirnl.retrieval.bm25.forward import Forward, hashes
from beirnl.retrieval.bm25.stats import FieldStats, SegmentStats, norms
from beirnl.retrieval.bm25.tantivy_files import TantivyWriter


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
        texts: the terms of each piece, with a blank behind each.
    """

    hashes: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    terms: np.ndarray
    texts: pa.LargeStringArray


class Segment:
    """Documents of a unit that are indexed together; 4 bytes per word of text, and some per distinct one.

    Args:
        fields: names of the fields.
        first_row: number of the first document.

    Attributes:
        pieces: pieces of text so far.
    """

    def __init__(self, fields: Sequence[str], first_row: int) -> None:
        self.pieces = 0
        self._fields, self._first_row = fields, first_row
        self._batches: list[list[_Batch]] = []

    def add(self, texts: Sequence[pa.LargeStringArray]) -> None:
        """Adds the next documents: their texts in each field; each text ends in a blank."""
        batches = [_split(column) for column in texts]
        self.pieces += sum(len(batch.pieces) for batch in batches)
        self._batches.append(batches)

    def save(self, folder: Path, analyzer: Analyzer) -> tuple[dict[str, FieldStats], SegmentStats]:
        """Writes the segment into a new folder.

        Returns:
            The fields' statistics, as Lucene counts and as Tantivy does.
        """
        chunks = [batch.pieces for batches in self._batches for batch in batches]
        numbered = pa.chunked_array(chunks, _PIECES).unify_dictionaries().chunks[::-1]
        vocabulary = _analyse(
            numbered[0].dictionary if numbered else pa.array([], pa.large_string()), analyzer
        )
        counts = [[batch.counts for batch in batches] for batches in self._batches]
        # What is done with is let go: the numbers of all pieces are what takes most memory.
        chunks.clear()
        self._batches.clear()
        folder.mkdir(parents=True)
        writer = TantivyWriter(folder, self._fields)
        found: list[list[_Counted]] = [[] for _ in self._fields]
        row = self._first_row
        for pieces_of in counts:
            columns = []
            for each, counted in zip(pieces_of, found, strict=True):
                pieces = numbered.pop().indices
                counted.append(_count(each, pieces, vocabulary))
                columns.append(_grouped(vocabulary.texts.take(pieces), each))
            writer.add(row, columns)
            row += len(columns[0])
        fields = {}
        for field, counted in zip(self._fields, found, strict=True):
            forward, fields[field] = _forward(counted, vocabulary.hashes)
            forward.save(folder, field)
            counted.clear()
        return fields, writer.close(fields)


_PIECES = pa.dictionary(pa.int32(), pa.large_string())
_BLANK, _NOTHING = pa.scalar(" ", pa.large_string()), pa.scalar("", pa.large_string())


def with_blanks(*columns: pa.LargeStringArray) -> pa.LargeStringArray:
    """The columns' texts one behind another, each with a blank behind it, so that all words look alike."""
    return pc.binary_join_element_wise(*columns, _NOTHING, _BLANK)


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
    counts, terms = analyzer.pieces(pieces)
    texts = with_blanks(terms)
    terms = terms.dictionary_encode()
    unordered = hashes(terms.dictionary)
    order = np.argsort(unordered)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    starts = np.cumsum(counts) - counts
    return _Vocabulary(
        unordered[order], starts, counts, rank[terms.indices.to_numpy()], _grouped(texts, counts)
    )


def _grouped(texts: pa.LargeStringArray, counts: np.ndarray) -> pa.LargeStringArray:
    """Consecutive texts joined, so many at a time, without copying them."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[np.append(0, np.cumsum(counts))]
    return pa.LargeStringArray.from_buffers(len(counts), pa.py_buffer(bounds), data)


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
    return _Counted(found, keys.astype(np.uint32).astype(np.int32), _narrow(frequencies), lengths)


def _forward(counted: list[_Counted], hashes: np.ndarray) -> tuple[Forward, FieldStats]:
    empty = _Counted(*(np.empty(0, np.uint8) for _ in _Counted._fields))
    counts, terms, frequencies, lengths = map(np.concatenate, zip(empty, *counted, strict=True))
    documents = np.bincount(terms, minlength=len(hashes))
    used = np.flatnonzero(documents)
    place = np.empty(len(hashes), np.int32)
    place[used] = np.arange(len(used))
    forward = Forward(
        terms=hashes[used],
        counts=documents[used],
        offsets=np.append(0, np.cumsum(counts)).astype(np.int64),
        numbers=place[terms],
        frequencies=_narrow(frequencies),
        norms=norms(lengths),
    )
    return forward, FieldStats(documents=int(np.count_nonzero(lengths)), tokens=int(lengths.sum()))


def _narrow(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))
