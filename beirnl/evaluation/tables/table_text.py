"""Tables as CSV, LaTeX and JSON."""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from beirnl.evaluation.records import Strict
from beirnl.evaluation.tables import Cell, Column, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    **{char: "\\" + char for char in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "…": r"\ldots{}",
    "†": r"\dag{}",
    "Δ": r"$\Delta$",
    "−": "$-$",
}
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))
_DASHES = ("–", "-")
#: Heads of first columns whose equal cells make a block of rows.
_GROUPED = ("task", "kind")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class ShownCell(Strict):
    """A cell of a table in JSON.

    Attributes:
        text: as shown.
        value: of a number; null for texts.
        best: whether it is the best of its column.
        notes: marks of footnotes.
    """

    text: str
    value: int | float | None
    best: bool
    notes: str


class ShownTable(Strict):
    """A table in JSON.

    Attributes:
        title, caption: above and below it.
        columns: heads.
        rows: cells, one for each column.
        footnotes: texts by mark.
    """

    title: str
    caption: str
    columns: list[str]
    rows: list[list[ShownCell]]
    footnotes: dict[str, str]


def to_csv(table: Table) -> str:
    """The table as CSV (RFC 4180): heads, then rows; numbers in full precision, without marks.

    What has no number is as it is shown, but for a dash, which becomes empty. A text that a spreadsheet would
    take for a formula is preceded by an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([_guarded(_head(column)) for column in table.columns])
    writer.writerows([_plain(cell) for cell in row] for row in table.rows)
    return out.getvalue()


def _plain(cell: Cell) -> str | float:
    if cell.order is not None:
        return round(cell.order, 10)
    return "" if cell.text in _DASHES else _guarded(cell.text)


def _guarded(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _head(column: Column) -> str:
    return f"{column.group} {column.name}".strip()


def to_json(tables: Sequence[Table]) -> str:
    """Tables as a JSON list of :class:`ShownTable`."""
    made = [
        ShownTable(
            title=table.title,
            caption=table.caption,
            columns=[_head(column) for column in table.columns],
            rows=[
                [ShownCell(text=c.text, value=c.order, best=c.best, notes=c.notes) for c in row]
                for row in table.rows
            ],
            footnotes=dict(table.footnotes),
        ).model_dump()
        for table in tables
    ]
    return json.dumps(made, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def to_latex(table: Table) -> str:
    r"""The table as a LaTeX ``table`` of the package booktabs, with its caption and footnotes below.

    A rule parts blocks of rows that have the same measure in the second column, or the same first cell.
    """
    aligned = "".join(
        "r" if any(row[at].order is not None for row in table.rows) else "l"
        for at in range(len(table.columns))
    )
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{aligned}}}", r"\toprule"]
    lines += _groups(table.columns)
    lines += [_row(_escaped(column.name) for column in table.columns), r"\midrule"]
    for block in _blocks(table):
        lines += [*block, r"\midrule"]
    lines.pop()
    below = [_escaped(table.title) + ".", _escaped(table.caption)]
    below += [f"{_escaped(mark)}: {_escaped(text)}." for mark, text in table.footnotes]
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{' '.join(filter(None, below))}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _groups(columns: Sequence[Column]) -> list[str]:
    """A line with the groups of columns, where there are any."""
    if not any(column.group for column in columns):
        return []
    spans = [(group, len(list(same))) for group, same in groupby(column.group for column in columns)]
    return [_row(rf"\multicolumn{{{width}}}{{c}}{{{_escaped(group)}}}" for group, width in spans)]


def _blocks(table: Table) -> list[list[str]]:
    """Rows as lines, in blocks that have the same measure, or the same first cell in a table of groups."""
    names = [column.name for column in table.columns]
    at = names.index("measure") if "measure" in names[:2] else 0 if names[0] in _GROUPED else None
    key = [row[at].text if at is not None else "" for row in table.rows]
    lines = zip(key, (_row(map(_cell, row)) for row in table.rows), strict=True)
    return [[line for _, line in block] for _, block in groupby(lines, lambda pair: pair[0])]


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    text = rf"\textbf{{{text}}}" if cell.best else text
    return text + (rf"\textsuperscript{{{_escaped(cell.notes)}}}" if cell.notes else "")


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: _LATEX[match[0]], " ".join(text.split()))
