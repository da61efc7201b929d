"""Where the nodes of a graph stand: from manifests and names of receipts alone."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from beirnl.graph import Node
from beirnl.stages import STAGES
from beirnl.store.artifacts import Manifest
from beirnl.store.workspace import Workspace

State = Literal["done", "pending", "waiting", "stale"]


@dataclass(frozen=True)
class Status:
    """Where a node stands.

    Attributes:
        units: None until its inputs are finished.
        failed: of one that is done, what was given no answer: the next run asks it again.
    """

    node: Node
    state: State
    done: int = 0
    units: int | None = None
    failed: int = 0


class States:
    """Judges nodes by what a workspace holds.

    A manifest is read once: of a thousand artifacts most have long been finished.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._manifests: dict[str, Manifest] = {}

    def of(self, nodes: Iterable[Node]) -> list[Status]:
        """Nodes and what they are made from, without how much there is of what is not done."""
        known: dict[str, Status] = {}
        for node in nodes:
            self._status(node, known)
        return list(known.values())

    def counted(self, nodes: Iterable[Node]) -> list[Status]:
        """As :meth:`of`, with how many units are done and how many there are."""
        return [self._counted(status) for status in self.of(nodes)]

    def manifest(self, node: Node) -> Manifest | None:
        """The manifest of a node, or None while it is not finished."""
        found = self._manifests.get(node.key) or node.artifact(self._workspace).find_manifest()
        if found:
            self._manifests[node.key] = found
        return found

    def unanswered(self, node: Node) -> dict[int, int]:
        """Units of a finished node that ended without all that they asked for, and how much they lack."""
        name, manifest = STAGES[node.stage].retried, self.manifest(node)
        if not name or manifest is None:
            return {}
        return {r.unit: r.counts[name] for r in manifest.receipts if r.counts.get(name)}

    def forget(self, node: Node) -> bool:
        """Read the manifest of a node anew when it is next asked for; whether it had been read."""
        return self._manifests.pop(node.key, None) is not None

    def progress(self, node: Node) -> tuple[int, int]:
        """How many units of a node are done, and how many there are; its inputs are finished."""
        return len(node.artifact(self._workspace).committed() - {"reduced.json"}), self.units(node)

    def units(self, node: Node) -> int:
        """How many units a node has; its inputs are finished."""
        inputs = {name: other.artifact(self._workspace) for name, other in node.inputs.items()}
        for name, other in node.inputs.items():
            if found := self.manifest(other):
                inputs[name].manifest = found
        return STAGES[node.stage].units(node.spec, inputs)

    def _status(self, node: Node, known: dict[str, Status]) -> Status:
        if node.key not in known:
            inputs = [self._status(other, known) for other in node.inputs.values()]
            known[node.key] = self._judge(node, all(status.state == "done" for status in inputs))
        return known[node.key]

    def _judge(self, node: Node, inputs_done: bool) -> Status:
        if not inputs_done:
            return Status(node, "waiting")
        manifest = self.manifest(node)
        if manifest is None:
            return Status(node, "pending")
        current = {name: self.manifest(other) for name, other in node.inputs.items()}
        fresh = all(
            found and manifest.inputs[name].content == found.content for name, found in current.items()
        )
        units = len(manifest.receipts)
        if not fresh:
            return Status(node, "stale", 0, units)
        return Status(node, "done", units, units, sum(self.unanswered(node).values()))

    def _counted(self, status: Status) -> Status:
        if status.state == "waiting":
            return replace(status, done=len(status.node.artifact(self._workspace).committed()))
        if status.state != "pending":
            return status
        done, units = self.progress(status.node)
        return replace(status, done=done, units=units)
