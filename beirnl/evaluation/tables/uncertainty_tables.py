"""Tables of intervals and tests: of every score against the best of its column, and of all pairs."""

import json
from collections.abc import Iterator, Sequence

from beirnl.evaluation.records import Record, Report, Strict
from beirnl.evaluation.tables import Cell, Column, Table
from beirnl.evaluation.uncertainty import Comparison, Place, Resampling, Uncertainty
from beirnl.wording import counted

_SECTION = "Uncertainty"
_NONE = "–"


class ShownPair(Strict):
    """Two systems of a column in JSON; see :class:`.uncertainty.Comparison`."""

    dataset: str
    language: str
    measure: str
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


def tables(report: Report) -> list[Table]:
    """One table for each measure with what its records state; with ``report.pairs`` all pairs too."""
    known = [record for record in report.records if record.low is not None]
    measures = dict.fromkeys(record.measure for record in known)
    settings = report.uncertainty.settings if report.uncertainty else None
    made = [_scores(m, [record for record in known if record.measure == m], settings) for m in measures]
    if report.pairs and report.uncertainty:
        made += [_pairs(*column, report.uncertainty) for column in report.uncertainty.columns]
    return made


def _scores(measure: str, records: Sequence[Record], settings: Resampling | None) -> Table:
    rows = [
        [
            Cell(f"{record.dataset} ({record.language})"),
            Cell(record.system),
            Cell(f"{record.value or 0:.4f} [{record.low:.4f}, {record.high:.4f}]", record.value),
            *_tested(record),
        ]
        for record in records
    ]
    columns = ("dataset", "system", "value and interval", "p against the best", "wins / losses / ties")
    caption = (
        "95 % bootstrap intervals over queries. p: two-sided, of the paired randomisation test against the "
        "best system of the dataset (which has none), corrected by Holm's method over the systems of that "
        "column; queries on which the system is better, worse, equal."
    )
    return Table(_SECTION, measure, caption + _drawn(settings), [Column(name) for name in columns], rows)


def _tested(record: Record) -> list[Cell]:
    if record.p_holm is None:
        return [Cell(_NONE), Cell(_NONE)]
    return [Cell(_p(record.p_holm), record.p_holm), Cell(f"{record.wins} / {record.losses} / {record.ties}")]


def _pairs(measure: str, place: Place, uncertainty: Uncertainty) -> Table:
    found = uncertainty.pairs(measure, [place])
    rows = [
        [
            Cell(one.system),
            Cell(one.other),
            Cell(f"{one.difference:.4f} [{one.low:.4f}, {one.high:.4f}]", one.difference),
            Cell(_p(one.p), one.p),
            Cell(_p(one.p_holm), one.p_holm),
            Cell(f"{one.wins} / {one.losses} / {one.ties}"),
        ]
        for one in found
    ]
    columns = ("system", "over", "difference and interval", "p", "p (Holm)", "wins / losses / ties")
    caption = (
        f"Paired on the same queries; Holm's correction over the {counted(len(found), 'pair')} of this table."
    )
    title = f"All pairs: {measure} on {place[0]} ({place[1]})"
    caption += _drawn(uncertainty.settings)
    return Table(_SECTION, title, caption, [Column(name) for name in columns], rows)


def _drawn(settings: Resampling | None) -> str:
    if settings is None:
        return ""
    return (
        f" {settings.bootstrap:,} resamples, {settings.randomisation:,} random assignments, "
        f"seed {settings.seed}; significant at {settings.alpha:g}."
    )


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def pairs_json(uncertainty: Uncertainty) -> str:
    """All pairs of every column as a JSON list, full precision; ends in a line feed."""
    return json.dumps(list(_listed(uncertainty)), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _listed(uncertainty: Uncertainty) -> Iterator[dict[str, object]]:
    for measure, (dataset, language) in uncertainty.columns:
        pairs: list[Comparison] = uncertainty.pairs(measure, [(dataset, language)])
        for pair in pairs:
            found = ShownPair(dataset=dataset, language=language, measure=measure, **pair._asdict())
            yield found.model_dump()
