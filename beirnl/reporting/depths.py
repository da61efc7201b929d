"""How deep runs go, and what is compared where they differ in that.

A column (a dataset in a language) is one comparison: its best is marked, and the family of tests is all of
its systems against that. So all of them are seen as deep as the shortest, in measures that look deeper; the
report warns, and the conditions of a value say where its run was cut. Other columns do not matter.
"""

from collections.abc import Sequence
from typing import Any

from beirnl.evaluation.measures import parse
from beirnl.graph import Evaluation
from beirnl.pipeline import Pipeline

#: A dataset, one of its parts (empty: it has none), and a language.
Place = tuple[str, str, str]


def place(evaluation: Evaluation) -> Place:
    """What is searched."""
    return evaluation.dataset, evaluation.part, evaluation.language


def depth(pipeline: Pipeline, evaluation: Evaluation) -> int:
    """Hits that a query can have: as the system says; of a run made elsewhere the most that one has."""
    run = evaluation.node.inputs["run"]
    if run.stage != "import-run":
        return evaluation.system.depth
    (receipt,) = run.artifact(pipeline.workspace).manifest.receipts
    return receipt.counts.get("depth", 0) or evaluation.system.depth


def least(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> dict[Place, int]:
    """The least depth of the systems on each dataset, part and language: so deep all are compared."""
    found: dict[Place, int] = {}
    for one in evaluations:
        deep = depth(pipeline, one)
        found[place(one)] = min(deep, found.get(place(one), deep))
    return found


def deeper(pipeline: Pipeline, evaluation: Evaluation, shortest: int) -> list[str]:
    """Measures that look deeper than others have gone, if this system has gone deeper than they."""
    spec: Any = evaluation.node.spec
    if depth(pipeline, evaluation) <= shortest:
        return []
    return [one.name for one in parse(spec.measures) if one.cutoff is None or one.cutoff > shortest]
