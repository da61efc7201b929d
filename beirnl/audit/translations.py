"""Which finished artifacts of an experiment hold its translations, and which hold their sources."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beirnl.audit.sheet import Kind
from beirnl.store.artifacts import Artifact

if TYPE_CHECKING:
    from beirnl.graph import Translation
    from beirnl.pipeline import Pipeline


@dataclass(frozen=True)
class TranslatedSet:
    """Translated documents or queries of a dataset, or of a part of one, beside their source.

    Attributes:
        dataset: its name.
        part: the part (a forum of CQADupStack), empty where the dataset has none.
        kind: what the rows are.
        language, source_language: ISO 639-1 codes.
        rows: artifact of TRANSLATED.
        source: artifact of CORPUS or QUERIES, with the same shards.
    """

    dataset: str
    part: str
    kind: Kind
    language: str
    source_language: str
    rows: Artifact
    source: Artifact


def translated(pipeline: "Pipeline") -> Iterator[TranslatedSet]:
    """The finished translations of an experiment, in the order of its datasets."""
    finished = pipeline.finished()
    for translation in _of_datasets(pipeline):
        if translation.final.key in finished:
            spec: Any = translation.answers.spec
            yield TranslatedSet(
                dataset=translation.dataset,
                part=translation.part,
                kind=translation.kind,
                language=translation.language,
                source_language=spec.source_language,
                rows=translation.final.artifact(pipeline.workspace),
                source=translation.source.artifact(pipeline.workspace),
            )


def unfinished(pipeline: "Pipeline") -> list[str]:
    """Labels (``dataset/part/language/kind``) of the translations that are not finished."""
    finished = pipeline.finished()
    return [one.label for one in _of_datasets(pipeline) if one.final.key not in finished]


def _of_datasets(pipeline: "Pipeline") -> "list[Translation]":
    return [one for one in pipeline.graph.translations if one.is_of_a_dataset]
