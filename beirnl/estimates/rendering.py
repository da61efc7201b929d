"""The estimate for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from beirnl.cost import Range, amount
from beirnl.tally import size_text

if TYPE_CHECKING:
    from rich.table import Table

    from beirnl.estimates.forecasting import Row


def table(rows: "Sequence[Row]") -> "Table":
    """A line per artifact, and what all take together as the last."""
    from rich import box
    from rich.table import Table

    made = Table(
        title="Retrieval: what is left", title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True
    )
    made.add_column("stage", no_wrap=True)
    made.add_column("for", overflow="fold")
    for heading in ("rows", "disk", "memory per worker", "hours"):
        made.add_column(heading, justify="right", no_wrap=heading != "memory per worker")
    made.add_column("how known", overflow="fold")
    for row in rows:
        rows_text = f"{row.rows:,} {row.counted}"
        purpose = f"{row.node.label} {row.node.purpose}".strip()
        if row.origin == "done":
            made.add_row(row.node.stage, purpose, rows_text, "", "", "", "done")
            continue
        cells = (_size(row.disk), _size(row.memory), hours_text(row.hours) if row.hours else "not known")
        made.add_row(row.node.stage, purpose, rows_text, *cells, row.origin)
    made.add_section()
    made.add_row("total", "", "", *total(rows))
    return made


def total(rows: "Sequence[Row]") -> tuple[str, str, str]:
    """Disk, memory of the workers that take most together, and hours, as far as they are known."""
    hours = sum((row.hours for row in rows if row.hours), Range.exactly(0.0))
    memory = max((row.memory * row.workers for row in rows if row.memory), default=0.0)
    plus = [" + ?" if any(getattr(row, name) is None for row in rows) else "" for name in ("disk", "hours")]
    disk = sum(row.disk or 0.0 for row in rows)
    return f"{size_text(disk)}{plus[0]}", f"{size_text(memory)} at once", f"{hours_text(hours)}{plus[1]}"


def hours_text(hours: Range) -> str:
    """A range of hours; below a hundredth only that it is."""
    return " – ".join(dict.fromkeys(_hours(end) for end in (hours.low, hours.high)))


def _hours(value: float) -> str:
    return "< 0.01" if 0 < value < 0.005 else amount(value)


def _size(size: float | None) -> str:
    return "not known" if size is None else size_text(size)
