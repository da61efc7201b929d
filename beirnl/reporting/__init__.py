"""What an experiment has found so far, gathered from its artifacts into an evaluation report."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from beirnl.evaluation.records import Report, Timing
from beirnl.evaluation.uncertainty import Resampling, Uncertainty, stated
from beirnl.graph import Node
from beirnl.pipeline import Pipeline
from beirnl.reporting import rag, scores, sizes, translations, warned

__all__ = ["gather"]


def gather(pipeline: Pipeline) -> Report:
    """The report of what is finished; what is pending is a warning."""
    states = pipeline.plan()
    finished = {status.node.key for status in states if status.state == "done"}
    evaluations = [e for e in pipeline.graph.evaluations if e.node.key in finished]
    nodes = [node for node in pipeline.graph.nodes.values() if node.key in finished]
    told = warned.warnings(pipeline, finished, evaluations)
    warnings = [warning.line for warning in told]
    if pipeline.graph.corpora:
        answers = rag.answered(pipeline, finished, _resampling(pipeline))
        notes = [*answers.notes, *pipeline.experiment.notes]
        lines = [*warnings, *answers.warnings]
        return replace(answers, notes=notes, warnings=lines, timings=list(_timings(pipeline, nodes)))
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
        concerns=warned.concerns(told, back),
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


def _timings(pipeline: Pipeline, nodes: Sequence[Node]) -> Iterator[Timing]:
    """Seconds and units by stage and dataset."""
    work: dict[tuple[str, str], list[float]] = {}
    for node in nodes:
        seconds = [receipt.seconds for receipt in node.artifact(pipeline.workspace).receipts()]
        work.setdefault((node.stage, node.label), []).extend(seconds)
    for (stage, label), seconds in work.items():
        yield Timing(stage, label, sum(seconds), len(seconds))
