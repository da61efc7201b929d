"""Commands that plan and run an experiment."""

from typing import TYPE_CHECKING, Annotated

import typer

from beirnl.api import run_nodes, with_workers
from beirnl.cli.app import Exp, app, console, load, progress_of_terminal
from beirnl.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from beirnl.config import Experiment
    from beirnl.graph import Node
    from beirnl.pipeline import Pipeline
    from beirnl.states import Status


@app.command()
def plan(
    experiment: Exp,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="Predict what is left: requests, tokens, money and hours of the translation, or of "
            "questions and answers; disk, memory and hours of retrieval.",
        ),
    ] = False,
) -> None:
    """Show the stages, what is done and what is pending, from manifests alone.

    `--estimate` imports the sources first, where that is not done yet. It asks no LLM and no API; what
    retrieval takes it finds out by running a little of every stage. What cannot fit is refused.
    """
    from beirnl.pipeline import Pipeline

    loaded = load(experiment)
    if estimate:
        from beirnl.estimates import answers, translations

        if loaded.translation:
            _show_cost(loaded.only_translated, translations)
        if loaded.rag:
            _show_cost(loaded, answers)
        if loaded.system:
            _show_retrieval(loaded)
    else:
        pipeline = Pipeline.of(loaded)
        show_plan(pipeline.plan())
        pipeline.check(pipeline.graph.nodes.values())


def _show_cost(experiment: "Experiment", estimates: "ModuleType") -> None:
    """What asking an LLM will take: by the module that estimates translations, or answers."""
    from beirnl import cost
    from beirnl.pipeline import Pipeline

    with progress_of_terminal() as progress:
        pipeline = Pipeline.of(experiment, progress)
        _import(pipeline, estimates.sources(pipeline))
        found = estimates.forecast(pipeline)
    console().print(cost.table(found.rows, found.currency))
    for line in found.notes:
        print(line)


def _show_retrieval(experiment: "Experiment") -> None:
    """What retrieval will take; systems that do not fit the translation's language leave its estimate alone.

    Raises:
        BeirnlError: it cannot fit.
    """
    from beirnl import estimates
    from beirnl.errors import BeirnlError
    from beirnl.pipeline import Pipeline

    with progress_of_terminal() as progress:
        try:
            pipeline = Pipeline.of(experiment, progress)
        except BeirnlError as error:
            if experiment.translation is None:
                raise
            print(f"retrieval is not estimated: {error}")
            return
        _import(pipeline, estimates.sources(pipeline))
        pipeline.check(pipeline.graph.nodes.values())
        rows = estimates.forecast(pipeline)
    console().print(estimates.table(rows))
    machine = estimates.this_machine(pipeline.workspace.root)
    if refused := estimates.refusal(rows, machine, experiment.file):
        raise refused


def _import(pipeline: "Pipeline", sources: "Sequence[Node]") -> None:
    if any(status.state != "done" for status in pipeline.plan(sources)):
        run_nodes(pipeline, None, sources)


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
    """Run what is pending; a run that was killed goes on where it stood, with any number of workers.

    Units that kill their workers again and again are set aside: everything that does not stand on them is
    made and reported, and the run ends with an error that names them. The next run tries them again.
    """
    from beirnl.pipeline import Pipeline
    from beirnl.stages.base import SetAsideError

    loaded = with_workers(load(experiment), workers)
    aside: SetAsideError | None = None
    with progress_of_terminal() as progress:
        pipeline = Pipeline.of(loaded, progress, again=True)
        try:
            run_nodes(pipeline, address, pipeline.wanted(only))
        except SetAsideError as error:
            aside = error
    if only is None:
        _write_reports(pipeline)
    if aside:
        raise aside


def show_plan(states: "list[Status]") -> None:
    """A line per artifact: its stage, what it is for, and where it stands."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("stage", "dataset", "for", "key", "state"):
        table.add_column(heading, no_wrap=True)
    styles = {"done": "green", "stale": "red", "pending": "yellow", "waiting": "dim"}
    for status in states:
        node = status.node
        state = f"[{styles[status.state]}]{_state(status)}[/]"
        table.add_row(node.stage, node.label, node.purpose, node.key[:8], state)
    console().print(table)
    done = sum(status.state == "done" for status in states)
    print(f"{counted(done, 'artifact is', 'artifacts are', of=len(states))} done")


def _state(status: "Status") -> str:
    if status.state == "stale":
        return "stale: its input has changed"
    if status.failed:
        return f"done; {status.failed:,} failed are asked again"
    return (
        f"{counted(status.done, 'unit', of=status.units)} done" if status.state == "pending" else status.state
    )


def _write_reports(pipeline: "Pipeline") -> None:
    """Leave Markdown, JSON and HTML in the workspace, and show the table."""
    from beirnl.evaluation.tables import text
    from beirnl.reporting import gather
    from beirnl.reporting.writing import write

    found = gather(pipeline)
    page = write(pipeline, found)
    text.show(found, console())
    print(f"report: {page} (also report.md, report.json)")
