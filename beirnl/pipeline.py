"""resolve -> plan -> run, whatever executor runs the units."""

import contextlib
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from beirnl.config import Experiment
from beirnl.cost import amount
from beirnl.errors import BeirnlError, BudgetError, ConfigError, nearest
from beirnl.executors import Aside, Done, Executor
from beirnl.graph import Graph, Node, build_graph, check_sizes
from beirnl.graph.groups import deaths, heading, of_one_fate, that_ask_apart, without
from beirnl.progress import Progress, Silent
from beirnl.spending import Spending
from beirnl.stages import STAGES, Stage
from beirnl.stages.base import Allowance, SetAsideError, Task
from beirnl.stages.translate import llm_of
from beirnl.states import States, Status
from beirnl.store.artifacts import (
    REDUCE,
    InputRef,
    Manifest,
    close_artifact,
    content_digest,
)
from beirnl.store.events import EventLog
from beirnl.store.files import disk_errors
from beirnl.store.keys import spec_fields
from beirnl.store.workspace import Workspace
from beirnl.tally import Tally
from beirnl.versions import versions
from beirnl.watching import Target, Watch

_LEAST_SHARE = 0.005  # of max_cost: with less left, the run stops


@dataclass
class Pipeline:
    """An experiment, its workspace and its graph."""

    experiment: Experiment
    workspace: Workspace
    graph: Graph
    progress: Progress = field(default_factory=Silent)
    states: States = field(init=False)

    def __post_init__(self) -> None:
        self.states = States(self.workspace)

    @classmethod
    def of(
        cls, experiment: Experiment, progress: Progress | None = None, *, again: bool = False
    ) -> "Pipeline":
        """Resolve an experiment.

        Args:
            experiment: as its file says.
            progress: is told how far a run is.
            again: also with the systems that failed in its last run, to be tried again.
        """
        workspace = Workspace(experiment.workspace_path)
        graph = build_graph(experiment, workspace, {} if again else None)
        return cls(experiment, workspace, graph, progress or Silent())

    # plan ---------------------------------------------------------------------------------------------------

    def plan(self, nodes: Iterable[Node] | None = None) -> list[Status]:
        """Where every node stands, from manifests and names of receipts alone."""
        return self.states.counted(nodes or self.graph.nodes.values())

    def check(self, nodes: Iterable[Node]) -> None:
        """Refuse nodes that are known to be too large; see :func:`beirnl.graph.check_sizes`."""
        unfinished = [status.node for status in self.states.of(nodes) if status.state != "done"]
        check_sizes(unfinished, self.workspace)

    def finished(self) -> set[str]:
        """Keys of the nodes that are done."""
        found = self.states.of(self.graph.nodes.values())
        return {status.node.key for status in found if status.state == "done"}

    # run ----------------------------------------------------------------------------------------------------

    def run(self, executor: Executor, only: str | None = None, nodes: Sequence[Node] | None = None) -> None:
        """Make what is pending, stage after stage; what has its receipt is not made again.

        A system that question answering can do without is left out when it fails, and the graph is that of
        the others from then on.

        Args:
            executor: runs the units; those that it leaves pending stay so, with what stands on them.
            only: a stage; then only it and what it needs are made.
            nodes: in place of a stage, the nodes to be made; see :meth:`needed`.

        A unit that was set aside keeps what stands on it from being made; all else is made.

        Raises:
            BudgetError: what the experiment may cost is spent.
            SetAsideError: at the end, units that killed their workers; the next run tries them again.
            ConfigError: ``only`` names no stage, or a relative workspace is to be used by several nodes.
            StoreError: another run holds the workspace.
            ConfigError, StoreError: as :meth:`check`.
        """
        wanted = self.wanted(only) if nodes is None else nodes
        machines = executor.nodes()
        if machines > 1 and self.experiment.workspace_is_relative:
            raise ConfigError(
                f"workspace {self.experiment.workspace!r} is relative, and the cluster has {machines} nodes",
                where=self.experiment.file,
                remedy="set workspace to an absolute path that all nodes share",
            )
        Spending.check_limit(self.experiment, self.graph, self.workspace, wanted)
        run_id = uuid.uuid4().hex[:8]
        with (
            self.workspace.lease(self.progress.say),
            EventLog(self.workspace.events_path(self.experiment.name), run_id) as log,
        ):
            self.workspace.lock(self.experiment.name, self.lock())
            self.workspace.record_failures(self.experiment.name, self.graph.failed)
            self.check(wanted)
            self._make(wanted, executor, log)

    def _make(self, wanted: Sequence[Node], executor: Executor, log: EventLog) -> None:
        """Make nodes, group after group, as far as what they stand on is made."""
        deferred: set[str] = set()
        aside: list[SetAsideError] = []
        while group := self._next_group(wanted, deferred):
            try:
                self._run_group(group, executor, log)
            except BeirnlError as error:
                try:
                    wanted = self._without(group, error, wanted)
                    continue
                except SetAsideError as one:
                    aside.append(one)
            if group[0].stage.startswith("import-"):
                self.check(wanted)
            deferred |= {node.key for node in group if not self.states.manifest(node)}
        if aside:
            raise SetAsideError.of(aside)

    def _without(self, group: Sequence[Node], error: BeirnlError, wanted: Sequence[Node]) -> list[Node]:
        """What is to be made without the systems that an error ends; raises the error where it ends all."""
        failed = without(self.graph, group, error)
        for name, why in failed.items():
            self.progress.say(f"{name} is left out: {why}")
        stages = {node.stage for node in wanted}
        reasons = {**self.graph.failed, **failed}
        self.workspace.record_failures(self.experiment.name, reasons)
        self.graph = build_graph(self.experiment, self.workspace, reasons)
        self.workspace.lock(self.experiment.name, self.lock())
        return self.needed([node for node in self.graph.nodes.values() if node.stage in stages])

    def lock(self) -> dict[str, str]:
        """Names of artifacts to their keys."""
        return {f"{n.stage} {n.label} {n.purpose}".strip(): n.key for n in self.graph.nodes.values()}

    def wanted(self, only: str | None) -> list[Node]:
        """All nodes, or those of a stage and what they need; ConfigError where there is no such stage."""
        nodes = list(self.graph.nodes.values())
        if only is None:
            return nodes
        chosen = [n for n in nodes if n.stage == only or n.stage.split("-")[0] == only]
        if not chosen:
            names = sorted({n.stage for n in nodes})
            raise ConfigError(f"the experiment has no stage {only!r}", remedy=nearest(only, names))
        return self.needed(chosen)

    def translations(self) -> list[Node]:
        """The nodes of all translations and what they need, with the judgements; no search and no score."""
        qrels = [node for node in self.graph.nodes.values() if node.stage == "import-qrels"]
        return self.needed([*(translation.final for translation in self.graph.translations), *qrels])

    def needed(self, chosen: Sequence[Node]) -> list[Node]:
        """Nodes and everything that they are made from."""
        found: dict[str, Node] = {}

        def need(node: Node) -> None:
            for other in node.inputs.values():
                need(other)
            found[node.key] = node

        for node in chosen:
            need(node)
        return list(found.values())

    def _next_group(self, nodes: Sequence[Node], deferred: Collection[str]) -> list[Node]:
        """Nodes that can be made now and share a pool: of an eager stage, else of the earliest one."""
        states = self.states.of(nodes)
        ready = [s.node for s in states if s.state in ("pending", "stale") and s.node.key not in deferred]
        if not ready:
            return []
        order = list(STAGES)
        first = min(ready, key=lambda node: (not STAGES[node.stage].eager, order.index(node.stage)))
        stage = STAGES[first.stage]
        pool = stage.pool_key(self._task(first, 0, ""))
        alike = [n for n in ready if n.stage == first.stage and stage.pool_key(self._task(n, 0, "")) == pool]
        group = of_one_fate(self.graph, alike)
        return that_ask_apart(group, stage.openings) if stage.openings else group

    def _run_group(self, group: Sequence[Node], executor: Executor, log: EventLog) -> None:
        """Make a group; SetAsideError when all has been made that needs no unit that was set aside."""
        stage, run_id = STAGES[group[0].stage], log.run
        for node in group:
            self._begin(node)
        aside: list[SetAsideError] = []
        with self._watch(stage, group, executor, log) as watch:
            for allowance in self._allowances(stage, group[0]):
                watch.budget(allowance)
                tasks = [task for node in group for task in self._pending(node, run_id, allowance)]
                # when a worker's share of max_cost is spent, what is left is shared anew
                with contextlib.suppress(BudgetError):
                    _run(executor, tasks, watch.finished, watch.set_aside, aside)
                    break
            whole = [node for node in group if not self._pending(node, run_id)]
            if stage.reduce:
                unreduced = [self._task(n, REDUCE, run_id) for n in whole if not self._is_reduced(n)]
                _run(executor, unreduced, watch.reduced, watch.set_aside, aside)
                whole = [node for node in whole if self._is_reduced(node)]
            for node in whole:
                self._close(node)
            if aside:
                raise SetAsideError.of(aside)

    def _watch(self, stage: Stage, group: Sequence[Node], executor: Executor, log: EventLog) -> Watch:
        counted = [self.states.progress(node) for node in group]
        done, units = (sum(numbers) for numbers in zip(*counted, strict=True))
        spending = Spending.of(self.experiment, self.graph, self.workspace) if stage.asks else None
        return Watch(
            stage.name,
            heading(group),
            [Target(node.label, node.key, node.artifact(self.workspace).directory) for node in group],
            Tally(units, done, done),
            log=log,
            progress=self.progress,
            observe=executor.observe,
            paid=partial(spending.paid, llm_of(group[0].spec)) if spending else None,
            workers=self.experiment.runtime.of(stage.name).workers,
        )

    def _begin(self, node: Node) -> None:
        """Remove what is stale, and tell of units at which an earlier run was killed: nothing else could."""
        if self.states.forget(node):
            self.progress.say(f"{node.stage} {node.label}: its input has changed; made again")
            self.workspace.discard(node.artifact(self.workspace))
        if line := deaths(node, self.workspace, self.experiment.runtime.of(node.stage).workers):
            self.progress.say(line)

    def _is_reduced(self, node: Node) -> bool:
        return node.artifact(self.workspace).receipt(REDUCE) is not None

    def _allowances(self, stage: Stage, node: Node) -> Iterator[Allowance | None]:
        """What each worker may spend, again and again until ``max_cost`` is reached or what is left pays for
        nothing more; None: no limit. The first round may find that all has been answered already.

        Raises:
            BudgetError: it is reached.
        """
        most = self.experiment.max_cost
        if not stage.asks or most is None:
            yield None
            return
        spending = Spending.limited(self.experiment, self.graph, self.workspace)
        before, spent, least = -1.0, spending.money(), _LEAST_SHARE * most
        while before < 0 or (spent > before and most - spent >= least):
            left = most - spent if most - spent >= least else 0.0
            yield spending.allowance(llm_of(node.spec), left / self.experiment.runtime.of(node.stage).workers)
            before, spent = spent, spending.money()
        raise BudgetError(
            f"max_cost is reached: {amount(spent)} of {amount(most)} {spending.currency} are spent",
            where=self.experiment.file,
            remedy="raise max_cost and run the same command again; what was done stays",
        )

    def _pending(self, node: Node, run_id: str, allowance: Allowance | None = None) -> list[Task]:
        committed = node.artifact(self.workspace).committed()
        units = self.states.units(node)
        pending = [unit for unit in range(units) if f"{unit:05d}.json" not in committed]
        first = self._task(node, 0, run_id, allowance)  # paths are put together once
        return [replace(first, unit=unit) for unit in pending]

    def _task(self, node: Node, unit: int, run_id: str, allowance: Allowance | None = None) -> Task:
        return Task(
            stage=node.stage,
            label=node.label,
            spec=node.spec,
            directory=node.artifact(self.workspace).directory,
            input_directories={n: o.artifact(self.workspace).directory for n, o in node.inputs.items()},
            unit=unit,
            run_id=run_id,
            workspace=self.workspace.root,
            runtime=self.experiment.runtime.of(node.stage),
            allowance=allowance,
        )

    def _close(self, node: Node) -> None:
        artifact = node.artifact(self.workspace)
        receipts, reduced = artifact.receipts(), artifact.receipt(REDUCE)
        manifest = Manifest(
            stage=node.stage,
            label=node.label,
            key=node.key,
            spec=spec_fields(node.spec),
            inputs={
                name: InputRef(key=other.key, content=found.content)
                for name, other in node.inputs.items()
                if (found := self.states.manifest(other))
            },
            versions=versions(),
            content=content_digest(receipts, reduced),
            receipts=tuple(receipts),
            reduced=reduced,
            source=getattr(node.spec, "source", ""),
        )
        with disk_errors(artifact.directory):
            close_artifact(artifact.directory, manifest)


def _run(
    executor: Executor, tasks: Sequence[Task], done: Done, aside: Aside, errors: list[SetAsideError]
) -> None:
    """Run tasks; what is set aside is told when all that can be made without it has been."""
    try:
        executor.run(tasks, done, aside)
    except SetAsideError as error:
        errors.append(error)
