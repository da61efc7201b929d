"""Writers of what is published: BEIR folder and hub layout, in one pass, in the order of the source."""

import csv
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from beirnl.datasets import hub_layout
from beirnl.datasets.beir import PUBLISHED
from beirnl.errors import DataError
from beirnl.publish.find import Side, Translation
from beirnl.publish.order import in_row_order
from beirnl.store.artifacts import Artifact

QRELS_HEADER = ("query-id", "corpus-id", "score")
ROWS_PER_FILE = 500_000
_TEXTS = pa.schema([("_id", pa.string()), ("title", pa.string()), ("text", pa.string())])
_HUB_QRELS = pa.schema(list(zip(QRELS_HEADER, (pa.string(), pa.string(), pa.int64()), strict=True)))


@dataclass
class Tally:
    """What is to be told of the rows of one kind: ``document`` or ``query``.

    Attributes:
        rows: how many there are.
        statuses: rows by status (``ok``, or names of failed checks joined by ``,``).
        repairs: rows by the rung of the repair ladder that gave their text; none for first answers.
        content: digest of all rows in order; see :class:`ContentDigest`.
    """

    rows: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    content: str = ""

    def add(self, table: pa.Table) -> None:
        """Count the rows of a table (schema ``TRANSLATED``)."""
        self.rows += table.num_rows
        self.statuses.update(table["status"].to_pylist())
        if "repair" in table.column_names:
            self.repairs.update(rung for rung in table["repair"].to_pylist() if rung)


class ContentDigest:
    """A SHA-256 over ids, titles and texts in order, each with its length before it."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, identifier: str, title: str, text: str) -> None:
        """Take the next row."""
        self._hash.update(f"{len(identifier)}:{identifier}{len(title)}:{title}{len(text)}:{text}".encode())

    def hexdigest(self) -> str:
        """The digest of all rows so far."""
        return self._hash.hexdigest()


@dataclass(frozen=True)
class Folders:
    """Where one set (or part) goes in either layout."""

    beir: Path
    hub: Path

    @classmethod
    def of(cls, published: Path) -> "Folders":
        """The folders of a published set."""
        return cls(*(published / name for name in PUBLISHED))

    def part(self, name: str) -> "Folders":
        """The folders of a part; of the whole where ``name`` is empty."""
        return Folders(self.beir / name, self.hub / name)


def write(translation: Translation, folders: Folders, scratch: Path) -> dict[str, Tally]:
    """Write a translation in both layouts, rows in the order of the source.

    Args:
        translation: its artifacts.
        folders: are made.
        scratch: a folder for rows on their way into order; made, and removed again.

    Returns:
        What was written of each kind: ``document`` and ``query``.

    Raises:
        DataError: an identifier that cannot stand in a qrels file.
    """
    folders.beir.mkdir(parents=True, exist_ok=True)
    tallies = {
        "document": _write_texts(translation.documents, folders, hub_layout.CORPUS, scratch),
        "query": _write_texts(translation.queries, folders, hub_layout.QUERIES, scratch),
    }
    _write_qrels(translation.qrels, folders, translation.split)
    return tallies


def _write_texts(side: Side, folders: Folders, name: str, scratch: Path) -> Tally:
    """``NAME.jsonl`` and ``NAME/NAME-*.parquet``; queries have no title in either."""
    tally, digest = Tally(), ContentDigest()
    columns = _TEXTS.names if name == hub_layout.CORPUS else ["_id", "text"]
    schema = pa.schema([_TEXTS.field(column) for column in columns])
    encoder = msgspec.json.Encoder()
    numbered = ParquetFiles(folders.hub / name, name, side.translated.rows, schema)
    with (folders.beir / f"{name}.jsonl").open("wb") as lines, numbered as parquet:
        for table in in_row_order(side.translated.tables(), side.source.rows, scratch):
            tally.add(table)
            texts = _texts(table)
            parquet.write(texts.select(columns))
            for row in texts.to_pylist():
                digest.add(row["_id"], row["title"], row["text"])
                lines.write(encoder.encode({column: row[column] for column in columns}) + b"\n")
    tally.content = digest.hexdigest()
    return tally


def _texts(table: pa.Table) -> pa.Table:
    """Id, title and text; a missing one is empty."""
    columns = [table["id"], *(table[name].fill_null("") for name in ("title", "text"))]
    return pa.table(columns, schema=_TEXTS)


class ParquetFiles:
    """A table in numbered Parquet files (``NAME-00000-of-00002.parquet``), as many as its rows ask for."""

    def __init__(self, folder: Path, name: str, rows: int, schema: pa.Schema) -> None:
        folder.mkdir(parents=True)
        files = max(1, -(-rows // ROWS_PER_FILE))
        self._paths = (folder / f"{name}-{number:05d}-of-{files:05d}.parquet" for number in range(files))
        self._schema = schema
        self._open()

    def _open(self) -> None:
        self._room = ROWS_PER_FILE
        self._writer = pq.ParquetWriter(next(self._paths), self._schema, compression="zstd")

    def __enter__(self) -> "ParquetFiles":
        return self

    def __exit__(self, *raised: object) -> None:
        self._writer.close()

    def write(self, table: pa.Table) -> None:
        """Write the next rows."""
        while table.num_rows:
            if not self._room:
                self._writer.close()
                self._open()
            piece = table.slice(0, self._room)
            self._writer.write_table(piece)
            self._room -= piece.num_rows
            table = table.slice(piece.num_rows)


def _write_qrels(qrels: Artifact, folders: Folders, split: str) -> None:
    table = qrels.table()
    (folders.beir / "qrels").mkdir()
    path = folders.beir / "qrels" / f"{split}.tsv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")  # as beir writes and reads it
        writer.writerow(QRELS_HEADER)
        writer.writerows(_writable(table, path))
    with ParquetFiles(folders.hub / "qrels", split, table.num_rows, _HUB_QRELS) as parquet:
        parquet.write(table.rename_columns(QRELS_HEADER).cast(_HUB_QRELS))


def _writable(table: pa.Table, path: Path) -> Iterator[tuple[str, str, int]]:
    """The judgements; DataError for an identifier that would not be read back."""
    for query_id, doc_id, relevance in zip(*(column.to_pylist() for column in table.columns), strict=True):
        for identifier in (query_id, doc_id):
            if identifier != identifier.strip() or any(c in identifier for c in "\t\n\r"):
                raise DataError(
                    f"identifier {identifier!r} has white space that a qrels file cannot hold",
                    where=path,
                    remedy="rename it in the source",
                )
        yield query_id, doc_id, relevance
