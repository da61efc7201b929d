"""Runs side by side: what must be equal before they are compared."""

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from beirnl.evaluation.runs import depth
from beirnl.evaluation.trec import ordered
from beirnl.schema import RUN


def cut_to_common_depth(runs: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], list[str]]:
    """Runs cut to the depth of the shallowest; a run's depth is the most hits that a query of it has.

    Args:
        runs: :data:`beirnl.schema.RUN` by name.

    Returns:
        The runs, cut, and a warning if any was deeper than another.
    """
    frames = {name: pl.DataFrame(pl.from_arrow(run)) for name, run in runs.items()}
    depths = {name: depth(run) for name, run in runs.items()}
    least = min(depths.values(), default=0)
    if all(number == least for number in depths.values()):
        return dict(runs), []
    cut = {
        name: ordered(frame).group_by("query_id", maintain_order=True).head(least).to_arrow().cast(RUN)
        for name, frame in frames.items()
    }
    listed = ", ".join(f"{name} {number}" for name, number in depths.items())
    return cut, [f"runs differ in depth ({listed}); all are compared at {least} hits a query"]
