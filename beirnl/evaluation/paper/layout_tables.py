"""The tables of a paper filled with the scores of a report: rows and columns are those of a layout."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from beirnl.errors import PrerequisiteError
from beirnl.evaluation.paper.identity import original, systems, trained_on
from beirnl.evaluation.paper.published import Figure, Key
from beirnl.evaluation.records import Record
from beirnl.evaluation.tables import DAGGER, NOT_BELOW, NOT_BELOW_TEXT, Cell, Column, Table
from beirnl.registry.layouts import Layout, Row, Source, heading
from beirnl.wording import counted

_OURS = "ours"
_NONE = "–"
_AVERAGE = "average"
_HALF = 1e-9
_SECTION = "Scores"
_FOOTNOTES = {
    DAGGER: "the model was trained on data of this dataset, as far as the registry knows: not zero-shot",
    NOT_BELOW: NOT_BELOW_TEXT,
}


class Line(NamedTuple):
    """A system's values, or what others have published of it.

    Attributes:
        label: what the row is called.
        of: whose figures they are, ``ours`` or the title of a source.
        system: what it is, for marks of contamination.
        values: 0 to 1, by dataset and measure.
        not_below: those that are not significantly below the best of the report.
    """

    label: str
    of: str
    system: str
    values: Mapping[tuple[str, str], float]
    not_below: Collection[tuple[str, str]] = ()


def score_table(
    layout: Layout,
    records: Sequence[Record],
    sources: Sequence[Source] = (),
    published: Mapping[str, Mapping[Key, Figure]] | None = None,
) -> Table:
    """A table of scores: one block of rows per measure, a column per dataset, and the mean over those stated.

    Columns and rows without a value are left out, and the caption says which; a mean that lacks one is shown
    as incomplete. With sources, their figures stand in rows below ours.

    Args:
        layout: of the form ``scores``.
        records: of a report.
        sources: whose figures stand beside ours.
        published: these figures, by the name of the source.

    Raises:
        PrerequisiteError: neither the report nor a source has a value for it.
    """
    lines = list(_lines(layout, records, sources, published or {}))
    ours = [line for line in lines if line.of == _OURS and line.values]
    filled = {dataset for line in ours or lines for dataset, _ in line.values}
    columns = [dataset for dataset in layout.datasets if dataset in filled]
    if not columns:
        raise PrerequisiteError(
            f"there is no score for table {layout.name} yet",
            remedy=f"run the experiment, with {_needed(layout)}",
        )
    rows = [
        row
        for measure in layout.measures
        for row in _block(layout, measure, columns, [one for one in lines if _has(one, measure, columns)])
    ]
    heads = [layout.head, "measure", "figures", *map(heading, columns), *([_AVERAGE] if layout.mean else [])]
    if not sources:
        heads.remove("figures")
        rows = [[*row[:2], *row[3:]] for row in rows]
    left_out = [line.label for line in _empty(layout, lines)]
    caption = _caption(layout, columns, left_out, rows)
    marked = "".join(cell.notes for row in rows for cell in row)
    footnotes = [(mark, text) for mark, text in _FOOTNOTES.items() if mark in marked]
    return Table(_SECTION, _title(layout), caption, [Column(name) for name in heads], rows, footnotes)


def chosen(layout: Layout, records: Sequence[Record]) -> list[tuple[Row, str]]:
    """Rows of a layout with the report's system in each; of several that fit, the one that fits best.

    That is the one that is called as the row, has its profile, and searches exactly. A system of the report
    that is in no row follows in one of its own if the layout says so.
    """
    named = systems(records)
    taken: set[tuple[str, str]] = set()
    found = []
    for row in layout.rows:
        language = row.language or layout.language
        candidates = {
            record.system: record
            for record in records
            if record.language == language and named[record.system] == row.system
        }
        best = min(candidates.values(), key=lambda record: _misfit(record, row, layout), default=None)
        found.append((row, best.system if best else ""))
        taken.add((best.system if best else "", language))
    if layout.others:
        for record in records:
            place = (record.system, record.language)
            known = original(record.dataset) in layout.datasets
            if known and record.language == layout.language and place not in taken:
                taken.add(place)
                found.append((Row(system=named[record.system], label=record.system), record.system))
    return found


def _misfit(record: Record, row: Row, layout: Layout) -> tuple[bool, bool, bool]:
    stated = record.conditions
    return (
        record.system not in (row.label, row.system),
        stated.profile != (row.profile or layout.profile),
        stated.search == "ann",
    )


def _lines(
    layout: Layout,
    records: Sequence[Record],
    sources: Sequence[Source],
    published: Mapping[str, Mapping[Key, Figure]],
) -> Iterator[Line]:
    """What stands in the rows: ours, then each source, system by system."""
    by_system: dict[tuple[str, str], dict[tuple[str, str], Record]] = {}
    for record in records:
        if record.value is not None:
            place = (original(record.dataset), record.measure)
            by_system.setdefault((record.system, record.language), {})[place] = record
    told = set()
    for row, name in chosen(layout, records):
        language, label = row.language or layout.language, row.label or row.system
        own = by_system.get((name, language), {})
        values = {place: record.value for place, record in own.items() if record.value is not None}
        not_below = {place for place, record in own.items() if record.not_below_best}
        yield Line(label, _OURS, row.system, values, not_below)
        others = () if (row.system, language) in told else sources  # a variant stands below its original
        told.add((row.system, language))
        for source in others:
            theirs = {
                (key.dataset, key.measure): figure.value
                for key, figure in published[source.name].items()
                if (key.system, key.language) == (row.system, language)
            }
            yield Line(label, source.title, row.system, theirs)


def _has(line: Line, measure: str, columns: Sequence[str]) -> bool:
    return any((dataset, measure) in line.values for dataset in columns)


def _empty(layout: Layout, lines: Sequence[Line]) -> list[Line]:
    """Lines of ours that hold nothing."""
    return [line for line in lines if line.of == _OURS and not line.values]


def _block(
    layout: Layout, measure: str, columns: Sequence[str], lines: Sequence[Line]
) -> Iterator[list[Cell]]:
    """The rows of one measure: label, measure, whose figures, values; the best of ours is marked."""
    made = []
    for line in lines:
        values = [_cell(layout, line, dataset, measure) for dataset in columns]
        made.append((line, values + ([_mean(layout, line, measure)] if layout.mean else [])))
    ours = [values for line, values in made if line.of == _OURS]
    best = [_best(column) for column in zip(*ours, strict=True)] if len(ours) > 1 else []
    for line, values in made:
        if line.of == _OURS and best:
            values = [cell._replace(best=cell.text == text) for cell, text in zip(values, best, strict=True)]
        yield [Cell(line.label), Cell(measure), Cell(line.of), *values]


def _best(column: Sequence[Cell]) -> str:
    known = [cell for cell in column if cell.order is not None]
    return max(known, key=lambda cell: cell.order or 0.0).text if known else ""


def _cell(layout: Layout, line: Line, dataset: str, measure: str) -> Cell:
    value = line.values.get((dataset, measure))
    if value is None:
        return Cell(_NONE)
    notes = DAGGER if dataset in trained_on(line.system) else ""
    notes += NOT_BELOW if (dataset, measure) in line.not_below else ""
    return _points(layout, value, notes)


def _mean(layout: Layout, line: Line, measure: str) -> Cell:
    """The plain mean over the stated datasets, or how many of them there are: never a mean of fewer."""
    known = [value for dataset in layout.mean if (value := line.values.get((dataset, measure))) is not None]
    if len(known) < len(layout.mean):
        return Cell(f"incomplete ({len(known)}/{len(layout.mean)})")
    return _points(layout, math.fsum(known) / len(known))


def _points(layout: Layout, value: float, notes: str = "") -> Cell:
    rounded = 100 * value + _HALF  # as on paper: what binary fractions put just below a half goes up
    return Cell(f"{rounded:.{layout.decimals}f}", 100 * value, notes=notes)


def _needed(layout: Layout) -> str:
    """Which systems and datasets fill a table of scores."""
    systems = ", ".join(dict.fromkeys(row.system for row in layout.rows))
    return f"systems of: {systems}{' (or others)' if layout.others else ''}; on: {', '.join(layout.datasets)}"


def _title(layout: Layout) -> str:
    return f"Table {layout.name}. {layout.title}"


def _caption(
    layout: Layout, columns: Sequence[str], empty: Sequence[str], rows: Sequence[Sequence[Cell]]
) -> str:
    said = [f"{' and '.join(layout.measures)} in points of 100; best of ours in a column marked."]
    if layout.mean:
        said.append(f"Average: plain mean over {_listed(layout.mean, layout)}.")
    missing = [dataset for dataset in layout.datasets if dataset not in columns]
    if missing:
        said.append(f"Datasets without a score: {', '.join(map(heading, missing))}.")
    shown = {row[0].text for row in rows}
    if gone := [label for label in empty if label not in shown]:
        said.append(f"Rows without a score: {', '.join(gone)}.")
    return " ".join(said)


def _listed(datasets: Sequence[str], layout: Layout) -> str:
    if set(datasets) == set(layout.datasets):
        return f"the {counted(len(datasets), 'dataset')} of the table"
    without = [heading(dataset) for dataset in layout.datasets if dataset not in datasets]
    return f"the {counted(len(datasets), 'dataset')} of the table other than {', '.join(without)}"
