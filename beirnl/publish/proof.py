"""The proof that what was published is what its source was, translated: from the files as they were written.

Held in memory: two flags and the identifier of every document of the source, and as much again while the
identifiers are counted: about 100 bytes a document. What is written is read in pieces.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from beirnl.datasets import beir
from beirnl.datasets.importing import examples
from beirnl.errors import DataError
from beirnl.publish.find import Side, Translation
from beirnl.publish.folders import ContentDigest, Folders
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import file_sha256
from beirnl.wording import counted

_PIECE = 8_192
_SCHEMA = {"id": pl.String, "title": pl.String, "text": pl.String}

#: What is proven of both layouts, in the words that proof and card use.
CLAIMS = (
    "The identifiers of documents and of queries are those of the source: each once, in its order, no other.",
    "No title and no text is empty whose source is not.",
    "The judgements are those of the source, in its order.",
    "Every judgement points at a query that is there, and at a document that is there or that the source "
    "lacks too.",
    "Both layouts hold the same texts, and those of the translation.",
)


@dataclass(frozen=True)
class Failure:
    """A claim that does not hold: where, and what is wrong."""

    where: Path
    what: str


def prove(translation: Translation, folders: Folders, contents: dict[str, str]) -> dict[str, Any]:
    """Read both layouts back and compare them with the source.

    Args:
        translation: its artifacts; of the translated ones only the content digests are used.
        folders: what was written.
        contents: the digest of all rows by kind (``document``, ``query``), as they were written.

    Returns:
        What was found, for ``proof.json``: counts, the documents that the judgements of the source name and
        its corpus lacks, and the rows whose source has neither title nor text.

    Raises:
        DataError: a claim does not hold; names the file and what is wrong in it.
    """
    documents, queries = _source(translation.documents), _source(translation.queries)
    judgements = _frame(translation.qrels.table())
    missing = judgements.filter(~pl.col("doc_id").is_in(documents["id"].implode()))["doc_id"].unique().sort()
    for folder in (folders.beir, folders.hub):
        texts = {
            "document": (beir.corpus_path(folder), documents),
            "query": (beir.queries_path(folder), queries),
        }
        for kind, (path, source) in texts.items():
            _raise(_texts_failures(path, kind, source, contents[kind]))
        qrels = beir.qrels_path(folder, translation.split)
        _raise(_qrels_failures(qrels, judgements, documents["id"], queries["id"], missing))
    return {
        "part": translation.part,
        "split": translation.split,
        "documents": documents.height,
        "queries": queries.height,
        "judgements": judgements.height,
        "relevant": judgements.filter(pl.col("relevance") > 0).height,
        "documents_missing_in_source": _counted(missing),
        "documents_without_text_in_source": _counted(_without_text(documents)),
        "queries_without_text_in_source": _counted(_without_text(queries)),
        "contents": contents,
        "artifacts": artifact_contents(translation),
    }


def _counted(ids: pl.Series) -> dict[str, Any]:
    return {"count": len(ids), "examples": ids.head(5).to_list()}


def _without_text(source: pl.DataFrame) -> pl.Series:
    return source.filter(~pl.col("title") & ~pl.col("text"))["id"]


def artifact_contents(translation: Translation) -> dict[str, str]:
    """Digests of the artifacts that a publication was made from."""
    return {
        "source documents": translation.documents.source.manifest.content,
        "source queries": translation.queries.source.manifest.content,
        "translated documents": translation.documents.translated.manifest.content,
        "translated queries": translation.queries.translated.manifest.content,
        "judgements": translation.qrels.manifest.content,
    }


def checksums(*folders: Path) -> dict[str, str]:
    """SHA-256 of every file in the folders, by ``FOLDER/PATH``."""
    files = [(folder, path) for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder.parent).as_posix(): file_sha256(path) for folder, path in files}


def _raise(failures: list[Failure]) -> None:
    if failures:
        raise DataError(
            "; ".join(failure.what for failure in failures),
            where=failures[0].where,
            remedy="the proof failed: check the disk, then publish again with --force",
        )


def _some(kind: str, ids: pl.Series) -> str:
    """``1 document (d7)``, ``3 queries (a, b, c)``."""
    return f"{counted(len(ids), kind)} ({examples(ids.to_list())})"


# Texts ------------------------------------------------------------------------------------------------------


def _presence() -> list[pl.Expr]:
    """Whether title and text say something; white space does not."""
    return [
        (pl.col(name).fill_null("").str.strip_chars().str.len_bytes() > 0).alias(name)
        for name in ("title", "text")
    ]


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _source(side: Side) -> pl.DataFrame:
    """Identifiers of the source in its order, and whether title and text say something."""
    return _rows(side.source).sort("row").select("id", "title", "text")


def _rows(artifact: Artifact) -> pl.DataFrame:
    return pl.concat(_frame(table).select("row", "id", *_presence()) for table in artifact.tables())


def _pieces(path: Path, digest: ContentDigest) -> Iterator[pl.DataFrame]:
    """What was written, in pieces: identifiers, and whether title and text say something."""
    records = beir.read_records(path)
    while piece := list(islice(records, _PIECE)):
        for record in piece:
            digest.add(record.id, record.title, record.text)
        rows = [(record.id, record.title, record.text) for record in piece]
        yield pl.DataFrame(rows, _SCHEMA, orient="row").select("id", *_presence())


def _texts_failures(path: Path, kind: str, source: pl.DataFrame, content: str) -> list[Failure]:
    digest = ContentDigest()
    row, failures = 0, []
    for piece in _pieces(path, digest):
        expected = source.slice(row, piece.height)
        if not expected["id"].equals(piece["id"]):
            return _id_failures(path, kind, source)
        failures += _empty_failures(path, kind, expected, piece)
        row += piece.height
    if row < source.height or source["id"].n_unique() < source.height:
        return _id_failures(path, kind, source)
    if not failures and digest.hexdigest() != content:
        return [Failure(path, "holds other texts than the translation")]
    return failures


def _empty_failures(path: Path, kind: str, source: pl.DataFrame, written: pl.DataFrame) -> list[Failure]:
    """Fields that are empty and whose source is not; both frames hold the same rows."""
    failures = []
    for field in ("title", "text"):
        emptied = written["id"].filter(source[field] & ~written[field])
        if len(emptied):
            what = f"the {field} of {_some(kind, emptied)} is empty, and its source is not"
            failures.append(Failure(path, what))
    return failures


def _id_failures(path: Path, kind: str, source: pl.DataFrame) -> list[Failure]:
    """What is wrong with identifiers that are not the source's."""
    written = pl.concat([piece.select("id") for piece in _pieces(path, ContentDigest())] or [source.head(0)])
    ids = source["id"]
    found: dict[str, Callable[[], pl.Series]] = {
        "lacks {} of the source": lambda: ids.filter(~ids.is_in(written["id"].implode())),
        "holds {} more than once": lambda: (
            written["id"].filter(written["id"].is_duplicated()).unique().sort()
        ),
        "holds {} that the source has not": lambda: written["id"].filter(~written["id"].is_in(ids.implode())),
    }
    failures = [
        Failure(path, what.format(_some(kind, wrong))) for what, find in found.items() if len(wrong := find())
    ]
    return failures or [Failure(path, "is not in the order of the source")]


# Judgements -------------------------------------------------------------------------------------------------


def _qrels_failures(
    path: Path, source: pl.DataFrame, documents: pl.Series, queries: pl.Series, missing: pl.Series
) -> list[Failure]:
    """Judgements that point nowhere, or that are not the source's."""
    rows = [
        (judgement.query_id, judgement.doc_id, judgement.relevance) for judgement in beir.read_qrels(path)
    ]
    written = pl.DataFrame(rows, source.schema, orient="row")
    named = {
        "document": (written["doc_id"], pl.concat([documents, missing.alias("id")])),
        "query": (written["query_id"], queries),
    }
    failures = []
    for kind, (ids, known) in named.items():
        unique = ids.unique().sort()
        lost = unique.filter(~unique.is_in(known.implode()))
        if len(lost):
            verb = "is" if len(lost) == 1 else "are"
            failures.append(Failure(path, f"judges {_some(kind, lost)} that {verb} not there"))
    if not failures and not written.equals(source):
        failures.append(Failure(path, _difference(written, source)))
    return failures


def _difference(written: pl.DataFrame, source: pl.DataFrame) -> str:
    if written.height != source.height:
        return f"holds {counted(written.height, 'judgement')}, and the source {source.height}"
    row = next(row for row in range(source.height) if written.row(row) != source.row(row))
    return f"judgement {row + 1} is {written.row(row)}, and in the source {source.row(row)}"
