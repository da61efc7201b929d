"""Fusion of what several systems found."""

from collections.abc import Sequence

import pyarrow as pa

from beirnl.retrieval.fusion import Method
from beirnl.schema import RUN
from beirnl.stages.base import Unit
from beirnl.stages.searching import SearchSpec


class FuseSpec(SearchSpec):
    """A fusion of runs; see :mod:`beirnl.retrieval.fusion`. The inputs are ``run-0``, ``run-1``, ..."""

    method: Method = "rrf"
    weights: tuple[float, ...] = ()
    k: int = 60


def fuse(unit: Unit) -> None:
    """Fuse the runs of one dataset."""
    spec = unit.task.spec
    assert isinstance(spec, FuseSpec)
    runs = [unit.inputs[f"run-{number}"].table() for number in range(len(unit.inputs))]
    unit.out.rows_in = sum(run.num_rows for run in runs)
    unit.out.write(fused(spec, runs, remove_self=spec.remove_self_matches), RUN)


def fused(spec: FuseSpec, runs: Sequence[pa.Table], *, remove_self: bool) -> pa.Table:
    """Fuse runs as a spec says."""
    from beirnl.retrieval import fusion

    return fusion.fuse(
        runs,
        spec.depth,
        method=spec.method,
        weights=spec.weights,
        k=spec.k,
        remove_self=remove_self,
    )
