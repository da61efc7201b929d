"""Commands that show results and what there is."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from beirnl.cli.app import Exp, Format, app, console, load, models_app


@app.command()
def report(
    experiment: Exp,
    format: Annotated[Format, typer.Option("--format", "-f", help="How to show it.")] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file instead of standard output.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this table of the paper: 1 to 6, or 3-en.")
    ] = None,
    compare: Annotated[
        str, typer.Option(metavar="paper,mteb", help="Set published figures and the differences beside ours.")
    ] = "",
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Test all pairs of systems in every column, not only the best.")
    ] = False,
) -> None:
    """Show the result: measures, checks of translations, warnings, run files.

    `beirnl report EXP --table 3 --compare paper,mteb --format latex` makes the paper's Table 3, with what the
    paper and MTEB have published and the reasons for the gaps that the conditions tell.
    """
    from beirnl.evaluation import page, paper, text, uncertainty_tables
    from beirnl.evaluation.formats import FORMATS
    from beirnl.pipeline import Pipeline
    from beirnl.reporting import gather, per_query

    pipeline = Pipeline.of(load(experiment))
    found = replace(gather(pipeline), pairs=pairs)
    sources = [name.strip() for name in compare.split(",") if name.strip()]
    if table:
        found = paper.tabled(found, table, sources)
    elif sources:
        found = paper.compared(found, sources)
    for line in found.warnings if format in ("json", "csv", "latex") else ():
        print(f"warning: {line}", file=sys.stderr)
    if format == "table" and output is None:
        text.show(found, console())
        return
    if format == "json" and pairs and found.uncertainty:
        rendered = uncertainty_tables.pairs_json(found.uncertainty)
    elif format == "html" and not table:
        rendered = page.render(found, per_query.views(pipeline, found.scores))
    else:
        rendered = FORMATS["markdown" if format == "table" else format](found)
    if output:
        output.write_text(rendered, encoding="utf-8")
    else:
        sys.stdout.write(rendered)


@app.command()
def analyze(
    language: Annotated[str, typer.Option("--language", "-l", help="nl or en, or an analyzer's name.")],
) -> None:
    """Print the index terms of each line of standard input, separated by blanks."""
    from beirnl.retrieval import analysis

    name = language if language in analysis.ANALYZERS else analysis.for_language(language)
    analyzer = analysis.analyzer(name)
    for line in sys.stdin:
        sys.stdout.write(" ".join(analyzer.terms(line.rstrip("\r\n"))) + "\n")


@app.command()
def datasets(
    format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="JSON also tells parts and aliases.")
    ] = "table",
) -> None:
    """List the datasets of the registry: language, size, domain, licence, and where they are on the hub."""
    from beirnl.cli import listing

    if format == "json":
        sys.stdout.write(listing.datasets_json())
    else:
        console().print(listing.datasets_table())


@models_app.command("list")
def list_models() -> None:
    """List the models of the registry."""
    from beirnl import registry

    for entry in registry.models().values():
        source = entry.package or f"{entry.hub}@{entry.revision[:12] or 'unpinned'}"
        print(f"{entry.name:32} {entry.kind:9} {entry.licence:12} {source}")


@models_app.command("prepare")
def prepare_models(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Models of the registry.")],
) -> None:
    """Fetch or convert models into the cache now, so that a run finds them there."""
    from beirnl import registry
    from beirnl.models import model_path

    for name in names:
        print(model_path(registry.resolve_model(name, registry.model(name).kind)))
