"""Entries of the registry as tables and JSON."""

import json
from typing import TYPE_CHECKING

from beirnl import registry
from beirnl.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

_REVISION = 12  # characters of a commit that are shown
_COLUMNS = ("dataset", "language", "documents", "queries", "per query", "domain", "licence", "hub@revision")
_NUMBERS = range(2, 5)


def datasets_table() -> "Table":
    """The datasets, those in parts as a whole; numbers are those of the source, a blank where it has none."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if number in _NUMBERS else "left", no_wrap=True)
    for entry in registry.datasets().values():
        if not entry.whole:
            counts = entry.counts
            sizes = (
                [f"{counts.documents:,}", f"{counts.queries:,}", f"{counts.relevant_per_query:.1f}"]
                if counts
                else [""] * 3
            )
            hub = entry.pinned or (counted(len(entry.parts), "part") if entry.parts else "")
            hub = hub[: len(entry.hub) + 1 + _REVISION] if entry.revision else hub
            table.add_row(entry.name, entry.language, *sizes, entry.domain, entry.licence, hub)
    return table


def datasets_json() -> str:
    """All entries with all their facts, parts too, as a JSON list that ends in a line feed."""
    entries = [entry.model_dump(mode="json") for entry in registry.datasets().values()]
    return json.dumps(entries, ensure_ascii=False, indent=1) + "\n"
