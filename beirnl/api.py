"""From Python: evaluate models on sets in one call, or run the nodes of an experiment.

from beirnl import evaluate
table = evaluate("all-MiniLM-L6-v2", "scifact")
print(table)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beirnl.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from beirnl.config import Experiment
    from beirnl.evaluation.records import Report
    from beirnl.executors import Executor
    from beirnl.graph import Node
    from beirnl.pipeline import Pipeline
    from beirnl.progress import Progress
    from beirnl.quick import Kind
    from beirnl.store.places import Place

#: One or several names or paths.
Texts = str | Path | Sequence[str | Path]

_NOWHERE = "evaluate.toml"  # stands for the file that there is not


@dataclass(frozen=True)
class Results:
    """What an evaluation has found.

    Attributes:
        report: records with their conditions, values per query, warnings.
        page: the report as a page, with ``report.md`` and ``report.json`` beside it.
        experiment: what was evaluated, as a file would say it.
    """

    report: "Report"
    page: "Place"
    experiment: "Experiment"

    def to_polars(self) -> "pl.DataFrame":
        """One row per value: dataset, language, system, measure, value (0 to 1), queries, conditions."""
        import polars as pl

        from beirnl.evaluation.tables import conditions

        columns = ("dataset", "language", "system", "measure", "value", "queries")
        rows = [
            {name: getattr(record, name) for name in columns}
            | {"conditions": "; ".join(f"{name} {value}" for name, value in conditions(record).items())}
            for record in self.report.records
        ]
        return pl.DataFrame(rows)

    def __str__(self) -> str:
        """The tables as the command line shows them."""
        from io import StringIO

        from rich.console import Console

        from beirnl.evaluation.tables import text

        out = StringIO()
        text.show(self.report, Console(file=out, width=120))
        return out.getvalue()


def evaluate(
    model: Texts = (),
    dataset: Texts = (),
    *,
    kind: "Kind | None" = None,
    first: str | None = None,
    runs: Texts = (),
    profile: str | None = None,
    measures: Texts = (),
    language: str | None = None,
    split: str | None = None,
    depth: int | None = None,
    workspace: str | Path | None = None,
    progress: "Progress | None" = None,
) -> Results:
    """Evaluate models (and run files) on sets; what is done already is not done again.

    Args:
        model: a name of the registry, a path on the hub, a folder, or ``BM25``; or several.
        dataset: a name of the registry, or a folder in BEIR form; or several.
        kind: how models are used, ``bm25``, ``dense``, ``rerank`` or ``late`` (default: as the registry or
            the checkpoint says).
        first: what finds candidates for second stages (default: BM25).
        runs: run files, see :mod:`beirnl.evaluation.runs`.
        profile: whose conditions hold, ``paper`` or ``mteb``.
        measures: by their names (default: nDCG@10 and R@100).
        language, split: of a folder (default: ``en``, ``test``).
        depth: hits of a query (default: 100).
        workspace: where results are kept (default: in the user's cache).
        progress: is told how far it is (default: nothing is said).

    Raises:
        BeirnlError: as the command line says it, in one line.
    """
    from beirnl import quick

    asked = quick.tables(
        _several(model),
        _several(dataset),
        kind=kind,
        first=first,
        runs=_several(runs),
        profile=profile,
        measures=_several(measures),
        language=language,
        split=split,
        depth=depth,
        workspace=str(workspace) if workspace else None,
    )
    with named() as file:
        return carry_out(in_memory(asked, file), progress)


def with_workers(experiment: "Experiment", workers: int | None) -> "Experiment":
    """An experiment with so many workers per pool in place of its own number, if any are given."""
    if workers is None:
        return experiment
    return experiment.model_copy(
        update={"runtime": experiment.runtime.model_copy(update={"workers": workers})}
    )


def carry_out(
    experiment: "Experiment", progress: "Progress | None" = None, address: str | None = None
) -> Results:
    """Do what is left of an experiment, on this machine or a cluster, and write its report."""
    from beirnl.pipeline import Pipeline
    from beirnl.progress import Silent
    from beirnl.reporting import gather
    from beirnl.reporting.writing import write

    pipeline = Pipeline.of(experiment, progress or Silent(), again=True)
    run_nodes(pipeline, address, pipeline.wanted(None))
    found = gather(pipeline)
    return Results(found, write(pipeline, found), experiment)


def in_memory(tables: dict[str, Any], file: Path) -> "Experiment":
    """An experiment from its tables, as if ``file`` said so; ConfigError as for a file."""
    from beirnl.config import experiment_of

    return experiment_of(tables, file)


@contextmanager
def named() -> Iterator[Path]:
    """The path that stands for a file of an experiment that has none; no error names it."""
    file = Path.cwd() / _NOWHERE
    try:
        yield file
    except ConfigError as error:
        if str(error.where) != str(file):
            raise
        raise ConfigError(error.what, remedy=error.remedy) from error


def _several(texts: Texts) -> list[str]:
    return [str(texts)] if isinstance(texts, str | Path) else list(map(str, texts))


def run_nodes(pipeline: "Pipeline", address: str | None, nodes: "Sequence[Node]") -> None:
    """Make nodes on this machine or on a cluster, if any of them is not done."""
    from beirnl.spending import Spending

    _reopen(pipeline, nodes)
    left = [status.node for status in pipeline.plan(nodes) if status.state != "done"]
    if not left:
        pipeline.progress.say("everything is done already")
        return
    Spending.check_limit(pipeline.experiment, pipeline.graph, pipeline.workspace, left)
    if address is None:  # on a cluster, the keys are where the workers run
        _check_keys(left)
    executor = _executor(pipeline.experiment, address, left)
    try:
        pipeline.run(executor, nodes=nodes)
    finally:
        executor.close()


def _reopen(pipeline: "Pipeline", nodes: "Sequence[Node]") -> None:
    """Take back units that ended without all that they asked for: what was answered is in the journal."""
    for node in nodes:
        failed = pipeline.states.unanswered(node)
        if failed:
            pipeline.progress.say(f"{node.stage} {node.label}: {sum(failed.values()):,} failed; asked again")
            with pipeline.workspace.lease(pipeline.progress.say):
                node.artifact(pipeline.workspace).reopen([*failed])
            pipeline.states.forget(node)


def _check_keys(nodes: "Sequence[Node]") -> None:
    """Refuse before anything is done what an engine would refuse when it is reached, perhaps after hours."""
    from beirnl.llm.http.access import api_key
    from beirnl.stages import STAGES

    for server in dict.fromkeys(STAGES[node.stage].server(node.spec) for node in nodes):
        if server:
            api_key(server)


def _executor(experiment: "Experiment", address: str | None, nodes: "Sequence[Node]") -> "Executor":
    from beirnl.stages import STAGES

    runtime = experiment.runtime
    if address is None and runtime.most_workers == 1:
        from beirnl.executors.local import LocalExecutor

        return LocalExecutor()
    from beirnl.executors.cluster import RayExecutor

    gpus = {node.stage: STAGES[node.stage].gpus(node.spec, runtime) for node in nodes}
    return RayExecutor(runtime, address, gpus)
