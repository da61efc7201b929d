"""resolve -> plan -> run, whatever executor runs the units."""

import contextlib
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from beirnl.config import Experiment
from beirnl.cost import amount
from beirnl.errors import BeirnlError, BudgetError, ConfigError, nearest
from beirnl.executors import Executor
from beirnl.graph import Graph, Node, build_graph, check_sizes
from beirnl.graph.groups import heading, of_one_fate, that_ask_apart, without
from beirnl.progress import Progress, Silent
from beirnl.spending import Spending
from beirnl.stages import STAGES, Stage
from beirnl.stages.base import Allowance, Task
from beirnl.stages.translate import llm_of
from beirnl.store.artifacts import (
    REDUCE,
    InputRef,
    Manifest,
    close_artifact,
    content_digest,
)
from beirnl.store.attempts import killed_units
from beirnl.store.events import EventLog
from beirnl.store.files import disk_errors
from beirnl.store.keys import spec_fields
from beirnl.store.lease import Lease
from beirnl.store.workspace import Workspace
from beirnl.tally import Tally
from beirnl.versions import versions
from beirnl.watching import Place, Watch

State = Literal["done", "pending", "waiting", "stale"]
_NAMED = 5  # units
_LEAST_SHARE = 0.005  # of max_cost: with less left, the run stops


@dataclass(frozen=True)
class Status:
    """Where a node stands. ``units`` is None until its inputs are finished."""

    node: Node
    state: State
    done: int = 0
    units: int | None = None


@dataclass
class Pipeline:
    """An experiment, its workspace and its graph."""

    experiment: Experiment
    workspace: Workspace
    graph: Graph
    progress: Progress = field(default_factory=Silent)
    _manifests: dict[str, Manifest] = field(default_factory=dict)

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
        known: dict[str, Status] = {}
        for node in nodes or self.graph.nodes.values():
            self._status(node, known)
        return list(known.values())

    def check(self, nodes: Iterable[Node]) -> None:
        """Refuse nodes that are known to be too large; see :func:`beirnl.graph.check_sizes`."""
        check_sizes([status.node for status in self.plan(nodes) if status.state != "done"], self.workspace)

    def finished(self) -> set[str]:
        """Keys of the nodes that are done."""
        return {status.node.key for status in self.plan() if status.state == "done"}

    def _status(self, node: Node, known: dict[str, Status]) -> Status:
        if node.key not in known:
            inputs = [self._status(other, known) for other in node.inputs.values()]
            known[node.key] = self._judge(node, all(status.state == "done" for status in inputs))
        return known[node.key]

    def _judge(self, node: Node, inputs_done: bool) -> Status:
        if not inputs_done:
            return Status(node, "waiting", len(node.artifact(self.workspace).committed()))
        manifest = self.manifest(node)
        if manifest is None:
            return Status(node, "pending", *self._progress_of(node))
        current = {name: self.manifest(other) for name, other in node.inputs.items()}
        fresh = all(
            found and manifest.inputs[name].content == found.content for name, found in current.items()
        )
        units = len(manifest.receipts)
        return Status(node, "done", units, units) if fresh else Status(node, "stale", 0, units)

    def manifest(self, node: Node) -> Manifest | None:
        """The manifest of a node, read once: of a thousand artifacts most have long been finished."""
        found = self._manifests.get(node.key) or node.artifact(self.workspace).find_manifest()
        if found:
            self._manifests[node.key] = found
        return found

    def _progress_of(self, node: Node) -> tuple[int, int]:
        return len(node.artifact(self.workspace).committed() - {"reduced.json"}), self._units(node)

    def _units(self, node: Node) -> int:
        inputs = {name: other.artifact(self.workspace) for name, other in node.inputs.items()}
        return STAGES[node.stage].units(node.spec, inputs)

    # run ----------------------------------------------------------------------------------------------------

    def run(self, executor: Executor, only: str | None = None, nodes: Sequence[Node] | None = None) -> None:
        """Make what is pending, stage after stage; what has its receipt is not made again.

        A system that question answering can do without is left out when it fails, and the graph is that of
        the others from then on.

        Args:
            executor: runs the units; those that it leaves pending stay so, with what stands on them.
            only: a stage; then only it and what it needs are made.
            nodes: in place of a stage, the nodes to be made; see :meth:`needed`.

        Raises:
            BudgetError: what the experiment may cost is spent.
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
            Lease(self.workspace.lease_path, self.progress.say),
            EventLog(self.workspace.events_path(self.experiment.name), run_id) as log,
        ):
            self.workspace.lock(self.experiment.name, self.lock())
            self.workspace.record_failures(self.experiment.name, self.graph.failed)
            deferred: set[str] = set()
            self.check(wanted)
            while group := self._next_group(wanted, deferred):
                try:
                    self._run_group(group, executor, log)
                except BeirnlError as error:
                    wanted = self._without(group, error, wanted)
                    continue
                if group[0].stage.startswith("import-"):
                    self.check(wanted)
                deferred |= {node.key for node in group if not self.manifest(node)}

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
        states = self.plan(nodes)
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
        stage, run_id = STAGES[group[0].stage], log.run
        for node in group:
            artifact = node.artifact(self.workspace)
            if self._manifests.pop(node.key, None):
                self.progress.say(f"{node.stage} {node.label}: its input has changed; made again")
                self.workspace.discard(artifact)
            self._say_killed(stage, node)
        with self._watch(stage, group, executor, log) as watch:
            for allowance in self._allowances(stage, group[0]):
                watch.budget(allowance)
                tasks = [task for node in group for task in self._pending(node, run_id, allowance)]
                # when a worker's share of max_cost is spent, what is left is shared anew
                with contextlib.suppress(BudgetError):
                    executor.run(tasks, watch.finished)
                    break
            whole = [node for node in group if not self._pending(node, run_id)]
            if stage.reduce:
                unreduced = [n for n in whole if n.artifact(self.workspace).receipt(REDUCE) is None]
                executor.run([self._task(n, REDUCE, run_id) for n in unreduced], watch.reduced)
            for node in whole:
                self._close(node)

    def _watch(self, stage: Stage, group: Sequence[Node], executor: Executor, log: EventLog) -> Watch:
        counted = [self._progress_of(node) for node in group]
        done, units = (sum(numbers) for numbers in zip(*counted, strict=True))
        spending = Spending.of(self.experiment, self.graph, self.workspace) if stage.asks else None
        return Watch(
            stage.name,
            heading(group),
            [Place(node.label, node.key, node.artifact(self.workspace).directory) for node in group],
            Tally(units, done, done),
            log=log,
            progress=self.progress,
            observe=executor.observe,
            paid=partial(spending.paid, llm_of(group[0].spec)) if spending else None,
            workers=self.experiment.runtime.workers,
        )

    def _say_killed(self, stage: Stage, node: Node) -> None:
        """Of units at which an earlier run was killed: nothing else could tell why it ended."""
        units = killed_units(node.artifact(self.workspace))
        if units:
            listed = f"{'units' if len(units) > 1 else 'unit'} {', '.join(map(str, units[:_NAMED]))}"
            advice = stage.less_memory(self.experiment.runtime.workers)
            self.progress.say(
                f"{node.stage} {node.label}: an earlier run was killed at {listed}; if for memory: {advice}"
            )

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
            yield spending.allowance(llm_of(node.spec), left / self.experiment.runtime.workers)
            before, spent = spent, spending.money()
        raise BudgetError(
            f"max_cost is reached: {amount(spent)} of {amount(most)} {spending.currency} are spent",
            where=self.experiment.file,
            remedy="raise max_cost and run the same command again; what was done stays",
        )

    def _pending(self, node: Node, run_id: str, allowance: Allowance | None = None) -> list[Task]:
        committed = node.artifact(self.workspace).committed()
        pending = [unit for unit in range(self._units(node)) if f"{unit:05d}.json" not in committed]
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
            runtime=self.experiment.runtime,
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
                if (found := self.manifest(other))
            },
            versions=versions(),
            content=content_digest(receipts, reduced),
            receipts=tuple(receipts),
            reduced=reduced,
            source=getattr(node.spec, "source", ""),
        )
        with disk_errors(artifact.directory):
            close_artifact(artifact.directory, manifest)
