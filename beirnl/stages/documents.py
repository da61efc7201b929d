"""Stages that make passages: read a folder of documents, describe the readers, cut."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pydantic import Field

from beirnl.rag.documents import Document, Unread, read_folder, table
from beirnl.rag.passages import Cut, passages
from beirnl.rag.readers import READERS, ReaderSpec, describe, reader_of
from beirnl.rag.tables import DOCUMENTS, PASSAGES
from beirnl.schema import CORPUS
from beirnl.specs import Spec
from beirnl.stages.base import Task, Unit
from beirnl.store.keys import digest, spec_fields

SHARD_DOCUMENTS, SHARD_CHARACTERS = 500, 8_000_000
#: Passages as documents of a corpus: what searches and encoders read. ``row`` ascends over all shards.
PASSAGE_ROWS = pa.schema([*CORPUS, *(PASSAGES.field(name) for name in ("doc_id", "start", "end", "tokens"))])
_ROWS_OF_SHARD = 1 << 32

T = TypeVar("T")


class DocumentsSpec(Spec):
    """A folder of documents: known by names and contents of its files.

    Attributes:
        sha256: of all files that may hold documents, and of the descriptions.
        fields: of JSON objects and rows that are text; empty: those that usually are.
        folder, descriptions: where they are.
    """

    sha256: str
    fields: tuple[str, ...] = ()
    folder: Path = Field(exclude=True)
    descriptions: Path | None = Field(default=None, exclude=True)


class PassagesSpec(Spec):
    """How documents are cut; see :class:`beirnl.config.rag.PassagesConfig`."""

    size: int | None = None
    overlap: int = 0
    sentences: bool = False


def import_documents(unit: Unit) -> None:
    """The documents of a folder, in shards; what is none is told with its reason."""
    spec = unit.task.spec
    assert isinstance(spec, DocumentsSpec)
    for shard in _shards(_told(unit, read_folder(spec.folder, spec.descriptions, spec.fields))):
        unit.out.write(table(shard), DOCUMENTS)
        unit.out.rows_in += len(shard)
        unit.tell(unit.out.rows_in)


def _told(unit: Unit, found: Iterable[Document | Unread]) -> Iterator[Document]:
    """The documents; what was not read, or not as it stands, becomes a warning."""
    for item in found:
        if isinstance(item, Unread):
            unit.out.count("not read")
            unit.out.warnings.append(f"not read: {item.id}: {item.reason}")
            continue
        if item.note:
            unit.out.warnings.append(f"{item.id}: {item.note}")
        yield item


def _shards(documents: Iterable[Document]) -> Iterator[list[Document]]:
    shard: list[Document] = []
    size = 0
    for document in documents:
        shard.append(document)
        size += len(document.text)
        if len(shard) == SHARD_DOCUMENTS or size >= SHARD_CHARACTERS:
            yield shard
            shard, size = [], 0
    if shard:
        yield shard


def describe_reader(unit: Unit) -> None:
    """Tokenizer and window of a model."""
    spec = unit.task.spec
    assert isinstance(spec, ReaderSpec)
    unit.out.rows_in = 1
    unit.out.write(describe(spec), READERS)


def _readers(inputs: Mapping[str, T]) -> list[T]:
    return [one for name, one in inputs.items() if name.startswith("reader-")]


def cut_pool(spec: Spec, inputs: Mapping[str, str]) -> str:
    """Workers keep the tokenizers of one set of readers, which take longer to load than a shard to cut."""
    return digest([spec_fields(spec), *_readers(inputs)])


def load_cut(task: Task) -> Cut:
    """The readers among the inputs, and how documents are cut for them."""
    spec = task.spec
    assert isinstance(spec, PassagesSpec)
    rows = chain.from_iterable(found.table().to_pylist() for found in _readers(task.inputs))
    return Cut([reader_of(row, spec.size) for row in rows], spec.overlap, spec.sentences)


def cut_passages(unit: Unit) -> None:
    """The passages of a shard of documents, within the windows of all readers among the inputs."""
    documents = unit.inputs["rows"].read(unit.number)
    made = passages(documents, unit.resource)
    unit.out.rows_in = documents.num_rows
    unit.out.write(_as_corpus(made, unit.number), PASSAGE_ROWS)


def _as_corpus(made: pa.Table, shard: int) -> pa.Table:
    """Passages with the columns of a corpus: their title is empty, else each would be found by it."""
    first = shard * _ROWS_OF_SHARD
    rows = pa.array(range(first, first + made.num_rows), pa.int64())
    made = made.append_column("row", rows).append_column("title", pa.array([""] * made.num_rows, pa.string()))
    return made.select(PASSAGE_ROWS.names)
