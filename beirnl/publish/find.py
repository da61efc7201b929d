"""The translated sets of an experiment: which artifacts belong together, and how they were made."""

from collections.abc import Sequence
from dataclasses import dataclass

from beirnl import graph
from beirnl.errors import ConfigError, PrerequisiteError, nearest
from beirnl.pipeline import Pipeline
from beirnl.specs import RepairSpec, Rung, TranslationSpec
from beirnl.store.artifacts import Artifact


@dataclass(frozen=True)
class Side:
    """The documents or the queries of a set: in the source language, translated, and what was asked.

    Attributes:
        source: rows as imported (schema ``CORPUS``), parts in any order.
        translated: the same rows translated (schema ``TRANSLATED``).
        spec: prompt, engine and model of the first attempt.
        rungs: of the repair ladder, in their order.
    """

    source: Artifact
    translated: Artifact
    spec: TranslationSpec
    rungs: tuple[Rung, ...] = ()


@dataclass(frozen=True)
class Translation:
    """A retrieval set (or a part of one) in translation.

    Attributes:
        dataset, part: its name, and that of the part, empty where there are none.
        split: name of the qrels.
        qrels: judgements of the source, which hold for the translation too (schema ``QRELS``).
    """

    dataset: str
    part: str
    split: str
    documents: Side
    queries: Side
    qrels: Artifact

    @property
    def language(self) -> str:
        """The language it is in now (ISO 639-1)."""
        return self.documents.spec.target_language


def translations(pipeline: Pipeline, only: Sequence[str] = ()) -> list[Translation]:
    """The translated sets of an experiment, in order of the experiment file.

    A set is the judgements of a source, with what its corpus and its queries became in the end. Parallel
    texts have no judgements, and what was translated back is no set of its own: both are left out.

    Args:
        pipeline: the experiment.
        only: names of datasets; empty: all.

    Raises:
        ConfigError: the experiment translates nothing, or no dataset of such a name.
        PrerequisiteError: a translation is not finished.
    """
    judged = {
        (node.inputs["corpus"].key, node.inputs["queries"].key): node
        for node in pipeline.graph.nodes.values()
        if node.stage == "import-qrels"
    }
    sides: dict[tuple[str, str, str], dict[str, graph.Translation]] = {}
    for one in pipeline.graph.translations:
        if one.is_of_a_dataset:
            sides.setdefault((one.dataset, one.part, one.language), {})[one.kind] = one
    _refuse_unknown(pipeline, only, list(dict.fromkeys(dataset for dataset, *_ in sides)))
    done = pipeline.finished()
    found = []
    for (dataset, part, _), kinds in sides.items():
        if only and dataset not in only:
            continue
        documents, queries = kinds["document"], kinds["query"]
        qrels = judged[documents.source.key, queries.source.key]
        _refuse_unfinished(pipeline, done, (qrels, documents.final, queries.final))
        split: str = qrels.spec.split  # type: ignore[attr-defined]
        judgements = qrels.artifact(pipeline.workspace)
        sets = (_side(pipeline, documents), _side(pipeline, queries))
        found.append(Translation(dataset, part, split, *sets, judgements))
    return found


def _side(pipeline: Pipeline, one: graph.Translation) -> Side:
    assert isinstance(one.answers.spec, TranslationSpec)
    source, final = one.source.artifact(pipeline.workspace), one.final.artifact(pipeline.workspace)
    rungs: tuple[Rung, ...] = ()
    node = one.final
    while isinstance(node.spec, RepairSpec):  # one stage for each engine of the ladder
        rungs, node = node.spec.rungs + rungs, node.inputs["rows"]
    return Side(source, final, one.answers.spec, rungs)


def _refuse_unknown(pipeline: Pipeline, only: Sequence[str], names: list[str]) -> None:
    file = pipeline.experiment.file
    if not names:
        remedy = "add a [[dataset]] and a [translation] of it ([[parallel]] texts only measure)"
        raise ConfigError("translates no dataset", where=file, remedy=remedy)
    for name in only:
        if name not in names:
            raise ConfigError(
                f"translates no dataset called {name!r}", where=file, remedy=nearest(name, names)
            )


def _refuse_unfinished(pipeline: Pipeline, done: set[str], nodes: Sequence[graph.Node]) -> None:
    for node in nodes:
        if node.key not in done:
            raise PrerequisiteError(
                f"{node.stage} {node.label} is not finished",
                where=pipeline.experiment.file,
                remedy=f"run `beirnl run {pipeline.experiment.file}`, then publish",
            )
