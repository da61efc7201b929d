"""Many units become one index: one set of statistics, no document is analysed again."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from beirnl.errors import StoreError
from beirnl.retrieval.bm25 import stats as statistics
from beirnl.retrieval.bm25.build import SEGMENTS, read_ids, write_ids
from beirnl.retrieval.bm25.lists import Lists, code_type, distinct, file_of, new_file
from beirnl.retrieval.bm25.stats import IndexStats
from beirnl.specs import Bm25Spec

#: Postings that are merged at once (6 to 8 bytes each, and 16 while they are placed).
_MERGED = 4_000_000
#: Files of a field that hold the document frequencies of a sharded index, beside ``terms``.
COUNTS = "counts"


def combine(units: Sequence[Path], out: Path, spec: Bm25Spec) -> IndexStats:
    """Merges units into one index, whose files are the same bytes however the corpus was divided.

    Args:
        units: folders written by :class:`UnitWriter`, in any order.
        out: an empty or new folder.
        spec: the conditions that the units were made with.

    Returns:
        The statistics of the whole index.

    Raises:
        StoreError: a unit is missing, damaged or made with other conditions; units overlap or leave a gap.
    """
    found = sorted(
        ((statistics.load(unit, spec), unit) for unit in units), key=lambda pair: pair[0].first_row
    )
    stats = _total(found, spec)
    segments = [unit / SEGMENTS / f"{number:05d}" for part, unit in found for number in range(part.segments)]
    out.mkdir(parents=True, exist_ok=True)
    try:
        for field in stats.fields:
            _merge([Lists.open(segment, field) for segment in segments], out, field)
        write_ids(out, [read_ids(unit) for _, unit in found])
    except FileNotFoundError as error:
        raise StoreError(
            "a part of the unit is missing", where=error.filename, remedy="build it again"
        ) from error
    stats.save(out)
    return stats


def _total(found: Sequence[tuple[IndexStats, Path]], spec: Bm25Spec) -> IndexStats:
    row = 0
    for stats, unit in found:
        if stats.first_row != row:
            raise StoreError(
                f"the unit begins at document {stats.first_row}, and the one before ends at {row}",
                where=unit,
                remedy="combine all units of one corpus, each once",
            )
        row += stats.documents
    empty = statistics.empty(spec)
    fields = statistics.total([empty, *(stats for stats, _ in found)])
    return empty.model_copy(update={"documents": row, "fields": fields})


def _merge(parts: Sequence[Lists], out: Path, field: str) -> None:
    """Merges the lists of parts, given in order of their documents, a range of terms at a time."""
    terms, counts, places = _union([part.terms for part in parts], [np.diff(part.offsets) for part in parts])
    offsets = np.append(0, np.cumsum(counts))
    pairs = distinct(np.concatenate([np.empty(0, np.int64), *(part.pairs for part in parts)]))
    recoded = [np.searchsorted(pairs, part.pairs).astype(code_type(pairs)) for part in parts]
    for name, array in {"terms": terms, "offsets": offsets, "pairs": pairs}.items():
        np.save(file_of(out, field, name), array)
    documents = new_file(file_of(out, field, "documents"), np.dtype(np.int32), int(offsets[-1]))
    codes = new_file(file_of(out, field, "codes"), code_type(pairs), int(offsets[-1]))
    for low, high in _ranges(offsets):
        base, free = offsets[low], offsets[low:high] - offsets[low]
        new_documents = np.empty(offsets[high] - base, documents.dtype)
        new_codes = np.empty(offsets[high] - base, codes.dtype)
        for part, place, code in zip(parts, places, recoded, strict=True):
            begin, end = np.searchsorted(place, [low, high])
            bounds = part.offsets[begin : end + 1]
            slots, sizes = place[begin:end] - low, np.diff(bounds)
            at = np.repeat(free[slots] - (bounds[:-1] - bounds[0]), sizes) + np.arange(bounds[-1] - bounds[0])
            new_documents[at] = part.documents[bounds[0] : bounds[-1]]
            new_codes[at] = code[part.codes[bounds[0] : bounds[-1]]]
            free[slots] += sizes
        documents[base : offsets[high]], codes[base : offsets[high]] = new_documents, new_codes
    documents.flush()
    codes.flush()


def _union(
    terms: Sequence[np.ndarray], counts: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """All terms of parts, the sums of their counts, and the places of each part's terms among them."""
    union = distinct(np.concatenate([np.empty(0, np.uint64), *terms]))
    places = [np.searchsorted(union, part) for part in terms]
    sums = np.zeros(len(union), np.int64)
    for place, count in zip(places, counts, strict=True):
        sums[place] += count
    return union, sums, places


def _ranges(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of terms with at most ``_MERGED`` postings, or of one term."""
    low = 0
    while low < len(offsets) - 1:
        high = int(np.searchsorted(offsets, offsets[low] + _MERGED, side="right")) - 1
        yield low, max(high, low + 1)
        low = max(high, low + 1)


def count_terms(shards: Sequence[Path], out: Path, spec: Bm25Spec) -> IndexStats:
    """The statistics of document shards together: what makes their scores those of one index.

    Args:
        shards: indexes that :func:`combine` made, each of a part of the corpus.
        out: an empty or new folder, which :meth:`Bm25Index.open` reads beside a shard.
        spec: the conditions that the shards were made with.

    Raises:
        StoreError: a shard is missing, damaged or made with other conditions.
    """
    parts = [statistics.load(shard, spec) for shard in shards]
    out.mkdir(parents=True, exist_ok=True)
    empty = statistics.empty(spec)
    stats = empty.model_copy(
        update={
            "documents": sum(part.documents for part in parts),
            "fields": statistics.total([empty, *parts]),
        }
    )
    for field in stats.fields:
        lists = [Lists.open(shard, field) for shard in shards]
        terms, counts, _ = _union([part.terms for part in lists], [np.diff(part.offsets) for part in lists])
        np.save(file_of(out, field, "terms"), terms)
        np.save(file_of(out, field, COUNTS), counts)
    stats.save(out)
    return stats
