"""The last stage: measures of a run, and the run itself in TREC form."""

import polars as pl

from beirnl.schema import SCORES
from beirnl.specs import Spec
from beirnl.stages.base import Unit


class EvaluateSpec(Spec):
    """Measures by their names in ir_measures, and the tag of the run file."""

    measures: tuple[str, ...]
    tag: str


def evaluate(unit: Unit) -> None:
    """Two parts: per-query values, and the run as a compressed TREC file."""
    from beirnl.evaluation.measures import evaluate as measure
    from beirnl.evaluation.runs.trec import write_run

    spec = unit.task.spec
    assert isinstance(spec, EvaluateSpec)
    run = unit.inputs["run"].table()
    frame = measure(run, unit.inputs["qrels"].table(), spec.measures)
    assert isinstance(frame, pl.DataFrame)
    unit.out.rows_in = run.num_rows
    unit.out.write(frame.select(SCORES.names).to_arrow(), SCORES)
    write_run(unit.out.open(suffix=".trec.gz").path, run, spec.tag)
