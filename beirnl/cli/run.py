"""Commands that plan and run an experiment."""

from typing import TYPE_CHECKING, Annotated

import typer

from beirnl.api import run_nodes
from beirnl.cli.app import Exp, app, console, load, progress_of_terminal
from beirnl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beirnl.config import Experiment
    from beirnl.graph import Node
    from beirnl.pipeline import Pipeline, Status


@app.command()
def plan(
    experiment: Exp,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="Predict what is left: requests, tokens, money and hours of the translation; disk, memory "
            "and hours of retrieval.",
        ),
    ] = False,
) -> None:
    """Show the stages, what is done and what is pending, from manifests alone.

    `--estimate` imports the sources first, where that is not done yet. It asks no LLM and no API; what
    retrieval takes it finds out by running a little of every stage. What cannot fit is refused.
    """
    from beirnl.pipeline import Pipeline

    loaded = load(experiment)
    if estimate and loaded.rag:
        raise ConfigError(
            "nothing estimates [rag] beforehand",
            where=experiment,
            remedy="run it with --only plan-answers: the receipts then tell how many prompts are left",
        )
    if estimate:
        if loaded.translation:
            _show_cost(loaded.only_translated)
        if loaded.system:
            _show_retrieval(loaded)
    else:
        pipeline = Pipeline.of(loaded)
        _show_plan(pipeline.plan())
        pipeline.check(pipeline.graph.nodes.values())


def _show_cost(experiment: "Experiment") -> None:
    """What the translation will take."""
    from beirnl import cost
    from beirnl.estimates import translations
    from beirnl.pipeline import Pipeline

    with progress_of_terminal() as progress:
        pipeline = Pipeline.of(experiment, progress)
        _import(pipeline, translations.sources(pipeline))
        found = translations.forecast(pipeline)
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
    """Run what is pending; a run that was killed goes on where it stood, with any number of workers."""
    from beirnl.pipeline import Pipeline

    loaded = load(experiment)
    if workers:
        runtime = loaded.runtime.model_copy(update={"workers": workers})
        loaded = loaded.model_copy(update={"runtime": runtime})
    with progress_of_terminal() as progress:
        pipeline = Pipeline.of(loaded, progress, again=True)
        run_nodes(pipeline, address, pipeline.wanted(only))
    if only is None:
        _write_reports(pipeline)


@app.command()
def status(experiment: Exp) -> None:
    """Show how far a run is; also while it runs, from another terminal."""
    from beirnl.pipeline import Pipeline
    from beirnl.store.lease import Lease

    pipeline = Pipeline.of(load(experiment))
    _show_plan(pipeline.plan(), pipeline)
    if pipeline.workspace.is_running():
        holder = Lease.holder(pipeline.workspace.lease_path) or {}
        print(f"running: process {holder.get('pid')} on {holder.get('host')}")
    else:
        print("not running")
    _show_jobs(pipeline)
    _show_spending(pipeline)


def _show_jobs(pipeline: "Pipeline") -> None:
    """The batch jobs that are waited for, from the book that their engine keeps."""
    import time

    from beirnl.llm import ENGINES
    from beirnl.llm.batch.book import open_jobs
    from beirnl.progress import duration
    from beirnl.stages.translate import journal_folder

    for llm in pipeline.graph.asked():
        for job in open_jobs(journal_folder(pipeline.workspace, llm)) if ENGINES[llm.engine].deferred else ():
            since = duration(max(0.0, time.time() - job.created / 1e9))
            name = job.id or "to be ordered"
            print(f"batch job {name}: {len(job.waiting):,} requests at {job.server}, for {since}")


def _show_spending(pipeline: "Pipeline") -> None:
    """What the translations have cost, where anything is paid for, and what max_cost leaves."""
    from beirnl.cost import amount
    from beirnl.spending import Spending

    if not pipeline.graph.asked():
        return
    spending = Spending.of(pipeline.experiment, pipeline.graph, pipeline.workspace)
    found = [spending.totals(llm) for llm in spending.prices]
    answers, tokens = sum(t.answers for t in found), sum(t.prompt_tokens + t.completion_tokens for t in found)
    line = f"answers in the journal: {answers:,} ({tokens:,} tokens)"
    if not spending.is_known:
        line += "; what they cost is not known: the model has no price"
    elif any(price and (price.input or price.output) for price in spending.prices.values()):
        spent = spending.money()
        line += f", {amount(spent)} {spending.currency} spent"
        if most := pipeline.experiment.max_cost:
            line += f", {amount(max(0.0, most - spent))} of {amount(most)} left"
    print(line)


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
    console().print(table)
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
    from beirnl.evaluation.tables import text
    from beirnl.reporting import gather
    from beirnl.reporting.writing import write

    found = gather(pipeline)
    page = write(pipeline, found)
    text.show(found, console())
    print(f"report: {page} (also report.md, report.json)")
