"""Building one unit of an index: a part of the corpus, in one process."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from beirnl.errors import StoreError
from beirnl.retrieval.analysis import analyzer
from beirnl.retrieval.bm25 import stats as statistics
from beirnl.retrieval.bm25.segment import Segment, with_blanks
from beirnl.retrieval.bm25.stats import IndexStats, SegmentStats
from beirnl.specs import Bm25Spec

IDS, SEGMENTS = "ids.arrow", "segments"
#: Words of text after which another segment begins, and bytes of text that are cut into words at once.
SEGMENT_WORDS, BATCH_BYTES = 32_000_000, 8_000_000
_ID_SCHEMA = pa.schema([("id", pa.large_string())])

Texts: TypeAlias = Sequence[str] | pa.Array | pa.ChunkedArray


class UnitWriter:
    """Writes a unit, batch by batch, in memory that does not depend on its size.

    A document without any term is not searchable and has its id all the same.

    Args:
        out: an empty or new folder.
        spec: conditions of the index.
        first_row: number of the unit's first document among those of the whole index, counting units in the
            order in which :func:`combine` will have them.

    Raises:
        ConfigError: the spec names an analyzer that does not exist.
        StoreError: the folder already holds an index.
    """

    def __init__(self, out: Path, spec: Bm25Spec, first_row: int = 0) -> None:
        self._out, self._stats = out, statistics.empty(spec, first_row)
        self._analyzer = analyzer(spec.analyzer)
        try:
            (out / SEGMENTS).mkdir(parents=True)
        except FileExistsError as error:
            raise StoreError(
                "there is an index already", where=out, remedy="build into a new folder"
            ) from error
        self._ids: list[pa.Array] = []
        self._row, self._fields = first_row, [self._stats.fields]
        self._segments: list[SegmentStats] = []
        self._segment = Segment(tuple(self._stats.fields), first_row)

    def add(self, ids: Texts, titles: Texts, texts: Texts) -> None:
        """Adds documents: ids, titles and texts of equal number, as lists or Arrow columns.

        Raises:
            ValueError: their numbers differ.
        """
        columns = [_column(part) for part in (ids, titles, texts)]
        table = pa.table(columns, ["id", "title", "text"])
        size = sum(column.nbytes for column in columns)
        for batch in table.to_batches(max_chunksize=max(1, len(ids) * BATCH_BYTES // max(size, 1))):
            self._add(*batch.columns)

    def _add(self, ids: pa.Array, titles: pa.Array, texts: pa.Array) -> None:
        columns = [[titles], [texts]] if "title" in self._stats.fields else [[titles, texts]]
        self._segment.add([with_blanks(*parts) for parts in columns])
        self._row += len(ids)
        self._ids.append(ids)
        if self._segment.pieces >= SEGMENT_WORDS:
            self._save_segment()

    def _save_segment(self) -> None:
        folder = self._out / SEGMENTS / f"{len(self._segments):05d}"
        fields, segment = self._segment.save(folder, self._analyzer)
        self._fields.append(fields)
        self._segments.append(segment)
        self._segment = Segment(tuple(self._stats.fields), self._row)

    def close(self) -> IndexStats:
        """Finishes the unit and returns its statistics; without it there is no unit."""
        self._save_segment()
        write_ids(self._out, self._ids)
        stats = self._stats.model_copy(
            update={
                "documents": self._row - self._stats.first_row,
                "fields": statistics.total(self._fields),
                "segments": tuple(self._segments),
            }
        )
        stats.save(self._out)
        return stats


def _column(texts: Texts) -> pa.ChunkedArray:
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        texts = pa.array(texts, pa.large_string())
    column = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([texts])
    return pc.fill_null(column, "").cast(pa.large_string())


def build_unit(
    out: Path,
    spec: Bm25Spec,
    ids: Texts,
    titles: Texts,
    texts: Texts,
    first_row: int = 0,
) -> IndexStats:
    """A unit of documents that are all at hand; see :class:`UnitWriter`."""
    writer = UnitWriter(out, spec, first_row)
    writer.add(ids, titles, texts)
    return writer.close()


def write_ids(out: Path, parts: Sequence[pa.Array]) -> None:
    """The documents' ids by row, as one Arrow batch that can be memory-mapped."""
    ids = pa.concat_arrays([pa.array([], pa.large_string()), *parts])
    with pa.ipc.new_file(out / IDS, _ID_SCHEMA) as file:
        file.write_batch(pa.record_batch([ids], schema=_ID_SCHEMA))


def read_ids(folder: Path) -> pa.Array:
    """The ids that :func:`write_ids` wrote, memory-mapped."""
    return pa.ipc.open_file(pa.memory_map(str(folder / IDS))).get_batch(0).column(0)
