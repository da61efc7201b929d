"""Many units become one index: one set of statistics, no document is analysed or indexed again."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from beirnl.errors import StoreError
from beirnl.retrieval.bm25 import forward, tantivy_files
from beirnl.retrieval.bm25 import stats as statistics
from beirnl.retrieval.bm25.build import SEGMENTS, read_ids, write_ids
from beirnl.retrieval.bm25.forward import Forward
from beirnl.retrieval.bm25.stats import IndexStats
from beirnl.specs import Bm25Spec


def combine(units: Sequence[Path], out: Path, spec: Bm25Spec) -> IndexStats:
    """Makes one index of units: the segments of Tantivy are placed together, forward arrays joined.

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
    segments = [
        unit / SEGMENTS / f"{number:05d}" for part, unit in found for number in range(len(part.segments))
    ]
    try:
        tantivy_files.link(segments, out, tuple(stats.fields))
        for field in stats.fields:
            forward.merge([Forward.open(segment, field) for segment in segments], out, field)
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
    return _sum([stats for stats, _ in found], spec)


def _sum(parts: Sequence[IndexStats], spec: Bm25Spec) -> IndexStats:
    empty = statistics.empty(spec)
    return empty.model_copy(
        update={
            "documents": sum(part.documents for part in parts),
            "fields": statistics.total([empty.fields, *(part.fields for part in parts)]),
            "segments": tuple(segment for part in parts for segment in part.segments),
        }
    )


def count_terms(shards: Sequence[Path], out: Path, spec: Bm25Spec) -> IndexStats:
    """The statistics of document shards together: what makes their scores those of one index.

    Args:
        shards: indexes that :func:`combine` made, each of a part of the corpus.
        out: an empty or new folder, which :meth:`Bm25Index.open` reads beside a shard.
        spec: the conditions that the shards were made with.

    Raises:
        StoreError: a shard is missing, damaged or made with other conditions.
    """
    stats = _sum([statistics.load(shard, spec) for shard in shards], spec)
    out.mkdir(parents=True, exist_ok=True)
    for field in stats.fields:
        parts = [Forward.open(shard, field) for shard in shards]
        for name, array in zip(("terms", "counts"), forward.union(parts), strict=True):
            np.save(forward.file_of(out, field, name), array)
    stats.save(out)
    return stats
