"""Building one unit of an index: a part of the corpus, in one process."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from beirnl.errors import StoreError
from beirnl.retrieval.analysis import analyzer
from beirnl.retrieval.bm25 import stats as statistics
from beirnl.retrieval.bm25.forward import ForwardWriter
from beirnl.retrieval.bm25.stats import IndexStats
from beirnl.schema import join_title_text
from beirnl.specs import Bm25Spec

if TYPE_CHECKING:
    import tantivy

TANTIVY, FORWARD, IDS = "tantivy", "forward", "ids.arrow"
#: Memory after which Tantivy begins another segment (bytes, at most; a small unit takes little).
_HEAP = 2_000_000_000
_BATCH = 5_000
_ID_SCHEMA = pa.schema([("id", pa.large_string())])


class UnitWriter:
    """Writes a unit, batch by batch.

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
        self._tantivy = TantivyWriter(out, tuple(self._stats.fields))
        self._forward = {field: ForwardWriter() for field in self._stats.fields}
        self._ids: list[pa.Array] = []
        self._row = first_row

    def add(self, ids: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> None:
        """Adds documents: ids, titles and texts of equal number."""
        for start in range(0, len(ids), _BATCH):
            part = slice(start, start + _BATCH)
            self._add(ids[part], titles[part], texts[part])

    def _add(self, ids: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> None:
        joined = [join_title_text(title, text) for title, text in zip(titles, texts, strict=True)]
        columns = {"title": titles, "text": texts if "title" in self._forward else joined}
        terms = {field: self._analyzer.batch(columns[field]) for field in self._forward}
        for field, writer in self._forward.items():
            writer.add(terms[field])
        for document in zip(*terms.values(), strict=True):
            if any(document):
                self._tantivy.add(self._row, document)
            self._row += 1
        self._ids.append(pa.array(ids, pa.large_string()))

    def close(self) -> IndexStats:
        """Finishes the unit and returns its statistics; without it there is no unit."""
        self._tantivy.close()
        folder = self._out / FORWARD
        folder.mkdir()
        fields = {field: writer.save(folder, field) for field, writer in self._forward.items()}
        write_ids(self._out, self._ids)
        stats = self._stats.model_copy(
            update={
                "documents": self._row - self._stats.first_row,
                "counted": self._tantivy.documents,
                "fields": fields,
            }
        )
        stats.save(self._out)
        return stats


def build_unit(
    out: Path,
    spec: Bm25Spec,
    ids: Sequence[str],
    titles: Sequence[str],
    texts: Sequence[str],
    first_row: int = 0,
) -> IndexStats:
    """A unit of documents that are all at hand; see :class:`UnitWriter`."""
    writer = UnitWriter(out, spec, first_row)
    writer.add(ids, titles, texts)
    return writer.close()


class TantivyWriter:
    """Writes analysed documents as a Tantivy index of one segment, in the order in which they come."""

    def __init__(self, out: Path, fields: tuple[str, ...]) -> None:
        import tantivy

        self._document, self._fields = tantivy.Document, fields
        folder = out / TANTIVY
        try:
            folder.mkdir(parents=True)
        except FileExistsError as error:
            raise StoreError(
                "there is an index already", where=out, remedy="build into a new folder"
            ) from error
        self._writer = tantivy.Index(_schema(fields), str(folder)).writer(_HEAP, 1)
        self.documents = 0

    def add(self, row: int, document: Sequence[Sequence[str]]) -> None:
        """Adds a document: its number, and its terms in each field."""
        entry = self._document()
        entry.add_unsigned("n", row)
        for field, terms in zip(self._fields, document, strict=True):
            if terms:
                entry.add_text(field, " ".join(terms))
        self._writer.add_document(entry)
        self.documents += 1

    def close(self) -> None:
        """Commits."""
        self._writer.commit()
        self._writer.wait_merging_threads()


def _schema(fields: tuple[str, ...]) -> "tantivy.Schema":
    import tantivy

    builder = tantivy.SchemaBuilder().add_unsigned_field("n", fast=True)
    for field in fields:
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    return builder.build()


def write_ids(out: Path, parts: Sequence[pa.Array]) -> None:
    """The documents' ids by row, as one Arrow batch that can be memory-mapped."""
    ids = pa.concat_arrays([pa.array([], pa.large_string()), *parts])
    with pa.ipc.new_file(out / IDS, _ID_SCHEMA) as file:
        file.write_batch(pa.record_batch([ids], schema=_ID_SCHEMA))


def read_ids(folder: Path) -> pa.Array:
    """The ids that :func:`write_ids` wrote, memory-mapped."""
    return pa.ipc.open_file(pa.memory_map(str(folder / IDS))).get_batch(0).column(0)
