"""Where a run stands, once or again and again."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from beirnl.cli.app import Exp, app, console, load
from beirnl.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from beirnl.pipeline import Pipeline
    from beirnl.standing import Standing
    from beirnl.states import Status

_COLUMNS = (
    "done",
    "running",
    "pending",
    "failed",
    "rows/s",
    "tokens/s",
    "left",
    "rows",
    "tokens",
    "written",
    "spent",
)
_STYLES = {"done": "green", "running": "bold", "pending": "yellow", "waiting": "dim"}
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


@app.command()
def status(
    experiment: Exp,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again and again, until the run ends.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Between two looks.")] = 5.0,
    artifacts: Annotated[bool, typer.Option("--artifacts", help="Also every artifact, a line each.")] = False,
) -> None:
    """Show how far a run is, by stage; also while it runs, from another terminal.

    Failed are attempts in the last run that died with their worker and were made again; rates and time left
    are those of the run that is going on.
    """
    from beirnl.pipeline import Pipeline

    loaded = load(experiment)
    while True:
        pipeline = Pipeline.of(loaded)
        running = pipeline.workspace.is_running()  # before all else: what it ends with is then shown
        states = pipeline.plan()
        table, lines = _table(pipeline, states), [*_lines(pipeline, states)]
        if watch and sys.stdout.isatty():
            sys.stdout.write(_CLEAR)
        if artifacts:
            from beirnl.cli.run import show_plan

            show_plan(states)
        console().print(table)
        print("\n".join(lines), flush=True)
        if not (watch and running):
            return
        try:
            time.sleep(every)
        except KeyboardInterrupt:
            return


def _table(pipeline: "Pipeline", states: "list[Status]") -> "Table":
    """A line per stage."""
    from rich.table import Table

    from beirnl.standing import standings

    table = Table(box=None, pad_edge=False)
    table.add_column("stage", no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, no_wrap=True, justify="right")
    for standing in standings(pipeline, states):
        table.add_row(f"[{_STYLES[standing.state]}]{standing.stage}[/]", *_cells(standing))
    return table


def _cells(standing: "Standing") -> list[str]:
    from beirnl.cost import amount
    from beirnl.tally import duration, rate_text, size_text

    tally, live = standing.tally, standing.live
    more = "+" if standing.unknown else ""
    if standing.state == "waiting":
        return ["waiting", *[""] * (len(_COLUMNS) - 1)]
    return [
        f"{tally.done:,}/{tally.units:,}{more}",
        _number(tally.running),
        _number(tally.pending),
        _number(tally.failed),
        rate_text(live.row_rate) if live and live.row_rate else "",
        rate_text(live.token_rate) if live and live.token_rate else "",
        f"{duration(live.left)}{more}" if live and live.left is not None else "",
        _number(tally.rows),
        _number(tally.tokens),
        size_text(tally.bytes) if tally.bytes else "",
        "" if tally.money is None else f"{amount(tally.money)} {tally.currency}",
    ]


def _number(value: int) -> str:
    return f"{value:,}" if value else ""


def _lines(pipeline: "Pipeline", states: "list[Status]") -> Iterator[str]:
    """What is to be said below the table."""
    from beirnl.graph.groups import set_aside

    stale = sum(status.state == "stale" for status in states)
    done = sum(status.state == "done" for status in states)
    yield f"{counted(done, 'artifact is', 'artifacts are', of=len(states))} done" + (
        f", {counted(stale, 'is stale: its', 'are stale: their')} input has changed" if stale else ""
    )
    for status in states:
        if status.failed:
            yield f"{status.node.stage} {status.node.label}: {status.failed:,} failed, asked again by a run"
    if pipeline.workspace.is_running():
        holder = pipeline.workspace.holder() or {}
        yield f"running: process {holder.get('pid')} on {holder.get('host')}"
    else:
        yield "not running"
    yield from set_aside(pipeline.graph.nodes.values(), pipeline.workspace)
    yield from _jobs(pipeline)
    yield from _spending(pipeline)


def _jobs(pipeline: "Pipeline") -> Iterator[str]:
    """The batch jobs that are waited for, from the book that their engine keeps."""
    from beirnl.llm import ENGINES
    from beirnl.llm.batch.book import open_jobs
    from beirnl.stages.translate import journal_folder
    from beirnl.tally import duration

    for llm in pipeline.graph.asked():
        for job in open_jobs(journal_folder(pipeline.workspace, llm)) if ENGINES[llm.engine].deferred else ():
            since = duration(max(0.0, time.time() - job.created / 1e9))
            name = job.id or "to be ordered"
            yield f"batch job {name}: {counted(len(job.waiting), 'request')} at {job.server}, for {since}"


def _spending(pipeline: "Pipeline") -> Iterator[str]:
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
    elif spending.is_paid:
        spent = spending.money()
        line += f", {amount(spent)} {spending.currency} spent"
        if most := pipeline.experiment.max_cost:
            line += f", {amount(max(0.0, most - spent))} of {amount(most)} left"
    yield line
