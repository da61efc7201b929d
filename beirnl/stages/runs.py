"""The stage that imports a run which was made elsewhere."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
from pydantic import Field

from beirnl.datasets.importing import examples
from beirnl.errors import DataError
from beirnl.schema import RUN
from beirnl.stages.base import Unit
from beirnl.stages.searching import SearchSpec
from beirnl.wording import counted


class RunFileSpec(SearchSpec):
    """A run that was made elsewhere: known by its content, found at ``file``; ``model`` is what made it."""

    sha256: str
    file: Path = Field(exclude=True)
    model: str | None = Field(default=None, exclude=True)


def import_run(unit: Unit) -> None:
    """A run that was made elsewhere, as searches leave theirs: checked, without self-matches, cut."""
    from beirnl.evaluation import runs
    from beirnl.retrieval.topk import merge_runs

    spec = unit.task.spec
    assert isinstance(spec, RunFileSpec)
    found = runs.read(spec.file)
    ids = (shard["id"] for shard in unit.inputs["corpus"].tables())
    run, warnings = matched(found, unit.inputs["queries"].table()["id"], ids, spec.file)
    run = merge_runs([run], spec.depth, remove_self=spec.remove_self_matches)
    unit.out.rows_in = found.num_rows
    unit.out.warnings += warnings
    unit.out.count("depth", runs.depth(run))
    unit.out.write(run, RUN)


def matched(
    run: pa.Table, queries: pa.ChunkedArray, corpus: Iterable[pa.ChunkedArray] | None, path: Path
) -> tuple[pa.Table, list[str]]:
    """The part of a run that belongs to a dataset, and what a reader must know.

    Documents that the corpus lacks stay: they take the ranks that the file gives them, as in trec_eval.

    Args:
        run: as :func:`beirnl.evaluation.runs.read` returns it.
        queries: ids of the dataset's judged queries.
        corpus: ids of its documents, in pieces; None: not known.
        path: the file, for errors and warnings.

    Returns:
        The run of the dataset's queries, and warnings.

    Raises:
        DataError: it is empty, or no query is the dataset's.
    """
    frame, wanted = pl.DataFrame(pl.from_arrow(run)), pl.Series(pl.from_arrow(queries))
    found = frame["query_id"].unique(maintain_order=True)
    foreign = found.filter(~found.is_in(wanted.implode())).to_list()
    missing = wanted.filter(~wanted.is_in(found.implode())).to_list()
    if not len(found):
        raise DataError("holds no hits", where=path, remedy="check that the run was written whole")
    if len(foreign) == len(found):
        raise DataError(
            f"none of its {counted(len(found), 'query')} ({examples(foreign)}) is one of the {len(wanted)} "
            f"of the dataset ({examples(wanted.to_list())})",
            where=path,
            remedy="give the run of this dataset and split",
        )
    kept = frame.filter(pl.col("query_id").is_in(wanted.implode()))
    left = set(kept["doc_id"].unique().to_list()) if corpus is not None else set()
    for ids in corpus or ():
        left.difference_update(ids.to_pylist())
    warnings = [f"{path.name}: {line}" for line in _told(missing, len(wanted), foreign, sorted(left))]
    return kept.to_arrow().cast(RUN), warnings


def _told(missing: list[str], wanted: int, foreign: list[str], left: list[str]) -> Iterator[str]:
    """What of a run is not the dataset's, and what it lacks."""
    if missing:
        said = counted(len(missing), "query is", "queries are", of=wanted)
        yield f"{said} missing and {'counts' if len(missing) == 1 else 'count'} 0: {examples(missing)}"
    if foreign:
        said = counted(len(foreign), "query is", "queries are")
        yield f"left out, since {said} not judged in the dataset: {examples(foreign)}"
    if left:
        one, many = "document is {}; it keeps its rank", "documents are {}; they keep their ranks"
        said = counted(len(left), one, many).format("not in the corpus")
        yield f"{said}: {examples(left)}"
