"""What of an index is Tantivy's: segments, written one by one and placed together under one ``meta.json``.

Tantivy counts all documents of an index in every field, where Lucene leaves out those without a term in the
field. A *ballast* document of sentinel terms in each segment brings the mean length that Tantivy computes to
Lucene's; what it does to the idf is corrected by boosts when the index is searched.
"""

import functools
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from beirnl.retrieval.bm25.stats import FieldStats, SegmentStats

if TYPE_CHECKING:
    import tantivy

TANTIVY = "tantivy"
#: Memory after which Tantivy would begin another segment (bytes): more than what comes at once takes.
_HEAP = 4_000_000_000
#: A term that no text gives, in JSON (control characters are no words), and the number of no document.
_SENTINEL, _NO_ROW = "\\u0001", 2**62


class TantivyWriter:
    """Writes analysed documents as one segment, in the order in which they come."""

    def __init__(self, out: Path, fields: Sequence[str]) -> None:
        self._fields, self._folder = fields, out / TANTIVY
        self._writer = create(out, fields).writer(_HEAP, 1)
        self._documents, self._first_row = 0, 0

    def add(self, first_row: int, columns: Sequence[pa.LargeStringArray]) -> None:
        """Adds documents, given by their terms in each field, with blanks between them.

        Those without any term are left out. In JSON, a document is one call.
        """
        rows = pa.array(range(first_row, first_row + len(columns[0])), pa.int64())
        parts: list[pa.Array | str] = ['{"n":', rows.cast(pa.large_string())]
        for field, column in zip(self._fields, columns, strict=True):
            # Of what JSON escapes, words can hold quotation marks only.
            parts += [f',"{field}":"', pc.replace_substring(column, '"', '\\"'), '"']
        used = [pc.not_equal(pc.binary_length(column), 0) for column in columns]
        lines = _concatenated([*parts, "}"]).filter(functools.reduce(pc.or_, used))
        for line in lines.to_pylist():
            self._writer.add_json(line)
        self._first_row = self._first_row if self._documents else first_row
        self._documents += len(lines)

    def close(self, fields: Mapping[str, FieldStats]) -> SegmentStats:
        """Adds the ballast that the fields need, and commits."""
        tokens = {name: field.tokens for name, field in fields.items()}
        if any(field.documents != self._documents for field in fields.values()):
            total = self._documents + 1
            tokens = {n: round(field.tokens * total / max(field.documents, 1)) for n, field in fields.items()}
            ballast = [f"{_SENTINEL} " * (tokens[name] - fields[name].tokens) for name in self._fields]
            self.add(_NO_ROW, [pa.array([text], pa.large_string()) for text in ballast])
        self._writer.commit()
        self._writer.wait_merging_threads()
        _name(self._folder, self._first_row)
        return SegmentStats(documents=self._documents, tokens=tokens)


def _concatenated(parts: Sequence[pa.Array | str]) -> pa.LargeStringArray:
    as_large = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*as_large, pa.scalar("", pa.large_string()))


def create(out: Path, fields: Sequence[str]) -> "tantivy.Index":
    """An index without documents, in a new folder."""
    import tantivy

    builder = tantivy.SchemaBuilder().add_unsigned_field("n", fast=True)
    for field in fields:
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    (out / TANTIVY).mkdir(parents=True)
    return tantivy.Index(builder.build(), str(out / TANTIVY))


def link(sources: Sequence[Path], out: Path, fields: Sequence[str]) -> None:
    """One index of the segments of several, whose files are linked, or copied where that cannot be."""
    create(out, fields)
    target = out / TANTIVY
    meta = _meta(target)
    for source in (source / TANTIVY for source in sources):
        other = _meta(source)
        for segment in other["segments"]:
            for file in source.glob(f"{segment['segment_id'].replace('-', '')}.*"):
                _link_or_copy(file, target / file.name)
        meta["segments"] += other["segments"]
        meta["opstamp"] = max(meta["opstamp"], other["opstamp"])
    _save(meta, target)


def _name(folder: Path, first_row: int) -> None:
    """Names segments by the first row, where Tantivy draws names: the same documents give the same files."""
    meta = _meta(folder)
    for number, segment in enumerate(meta["segments"]):
        drawn, name = UUID(segment["segment_id"]), UUID(int=(first_row << 16) + number)
        for file in folder.glob(f"{drawn.hex}.*"):
            file.rename(folder / file.name.replace(drawn.hex, name.hex))
        segment["segment_id"] = str(name)
    _save(meta, folder)


def _save(meta: dict[str, Any], folder: Path) -> None:
    files = [file.name for file in folder.iterdir() if not file.name.startswith(".")]
    (folder / ".managed.json").write_text(json.dumps(sorted(files)), "utf-8")
    (folder / "meta.json").write_text(json.dumps(meta), "utf-8")


def _meta(folder: Path) -> dict[str, Any]:
    meta: dict[str, Any] = json.loads((folder / "meta.json").read_text("utf-8"))
    return meta


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
