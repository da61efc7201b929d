"""How large the datasets of an experiment are, and how fast its systems were, from manifests and receipts."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from beirnl import registry
from beirnl.evaluation.paper.identity import original
from beirnl.evaluation.records import DatasetSize, Speed
from beirnl.graph import Evaluation, Node
from beirnl.pipeline import Pipeline


def datasets(pipeline: Pipeline, finished: Collection[str]) -> Iterator[DatasetSize]:
    """Sizes of the datasets that are imported (and translated, where they are), each once per language.

    Args:
        pipeline: the experiment.
        finished: keys of finished nodes.
    """
    stated = {dataset.name: dataset.domain for dataset in pipeline.experiment.dataset}
    found: dict[tuple[str, str], dict[str, Evaluation]] = {}
    for evaluation in pipeline.graph.evaluations:
        if {evaluation.corpus.key, evaluation.queries.key, evaluation.qrels.key} <= set(finished):
            parts = found.setdefault((evaluation.dataset, evaluation.language), {})
            parts.setdefault(evaluation.part, evaluation)
    for (dataset, language), parts in found.items():
        counts = [_counts(pipeline, evaluation) for evaluation in parts.values()]
        entry = registry.dataset(original(dataset))
        domain = stated.get(dataset) or (entry.domain if entry else "general")
        yield DatasetSize(dataset, language, domain, *map(sum, zip(*counts, strict=True)))


def _counts(pipeline: Pipeline, evaluation: Evaluation) -> tuple[int, int, int]:
    """Queries, documents and relevant judgements of a dataset or a part of one."""
    corpus, queries = (node.artifact(pipeline.workspace) for node in (evaluation.corpus, evaluation.queries))
    labels = evaluation.qrels.artifact(pipeline.workspace).table()["relevance"]
    relevant = pc.sum(pc.greater(labels, 0).cast(pa.int64())).as_py() or 0
    return queries.rows, corpus.rows, int(relevant)


def speeds(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> Iterator[Speed]:
    """Documents and queries per second and worker for every system on every dataset in a language.

    A run made elsewhere has no speed of its own (reading a file is none), nor has what stands on one.
    """
    evaluations = [evaluation for evaluation in evaluations if not _made_elsewhere(evaluation)]
    for (dataset, language, system), group in groupby(sorted(evaluations, key=_identity), key=_identity):
        sums = [0.0] * 4
        for evaluation in group:
            documents, queries = _seconds(pipeline, evaluation)
            rows = (
                node.artifact(pipeline.workspace).rows for node in (evaluation.corpus, evaluation.queries)
            )
            sums = [total + one for total, one in zip(sums, (*rows, documents, queries), strict=True)]
        yield Speed(dataset, language, system, _rate(sums[0], sums[2]), _rate(sums[1], sums[3]))


def _made_elsewhere(evaluation: Evaluation) -> bool:
    return any(node.stage == "import-run" for node in _ancestors(evaluation.node.inputs["run"]).values())


def _identity(evaluation: Evaluation) -> tuple[str, str, str]:
    return evaluation.dataset, evaluation.language, evaluation.system.name


def _rate(rows: float, seconds: float) -> float | None:
    return rows / seconds if seconds else None


def _seconds(pipeline: Pipeline, evaluation: Evaluation) -> tuple[float, float]:
    """Seconds spent on the documents before any query, and on the queries, to make a run."""
    texts = {**_ancestors(evaluation.corpus), **_ancestors(evaluation.queries)}
    seconds = [0.0, 0.0]
    for key, node in _ancestors(evaluation.node.inputs["run"]).items():
        if key not in texts:
            manifest = node.artifact(pipeline.workspace).manifest
            receipts = [*manifest.receipts, *([manifest.reduced] if manifest.reduced else [])]
            side = evaluation.queries.key in _ancestors(node)
            seconds[side] += sum(receipt.seconds for receipt in receipts)
    return seconds[0], seconds[1]


def _ancestors(node: Node) -> dict[str, Node]:
    """A node and all that it is made of, by key."""
    found: dict[str, Node] = {}
    left = [node]
    while left:
        one = left.pop()
        if one.key not in found:
            found[one.key] = one
            left += one.inputs.values()
    return found
