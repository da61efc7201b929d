"""How translations went: statuses before and after repair, examples, and scores against references."""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import polars as pl

from beirnl.evaluation.records import Example, Translations
from beirnl.evaluation.translations.back_translation import (
    BACK_TRANSLATED,
    ORIGINAL,
    VERSIONS,
    BackTranslation,
    compare,
)
from beirnl.evaluation.translations.quality import Quality, of_rows
from beirnl.graph import Node, Translation, back_version
from beirnl.pipeline import Pipeline
from beirnl.store.artifacts import Artifact

_EXAMPLES = 3
_RUNG = "repaired: "


def outcomes(pipeline: Pipeline, finished: Collection[str]) -> Iterator[tuple[str, Translations]]:
    """Rows by status for each translation that is finished, by its label.

    Args:
        pipeline: the experiment.
        finished: keys of finished nodes.
    """
    for translation in pipeline.graph.translations:
        if translation.final.key in finished:
            before, _ = _counts(_artifact(pipeline, translation.checked))
            after, rungs = _counts(_artifact(pipeline, translation.final))
            examples = list(_examples(pipeline, translation))
            yield translation.label, Translations(after, examples, before, rungs)


def qualities(pipeline: Pipeline, finished: Collection[str]) -> Iterator[tuple[str, Quality]]:
    """Scores against references, by the translation's label."""
    for translation in pipeline.graph.translations:
        if translation.quality and translation.quality.key in finished:
            rows = _artifact(pipeline, translation.quality).read(0).to_pylist()
            yield translation.label, of_rows(rows)


def back_translation(pipeline: Pipeline, values: pl.DataFrame | None) -> BackTranslation | None:
    """What a translation there and back changes (BEIR-NL, section 5.3); None where nothing is to compare.

    Args:
        pipeline: the experiment.
        values: per query, as :func:`beirnl.reporting.scores.scores` gives them.
    """
    translation = pipeline.experiment.translation
    if values is None or translation is None or not translation.back:
        return None
    versions = {
        name: version
        for dataset in pipeline.graph.source_languages.values()
        for name, version in ((dataset, ORIGINAL), (back_version(dataset, translation.to), BACK_TRANSLATED))
    }
    frame = values.filter(pl.col("language").is_in(list(versions))).with_columns(
        pl.col("language").replace_strict(versions).alias("version")
    )
    measure = str(values["measure"][0])
    compared = frame.filter(pl.col("measure") == measure)
    if compared["version"].n_unique() < len(VERSIONS):
        return None
    return compare(compared, measure)


def _artifact(pipeline: Pipeline, node: Node) -> Artifact:
    return node.artifact(pipeline.workspace)


def _counts(artifact: Artifact) -> tuple[dict[str, int], dict[str, int]]:
    """Rows by their gravest status, and by the rung that repaired them."""
    statuses: Counter[str] = Counter()
    rungs: Counter[str] = Counter()
    usage = ("asked", "prompt tokens", "completion tokens")
    for name, number in (item for receipt in artifact.receipts() for item in receipt.counts.items()):
        if name.startswith(_RUNG):
            rungs[name.removeprefix(_RUNG)] += number
        elif name not in usage:
            statuses[_first_problem(name)] += number
    return dict(statuses.most_common()), dict(rungs.most_common())


def _examples(pipeline: Pipeline, translation: Translation) -> Iterator[Example]:
    """The first rows of each status: source, first answer, and what was kept, side by side."""
    found: Counter[str] = Counter()
    examples = []
    nodes = (translation.source, translation.answers, translation.final)
    for tables in zip(*(_artifact(pipeline, node).tables() for node in nodes), strict=True):
        for place, status in enumerate(tables[-1]["status"].to_pylist()):
            if found[_first_problem(status)] < _EXAMPLES:
                found[_first_problem(status)] += 1
                before, said, row = (table.slice(place, 1).to_pylist()[0] for table in tables)
                examples.append(Example(status, _shown(before), _answered(said), _shown(row)))
    yield from sorted(examples, key=lambda example: example.status)


def _shown(row: dict[str, Any]) -> str:
    return " | ".join(filter(None, (row["title"], row["text"])))


def _answered(row: dict[str, Any]) -> str:
    """What the model said, as it came: the answers to all pieces of a row, or why there is none."""
    said = " ".join(row["answers"]).strip()
    return said or (f"({row['error']})" if row["error"] else "")


def _first_problem(status: str) -> str:
    """The status that a row is counted under: of several failed checks the first, which is the gravest."""
    return status.partition(",")[0]
