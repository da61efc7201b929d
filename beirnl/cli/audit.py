"""The commands of the human check: draw a sample of translations, label it, report the rates."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from beirnl.cli.app import Exp, app, console, load_translation
from beirnl.wording import counted

audit_app = typer.Typer(help="Translations checked by people: draw a sample, label it, report.")
app.add_typer(audit_app, name="audit")

SheetPath = Annotated[Path, typer.Argument(metavar="SHEET", help="What `sample` wrote.", show_default=False)]


@audit_app.command()
def sample(
    experiment: Exp,
    per_dataset: Annotated[int, typer.Option(min=1, help="Items of each dataset.")] = 10,
    seed: Annotated[int, typer.Option(help="Another seed draws other items.")] = 7,
    kind: Annotated[
        Literal["document", "query"] | None, typer.Option(help="Draw only these (default: both).")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where (default: beside the reports, if on a disk)."),
    ] = None,
) -> None:
    """Draw items of every translated dataset into a sheet."""
    from beirnl.audit.sampling import draw
    from beirnl.audit.sheet import write_sheet
    from beirnl.pipeline import Pipeline

    pipeline = Pipeline.of(load_translation(experiment))
    sheet, left_out = draw(pipeline, per_dataset, seed, kind)
    for label in left_out:
        print(f"warning: {label} is not finished and is left out", file=sys.stderr)
    place = output or pipeline.workspace.report_folder(pipeline.experiment.name) / "audit.jsonl"
    path = place if isinstance(place, Path) else Path(place.name)  # labels are set down beside it
    write_sheet(path, sheet)
    print(
        f"{path}: {counted(len(sheet.items), 'item')} of "
        f"{', '.join(dict.fromkeys(i.stratum for i in sheet.items))}"
    )
    print(f"label them with: beirnl audit serve {path}")


@audit_app.command()
def serve(
    sheet: SheetPath,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8790,
    host: Annotated[
        str, typer.Option(help="Another address opens the page, without a password, to whoever reaches it.")
    ] = "127.0.0.1",
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who labels (default: the page asks).")
    ] = None,
) -> None:
    """Open a page on this machine to label a sheet; every label is saved at once."""
    from beirnl.audit.server import AuditServer

    with AuditServer(sheet, host, port, annotator) as server:
        try:
            print(f"open {server.url} (labels go to {server.labels.folder}; Ctrl-C stops)", flush=True)
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped; the same command goes on")


@audit_app.command()
def report(
    sheet: SheetPath,
    format: Annotated[
        Literal["table", "markdown", "json"], typer.Option("--format", "-f", help="How to show it.")
    ] = "table",
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
) -> None:
    """Show rates of major and minor errors with their intervals, and how far annotators agree."""
    from beirnl.audit import report as audit

    found = audit.gather(sheet, seed=seed)
    if format == "table":
        audit.show(found, console())
    else:
        sys.stdout.write(audit.to_json(found) if format == "json" else audit.to_markdown(found))
