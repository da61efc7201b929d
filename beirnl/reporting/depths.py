"""How deep runs go, and what is compared where an imported run is shallower than the others."""

from collections.abc import Mapping, Sequence

import polars as pl

from beirnl.evaluation.comparing import cut_to_common_depth
from beirnl.evaluation.measures import evaluate, parse
from beirnl.graph import Evaluation
from beirnl.pipeline import Pipeline

#: Per-query values by key of the evaluation that they stand for.
Cut = Mapping[str, pl.DataFrame]


def depth(pipeline: Pipeline, evaluation: Evaluation) -> int:
    """Hits that a query can have: as the system says, of an imported run as its file has."""
    run = evaluation.node.inputs["run"]
    if run.stage != "import-run":
        return evaluation.system.depth
    (receipt,) = run.artifact(pipeline.workspace).manifest.receipts
    return receipt.counts.get("depth", 0)


def cut(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> tuple[Cut, list[str]]:
    """Values of runs that were cut to the depth of the shallowest, beside an imported run.

    Systems of one experiment may differ in depth as their tables say. A run that was made elsewhere is
    compared fairly: where a measure looks deeper than the shallowest run of its column goes, all are cut.

    Returns:
        The values per query (columns query_id, measure, value) of the evaluations that were cut, by the key
        of their node, and warnings.
    """
    columns: dict[tuple[str, str, str], list[Evaluation]] = {}
    for evaluation in evaluations:
        place = (evaluation.dataset, evaluation.part, evaluation.language)
        columns.setdefault(place, []).append(evaluation)
    values: dict[str, pl.DataFrame] = {}
    warnings: list[str] = []
    for place, members in columns.items():
        if _differ(pipeline, members):
            found, told = _cut(pipeline, members)
            values |= found
            warnings += [f"{'/'.join(filter(None, place))}: {line}" for line in told]
    return values, warnings


def _differ(pipeline: Pipeline, members: Sequence[Evaluation]) -> bool:
    """Whether an imported run stands among others of another depth, and a measure sees the difference."""
    imported = any(member.node.inputs["run"].stage == "import-run" for member in members)
    depths = {depth(pipeline, member) for member in members}
    names = {name for member in members for name in member.node.spec.measures}  # type: ignore[attr-defined]
    deepest = max((measure.cutoff or max(depths) for measure in parse(names)), default=0)
    return imported and len(depths) > 1 and deepest > min(depths)


def _cut(pipeline: Pipeline, members: Sequence[Evaluation]) -> tuple[dict[str, pl.DataFrame], list[str]]:
    workspace = pipeline.workspace
    runs = {e.system.name: e.node.inputs["run"].artifact(workspace).table() for e in members}
    shorter, warnings = cut_to_common_depth(runs)
    values = {}
    for e in members:
        run = shorter[e.system.name]
        if run.num_rows < runs[e.system.name].num_rows:
            measures = e.node.spec.measures  # type: ignore[attr-defined]
            values[e.node.key] = evaluate(run, e.qrels.artifact(workspace).table(), measures)
    return values, warnings
