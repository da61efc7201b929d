"""The application that commands join, and what they share."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from beirnl.config import Experiment
    from beirnl.progress import Progress

app = typer.Typer(
    name="beirnl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Distributed batch processing for retrieval research.\n\n"
    "An experiment file (TOML) names datasets, a translation, systems and measures. "
    "`beirnl plan EXP` shows what is to be done, `beirnl run EXP` does it (and goes on where a killed run "
    "stood), "
    "`beirnl report EXP` shows the result.\n\n"
    "Start with `beirnl run experiments/quickstart.toml`.",
)
models_app = typer.Typer(no_args_is_help=True, help="Models that experiments can name.")
app.add_typer(models_app, name="models")

Exp = Annotated[Path, typer.Argument(metavar="EXP", help="Experiment file (TOML).", show_default=False)]
Format = Literal["table", "markdown", "json", "html"]


def console() -> "Console":
    """Standard output; wide where it is no terminal, so that a path stays in one piece."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


def load(path: Path) -> "Experiment":
    """Read an experiment file."""
    from beirnl.config import load_experiment

    return load_experiment(path)


@contextmanager
def progress_of_terminal() -> "Iterator[Progress]":
    """Bars on a terminal, lines elsewhere."""
    from beirnl.progress import Bars, Lines

    if not sys.stderr.isatty():
        yield Lines()
        return
    bars = Bars()
    try:
        yield bars
    finally:
        bars.stop()
