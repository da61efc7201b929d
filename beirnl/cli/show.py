"""Commands that show results and what there is."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from beirnl.cli.app import Exp, Format, app, console, datasets_app, load, models_app


@app.command()
def report(
    experiment: Exp,
    format: Annotated[Format, typer.Option("--format", "-f", help="How to show it.")] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file instead of standard output.")
    ] = None,
) -> None:
    """Show the result: measures, checks of translations, warnings, run files."""
    from beirnl.evaluation import page, records, text
    from beirnl.pipeline import Pipeline
    from beirnl.reporting import gather

    found = gather(Pipeline.of(load(experiment)))
    for line in found.warnings if format == "json" else ():
        print(f"warning: {line}", file=sys.stderr)
    if format == "table" and output is None:
        text.show(found, console())
        return
    if format == "json":
        rendered = records.to_json(found.records)
    elif format == "html":
        rendered = page.render(found)
    else:
        rendered = text.to_markdown(found)
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


@datasets_app.callback(invoke_without_command=True)
def datasets(context: typer.Context) -> None:
    """List the datasets of the registry."""
    from beirnl import registry

    if context.invoked_subcommand:
        return
    for entry in registry.datasets().values():
        print(f"{entry.name:16} {entry.language}  {entry.domain:14} {entry.licence:14} {entry.path}")


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
