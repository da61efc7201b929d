"""A report as text: tables for a terminal, and Markdown."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from beirnl.evaluation.records import Report
from beirnl.evaluation.tables import STAR, Cell, Column, Table, marks, tables

if TYPE_CHECKING:
    import rich.console
    import rich.table

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
_NUMBER_WIDTH = 10  # of a column of values on a terminal, with its border
_WRAPPED = 36  # characters of a column of text on a terminal, beyond which it wraps
_TEXT_LIMIT = 160  # characters of a cell on a terminal


def to_markdown(report: Report) -> str:
    """The report in (GitHub's) Markdown: warnings, notes and every table."""
    parts = [f"# {_escape(report.name)}"]
    for heading, lines in (("Warnings", report.warnings), ("Notes", report.notes)):
        if lines:
            parts.append("\n".join([f"## {heading}", "", *(f"- {_escape(line)}" for line in lines)]))
    section = ""
    for table in tables(report):
        if table.section != section:
            section = table.section
            parts.append(f"## {section}")
        parts.append(markdown_table(table))
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """A table in Markdown, with its caption and footnotes."""
    heads = [_escape(_head(column, " ")) for column in table.columns]
    aligned = ["--:" if number else "---" for number in _numeric(table)]
    body = [[_markdown_cell(cell) for cell in row] for row in table.rows]
    lines = [f"**{_escape(table.title)}**", ""]
    lines += [f"| {' | '.join(row)} |" for row in (heads, aligned, *body)]
    below = [table.caption] if table.caption else []
    below += [f"{_escape(marks(letter).strip())} {_escape(text)}" for letter, text in table.footnotes]
    return "\n".join(lines) + "".join(f"\n\n{line}" for line in below)


def _markdown_cell(cell: Cell) -> str:
    text = _escape(cell.text)
    text = f"**{text}**" if cell.best else text
    return text + _MARKDOWN.sub(r"\\\1", marks(cell.notes))


def _escape(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def show(report: Report, console: "rich.console.Console") -> None:
    """Prints the report on a terminal; a table wider than it is printed in several parts."""
    from rich.text import Text

    for kind, style, lines in (("Warning", "yellow", report.warnings), ("Note", "cyan", report.notes)):
        for line in lines:
            console.print(Text.assemble((f"{kind}: ", style), _printable(line)))
    for table in tables(report):
        show_table(table, console)


def show_table(table: Table, console: "rich.console.Console") -> None:
    """Prints a table, in several parts if it is wider than the terminal.

    The best of a column is bold; where the console has no styles, as in a file, a star stands behind it.
    """
    from rich.text import Text

    if console.color_system is None:
        table = _starred(table)
    for part in _parts(table, console.width):
        console.print(_rich_table(part))
    for letter, text in table.footnotes:
        console.print(Text(_printable(f"{marks(letter).strip()} {text}"), style="dim"))
    if table.caption:
        console.print(Text(_printable(table.caption), style="dim italic"))
    console.print()


def _starred(table: Table) -> Table:
    """A table whose best values have a star among their notes, before all others."""
    if not any(cell.best for row in table.rows for cell in row):
        return table
    rows = [
        [cell._replace(notes=STAR + cell.notes) if cell.best else cell for cell in row] for row in table.rows
    ]
    return table._replace(rows=rows, footnotes=[(STAR, "best of its column"), *table.footnotes])


def _rich_table(table: Table) -> "rich.table.Table":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(
        title=Text(_printable(table.title), style="bold"), title_justify="left", box=box.SIMPLE_HEAD
    )
    for column, number in zip(table.columns, _numeric(table), strict=True):
        head = Text(_printable(_head(column, "\n"), keep="\n"))
        made.add_column(head, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in table.rows:
        made.add_row(*(_rich_cell(cell) for cell in row))
    return made


def _rich_cell(cell: Cell) -> "rich.text.Text":
    from rich.text import Text

    text = _printable(cell.text)
    text = text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"
    return Text.assemble((text, "bold" if cell.best else ""), (marks(cell.notes), "dim"))


def _parts(table: Table, width: int) -> Iterator[Table]:
    """The table with at most as many columns of values as the width holds; the first column is repeated."""
    values = len(table.columns) - 1
    if not table.columns[-1].group:
        yield from _packed(table, width)
        return
    first = max(len(cell.text) for row in table.rows for cell in row[:1]) + 8
    fit = max(1, (width - first) // _widest(table))
    measures = len({column.name for column in table.columns[1:]})
    fit = max(fit // measures * measures, min(fit, measures))  # the measures of a dataset stay together
    for start in range(1, values + 1, fit):
        yield _columns(table, [0, *range(start, min(start + fit, values + 1))])


def _packed(table: Table, width: int) -> Iterator[Table]:
    """A table of text in as few parts as fit the width; the first column is repeated, long cells wrap."""
    cells = zip(table.columns, zip(*table.rows, strict=True), strict=True)
    widths = [
        min(_WRAPPED, max(len(column.name), *(len(cell.text) for cell in column_cells))) + 3
        for column, column_cells in cells
    ]
    chosen = [0]
    for at in range(1, len(widths)):
        if len(chosen) > 1 and sum(widths[one] for one in chosen) + widths[at] > width:
            yield _columns(table, chosen)
            chosen = [0]
        chosen.append(at)
    yield _columns(table, chosen)


def _columns(table: Table, chosen: Sequence[int]) -> Table:
    return table._replace(
        columns=[table.columns[at] for at in chosen],
        rows=[[row[at] for at in chosen] for row in table.rows],
    )


def _widest(table: Table) -> int:
    heads = [max(len(column.group), len(column.name)) for column in table.columns[1:]]
    cells = [len(cell.text) + (4 if cell.notes else 0) for row in table.rows for cell in row[1:]]
    return max(*heads, *cells, _NUMBER_WIDTH - 2) + 2


def _head(column: Column, joint: str) -> str:
    return f"{column.group}{joint}{column.name}" if column.group else column.name


def _numeric(table: Table) -> Sequence[bool]:
    """Which columns hold numbers (or say that one is missing), and are therefore set flush right."""
    columns = zip(*table.rows, strict=True)
    return [any(cell.order is not None for cell in column) for column in columns]


def _printable(text: str, keep: str = "") -> str:
    """Text without characters that steer a terminal; texts of datasets and models are not trusted."""
    return "".join(char if char.isprintable() or char in keep else " " for char in text)
