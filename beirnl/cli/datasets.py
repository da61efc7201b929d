"""Commands on datasets."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from beirnl.cli.app import console, datasets_app

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beirnl.datasets import stats_text


@datasets_app.command()
def stats(
    dataset: Annotated[
        str, typer.Argument(metavar="NAME|FOLDER", help="Of the registry, a folder, hub:ORG/NAME or irds:ID.")
    ],
    split: Annotated[
        str | None, typer.Option(help="Whose judgements count (default: the registry's, else test).")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="The same set in the language it was translated from (default: the registry's)."),
    ] = None,
    format: Annotated[
        Literal["table", "json", "markdown"], typer.Option("--format", "-f", help="How to show it.")
    ] = "table",
) -> None:
    """Count queries, documents, relevant documents and words, and what is wrong: duplicates, empty texts,
    judgements that point nowhere, texts left in the source's language.

    `beirnl datasets stats scifact`, `beirnl datasets stats out/owls-nl --source data/owls`
    """
    from beirnl.datasets import sources, stats_text
    from beirnl.datasets.stats import measure, total

    here = Path.cwd() / "experiment.toml"
    entry, places = sources.find(dataset, here)
    twins = sources.twins(entry, source, here)
    wanted = split or (entry.split if entry else "test")
    parts = []
    for part, place in places.items():
        twin = twins.get(part)
        parts.append(measure(place.folder, wanted, twin and twin.folder, part))
    rows = [*parts, total(parts)] if len(parts) > 1 else parts
    said = stats_text.said_of(entry, rows[-1])
    name = entry.name if entry else dataset
    if format == "json":
        sys.stdout.write(stats_text.to_json(name, rows, said))
    elif format == "markdown":
        sys.stdout.write(stats_text.to_markdown(name, rows, said))
    else:
        _show(stats_text.tables(name, rows, said))


def _show(tables: "Iterable[stats_text.Table]") -> None:
    from rich.table import Table

    for headings, rows in tables:
        table = Table(*headings, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*row)
        console().print(table, "")
