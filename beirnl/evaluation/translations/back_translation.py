"""What translation does to a test collection: scores on the original and on its back-translation.

As in BEIR-NL (section 5.3, Table 6): the language and the model stay the same, so that what a system loses is
what translation lost.
"""

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from beirnl import registry
from beirnl.errors import DataError
from beirnl.evaluation.tables import Cell, Column, Table
from beirnl.evaluation.uncertainty import resampling
from beirnl.evaluation.uncertainty.resampling import Interval
from beirnl.wording import counted

ORIGINAL, BACK_TRANSLATED = "original", "back-translated"
VERSIONS = (ORIGINAL, BACK_TRANSLATED)

_NONE = "–"
_KEY = ("dataset", "version", "system", "query_id")
_SECTION = "Back-translation"
_AVERAGE = "average"
_OVERALL = ""  # in place of a dataset's name


class Difference(NamedTuple):
    """A system's mean on the two versions of a dataset, or the mean of its means over datasets.

    Attributes:
        original, back_translated: means over the queries that both versions have, 0 to 1.
        interval: 95 % paired bootstrap interval of ``delta``.
        p: of the paired randomisation test, Holm-corrected.
        p_uncorrected: the same before correction.
        queries: number of paired queries.
    """

    original: float
    back_translated: float
    interval: Interval
    p: float
    p_uncorrected: float
    queries: int

    @property
    def delta(self) -> float:
        """What back translation changes: negative where it costs."""
        return self.back_translated - self.original


class SystemDifferences(NamedTuple):
    """A system's differences.

    Attributes:
        system: its name.
        datasets: by dataset; one that the system does not have in both versions is not there.
        average: plain mean over datasets, None if one of the report's datasets is missing or it has only one.
    """

    system: str
    datasets: dict[str, Difference]
    average: Difference | None


class BackTranslation(NamedTuple):
    """The comparison of both versions.

    Attributes:
        measure: that was compared.
        datasets: columns, in the order of the scores.
        systems: rows, in the order of the scores.
        tests: how many p values were corrected together: all of this report.
        resamples: of the bootstrap and of the randomisation test.
        warnings: what is missing; one line each.
    """

    measure: str
    datasets: tuple[str, ...]
    systems: tuple[SystemDifferences, ...]
    tests: int
    resamples: int
    warnings: tuple[str, ...]


class _Resampled(NamedTuple):
    """A difference before correction, its bootstrap resamples and its values under the null hypothesis."""

    original: float
    back_translated: float
    bootstrap: np.ndarray
    null: np.ndarray
    queries: int


def compare(
    scores: pl.DataFrame, measure: str = "nDCG@10", *, resamples: int = 10_000, seed: int = 7
) -> BackTranslation:
    """Differences between the original and the back-translated version of datasets.

    Queries are paired by their id; one that only one version has is left out, and a warning says so.
    Intervals resample queries inside each dataset; the average is the mean of the datasets' means, as in
    Table 6. P values are those of the paired randomisation test (Smucker et al. 2007), corrected by Holm's
    method over all differences of the report, averages included.

    Args:
        scores: columns dataset, version (``original`` or ``back-translated``), system, query_id, measure and
            value (0 to 1).
        measure: which of the scores' measures.
        resamples: of the bootstrap and of the test; a corrected p is at least ``tests / (resamples + 1)``.
        seed: of both.

    Raises:
        DataError: no scores of this measure, none in both versions, an unknown version, a query that is
            scored twice, or a value that is no number.
    """
    pairs, warnings = _pairs(_checked(scores, measure))
    datasets = tuple(dict.fromkeys(dataset for _, dataset in pairs))
    systems = dict.fromkeys(system for system, _ in pairs)
    places = {dataset: place for place, dataset in enumerate(sorted(datasets))}
    drawn = {
        (system, dataset): _resampled(values, resamples, [seed, places[dataset]])
        for (system, dataset), values in pairs.items()
    }
    for system in systems:
        own = [drawn[system, dataset] for dataset in datasets if (system, dataset) in drawn]
        if len(own) == len(datasets) > 1:
            drawn[system, _OVERALL] = _averaged(own)
    found = dict(zip(drawn, _corrected(list(drawn.values())), strict=True))
    rows = tuple(
        SystemDifferences(
            system,
            {dataset: found[system, dataset] for dataset in datasets if (system, dataset) in found},
            found.get((system, _OVERALL)),
        )
        for system in systems
    )
    return BackTranslation(measure, datasets, rows, len(found), resamples, tuple(warnings))


def _checked(scores: pl.DataFrame, measure: str) -> pl.DataFrame:
    frame = scores.filter(pl.col("measure") == measure)
    if frame.is_empty():
        known = ", ".join(scores["measure"].unique(maintain_order=True)) or "none"
        raise DataError(f"there are no scores of {measure}", remedy=f"measures that were computed: {known}")
    strange = frame.filter(~pl.col("version").is_in(VERSIONS))
    if not strange.is_empty():
        raise DataError(
            f"unknown version {strange['version'][0]!r}", remedy=f"use {ORIGINAL} and {BACK_TRANSLATED}"
        )
    twice = frame.filter(~pl.struct(_KEY).is_first_distinct())
    bad = frame.filter(~pl.col("value").is_finite().fill_null(False))
    for rows, what in ((twice, "is scored twice"), (bad, "has no score that is a number")):
        if not rows.is_empty():
            row = rows.row(0, named=True)
            where = f"{row['system']} on {row['dataset']} ({row['version']})"
            raise DataError(f"query {row['query_id']!r} {what}", where=where, remedy="evaluate the run again")
    return frame


def _pairs(frame: pl.DataFrame) -> tuple[dict[tuple[str, str], np.ndarray], list[str]]:
    """Values of paired queries by system and dataset, shape (queries, 2), and what is missing."""
    wide = frame.pivot("version", index=["system", "dataset", "query_id"], values="value")
    wide = wide.with_columns(
        pl.lit(None, pl.Float64).alias(version) for version in VERSIONS if version not in wide.columns
    )
    pairs, warnings = {}, []
    for (system, dataset), rows in wide.group_by("system", "dataset", maintain_order=True):
        paired = rows.drop_nulls(list(VERSIONS)).sort("query_id").select(VERSIONS).to_numpy()
        if len(paired):
            pairs[str(system), str(dataset)] = paired
        if len(paired) < len(rows):
            warnings.append(_missing(str(system), str(dataset), rows, len(paired)))
    if not pairs:
        raise DataError(
            "no query is scored on both versions of a dataset",
            where=warnings[0],
            remedy=f"evaluate the same systems on the {ORIGINAL} and the {BACK_TRANSLATED} set",
        )
    return pairs, warnings


def _missing(system: str, dataset: str, rows: pl.DataFrame, paired: int) -> str:
    there = [version for version in VERSIONS if rows[version].count()]
    if len(there) == 1:
        return f"{system} on {dataset}: only the {there[0]} version is scored, so it is left out"
    return (
        f"{system} on {dataset}: {counted(len(rows) - paired, 'query is', 'queries are', of=len(rows))} "
        "scored in one version only and left out"
    )


def _resampled(values: np.ndarray, resamples: int, seed: Sequence[int]) -> _Resampled:
    differences = values[:, 1] - values[:, 0]
    return _Resampled(
        original=float(values[:, 0].mean()),
        back_translated=float(values[:, 1].mean()),
        bootstrap=resampling.resampled_sums(differences, resamples, [*seed, 0]) / len(differences),
        null=resampling.flipped_means(differences, resamples, [*seed, 1]),
        queries=len(differences),
    )


def _averaged(parts: Sequence[_Resampled]) -> _Resampled:
    """The mean over datasets, of the means and of every resample."""
    return _Resampled(
        math.fsum(part.original for part in parts) / len(parts),
        math.fsum(part.back_translated for part in parts) / len(parts),
        np.mean([part.bootstrap for part in parts], axis=0),
        np.mean([part.null for part in parts], axis=0),
        sum(part.queries for part in parts),
    )


def _corrected(drawn: Sequence[_Resampled]) -> list[Difference]:
    raw = [resampling.p_value(one.back_translated - one.original, one.null) for one in drawn]
    return [
        Difference(
            one.original, one.back_translated, resampling.interval(one.bootstrap), p, before, one.queries
        )
        for one, before, p in zip(drawn, raw, resampling.holm(raw), strict=True)
    ]


def tables(result: BackTranslation) -> list[Table]:
    """The comparison in the form of Table 6, its differences by dataset, and the paper's own figures."""
    measure = result.measure
    made = [_form(result), _differences(result)]
    printed = [row for row in registry.published("beir-nl-table6") if row["measure"] == measure]
    return [*made, _published(printed)] if printed else made


def _form(result: BackTranslation) -> Table:
    """Two rows per system, a column per dataset, the average of several, and the change."""
    several = len(result.datasets) > 1
    rows = []
    for one in result.systems:
        known = [one.datasets.get(dataset) for dataset in result.datasets]
        changed = one.average if several else known[0]
        for version in VERSIONS:
            cells = [_mean(found, version) for found in known]
            if several:
                cells.append(_mean(one.average, version) if one.average else Cell("incomplete"))
            last = Cell("-") if version == ORIGINAL else _delta(changed)
            rows.append([Cell(one.system), Cell(version), *cells, last])
    caption = (
        f"{result.measure} in points of 100, over queries that both versions have. Δtr: change"
        f"{' of the average' if several else ''}, with its 95 % paired bootstrap interval "
        f"({result.resamples:,} resamples of queries{' inside each dataset' if several else ''})."
    )
    return Table(_SECTION, f"{result.measure} before and after", caption, _columns(result.datasets), rows)


def _differences(result: BackTranslation) -> Table:
    rows = []
    for one in result.systems:
        found = [*one.datasets.items(), *([(_AVERAGE, one.average)] if one.average else [])]
        for dataset, difference in found:
            rows.append(
                [
                    Cell(one.system),
                    Cell(dataset),
                    _delta(difference),
                    _p(difference.p),
                    Cell(f"{difference.queries:,}", difference.queries),
                ]
            )
    caption = (
        "Change in points of 100 with its 95 % paired bootstrap interval. p: paired randomisation test, "
        f"two-sided, corrected by Holm's method over the {result.tests} differences of this table."
    )
    columns = [Column(name) for name in ("system", "dataset", "change", "p", "queries")]
    return Table(_SECTION, f"{result.measure}: changes by dataset", caption, columns, rows)


def _published(printed: Sequence[dict[str, str]]) -> Table:
    """The paper's table; averages and changes are computed from its cells and round to what it prints."""
    datasets = tuple(dict.fromkeys(row["dataset"] for row in printed))
    values = {(row["system"], row["version"], row["dataset"]): float(row["percent"]) for row in printed}
    rows = []
    for system in dict.fromkeys(row["system"] for row in printed):
        means = {
            version: math.fsum(values[system, version, dataset] for dataset in datasets) / len(datasets)
            for version in VERSIONS
        }
        change = means[BACK_TRANSLATED] - means[ORIGINAL]
        for version in VERSIONS:
            cells = [_points(values[system, version, dataset]) for dataset in datasets]
            last = Cell("-") if version == ORIGINAL else _points(change)
            rows.append([Cell(system), Cell(version), *cells, _points(means[version]), last])
    return Table(_SECTION, "As published", "BEIR-NL, Table 6.", _columns(datasets), rows)


def _columns(datasets: Sequence[str]) -> list[Column]:
    average = (_AVERAGE,) if len(datasets) > 1 else ()
    return [Column(name) for name in ("system", "version", *datasets, *average, "Δtr")]


def _mean(difference: Difference | None, version: str) -> Cell:
    if difference is None:
        return Cell(_NONE)
    return _points(100 * (difference.original if version == ORIGINAL else difference.back_translated))


def _delta(difference: Difference | None) -> Cell:
    if difference is None:
        return Cell(_NONE)
    value, (low, high) = 100 * difference.delta, difference.interval
    return Cell(f"{_points(value).text} [{_points(100 * low).text}, {_points(100 * high).text}]", value)


def _points(value: float) -> Cell:
    text = f"{value:.1f}"
    return Cell("0.0" if text == "-0.0" else text, value)


def _p(p: float) -> Cell:
    return Cell(f"{p:.4f}", p)


def to_json(result: BackTranslation) -> str:
    """The comparison as JSON, fractions of 1 and full precision; ends in a line feed."""
    systems = [
        {
            "system": one.system,
            "datasets": {dataset: _plain(found) for dataset, found in one.datasets.items()},
            "average": _plain(one.average) if one.average else None,
        }
        for one in result.systems
    ]
    whole = {**result._asdict(), "systems": systems}
    return json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _plain(difference: Difference) -> dict[str, object]:
    return {**difference._asdict(), "delta": difference.delta}
