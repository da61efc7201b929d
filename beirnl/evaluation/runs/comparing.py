"""Runs that are compared go equally deep.

That they are of the dataset, and their scores numbers, is seen where they are read, by
:mod:`beirnl.evaluation.runs` and :mod:`beirnl.stages.runs`.
"""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from beirnl.evaluation.measures.providers import ranked
from beirnl.evaluation.runs import depth
from beirnl.wording import counted


class Cut(NamedTuple):
    """Runs that go equally deep, and what a reader must know about them, one line each."""

    runs: dict[str, pl.DataFrame]
    warnings: tuple[str, ...]


def cut_to_shortest(runs: Mapping[str, pa.Table | pl.DataFrame]) -> Cut:
    """Runs cut to the depth of the shortest, in trec_eval's order.

    Args:
        runs: by system; columns query_id, doc_id, score.

    Returns:
        The runs with these columns, and a warning for each that was cut.
    """
    frames = {name: _frame(run) for name, run in runs.items()}
    known = {name: deep for name, frame in frames.items() if (deep := depth(frame))}
    if len(set(known.values())) < 2:
        return Cut(frames, ())
    shortest = min(known, key=lambda name: known[name])
    least = known[shortest]
    warnings = tuple(
        f"{name}: cut from {deep:,} to {counted(least, 'hit')} a query, the depth of {shortest}"
        for name, deep in known.items()
        if deep > least
    )
    return Cut({name: cut(frame, least) for name, frame in frames.items()}, warnings)


def cut(run: pa.Table | pl.DataFrame, most: int) -> pl.DataFrame:
    """The first hits of every query: by score, then id, both descending.

    Args:
        run: columns query_id, doc_id, score.
        most: how many.
    """
    frame = _frame(run).with_columns(pl.col("score").cast(pl.Float32))
    return ranked(frame).filter(pl.col("rank") < most).drop("rank")


def _frame(table: pa.Table | pl.DataFrame) -> pl.DataFrame:
    frame = table if isinstance(table, pl.DataFrame) else pl.DataFrame(pl.from_arrow(table))
    return frame.select("query_id", "doc_id", "score")
