"""Commands that show results and what there is."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from beirnl.cli.app import Exp, Format, app, console, datasets_app, load
from beirnl.wording import counted

if TYPE_CHECKING:
    from beirnl.evaluation.records import Report
    from beirnl.pipeline import Pipeline

Form = Literal["trec", "beir", "ranx", "mteb"]


Table = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this table of the paper: 1 to 6, or 3-en.")
]
Compare = Annotated[
    str, typer.Option(metavar="paper,mteb", help="Set published figures and the differences beside ours.")
]
WithResults = Annotated[
    list[Path] | None,
    typer.Option(
        "--with-results",
        metavar="FILE",
        help="Add rows of others: a task's JSON of MTEB, or results of BEIR or ranx that are called "
        "DATASET.LANGUAGE.json. Can be repeated.",
    ),
]
Export = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write runs and results there, for other tools.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="A file instead of standard output; a table is Markdown there."),
]
Pairs = Annotated[
    bool, typer.Option("--pairs", help="Test all pairs of systems in every column, not only the best.")
]
Timeline = Annotated[
    bool, typer.Option("--timeline", help="Show where the time of its runs went instead, by stage.")
]


@app.command()
def report(
    experiment: Exp,
    format: Annotated[Format, typer.Option("--format", "-f", help="How to show it.")] = "table",
    output: Output = None,
    table: Table = None,
    compare: Compare = "",
    with_results: WithResults = None,
    export: Export = None,
    form: Annotated[Form, typer.Option("--as", help="What --export writes.")] = "trec",
    pairs: Pairs = False,
    timeline: Timeline = False,
) -> None:
    """Show the result: measures, checks of translations, warnings, run files.

    `beirnl report EXP --table 3 --compare paper,mteb --format latex` makes the paper's Table 3, with what the
    paper and MTEB have published and the reasons for the gaps that the conditions tell.

    `beirnl report EXP --export DIR --as mteb` writes results that the mteb library reads;
    `beirnl report EXP --with-results results/ORG__MODEL/REVISION/SciFact.json` adds MTEB's as a row.
    """
    from beirnl.evaluation import paper
    from beirnl.evaluation.tables import text
    from beirnl.pipeline import Pipeline
    from beirnl.reporting import exporting, gather, others

    pipeline = Pipeline.of(load(experiment))
    if timeline:
        _show_timeline(pipeline, format, output)
        return
    if export:
        written = exporting.export(pipeline, export, form)
        print(f"{counted(len(written), 'file')} written to {export}")
        return
    found = replace(others.with_results(gather(pipeline), pipeline, with_results or ()), pairs=pairs)
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
    _write(_rendered(found, format, None if table else pipeline), output)


def _rendered(found: "Report", format: Format, whole: "Pipeline | None") -> str:
    """A report in a format; ``whole`` is its experiment, unless it is one table of the paper."""
    from beirnl.evaluation import page
    from beirnl.evaluation.formats import FORMATS
    from beirnl.evaluation.tables import uncertainty_tables
    from beirnl.reporting import per_query

    if format == "json" and found.pairs and found.uncertainty:
        return uncertainty_tables.pairs_json(found.uncertainty)
    if format == "html" and whole:
        return page.render(found, per_query.views(whole, found.scores))
    return FORMATS["markdown" if format == "table" else format](found)


def _show_timeline(pipeline: "Pipeline", format: str, output: Path | None) -> None:
    """Print the timeline and leave its page in the workspace, or write it in one format."""
    from beirnl.evaluation import page
    from beirnl.evaluation.formats import FORMATS
    from beirnl.evaluation.tables import text
    from beirnl.reporting.timeline import timeline

    found = timeline(pipeline)
    if format == "table" and output is None:
        text.show(timeline(pipeline, strips=True), console())
        path = pipeline.workspace.report_folder(pipeline.experiment.name) / "timeline.html"
        page.write_page(path, found)
        print(f"timeline: {path}")
        return
    _write(FORMATS["markdown" if format == "table" else format](found), output)


def _write(rendered: str, output: Path | None) -> None:
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(rendered, encoding="utf-8")
    else:
        sys.stdout.write(rendered)


@app.command()
def analyze(
    language: Annotated[
        str, typer.Option("--language", "-l", help="ISO 639-1 (nl, en, de, ...), or an analyzer's name.")
    ],
) -> None:
    """Print the index terms of each line of standard input, separated by blanks."""
    from beirnl.retrieval import analysis

    name = language if language in analysis.ANALYZERS else analysis.for_language(language)
    analyzer = analysis.analyzer(name)
    for line in sys.stdin:
        sys.stdout.write(" ".join(analyzer.terms(line.rstrip("\r\n"))) + "\n")


@datasets_app.callback(invoke_without_command=True)
def datasets(
    context: typer.Context,
    format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="JSON also tells parts and aliases.")
    ] = "table",
) -> None:
    """List the datasets of the registry: language, size, domain, licence, and where they are on the hub."""
    from beirnl.cli import listing

    if context.invoked_subcommand:
        return
    if format == "json":
        sys.stdout.write(listing.datasets_json())
    else:
        console().print(listing.datasets_table())
