"""A report in every format that the command line offers for a file."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from beirnl.evaluation import page, records
from beirnl.evaluation.records import Record, Report
from beirnl.evaluation.tables import Cell, Column, Table, score_tables, table_text, text
from beirnl.evaluation.tables.table_text import ShownTable
from beirnl.evaluation.tables.uncertainty_tables import ShownPair

JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"
_CONDITIONS = "Conditions"
_FORMS: TypeAdapter[Any] = TypeAdapter(list[Record] | list[ShownTable] | list[ShownPair])
_FIELDS = ("dataset", "language", "system", "measure", "value", "queries")


def to_json(report: Report) -> str:
    """Records, or the tables of a report that was made of tables."""
    return table_text.to_json(report.tables) if report.tables else records.to_json(report.records)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of all that ``--format json`` writes: records, tables, or pairs of systems.

    It is made from the types; ``report.schema.json`` is its copy.
    """
    schema = _FORMS.json_schema(mode="serialization")
    return {"$schema": JSON_SCHEMA, "title": "beirnl report", **schema}


def to_csv(report: Report) -> str:
    """One table: the one that was asked for, or the comparison with published figures, else the records."""
    return table_text.to_csv(report.tables[0] if report.tables else _records(report.records))


def to_latex(report: Report) -> str:
    """The tables that were asked for, else those of scores; conditions are left to the other formats."""
    made = report.tables or score_tables(report.records)
    return "\n".join(table_text.to_latex(table) for table in made if table.section != _CONDITIONS)


def _records(values: Sequence[Record]) -> Table:
    rows = [
        [
            Cell("" if (value := getattr(one, name)) is None else str(value), _number(value))
            for name in _FIELDS
        ]
        for one in values
    ]
    return Table("Scores", "Records", "", [Column(name) for name in _FIELDS], rows)


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "markdown": text.to_markdown,
    "latex": to_latex,
    "html": page.render,
    "csv": to_csv,
    "json": to_json,
}
