"""Many units become one index: one set of statistics, no document is analysed or indexed again."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from beirnl.errors import StoreError
from beirnl.retrieval.bm25 import stats as statistics
from beirnl.retrieval.bm25.build import FORWARD, TANTIVY, TantivyWriter, read_ids, write_ids
from beirnl.retrieval.bm25.forward import concatenate
from beirnl.retrieval.bm25.stats import FieldStats, IndexStats
from beirnl.specs import Bm25Spec

#: A term that no text gives (control characters are no words), and the number of a document that is none.
_SENTINEL, _NO_ROW = "\x01", 2**64 - 1


def combine(units: Sequence[Path], out: Path, spec: Bm25Spec) -> IndexStats:
    """Places the files of units together as one index.

    Segments of Tantivy are hard-linked (copied where that cannot be), forward arrays and ids are joined,
    statistics added up. Tantivy counts all documents of the index in every field, where Lucene leaves out
    those without a term in the field; a *ballast* document with sentinel terms brings Tantivy's mean length
    to Lucene's, and :class:`Bm25Index` corrects the idf.

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
    folders = [unit for _, unit in found]
    _link([folder / TANTIVY for folder in folders], out, stats)
    (out / FORWARD).mkdir()
    for field in stats.fields:
        concatenate([folder / FORWARD for folder in folders], out / FORWARD, field)
    write_ids(out, [read_ids(folder) for folder in folders])
    stats.save(out)
    return stats


def _total(found: Sequence[tuple[IndexStats, Path]], spec: Bm25Spec) -> IndexStats:
    """Sums of the units' statistics, with the ballast that they need."""
    row = 0
    for stats, unit in found:
        if stats.first_row != row:
            raise StoreError(
                f"the unit begins at document {stats.first_row}, and the one before ends at {row}",
                where=unit,
                remedy="combine all units of one corpus, each once",
            )
        row += stats.documents
    parts = [stats for stats, _ in found]
    empty = statistics.empty(spec)
    fields = {
        name: FieldStats(
            documents=sum(part.fields[name].documents for part in parts),
            tokens=sum(part.fields[name].tokens for part in parts),
        )
        for name in empty.fields
    }
    counted = sum(part.counted for part in parts)
    ballast: dict[str, int] = {}
    if any(field.documents != counted for field in fields.values()):
        counted += 1
        ballast = {
            name: round(field.tokens * counted / max(field.documents, 1)) - field.tokens
            for name, field in fields.items()
        }
    return empty.model_copy(
        update={"documents": row, "counted": counted, "fields": fields, "ballast": ballast}
    )


def _link(sources: list[Path], out: Path, stats: IndexStats) -> None:
    """One Tantivy index of the segments of several, and of the ballast."""
    own = TantivyWriter(out, tuple(stats.fields))
    if stats.ballast:
        own.add(_NO_ROW, [[_SENTINEL] * terms for terms in stats.ballast.values()])
    own.close()
    meta = _meta(out / TANTIVY)
    for source in sources:
        other = _meta(source)
        for segment in other["segments"]:
            for file in source.glob(f"{segment['segment_id'].replace('-', '')}.*"):
                _link_or_copy(file, out / TANTIVY / file.name)
            meta["segments"].append(segment)
        meta["opstamp"] = max(meta["opstamp"], other["opstamp"])
    files = [file.name for file in (out / TANTIVY).iterdir() if not file.name.startswith(".")]
    (out / TANTIVY / ".managed.json").write_text(json.dumps(sorted(files)))
    (out / TANTIVY / "meta.json").write_text(json.dumps(meta))


def _meta(folder: Path) -> dict[str, Any]:
    meta: dict[str, Any] = json.loads((folder / "meta.json").read_text())
    return meta


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
