"""The application that commands join, and what they share."""

import logging
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from beirnl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from beirnl.config import Experiment
    from beirnl.progress import Progress

app = typer.Typer(
    name="beirnl",
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
models_app = typer.Typer(help="Models that experiments can name.")
app.add_typer(models_app, name="models")
datasets_app = typer.Typer(help="Datasets that experiments can name; without a command they are listed.")
app.add_typer(datasets_app, name="datasets")

Exp = Annotated[Path, typer.Argument(metavar="EXP", help="Experiment file (TOML).", show_default=False)]
Format = Literal["table", "markdown", "latex", "html", "csv", "json"]


def console() -> "Console":
    """Standard output; wide where it is no terminal, so that a path stays in one piece."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


def load(path: Path) -> "Experiment":
    """Read an experiment file."""
    from beirnl.config import load_experiment

    return load_experiment(path)


def load_translation(path: Path) -> "Experiment":
    """Read an experiment file for a command that needs its translation, and none of its systems.

    Raises:
        ConfigError: it has no translation.
    """
    loaded = load(path)
    if loaded.translation is None:
        raise ConfigError("has no [translation]", where=path, remedy="add one; see README.md")
    return loaded.only_translated


@contextmanager
def progress_of_terminal() -> "Iterator[Progress]":
    """Bars on a terminal, lines elsewhere; also says what the engines log."""
    from beirnl.progress import Bars, Lines

    bars = Bars() if sys.stderr.isatty() else None
    progress: Progress = bars or Lines()
    logger, handler = logging.getLogger("beirnl"), _Saying(progress)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield progress
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        if bars:
            bars.stop()


class _Saying(logging.Handler):
    """Says what is logged, a line each."""

    def __init__(self, progress: "Progress") -> None:
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Say a record."""
        self._progress.say(self.format(record))
