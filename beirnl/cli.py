"""The command line. Commands only join what other modules do; anything heavy is imported by the command that
needs it, so that ``--help`` and ``plan`` answer at once."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from beirnl import __version__
from beirnl.errors import BeirnlError

if TYPE_CHECKING:
    from rich.console import Console

    from beirnl.config import Experiment
    from beirnl.executors import Executor
    from beirnl.pipeline import Pipeline, Status
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

_INTERRUPTED = 130  # as a shell counts a process that SIGINT ended

Exp = Annotated[Path, typer.Argument(metavar="EXP", help="Experiment file (TOML).", show_default=False)]
Format = Literal["table", "markdown", "json", "html"]


def main(argv: list[str] | None = None) -> None:
    """Entry point: errors are one line on standard error and exit code 2; ``--debug`` shows the traceback."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    _speak_utf8()
    try:
        app(arguments, prog_name="beirnl")
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            print("interrupted; run the same command again to go on", file=sys.stderr)
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (BeirnlError, OSError) as error:
        if debug:
            raise
        place = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        what = error.strerror if isinstance(error, OSError) and error.strerror else error
        _fail(f"{place}{what}")


def _speak_utf8() -> None:
    """Read and write UTF-8 whatever the locale; a stream that is closed stands for one without content."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
        else:
            stream.reconfigure(encoding="utf-8", errors="surrogateescape" if mode == "r" else "replace")


def _fail(message: str) -> NoReturn:
    """Say what is wrong and leave at once: threads of native libraries may abort a slow end."""
    print(f"error: {message}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(2)


def _version(value: bool) -> None:
    if value:
        print(f"beirnl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass


@app.command()
def plan(experiment: Exp) -> None:
    """Show the stages, what is done and what is pending, from manifests alone."""
    from beirnl.pipeline import Pipeline

    _show_plan(Pipeline.of(_load(experiment)).plan())


@app.command()
def run(
    experiment: Exp,
    only: Annotated[str | None, typer.Option(metavar="STAGE", help="This stage, and what it needs.")] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="auto|HOST:PORT", help="Run on this Ray cluster instead of this machine."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers per pool (instead of the file's).")
    ] = None,
) -> None:
    """Run what is pending; a run that was killed goes on where it stood, with any number of workers."""
    from beirnl.pipeline import Pipeline

    loaded = _load(experiment)
    if workers:
        runtime = loaded.runtime.model_copy(update={"workers": workers})
        loaded = loaded.model_copy(update={"runtime": runtime})
    progress = _progress()
    try:
        pipeline = Pipeline.of(loaded, progress)
        if all(status.state == "done" for status in pipeline.plan(pipeline.wanted(only))):
            progress.say("everything is done already")
        else:
            executor = _executor(loaded, address)
            try:
                pipeline.run(executor, only)
            finally:
                executor.close()
    finally:
        stop = getattr(progress, "stop", None)
        if stop:
            stop()
    if only is None:
        _write_reports(pipeline)


@app.command()
def status(experiment: Exp) -> None:
    """Show how far a run is; also while it runs, from another terminal."""
    from beirnl.pipeline import Pipeline
    from beirnl.store.lease import Lease

    pipeline = Pipeline.of(_load(experiment))
    _show_plan(pipeline.plan(), pipeline)
    if pipeline.workspace.is_running():
        holder = Lease.holder(pipeline.workspace.lease_path) or {}
        print(f"running: process {holder.get('pid')} on {holder.get('host')}")
    else:
        print("not running")


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

    found = gather(Pipeline.of(_load(experiment)))
    for line in found.warnings if format == "json" else ():
        print(f"warning: {line}", file=sys.stderr)
    if format == "table" and output is None:
        text.show(found, _console())
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


@app.command()
def datasets() -> None:
    """List the datasets of the registry."""
    from beirnl import registry

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


# Helpers ----------------------------------------------------------------------------------------------------


def _console() -> "Console":
    """Standard output; wide where it is no terminal, so that a path stays in one piece."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


def _load(path: Path) -> "Experiment":
    from beirnl.config import load_experiment

    return load_experiment(path)


def _progress() -> "Progress":
    from beirnl.progress import Bars, Lines

    return Bars() if sys.stderr.isatty() else Lines()


def _executor(experiment: "Experiment", address: str | None) -> "Executor":
    if address is None and experiment.runtime.workers == 1:
        from beirnl.executors.local import LocalExecutor

        return LocalExecutor()
    from beirnl.executors.cluster import RayExecutor

    return RayExecutor(experiment.runtime, address)


def _show_plan(states: "list[Status]", pipeline: "Pipeline | None" = None) -> None:
    """A line per artifact: its stage, what it is for, and where it stands; with a pipeline also its pace."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("stage", "dataset", "for", "key", "state"):
        table.add_column(heading, no_wrap=True)
    styles = {"done": "green", "stale": "red", "pending": "yellow", "waiting": "dim"}
    for status in states:
        node = status.node
        state = f"[{styles[status.state]}]{_state(status, pipeline)}[/]"
        table.add_row(node.stage, node.label, node.purpose, node.key[:8], state)
    _console().print(table)
    done = sum(status.state == "done" for status in states)
    print(f"{done} of {len(states)} artifacts are done")


def _state(status: "Status", pipeline: "Pipeline | None") -> str:
    from beirnl.progress import duration

    if status.state == "stale":
        return "stale: its input has changed"
    if status.state != "pending":
        return status.state
    pace = pipeline.pace(status) if pipeline else None
    more = f", {pace[0]:.0f} rows/s, {duration(pace[1])} left" if pace else ""
    return f"{status.done} of {status.units} units done{more}"


def _write_reports(pipeline: "Pipeline") -> None:
    """Leave Markdown, JSON and HTML in the workspace, and show the table."""
    from beirnl.evaluation import page, records, text
    from beirnl.reporting import gather
    from beirnl.store.files import disk_errors

    found = gather(pipeline)
    folder = pipeline.workspace.report_folder(pipeline.experiment.name)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(text.to_markdown(found), encoding="utf-8")
        (folder / "report.json").write_text(records.to_json(found.records), encoding="utf-8")
        page.write_page(folder / "report.html", found)
    text.show(found, _console())
    print(f"report: {folder / 'report.html'} (also report.md, report.json)")


if __name__ == "__main__":
    main()
