"""Whether runs can be compared: they are of the dataset, their scores are numbers, they go equally deep."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from beirnl.errors import DataError
from beirnl.evaluation.providers import ranked

_FIRST = 5  # ids that are named


class Checked(NamedTuple):
    """Runs that can be evaluated, and what a reader must know about them, one line each."""

    runs: dict[str, pl.DataFrame]
    warnings: tuple[str, ...]


def check(
    runs: Mapping[str, pa.Table | pl.DataFrame],
    queries: Collection[str],
    judged: Collection[str] | None = None,
) -> Checked:
    """Runs of one dataset, checked and cut to the shortest, so that no system is seen deeper than another.

    Args:
        runs: by system or file; columns query_id, doc_id, score.
        queries: ids of all queries that the dataset has.
        judged: those that are scored (default: all); one of them without hits counts 0.

    Raises:
        DataError: a run has queries that the dataset lacks, or a score that is no finite number.
    """
    warnings = []
    wanted = queries if judged is None else judged
    for name, run in runs.items():
        frame = _frame(run)
        _refuse_numbers(name, frame)
        found = frame["query_id"].unique(maintain_order=True).to_list()
        known = set(queries)
        strange = [query for query in found if query not in known]
        if strange:
            raise DataError(
                f"{len(strange):,} of its {len(found):,} queries are not in the dataset: {_listed(strange)}",
                where=name,
                remedy="name the dataset and split that the run was made for",
            )
        missing = sorted(set(wanted) - set(found))
        if missing:
            warnings.append(
                f"{name}: {len(missing):,} of {len(wanted):,} judged queries have no hits and score 0: "
                f"{_listed(missing)}"
            )
    cut = cut_to_shortest(runs)
    return Checked(cut.runs, (*warnings, *cut.warnings))


def cut_to_shortest(
    runs: Mapping[str, pa.Table | pl.DataFrame], depths: Mapping[str, int] | None = None
) -> Checked:
    """Runs cut to the depth of the shortest, in trec_eval's order.

    Args:
        runs: by system; columns query_id, doc_id, score.
        depths: how deep each goes, where that is known; else the most hits that it has for a query.

    Returns:
        The runs with these columns, and a warning for each that was cut.
    """
    frames = {name: _frame(run) for name, run in runs.items()}
    found = {name: (depths or {}).get(name, _depth(frame)) for name, frame in frames.items()}
    known = {name: depth for name, depth in found.items() if depth}
    if len(set(known.values())) < 2:
        return Checked(frames, ())
    shortest = min(known, key=lambda name: known[name])
    depth = known[shortest]
    warnings = tuple(
        f"{name}: cut from {deep:,} to {depth:,} hits a query, the depth of {shortest}"
        for name, deep in known.items()
        if deep > depth
    )
    return Checked({name: cut(frame, depth) for name, frame in frames.items()}, warnings)


def cut(run: pa.Table | pl.DataFrame, depth: int) -> pl.DataFrame:
    """The first hits of every query: by score, then id, both descending.

    Args:
        run: columns query_id, doc_id, score.
        depth: how many.
    """
    frame = _frame(run).with_columns(pl.col("score").cast(pl.Float32))
    return ranked(frame).filter(pl.col("rank") < depth).drop("rank")


def _depth(frame: pl.DataFrame) -> int:
    counts = frame.group_by("query_id").len()["len"]
    return 0 if counts.is_empty() else int(counts.max())  # type: ignore[arg-type]


def _refuse_numbers(name: str, frame: pl.DataFrame) -> None:
    bad = frame.filter(~pl.col("score").is_finite().fill_null(False))
    if len(bad):
        query, doc, score = bad.row(0)
        raise DataError(
            f"{len(bad):,} scores are not finite numbers, the first is {score} of document {doc!r}, "
            f"query {query!r}",
            where=name,
            remedy="check the retriever that made the run",
        )


def _listed(ids: Collection[str]) -> str:
    first = ", ".join(list(ids)[:_FIRST])
    return first if len(ids) <= _FIRST else f"{first}, ..."


def _frame(table: pa.Table | pl.DataFrame) -> pl.DataFrame:
    frame = table if isinstance(table, pl.DataFrame) else pl.DataFrame(pl.from_arrow(table))
    return frame.select("query_id", "doc_id", "score")
