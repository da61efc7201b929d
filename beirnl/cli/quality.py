"""The command that compares translations with references: which model to choose before spending."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from beirnl.cli.app import app, console, load_translation


@app.command()
def quality(
    experiments: Annotated[
        list[Path],
        typer.Argument(
            metavar="EXP...", help="Experiment files that have been translated.", show_default=False
        ),
    ],
    format: Annotated[
        Literal["table", "markdown"], typer.Option("--format", "-f", help="How to show it.")
    ] = "table",
) -> None:
    """Compare translations with references by chrF and BLEU, one experiment with another.

    References come from `[[parallel]]` texts and from datasets with a `reference`. With several experiments
    the first is compared with each of the others, segment by segment.
    """
    from beirnl.evaluation.tables import text
    from beirnl.pipeline import Pipeline
    from beirnl.reporting.quality import quality_tables

    tables = quality_tables([Pipeline.of(load_translation(path)) for path in experiments])
    for table in tables:
        if format == "table":
            text.show_table(table, console())
        else:
            print(text.markdown_table(table) + "\n")
