"""Tables of a report as plain values, which modules here print and :mod:`beirnl.evaluation.page` lays out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from beirnl.errors import DataError
from beirnl.evaluation.records import Record, Report

T = TypeVar("T")

#: A dataset in a language.
Place = tuple[str, str]

_IDENTITY = ("model", "source", "revision")  # what names a system is no difference in conditions
_NONE = "–"
NOT_BELOW, DAGGER, STAR = "=", "†", "*"
NOT_BELOW_TEXT = (
    "not significantly below the best of its column (paired randomisation test, Holm's correction)"
)


class Cell(NamedTuple):
    """What stands in one place of a table.

    Attributes:
        text: as shown.
        order: number to sort by; None for text.
        best: whether it is the best value of its column: bold, or with a star where text cannot be.
        notes: letters of the footnotes that belong to it.
    """

    text: str
    order: float | None = None
    best: bool = False
    notes: str = ""


class Column(NamedTuple):
    """Head of a column: its name, and the group of columns that it stands in (empty: none)."""

    name: str
    group: str = ""


class Table(NamedTuple):
    """A table; the first column names the row.

    Attributes:
        section: heading under which it stands.
        title: of the table.
        caption: what the values are.
        columns: heads.
        rows: cells, as many in each row as there are columns.
        footnotes: letter and text.
    """

    section: str
    title: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    footnotes: Sequence[tuple[str, str]] = ()


def marks(notes: str) -> str:
    """Marks of footnotes as text puts them behind a value: in brackets, but for a star and a dagger."""
    bare = "".join(mark for mark in (STAR, DAGGER) if mark in notes)
    rest = "".join(mark for mark in notes if mark not in bare)
    return bare + (f" [{rest}]" if rest else "")


def tables(report: Report) -> list[Table]:
    """All tables of a report, in reading order; empty ones are left out.

    Raises:
        DataError: two records say the same system, dataset, language and measure.
    """
    made = [
        *report.tables,
        *score_tables(report.records),
        *condition_tables(report.records),
        *_more(report),
        *_timings(report),
        *_runs(report),
    ]
    return [table for table in made if table.rows]


def score_tables(records: Sequence[Record]) -> list[Table]:
    """One table for each set of measures: systems by dataset and language, best value of a column marked."""
    values = _index(records)
    sets: dict[tuple[str, ...], list[Place]] = {}
    for place in unique((record.dataset, record.language) for record in records):
        measures = unique(record.measure for record in records if (record.dataset, record.language) == place)
        sets.setdefault(tuple(measures), []).append(place)
    return [_score_table(values, places, measures) for measures, places in sets.items()]


def _index(records: Sequence[Record]) -> dict[tuple[str, Place, str], Record]:
    values: dict[tuple[str, Place, str], Record] = {}
    for record in records:
        key = (record.system, (record.dataset, record.language), record.measure)
        if key in values:
            raise DataError(
                f"two values of {record.measure} on {record.dataset} ({record.language})",
                where=f"system {record.system}",
                remedy="give systems that differ in their conditions different names",
            )
        values[key] = record
    return values


def _score_table(
    values: Mapping[tuple[str, Place, str], Record], places: Sequence[Place], measures: Sequence[str]
) -> Table:
    shown = {key: record for key, record in values.items() if key[1] in places}
    systems = unique(system for system, _, _ in shown)
    notes = _differences(shown.values())
    letters = {text: _letter(number) for number, text in enumerate(unique(notes.values()))}
    best = {
        (place, measure): max(
            (_printed(record.value) for key, record in shown.items() if key[1:] == (place, measure)),
            default="",
        )
        for place in places
        for measure in measures
        if len(systems) > 1
    }
    rows = []
    for system in systems:
        cells = [Cell(system)]
        for place in places:
            for measure in measures:
                record = shown.get((system, place, measure))
                letter = letters.get(notes.get((system, place), ""), "")
                cells.append(_score(record, letter, best.get((place, measure), "")))
        rows.append(_lift(cells))
    columns = [
        Column("system"),
        *(Column(m, f"{place[0]} ({place[1]})") for place in places for m in measures),
    ]
    caption = "Means over the judged queries as fractions of 1, four decimals; higher is better"
    caption += ", best of a column marked." if len(systems) > 1 else "."
    footnotes = [(letter, text) for text, letter in letters.items()]
    if any(record.not_below_best for record in shown.values()):
        footnotes.append((NOT_BELOW, NOT_BELOW_TEXT))
    return Table(
        "Scores", ", ".join(measures), caption + _unanswerable(shown.values()), columns, rows, footnotes
    )


def _printed(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _score(record: Record | None, letter: str, best: str) -> Cell:
    if record is None:
        return Cell(_NONE)
    if record.value is None:
        return Cell("incomplete", notes=letter)
    text = _printed(record.value)
    beside = ""
    if record.without_relevant and record.value_with_relevant is not None:
        beside = f" ({_printed(record.value_with_relevant)})"
    mark = NOT_BELOW if record.not_below_best else ""
    return Cell(text + beside, record.value, text == best, letter + mark)


def _lift(cells: Sequence[Cell]) -> list[Cell]:
    """Moves a footnote that all values of a row share to the name of the row."""
    head, *values = cells
    shared = {cell.notes.removesuffix(NOT_BELOW) for cell in values if cell.text != _NONE}
    if len(shared) == 1 and (letter := shared.pop()):
        rest = (cell._replace(notes=cell.notes.removeprefix(letter)) for cell in values)
        return [head._replace(notes=letter), *rest]
    return list(cells)


def _unanswerable(records: Iterable[Record]) -> str:
    counts = {(r.dataset, r.language): (r.without_relevant, r.queries) for r in records if r.without_relevant}
    if not counts:
        return ""
    listed = ", ".join(f"{n} of {of} in {place[0]} ({place[1]})" for place, (n, of) in counts.items())
    return (
        " Queries without a relevant document count 0; in parentheses the mean without them "
        f"(there are {listed})."
    )


def _differences(records: Iterable[Record]) -> dict[tuple[str, Place], str]:
    """What sets a system's conditions apart from those of other systems in the same column, as text."""
    columns: dict[Place, dict[str, dict[str, str]]] = {}
    for record in records:
        column = columns.setdefault((record.dataset, record.language), {})
        column[record.system] = {k: v for k, v in conditions(record).items() if k not in _IDENTITY}
    found = {}
    for place, column in columns.items():
        names = unique(name for items in column.values() for name in items)
        differing = {n for n in names if len({items.get(n) for items in column.values()}) > 1}
        for system, items in column.items():
            text = "; ".join(f"{name} {value}" for name, value in items.items() if name in differing)
            if text:
                found[system, place] = text
    return found


def conditions(record: Record) -> dict[str, str]:
    """A record's conditions by name, flat, as text; what does not apply is left out."""
    items = record.conditions.model_dump(exclude={"versions"})
    packages = {f"{name} version": version for name, version in record.conditions.versions.items()}
    flat = {**items, "queries": record.queries, **packages}
    return {key.replace("_", " "): str(value) for key, value in flat.items() if value is not None}


def condition_tables(records: Sequence[Record]) -> list[Table]:
    """Conditions where they belong: those equal everywhere, of a system, of a dataset, of a single run."""
    if not records:
        return []
    names = unique(name for record in records for name in conditions(record))
    left = {name for name in names if len(_values(records, name)) > 1}
    everywhere = [[Cell(name), Cell(_values(records, name)[0])] for name in names if name not in left]
    made = [
        Table(
            "Conditions",
            "Equal everywhere",
            "",
            [Column("condition"), Column("value")],
            everywhere,
        )
    ]
    for title, heads in _GROUPINGS.items():
        groups: dict[tuple[str, ...], list[Record]] = {}
        for record in records:
            groups.setdefault(tuple(getattr(record, head) for head in heads), []).append(record)
        fixed = [n for n in names if n in left and all(len(_values(g, n)) < 2 for g in groups.values())]
        left -= set(fixed)
        rows = [
            [*map(Cell, group), *(Cell(" / ".join(_values(members, name))) for name in fixed)]
            for group, members in groups.items()
            if any(_values(members, name) != [_NONE] for name in fixed)
        ]
        columns = [Column(name) for name in (*heads, *fixed)]
        made.append(Table("Conditions", title, "", columns, rows))
    return made


#: Title -> the fields of a record that decide the conditions in that table; the first title that fits has it.
_GROUPINGS: Mapping[str, tuple[str, ...]] = {
    "By system": ("system",),
    "By dataset": ("dataset", "language"),
    "By system and dataset": ("system", "dataset", "language"),
    "By value": ("system", "dataset", "language", "measure"),
}


def _values(records: Iterable[Record], name: str) -> list[str]:
    return unique(conditions(record).get(name, _NONE) for record in records)


def _more(report: Report) -> list[Table]:
    """What has a module of its own: how translations went, uncertainty, quality, back-translation."""
    from beirnl.evaluation.tables import uncertainty_tables
    from beirnl.evaluation.translations import back_translation, quality, translation_tables

    made = [*translation_tables.tables(report), *uncertainty_tables.tables(report)]
    made += [quality.table(report.quality)] if report.quality else []
    return made + (back_translation.tables(report.back_translation) if report.back_translation else [])


def _timings(report: Report) -> list[Table]:
    rows = [
        [Cell(t.stage), Cell(t.dataset), Cell(f"{t.seconds:,.1f}", t.seconds), number(t.units)]
        for t in report.timings
    ]
    columns = [Column("stage"), Column("dataset"), Column("seconds"), Column("units")]
    caption = "Seconds of work, summed over workers; a unit is a shard or a fixed group of shards."
    return [Table("Time", "Time by stage", caption, columns, rows)]


def _runs(report: Report) -> list[Table]:
    rows = [[Cell(run.system), Cell(run.dataset), Cell(run.language), Cell(run.path)] for run in report.runs]
    columns = [Column("system"), Column("dataset"), Column("language"), Column("file")]
    return [Table("Run files", "Rankings in TREC's format", "", columns, rows)]


def number(value: int) -> Cell:
    """A cell with a count."""
    return Cell(f"{value:,}", value)


def unique(items: Iterable[T]) -> list[T]:
    """Items without repetitions, in order of first appearance."""
    return list(dict.fromkeys(items))


def _letter(number: int) -> str:
    """a to z, then aa, ab, ..."""
    rest, last = divmod(number, 26)
    return (_letter(rest - 1) if rest else "") + chr(ord("a") + last)
