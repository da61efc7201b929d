"""How sure scores are: intervals, tests of systems against the best of a column, and of all pairs.

A column is a measure on one dataset or several. Its score is the mean over datasets of the mean over their
parts (CQADupStack's forums) of the mean over queries. Resamples are drawn inside each part, the same for all
systems and measures: a column's own resamples are the same means of them, and pairs are differences.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl

from beirnl.evaluation.records import Record
from beirnl.evaluation.uncertainty import resampling

#: A dataset in a language.
Place = tuple[str, str]

_EQUAL = 1e-9  # two values of a query that differ by less are a tie
_SAME_MEAN = 1e-6


class Resampling(NamedTuple):
    """How much is resampled, and what counts as significant.

    Attributes:
        seed: of everything that is drawn; equal seeds give equal numbers, whatever the order of the scores.
        bootstrap: resamples of queries for intervals.
        randomisation: random assignments of signs for p values; a corrected p is at least the number of tests
            over this.
        alpha: a corrected p of this or less is significant.
    """

    seed: int = 7
    bootstrap: int = 1000
    randomisation: int = 20_000
    alpha: float = 0.05


_DEFAULT = Resampling()


class Comparison(NamedTuple):
    """One system beside another on the same queries.

    Attributes:
        system, other: which.
        difference: of their scores, ``system`` minus ``other``.
        low, high: 95 % paired bootstrap interval of it.
        p: two-sided, of the paired randomisation test (Smucker et al. 2007).
        p_holm: corrected for the tests of its family (Holm 1979).
        wins, losses, ties: queries on which the system has a higher, lower, equal value.
    """

    system: str
    other: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int
    losses: int
    ties: int


class Score(NamedTuple):
    """A system's score in a column.

    Attributes:
        value: of all queries.
        low, high: 95 % percentile bootstrap interval.
        against_best: its comparison with the best system of the column; the family of tests is the column.
            None for the best, and for a system that is alone.
        not_below_best: whether it is not significantly worse than the best; None as above.
    """

    value: float
    low: float
    high: float
    against_best: Comparison | None = None
    not_below_best: bool | None = None


class _Drawn(NamedTuple):
    """Resamples of systems on a part, a dataset or a column.

    Attributes:
        names: of the columns: (measure, system), or in a column of a table (system,).
        values: shape (columns,).
        bootstrap: shape (resamples, columns).
        flipped: means under random signs, shape (assignments, columns).
        queries: values per query, shape (queries, columns), one array for each part.
    """

    names: tuple[tuple[str, ...], ...]
    values: np.ndarray
    bootstrap: np.ndarray
    flipped: np.ndarray
    queries: tuple[np.ndarray, ...]

    def only(self, names: Sequence[tuple[str, ...]]) -> "_Drawn":
        """The same for some of the columns."""
        at = [self.names.index(name) for name in names]
        queries = tuple(part[:, at] for part in self.queries)
        return _Drawn(tuple(names), self.values[at], self.bootstrap[:, at], self.flipped[:, at], queries)


class Uncertainty:
    """Intervals and tests of the scores of an experiment; what is drawn for a dataset is drawn once.

    Args:
        scores: columns dataset, language, system, query_id, measure, value, and ``part`` where datasets have
            several.
        settings: how much is resampled.
    """

    def __init__(self, scores: pl.DataFrame, settings: Resampling = _DEFAULT) -> None:
        if "part" not in scores.columns:
            scores = scores.with_columns(pl.lit("").alias("part"))
        self.settings = settings
        self._scores = {
            (str(dataset), str(language)): frame
            for (dataset, language), frame in scores.group_by("dataset", "language", maintain_order=True)
        }
        self._drawn: dict[Place, _Drawn] = {}

    @property
    def columns(self) -> list[tuple[str, Place]]:
        """Measures and places that there are scores of, in their order."""
        return [
            (measure, place)
            for place, frame in self._scores.items()
            for measure in frame["measure"].unique(maintain_order=True)
        ]

    def column(self, measure: str, places: Sequence[Place]) -> dict[str, Score]:
        """Scores of the systems that have a value for every query of every place, and tests against the best.

        Args:
            measure: canonical name.
            places: one or several; the score is the plain mean over them.
        """
        drawn = self._column(measure, places)
        if not drawn.names:
            return {}
        best = int(np.argmax(drawn.values))
        others = [at for at in range(len(drawn.names)) if at != best]
        tests = {one.system: one for one in _compared(drawn, [(at, best) for at in others])}
        scores = {}
        for at, (system,) in enumerate(drawn.names):
            low, high = resampling.interval(drawn.bootstrap[:, at])
            test = tests.get(system)
            inside = None if test is None else test.p_holm > self.settings.alpha or test.difference >= 0
            scores[system] = Score(float(drawn.values[at]), low, high, test, inside)
        return scores

    def pairs(self, measure: str, places: Sequence[Place]) -> list[Comparison]:
        """All pairs of systems of a column, better first, Holm's correction over all of them."""
        drawn = self._column(measure, places)
        order = np.argsort(-drawn.values, kind="stable")
        return _compared(drawn, [(int(a), int(b)) for a, b in combinations(order, 2)])

    def _column(self, measure: str, places: Sequence[Place]) -> _Drawn:
        """The mean over places, in an order that is theirs and not the caller's."""
        members = [self._place(place) for place in sorted(set(places)) if place in self._scores]
        known = [{name for name in one.names if name[0] == measure} for one in members]
        whole = len(members) == len(set(places)) > 0
        names = sorted(set.intersection(*known)) if whole else []
        chosen = [one.only(names) for one in members]
        return _mean(chosen, [(system,) for _, system in names])

    def _place(self, place: Place) -> _Drawn:
        if place not in self._drawn:
            parts = sorted(self._scores[place].partition_by("part", as_dict=True).items())
            drawn = [self._part((*place, str(part)), frame) for (part,), frame in parts]
            names = sorted(set.intersection(*(set(one.names) for one in drawn)))
            self._drawn[place] = _mean([one.only(names) for one in drawn], names)
        return self._drawn[place]

    def _part(self, name: tuple[str, str, str], frame: pl.DataFrame) -> _Drawn:
        """Resamples of a part, of all measures and systems that have a value for each of its queries."""
        frame = frame.with_columns(pl.concat_str("measure", pl.lit("\0"), "system").alias("name"))
        wide = frame.pivot("name", index="query_id", values="value", aggregate_function="first")
        wide = wide.sort("query_id").drop("query_id")
        columns = sorted(column for column in wide.columns if not wide[column].null_count())
        values = wide.select(columns).to_numpy().reshape(len(wide), len(columns))
        seed = [self.settings.seed, *hashlib.sha256("\0".join(name).encode()).digest()[:16]]
        return _Drawn(
            tuple(tuple(column.split("\0")) for column in columns),
            values.mean(axis=0),
            resampling.resampled_sums(values, self.settings.bootstrap, [0, *seed]) / len(values),
            resampling.flipped_means(values, self.settings.randomisation, [1, *seed]),
            (values,),
        )


def _mean(members: Sequence[_Drawn], names: Sequence[tuple[str, ...]]) -> _Drawn:
    """The plain mean of several, of their values and of every resample."""
    if not members:
        empty = np.zeros(0)
        return _Drawn((), empty, empty, empty, ())
    if len(members) == 1:
        return members[0]._replace(names=tuple(names))
    values, bootstrap, flipped = (
        np.mean([getattr(one, field) for one in members], axis=0)
        for field in ("values", "bootstrap", "flipped")
    )
    return _Drawn(
        tuple(names), values, bootstrap, flipped, tuple(part for one in members for part in one.queries)
    )


def _compared(drawn: _Drawn, pairs: Sequence[tuple[int, int]]) -> list[Comparison]:
    """Comparisons of pairs of columns, which are one family of tests."""
    differences = [float(drawn.values[a] - drawn.values[b]) for a, b in pairs]
    raw = [
        resampling.p_value(difference, drawn.flipped[:, a] - drawn.flipped[:, b])
        for difference, (a, b) in zip(differences, pairs, strict=True)
    ]
    made = []
    for (a, b), difference, p, corrected in zip(pairs, differences, raw, resampling.holm(raw), strict=True):
        low, high = resampling.interval(drawn.bootstrap[:, a] - drawn.bootstrap[:, b])
        by_query = np.concatenate([part[:, a] - part[:, b] for part in drawn.queries])
        wins, losses = int((by_query > _EQUAL).sum()), int((by_query < -_EQUAL).sum())
        ties = len(by_query) - wins - losses
        names = drawn.names[a][0], drawn.names[b][0]
        made.append(Comparison(*names, difference, low, high, p, corrected, wins, losses, ties))
    return made


def stated(records: Iterable[Record], uncertainty: Uncertainty) -> list[Record]:
    """Records with their intervals and their comparison with the best of their column.

    A record whose value is not the mean of the scores, or that is incomplete, stays as it is.
    """
    columns: dict[tuple[str, Place], dict[str, Score]] = {}
    made = []
    for record in records:
        place = record.dataset, record.language
        if (record.measure, place) not in columns:
            columns[record.measure, place] = uncertainty.column(record.measure, [place])
        score = columns[record.measure, place].get(record.system)
        known = score is not None and record.value is not None
        if score and known and math.isclose(score.value, record.value or 0.0, abs_tol=_SAME_MEAN):
            record = record.model_copy(update=_fields(score))
        made.append(record)
    return made


def _fields(score: Score) -> dict[str, float | int | bool | None]:
    low, high = max(0.0, score.low), min(1.0, score.high)  # which sums of floats can miss by a last digit
    fields: dict[str, float | int | bool | None] = {"low": low, "high": high}
    if score.against_best:
        test = score.against_best._asdict()
        fields |= {name: test[name] for name in ("p", "p_holm", "wins", "losses", "ties")}
    return fields | {"not_below_best": score.not_below_best}
