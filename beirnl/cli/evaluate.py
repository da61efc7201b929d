"""The command that evaluates without an experiment file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from beirnl.cli.app import app, console, progress_of_terminal
from beirnl.errors import ConfigError

if TYPE_CHECKING:
    from beirnl.api import Results
    from beirnl.evaluation.records import Report

Kind = Literal["bm25", "dense", "rerank", "late"]
Shown = Literal["table", "markdown", "json"]


Models = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME|ORG/NAME|FOLDER", help="Of the registry, the hub, or a folder; or BM25."),
]
Datasets = Annotated[
    list[str] | None, typer.Option(metavar="NAME|FOLDER", help="Of the registry, or a folder in BEIR form.")
]
Used = Annotated[
    Kind | None, typer.Option(help="How the models are used, if registry and checkpoint do not say it.")
]
First = Annotated[
    str | None, typer.Option(metavar="MODEL", help="What finds candidates for a reranker (BM25).")
]
Runs = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="A run that was made elsewhere: TREC, JSON, Parquet.")
]
Qrels = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Judgements for --run, in place of a dataset.")
]
Profile = Annotated[str | None, typer.Option(metavar="paper|mteb", help="Whose conditions hold.")]
Measures = Annotated[
    list[str] | None, typer.Option(metavar="NAME,...", help="As ir_measures calls them: nDCG@10,R@100.")
]
Language = Annotated[str | None, typer.Option(metavar="CODE", help="Of a folder (en).")]
Split = Annotated[str | None, typer.Option(help="Of the judgements (test).")]
Depth = Annotated[int | None, typer.Option(min=1, help="Hits of a query (100).")]
Kept = Annotated[
    str | None, typer.Option(metavar="DIR", help="Where results are kept (in the user's cache).")
]
Address = Annotated[
    str | None,
    typer.Option(metavar="auto|HOST:PORT", help="Run on this Ray cluster instead of this machine."),
]
Save = Annotated[
    Path | None, typer.Option(metavar="EXP", help="Write the experiment file that says the same.")
]


@app.command()
def evaluate(
    model: Models = None,
    dataset: Datasets = None,
    kind: Used = None,
    first: First = None,
    run: Runs = None,
    qrels: Qrels = None,
    profile: Profile = None,
    measures: Measures = None,
    language: Language = None,
    split: Split = None,
    depth: Depth = None,
    workspace: Kept = None,
    format: Annotated[Shown, typer.Option("--format", "-f", help="How to show it.")] = "table",
    address: Address = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Workers per pool (1).")] = None,
    save: Save = None,
) -> None:
    """Evaluate models on datasets without an experiment file; most options can be repeated.

    `beirnl evaluate --model all-MiniLM-L6-v2 --model BM25 --dataset scifact` compares two;
    `beirnl evaluate --model BAAI/bge-reranker-v2-m3 --dataset FOLDER` reranks BM25's first 100;
    `beirnl evaluate --run mine.trec --dataset scifact` scores a run made elsewhere, and
    `beirnl evaluate --run mine.trec --qrels test.tsv` needs no dataset.

    A killed evaluation goes on where it stood, and what is done is not done again.
    """
    names = [name.strip() for text in measures or () for name in text.split(",") if name.strip()]
    if qrels:
        if model or dataset or not run:
            raise ConfigError("--qrels goes with --run alone", remedy="leave out --model and --dataset")
        from beirnl.reporting.scoring import score_files

        _show(score_files([Path(path) for path in run], qrels, names), format)
        return
    if address and workspace is None:
        raise ConfigError(
            "results are kept in the user's cache, which the nodes of a cluster do not share",
            remedy="give --workspace a folder that all nodes reach",
        )
    from beirnl import quick

    stated: dict[str, Any] = {"kind": kind, "first": first, "profile": profile, "measures": names}
    stated |= {
        "language": language,
        "split": split,
        "depth": depth,
        "workspace": workspace,
        "runs": run or (),
    }
    tables = quick.tables(model or (), dataset or (), **stated)
    found = _carried_out(tables, save, address, workers)
    _show(found.report, format)
    print(f"report: {found.page}", file=sys.stdout if format == "table" else sys.stderr)


def _carried_out(
    asked: dict[str, Any], save: Path | None, address: str | None, workers: int | None
) -> "Results":
    """What the experiment of these tables has found, which are also written to a file if one is named."""
    from beirnl.api import carry_out, in_memory, named, with_workers
    from beirnl.config.writing import to_toml

    with named() as file:
        experiment = in_memory(asked, file)
        if save:
            save.parent.mkdir(parents=True, exist_ok=True)
            save.write_text(to_toml(asked), encoding="utf-8")
        with progress_of_terminal() as progress:
            return carry_out(with_workers(experiment, workers), progress, address)


def _show(report: "Report", format: Shown) -> None:
    from beirnl.evaluation import records
    from beirnl.evaluation.tables import text

    if format == "table":
        text.show(report, console())
        return
    for line in report.warnings if format == "json" else ():
        print(f"warning: {line}", file=sys.stderr)
    sys.stdout.write(records.to_json(report.records) if format == "json" else text.to_markdown(report))
