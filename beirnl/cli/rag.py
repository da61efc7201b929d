"""``beirnl rag``: the ordinary commands, for experiments with ``[rag]``."""

import typer

from beirnl.cli import run, show, status
from beirnl.cli.app import app

rag_app = typer.Typer(help="Which embedding model makes the answers right, on documents of one's own.")
app.add_typer(rag_app, name="rag")
for command in (run.plan, run.run, status.status, show.report):
    rag_app.command()(command)
