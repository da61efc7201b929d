"""Tables of how translations went: rows by status, what repair mended, examples."""

from collections.abc import Iterable

from beirnl.evaluation.records import Example, Report
from beirnl.evaluation.tables import Cell, Column, Table, number, unique

_LONGEST_TEXT = 600
_EXAMPLES = 3


def tables(report: Report) -> list[Table]:
    """Rows by status, repairs and examples, one row or several per translation."""
    statuses = unique(["ok", *(status for made in report.translations.values() for status in made.counts)])
    rows = []
    for dataset, made in report.translations.items():
        total = sum(made.counts.values())
        counts = [number(made.counts.get(status, 0)) for status in statuses]
        share = made.counts.get("ok", 0) / total if total else 0.0
        rows.append([Cell(dataset), number(total), Cell(f"{share:.2%}", share), *counts])
    columns = [Column("dataset"), Column("rows"), Column("share ok"), *map(Column, statuses)]
    caption = "Rows by the verdict of the checks; a row that failed is kept with its reason, none is dropped."
    examples = [
        [Cell(dataset), Cell(example.status), *(Cell(_cut(text)) for text in example[1:])]
        for dataset, made in report.translations.items()
        for example in _few(made.examples)
    ]
    heads = [Column(name) for name in ("dataset", "status", "source", "first answer", "kept")]
    said = (
        f"Up to {_EXAMPLES} for each status. First answer: what the model said before any repair. Kept: what "
        "stands in the result, which is the source where no answer was good enough."
    )
    return [
        Table("Translation", "Rows by status", caption, columns, rows),
        _repairs(report),
        Table("Translation", "Examples", said, heads, examples),
    ]


def _repairs(report: Report) -> Table:
    """Rows that the first answer left with a fault, and the rungs that mended some of them."""
    made = {name: one for name, one in report.translations.items() if one.rungs}
    rungs = unique(rung for one in made.values() for rung in one.rungs)
    rows = [
        [
            Cell(name),
            *(number(sum(counts.values()) - counts.get("ok", 0)) for counts in (one.first, one.counts)),
            *(number(one.rungs.get(rung, 0)) for rung in rungs),
        ]
        for name, one in made.items()
    ]
    columns = [Column("dataset"), Column("not ok at first"), Column("in the end"), *map(Column, rungs)]
    caption = "Rows whose text came from a rung of the repair ladder: a better attempt than the first answer."
    return Table("Translation", "Repair", caption, columns, rows)


def _few(examples: Iterable[Example]) -> list[Example]:
    """The first examples of each status."""
    by_status: dict[str, list[Example]] = {}
    for example in examples:
        by_status.setdefault(example.status, []).append(example)
    return [example for same in by_status.values() for example in same[:_EXAMPLES]]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
