"""What an experiment has found so far, gathered from its artifacts into an evaluation report."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from beirnl.evaluation.measures import parse
from beirnl.evaluation.records import Report, Timing
from beirnl.evaluation.uncertainty import Resampling, Uncertainty, stated
from beirnl.graph import Evaluation, Node
from beirnl.graph.groups import set_aside
from beirnl.pipeline import Pipeline
from beirnl.reporting import counts, depths, rag, scores, sizes, translations

__all__ = ["gather"]

#: Counts of receipts that a report tells, and in which words.
_COUNTED = {
    "queries without hits": "queries have no hits and score 0",
    "failed": "prompts were given no answer and count as invalid",
    "not made": "requests for questions were given no answer; the next run asks them again",
    "truncated": "texts are longer than the model reads, and were cut",
    "cut pairs": "pairs are longer than the model reads, and were cut",
}


def gather(pipeline: Pipeline) -> Report:
    """The report of what is finished; what is pending is a warning."""
    states = pipeline.plan()
    finished = {status.node.key for status in states if status.state == "done"}
    evaluations = [e for e in pipeline.graph.evaluations if e.node.key in finished]
    pending = len(states) - len(finished)
    warnings = (
        [f"{pending} of {len(states)} artifacts are not finished; run the experiment"] if pending else []
    )
    nodes = [node for node in pipeline.graph.nodes.values() if node.key in finished]
    unfinished = [node for node in pipeline.graph.nodes.values() if node.key not in finished]
    warnings += set_aside(unfinished, pipeline.workspace)
    warnings += [line for node in nodes for line in _warned(pipeline, node)]
    warnings += [line for node in nodes for line in _told(pipeline, node)]
    if pipeline.graph.corpora:
        told = rag.answered(pipeline, finished, _resampling(pipeline))
        notes = [*told.notes, *pipeline.experiment.notes]
        lines = [*warnings, *told.warnings]
        return replace(told, notes=notes, warnings=lines, timings=list(_timings(pipeline, nodes)))
    warnings += _cut_short(pipeline, evaluations) + _missing_parts(pipeline, evaluations)
    warnings += counts.unexpected_counts(pipeline, evaluations)
    values = scores.scores(pipeline, evaluations)
    back = translations.back_translation(pipeline, values)
    uncertainty = _uncertainty(pipeline, values)
    records = list(scores.records(pipeline, evaluations))
    return Report(
        name=pipeline.experiment.name,
        records=stated(records, uncertainty) if uncertainty else records,
        translations=dict(translations.outcomes(pipeline, finished)),
        quality=dict(translations.qualities(pipeline, finished)),
        back_translation=back,
        warnings=[*warnings, *(back.warnings if back else ())],
        runs=[scores.run_file(pipeline, evaluation) for evaluation in evaluations],
        scores=values,
        notes=list(pipeline.experiment.notes),
        timings=list(_timings(pipeline, nodes)),
        datasets=list(sizes.datasets(pipeline, finished)),
        speeds=list(sizes.speeds(pipeline, evaluations)),
        uncertainty=uncertainty,
    )


def _uncertainty(pipeline: Pipeline, values: pl.DataFrame | None) -> Uncertainty | None:
    return None if values is None else Uncertainty(values, _resampling(pipeline))


def _resampling(pipeline: Pipeline) -> Resampling:
    settings = pipeline.experiment.evaluation
    return Resampling(settings.seed, settings.bootstrap, settings.randomisation, settings.alpha)


def _warned(pipeline: Pipeline, node: Node) -> Iterator[str]:
    """The warnings that the receipts of a node hold."""
    for receipt in node.artifact(pipeline.workspace).receipts():
        yield from (f"{node.label}: {line}" for line in receipt.warnings)


def _told(pipeline: Pipeline, node: Node) -> Iterator[str]:
    """What the receipts of a node have counted and a reader must know."""
    manifest = node.artifact(pipeline.workspace).manifest
    receipts = [*manifest.receipts, *([manifest.reduced] if manifest.reduced else [])]
    for name, what in _COUNTED.items():
        number = sum(receipt.counts.get(name, 0) for receipt in receipts)
        if number:
            yield f"{node.label}: {number:,} {what} ({node.purpose})"


def _cut_short(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> list[str]:
    """Measures that look deeper than a system's run goes, and runs that are seen only as deep as another."""
    lines: dict[str, None] = {}
    least = depths.least(pipeline, evaluations)
    for evaluation in evaluations:
        name, depth = evaluation.system.name, depths.depth(pipeline, evaluation)
        spec: Any = evaluation.node.spec
        for measure in parse(spec.measures):
            if measure.cutoff and measure.cutoff > depth:
                more = f"; raise depth to {measure.cutoff}" if depth == evaluation.system.depth else ""
                lines[f"{measure.name} of {name} sees {depth} hits a query{more}"] = None
        shortest = least[depths.place(evaluation)]
        for cut in depths.deeper(pipeline, evaluation, shortest):
            said = f"{cut} of {name} sees {shortest} of its {depth} hits a query on {evaluation.dataset}"
            lines[f"{said}, as many as the shortest run there has"] = None
    return list(lines)


def _missing_parts(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> list[str]:
    """Parts of a dataset that are expected and not there."""
    lines = []
    for dataset, expected in pipeline.graph.expected_parts.items():
        found = {evaluation.part for evaluation in evaluations if evaluation.dataset == dataset}
        missing = [part for part in expected if part not in found]
        if missing and found:
            lines.append(f"{dataset}: incomplete without {', '.join(missing)}")
    return lines


def _timings(pipeline: Pipeline, nodes: Sequence[Node]) -> Iterator[Timing]:
    """Seconds and units by stage and dataset."""
    work: dict[tuple[str, str], list[float]] = {}
    for node in nodes:
        seconds = [receipt.seconds for receipt in node.artifact(pipeline.workspace).receipts()]
        work.setdefault((node.stage, node.label), []).extend(seconds)
    for (stage, label), seconds in work.items():
        yield Timing(stage, label, sum(seconds), len(seconds))
