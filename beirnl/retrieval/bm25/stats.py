"""What an index knows about itself, and the numbers in Lucene's BM25 formula."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from beirnl.errors import StoreError
from beirnl.retrieval.analysis import analyzer
from beirnl.specs import Bm25Spec

#: Version of the files of an index; another one cannot be read.
FORMAT = 2
#: Fields of a profile; ``flat`` has title and text in one.
FIELDS = {"elasticsearch": ("title", "text"), "flat": ("text",)}

_FREE, _CODES = 24, 256


def _decode(code: int) -> int:
    """Document length that a norm stands for: a float of 4 significant bits (Lucene's ``SmallFloat``)."""
    if code < _FREE:
        return code
    shift, bits = divmod(code - _FREE, 8)
    return _FREE + (bits if shift == 0 else (bits | 8) << (shift - 1))


#: Length of a document in a field, by its norm (one byte); Lucene and Tantivy have the same table.
LENGTHS = np.array([_decode(code) for code in range(_CODES)], np.float64)


def norms(lengths: np.ndarray) -> np.ndarray:
    """Norms (uint8) of documents of those lengths: the last in the table that is not longer."""
    return (np.searchsorted(LENGTHS, lengths, side="right") - 1).astype(np.uint8)


def idf(documents: int, frequency: int) -> float:
    """Lucene's inverse document frequency (``BM25Similarity.idf``): never negative."""
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


class FieldStats(BaseModel):
    """A field, as Lucene counts: documents without a term in it do not exist for it.

    Attributes:
        documents: documents with at least one term in the field.
        tokens: terms of all documents in the field, with repetition.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    documents: int = 0
    tokens: int = 0

    @property
    def mean(self) -> float:
        """Mean length, in terms; 1 for an empty field, where it does not matter."""
        return self.tokens / self.documents if self.documents else 1.0


class SegmentStats(BaseModel):
    """A part that Tantivy wrote at once, as Tantivy counts; see :mod:`beirnl.retrieval.bm25.segment`.

    Attributes:
        documents: all that have a term in any field, and the ballast.
        tokens: their terms by field, with repetition.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    documents: int
    tokens: dict[str, int]

    def mean(self, field: str) -> float:
        """Mean length of a field, in terms; 0 for an empty one."""
        return self.tokens[field] / self.documents if self.documents else 0.0


class IndexStats(BaseModel):
    """Statistics of an index or of a unit, and what it was made with; the file ``stats.json``.

    Attributes:
        first_row: number of its first document among those of the whole index.
        documents: number of documents, those without any term included.
        fields: statistics by field name.
        segments: those of Tantivy, in the order of their documents.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    profile: str
    analyzer: str
    analyzer_version: int
    first_row: int
    documents: int
    fields: dict[str, FieldStats]
    segments: tuple[SegmentStats, ...] = ()

    @property
    def made_with(self) -> str:
        """What must be equal for two indexes to be compatible, in words."""
        return (
            f"format {self.format}, profile {self.profile}, analyzer {self.analyzer} {self.analyzer_version}"
        )

    def counted(self, field: str, spec: Bm25Spec) -> FieldStats:
        """Statistics of a field as a search counts them: those of Lucene, or with all documents."""
        own = self.fields[field]
        return own if spec.statistics == "lucene" else FieldStats(documents=self.documents, tokens=own.tokens)

    def save(self, folder: Path) -> None:
        """Writes ``stats.json`` into the folder."""
        folder.joinpath("stats.json").write_text(self.model_dump_json(indent=1), "utf-8")


def total(parts: Sequence[Mapping[str, FieldStats]]) -> dict[str, FieldStats]:
    """Statistics by field of all parts together."""
    return {
        name: FieldStats(
            documents=sum(part[name].documents for part in parts),
            tokens=sum(part[name].tokens for part in parts),
        )
        for name in parts[0]
    }


def empty(spec: Bm25Spec, first_row: int = 0) -> IndexStats:
    """Statistics of an index without documents, made with this spec and the analyzers of this version.

    Raises:
        ConfigError: the spec names an analyzer that does not exist.
    """
    return IndexStats(
        profile=spec.profile,
        analyzer=spec.analyzer,
        analyzer_version=analyzer(spec.analyzer).version,
        first_row=first_row,
        documents=0,
        fields=dict.fromkeys(FIELDS[spec.profile], FieldStats()),
    )


def load(folder: Path, spec: Bm25Spec) -> IndexStats:
    """Statistics of the index or unit in a folder.

    Raises:
        StoreError: there is none, it is damaged, or it was made for another profile, with another analyzer,
            or by another version.
    """
    try:
        stats = IndexStats.model_validate_json(folder.joinpath("stats.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise StoreError(
            "no BM25 index is here, or not a whole one", where=folder, remedy="build it again"
        ) from error
    wanted = empty(spec)
    if stats.made_with != wanted.made_with:
        raise StoreError(
            f"the index was made with {stats.made_with}, and {wanted.made_with} is asked for",
            where=folder,
            remedy="rebuild it",
        )
    return stats
