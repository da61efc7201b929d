"""Whether sets hold what their source says: figures on another revision are not comparable."""

from collections.abc import Iterator, Sequence

import pyarrow.compute as pc

from beirnl import registry
from beirnl.graph import Evaluation
from beirnl.pipeline import Pipeline
from beirnl.registry import Counts, DatasetEntry


def unexpected_counts(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """One line for each set of the registry, or part of one, that holds other numbers than its entry states.

    A dataset of which an experiment evaluates another split than the entry's is not compared.
    """
    splits = {config.name: config.split for config in pipeline.experiment.dataset}
    first: dict[tuple[str, str], Evaluation] = {}
    for evaluation in evaluations:
        first.setdefault((evaluation.dataset, evaluation.part), evaluation)
    for evaluation in first.values():
        entry = registry.dataset(evaluation.dataset)
        if entry is not None and splits.get(evaluation.dataset) in (None, entry.split):
            part = registry.part_of(entry, evaluation.part) if evaluation.part else entry
            if part is not None and part.counts:
                yield from _differences(part, part.counts, _counted(pipeline, evaluation))


def _counted(pipeline: Pipeline, evaluation: Evaluation) -> Counts:
    corpus, queries, qrels = (
        node.artifact(pipeline.workspace)
        for node in (evaluation.corpus, evaluation.queries, evaluation.qrels)
    )
    relevant = pc.sum(pc.greater(qrels.table()["relevance"], 0)).as_py() or 0
    return Counts(queries=queries.rows, documents=corpus.rows, relevant=relevant)


def _differences(entry: DatasetEntry, stated: Counts, found: Counts) -> Iterator[str]:
    if unlike := stated.unlike(found):
        source = f" as {entry.pinned}" if entry.pinned else ""
        yield f"{entry.name}: holds {unlike}{source}: published figures are of another set"
