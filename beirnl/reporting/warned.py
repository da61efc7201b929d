"""What a reader must know before trusting a number of a report, and of which numbers that is."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from beirnl.evaluation.measures import parse
from beirnl.evaluation.records import Subject
from beirnl.evaluation.translations.back_translation import BackTranslation
from beirnl.graph import Evaluation, Node
from beirnl.graph.groups import set_aside
from beirnl.pipeline import Pipeline
from beirnl.reporting import counts, depths
from beirnl.wording import counted

#: Counts of receipts that a report tells, and in which words.
_COUNTED = {
    "queries without hits": ("query has no hits and scores 0", "queries have no hits and score 0"),
    "failed": (
        "prompt was given no answer and counts as invalid",
        "prompts were given no answer and count as invalid",
    ),
    "not made": (
        "request for questions was given no answer; the next run asks it again",
        "requests for questions were given no answer; the next run asks them again",
    ),
    "truncated": (
        "text is longer than the model reads, and was cut",
        "texts are longer than the model reads, and were cut",
    ),
    "cut pairs": (
        "pair is longer than the model reads, and was cut",
        "pairs are longer than the model reads, and were cut",
    ),
}


class Warned(NamedTuple):
    """A warning.

    Attributes:
        line: as it is shown.
        subjects: whose scores it is about.
    """

    line: str
    subjects: Collection[Subject]


def warnings(
    pipeline: Pipeline, finished: Collection[str], evaluations: Sequence[Evaluation]
) -> list[Warned]:
    """The warnings of an experiment, in the order in which they are shown.

    Args:
        pipeline: of the experiment.
        finished: keys of the nodes that are done.
        evaluations: those that are done.
    """
    standing = _standing(pipeline)
    found = list(_unfinished(pipeline, finished, standing))
    nodes = [node for node in pipeline.graph.nodes.values() if node.key in finished]
    for tell in (_receipts, _counts):
        found += [Warned(line, standing[node.key]) for node in nodes for line in tell(pipeline, node)]
    if not pipeline.graph.corpora:
        found += [*_cut_short(pipeline, evaluations), *_of_datasets(pipeline, evaluations)]
    return found


def concerns(warnings: Iterable[Warned], back: BackTranslation | None) -> dict[str, set[Subject]]:
    """Whose scores each line is about; those on back translation are about differences on its datasets."""
    subjects = {("", dataset, "") for dataset in back.datasets} if back else set()
    found = {line: set(subjects) for line in (back.warnings if back else ())}
    for warning in warnings:
        found.setdefault(warning.line, set()).update(warning.subjects)
    return found


def _subject(evaluation: Evaluation) -> Subject:
    return evaluation.system.name, evaluation.dataset, evaluation.language


def _standing(pipeline: Pipeline) -> dict[str, set[Subject]]:
    """By the key of a node the scores that stand on it."""
    found: dict[str, set[Subject]] = {key: set() for key in _keys(pipeline.graph.nodes.values())}
    for evaluation in pipeline.graph.evaluations:
        for key in _keys(pipeline.needed([evaluation.node])):
            found.setdefault(key, set()).add(_subject(evaluation))
    return found


def _keys(nodes: Iterable[Node]) -> list[str]:
    return [node.key for node in nodes]


def _unfinished(
    pipeline: Pipeline, finished: Collection[str], standing: dict[str, set[Subject]]
) -> Iterator[Warned]:
    nodes = list(pipeline.graph.nodes.values())
    pending = [node for node in nodes if node.key not in finished]
    if pending:
        said = counted(len(pending), "artifact is", "artifacts are", of=len(nodes))
        subjects = set[Subject]().union(*(standing[node.key] for node in pending))
        yield Warned(f"{said} not finished; run the experiment", subjects)
    for node in pending:
        yield from (Warned(line, standing[node.key]) for line in set_aside([node], pipeline.workspace))


def _receipts(pipeline: Pipeline, node: Node) -> Iterator[str]:
    """The warnings that the receipts of a node hold."""
    for receipt in node.artifact(pipeline.workspace).receipts():
        yield from (f"{node.label}: {line}" for line in receipt.warnings)


def _counts(pipeline: Pipeline, node: Node) -> Iterator[str]:
    """What the receipts of a node have counted and a reader must know."""
    manifest = node.artifact(pipeline.workspace).manifest
    receipts = [*manifest.receipts, *([manifest.reduced] if manifest.reduced else [])]
    for name, words in _COUNTED.items():
        number = sum(receipt.counts.get(name, 0) for receipt in receipts)
        if number:
            yield f"{node.label}: {counted(number, *words)} ({node.purpose})"


def _cut_short(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> list[Warned]:
    """Measures that look deeper than a system's run goes, and runs that are seen only as deep as another."""
    lines: dict[str, set[Subject]] = {}
    least = depths.least(pipeline, evaluations)
    for evaluation in evaluations:
        for line in _too_shallow(pipeline, evaluation, least[depths.place(evaluation)]):
            lines.setdefault(line, set()).add(_subject(evaluation))
    return [Warned(line, subjects) for line, subjects in lines.items()]


def _too_shallow(pipeline: Pipeline, evaluation: Evaluation, shortest: int) -> Iterator[str]:
    name, depth = evaluation.system.name, depths.depth(pipeline, evaluation)
    spec: Any = evaluation.node.spec
    for measure in parse(spec.measures):
        if measure.cutoff and measure.cutoff > depth:
            more = f"; raise depth to {measure.cutoff}" if depth == evaluation.system.depth else ""
            yield f"{measure.name} of {name} sees {counted(depth, 'hit')} a query{more}"
    for cut in depths.deeper(pipeline, evaluation, shortest):
        yield (
            f"{cut} of {name} sees {shortest} of its {counted(depth, 'hit')} a query on "
            f"{evaluation.dataset}, as many as the shortest run there has"
        )


def _of_datasets(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> Iterator[Warned]:
    """Parts that are expected and not there, then sets that hold other numbers than their entries state."""
    by_dataset: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        by_dataset.setdefault(evaluation.dataset, []).append(evaluation)
    for tell in (_missing_parts, counts.unexpected_counts):
        for group in by_dataset.values():
            yield from (Warned(line, {*map(_subject, group)}) for line in tell(pipeline, group))


def _missing_parts(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Parts of a dataset that are expected and not there."""
    dataset, found = evaluations[0].dataset, {evaluation.part for evaluation in evaluations}
    missing = [part for part in pipeline.graph.expected_parts.get(dataset, ()) if part not in found]
    if missing:
        yield f"{dataset}: incomplete without {', '.join(missing)}"
