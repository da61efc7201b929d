"""Run files against judgements, without a dataset and without a workspace."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from beirnl.datasets import beir, importing
from beirnl.evaluation import measures, runs
from beirnl.evaluation.records import Conditions, Record, Report
from beirnl.evaluation.runs.comparing import cut_to_shortest
from beirnl.evaluation.uncertainty import Uncertainty, stated
from beirnl.stages.runs import matched
from beirnl.store.keys import digest, file_sha256
from beirnl.versions import versions

DEFAULT = ("nDCG@10", "R@100")


def score_files(files: Sequence[Path], qrels: Path, names: Sequence[str] = ()) -> Report:
    """Measures of runs, as trec_eval would print them.

    Args:
        files: runs, see :mod:`beirnl.evaluation.runs`; their names are those of the rows.
        qrels: ``query-id corpus-id score`` or TREC's four columns, or Parquet.
        names: of measures (default: nDCG@10 and R@100).

    Returns:
        A report whose dataset is called by the qrels' file. Runs of different depth are cut to the shorter,
        with a warning, if there are several.

    Raises:
        ConfigError: a measure is unknown.
        DataError: a file cannot be read, or a run has none of the judged queries.
    """
    wanted = [measure.name for measure in measures.parse(names or DEFAULT)]
    queries = list(dict.fromkeys(judgement.query_id for judgement in beir.read_qrels(qrels)))
    judged = importing.read_judgements(qrels, set(queries))
    found, warnings = _read(files, queries)
    values = {name: measures.evaluate(run, judged, wanted) for name, run in found.items()}
    place = {"dataset": qrels.stem, "language": "und"}
    records: list[Record] = []
    for (name, frame), file in zip(values.items(), files, strict=True):
        told = _conditions(found[name], file, qrels)
        records += _records(frame, judged, place | {"system": name}, told)
    scores = _scores(values, place)
    sure = Uncertainty(scores)
    records = stated(records, sure)
    return Report(name=qrels.stem, records=records, warnings=warnings, scores=scores, uncertainty=sure)


def _read(files: Sequence[Path], queries: Sequence[str]) -> tuple[dict[str, pa.Table], list[str]]:
    """Runs by what they are called, all of them as deep as the shortest, and warnings."""
    found: dict[str, pa.Table] = {}
    warnings: list[str] = []
    for file, name in zip(files, runs.names(files), strict=True):
        run, told = matched(runs.read(file), pa.chunked_array([queries], pa.string()), None, file)
        found[str(file) if name in found else name] = run
        warnings += told
    cut = cut_to_shortest(found)
    return {name: run.to_arrow() for name, run in cut.runs.items()}, [*warnings, *cut.warnings]


def _scores(values: dict[str, pl.DataFrame], place: dict[str, str]) -> pl.DataFrame:
    """Values by query of all runs, as :class:`.Uncertainty` takes them."""
    columns = [pl.lit(value).alias(key) for key, value in (place | {"part": ""}).items()]
    by_query = ("query_id", "measure", "value")
    return pl.concat(
        frame.select(*columns, pl.lit(name).alias("system"), *by_query) for name, frame in values.items()
    )


def _conditions(run: pa.Table, file: Path, qrels: Path) -> Conditions:
    more: dict[str, Any] = {"file": file.name, "file_sha256": file_sha256(file), "depth": runs.depth(run)}
    return Conditions(
        dataset_hash=digest(file_sha256(qrels)),
        search="imported",
        self_matches="kept",
        versions=versions(),
        **more,
    )


def _records(frame: pl.DataFrame, judged: pa.Table, place: dict[str, Any], told: Conditions) -> list[Record]:
    return [
        Record(
            **place,
            measure=row["measure"],
            value=row["mean"],
            queries=row["queries"],
            without_relevant=row["without_relevant"],
            value_with_relevant=row["mean_with_relevant"],
            conditions=told,
        )
        for row in measures.summarise(frame, judged).iter_rows(named=True)
    ]
