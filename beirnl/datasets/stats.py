"""Statistics of a retrieval set, and what is wrong with it, in one pass over each file.

Of documents only identifiers and digests are held: about 40 bytes a document, and as much for its twin in
the source language. A document's text is title and text as one passage; words are what white space
separates.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from beirnl.datasets import beir, importing
from beirnl.datasets.rows import Judgement, Record
from beirnl.schema import join_title_text

EXAMPLES = 5
_ROWS = {"query": "queries", "document": "documents"}


class Defect(NamedTuple):
    """Something that is wrong with a number of rows: how many, and the identifiers of the first."""

    name: str
    rows: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Statistics:
    """What one set (or a part of one) holds.

    Attributes:
        part: of a dataset in parts, else empty.
        queries: judged ones that have a text.
        documents: distinct identifiers.
        relevant: pairs of such a query and a document whose label is more than 0.
        query_words, document_words: mean number of words.
        query_characters, document_characters: mean number of characters.
        longest: characters of the longest document, and its identifier.
        defects: those that need the source are missing without it.
    """

    part: str
    queries: int
    documents: int
    relevant: int
    query_words: float
    document_words: float
    query_characters: float
    document_characters: float
    longest: tuple[int, str]
    defects: tuple[Defect, ...]

    @property
    def relevant_per_query(self) -> float:
        """Mean number of relevant documents of a query (BEIR-NL, Table 1: Avg. D/Q)."""
        return self.relevant / self.queries if self.queries else 0.0


@dataclass
class Corpus:
    """What is held of a corpus: per document its identifier, a hash of it, and a digest of title and text."""

    ids: list[pa.Array] = field(default_factory=list)
    hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    contents: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    words: int = 0
    characters: int = 0
    longest: tuple[int, str] = (0, "")
    empty: dict[str, list[str]] = field(default_factory=dict)

    def names(self, rows: np.ndarray) -> list[str]:
        """Identifiers of some rows."""
        return list(pa.chunked_array(self.ids, pa.string()).take(pa.array(rows)).to_pylist())


def measure(folder: Path, split: str, source: Path | None = None, part: str = "") -> Statistics:
    """Statistics of the set in a folder.

    Args:
        folder: one set, as :func:`beirnl.datasets.beir.locate` gives it.
        split: whose judgements count.
        source: folder of the same set in the language that it was translated from.
        part: what the set is called in its dataset.

    Raises:
        DataError: a file is malformed or missing.
    """
    corpus = _scan(folder)
    judgements = list(beir.read_qrels(beir.qrels_path(folder, split)))
    judged = {judgement.query_id for judgement in judgements}
    queries = {r.id: r for r in beir.read_records(beir.queries_path(folder)) if r.id in judged}
    first, repeated = _first_of_each(corpus.hashes)
    defects = [
        Defect("documents whose identifier occurs twice", *_listed(corpus, repeated)),
        *_duplicates(corpus, first),
        *(Defect(name, len(ids), tuple(ids[:EXAMPLES])) for name, ids in corpus.empty.items()),
        *_of_queries(queries, judgements),
        *_of_judgements(corpus, judgements, queries),
    ]
    if source is not None:
        defects += _against_source(corpus, first, _scan(source), queries, source)
    pairs = {(j.query_id, j.doc_id) for j in judgements if j.relevance > 0 and j.query_id in queries}
    return Statistics(
        part=part,
        queries=len(queries),
        documents=len(first),
        relevant=len(pairs),
        query_words=_mean(sum(len(record.text.split()) for record in queries.values()), len(queries)),
        document_words=_mean(corpus.words, len(corpus.hashes)),
        query_characters=_mean(sum(len(record.text) for record in queries.values()), len(queries)),
        document_characters=_mean(corpus.characters, len(corpus.hashes)),
        longest=corpus.longest,
        defects=tuple(defects),
    )


def total(parts: list[Statistics]) -> Statistics:
    """A dataset in parts as a whole: sums, and means over all rows; defects by name."""
    documents, queries = (sum(getattr(part, name) for part in parts) for name in ("documents", "queries"))
    found: dict[str, Defect] = {}
    for part in parts:
        for defect in part.defects:
            before = found.get(defect.name, Defect(defect.name, 0))
            ids = (*before.examples, *(f"{part.part}/{name}" for name in defect.examples))
            found[defect.name] = Defect(defect.name, before.rows + defect.rows, ids[:EXAMPLES])
    longest = max((part.longest[0], f"{part.part}/{part.longest[1]}") for part in parts)

    def mean(name: str, rows: str) -> float:
        values = (getattr(part, f"{rows}_{name}") * getattr(part, _ROWS[rows]) for part in parts)
        return _mean(sum(values), sum(getattr(part, _ROWS[rows]) for part in parts))

    return Statistics(
        part="",
        queries=queries,
        documents=documents,
        relevant=sum(part.relevant for part in parts),
        query_words=mean("words", "query"),
        document_words=mean("words", "document"),
        query_characters=mean("characters", "query"),
        document_characters=mean("characters", "document"),
        longest=longest,
        defects=tuple(found.values()),
    )


def _mean(value: float, number: int) -> float:
    return value / number if number else 0.0


def _scan(folder: Path) -> Corpus:
    corpus = Corpus(empty={"documents without text": [], "documents without title": []})
    hashes, contents = [], []
    for batch in beir.read_batches(beir.corpus_path(folder)):
        corpus.ids.append(batch["id"])
        hashes.append(importing.id_hashes(batch["id"]))
        contents.append(importing.text_digests(batch["title"], batch["text"]))
        _look_at(batch, corpus)
    if hashes:
        corpus.hashes, corpus.contents = np.concatenate(hashes), np.concatenate(contents)
    return corpus


def _look_at(batch: pa.RecordBatch, corpus: Corpus) -> None:
    """Lengths, words and empty fields of a batch."""
    titles, texts = batch["title"].to_pylist(), batch["text"].to_pylist()
    passages = [join_title_text(title, text) for title, text in zip(titles, texts, strict=True)]
    lengths = np.fromiter(map(len, passages), np.int64, len(passages))
    corpus.words += sum(len(passage.split()) for passage in passages)
    corpus.characters += int(lengths.sum())
    best = int(lengths.argmax())
    if lengths[best] > corpus.longest[0]:
        corpus.longest = (int(lengths[best]), batch["id"][best].as_py())
    for name, values in (("documents without text", texts), ("documents without title", titles)):
        blank = [row for row, value in enumerate(values) if not value or value.isspace()]
        corpus.empty[name] += [batch["id"][row].as_py() for row in blank]


def _first_of_each(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the first and of the later occurrences of each value, in order."""
    order = np.argsort(values, kind="stable")
    later = np.concatenate([[False], np.diff(values[order]) == 0]) if len(order) else np.empty(0, bool)
    return np.sort(order[~later]), np.sort(order[later])


def _listed(corpus: Corpus, rows: np.ndarray) -> tuple[int, tuple[str, ...]]:
    return len(rows), tuple(corpus.names(rows[:EXAMPLES]))


def _duplicates(corpus: Corpus, rows: np.ndarray) -> Iterator[Defect]:
    _, later = _first_of_each(corpus.contents[rows])
    yield Defect("documents equal to an earlier one", *_listed(corpus, rows[later]))


def _of_queries(queries: dict[str, Record], judgements: list[Judgement]) -> Iterator[Defect]:
    best: dict[str, int] = {}
    for judgement in judgements:
        best[judgement.query_id] = max(judgement.relevance, best.get(judgement.query_id, 0))
    yield _defect("queries without text", (name for name, r in queries.items() if not r.text.strip()))
    yield _defect("queries without a relevant document", (q for q, label in best.items() if label <= 0))
    texts: dict[str, str] = {}
    equal = [name for name, record in queries.items() if texts.setdefault(record.text, name) != name]
    yield _defect("queries equal to an earlier one", equal)


def _of_judgements(
    corpus: Corpus, judgements: list[Judgement], queries: dict[str, Record]
) -> Iterator[Defect]:
    lacking = dict.fromkeys(j.query_id for j in judgements if j.query_id not in queries)
    yield _defect("queries that qrels name and the set lacks", lacking)
    names = list(dict.fromkeys(judgement.doc_id for judgement in judgements))
    there = np.isin(importing.id_hashes(pa.array(names, pa.string())), corpus.hashes)
    missing = (name for name, found in zip(names, there.tolist(), strict=True) if not found)
    yield _defect("documents that qrels name and the corpus lacks", missing)


def _defect(name: str, ids: Iterable[str]) -> Defect:
    found = list(ids)
    return Defect(name, len(found), tuple(found[:EXAMPLES]))


def _against_source(
    corpus: Corpus, rows: np.ndarray, source: Corpus, queries: dict[str, Record], folder: Path
) -> Iterator[Defect]:
    """What only shows beside the source: texts left as they were, documents lost or made equal."""
    original = pl.DataFrame({"id": source.hashes, "source": source.contents}).unique("id", keep="first")
    frame = pl.DataFrame({"row": rows, "id": corpus.hashes[rows], "content": corpus.contents[rows]})
    paired = frame.join(original, on="id", maintain_order="left")
    same = paired.filter(pl.col("content") == pl.col("source"))["row"].to_numpy()
    yield Defect("documents identical to their source", *_listed(corpus, same))
    equal = paired.filter(pl.col("content").is_duplicated()).unique(
        ["content", "source"], keep="first", maintain_order=True
    )
    merged = equal.filter(~pl.col("content").is_first_distinct())["row"].to_numpy()
    yield Defect("documents equal to an earlier one only in translation", *_listed(corpus, merged))
    lost = np.flatnonzero(~np.isin(source.hashes, corpus.hashes))
    yield Defect("documents of the source that the translation lacks", *_listed(source, lost))
    asked = {record.id: record.text for record in beir.read_records(beir.queries_path(folder))}
    unchanged = [name for name, r in queries.items() if r.text.strip() and asked.get(name) == r.text]
    yield _defect("queries identical to their source", unchanged)
