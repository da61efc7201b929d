"""What a graph is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from beirnl.config import DatasetConfig, System
from beirnl.specs import Spec
from beirnl.stages import STAGES
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import artifact_key
from beirnl.store.workspace import Workspace

Kind = Literal["query", "document"]


@dataclass(frozen=True, eq=False)
class Node:
    """An artifact to be made: a stage, its spec and its inputs. ``purpose`` says for whom, in words."""

    stage: str
    label: str
    spec: Spec
    inputs: Mapping[str, "Node"]
    purpose: str = ""

    @cached_property
    def key(self) -> str:
        """The artifact's key."""
        inputs = {name: node.key for name, node in self.inputs.items()}
        return artifact_key(self.stage, STAGES[self.stage].version, self.spec, inputs)

    def artifact(self, workspace: Workspace) -> Artifact:
        """Where it lies."""
        return workspace.artifact(self.stage, self.label, self.key)


@dataclass(frozen=True)
class Evaluation:
    """A system evaluated on a dataset (or a part of one) in a language."""

    dataset: str
    part: str
    language: str
    system: System
    node: Node
    corpus: Node
    queries: Node
    qrels: Node
    remove_self_matches: bool


@dataclass
class Graph:
    """All nodes in order of making, each key once, and what is evaluated."""

    nodes: dict[str, Node] = field(default_factory=dict)
    evaluations: list[Evaluation] = field(default_factory=list)
    expected_parts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, node: Node) -> Node:
        """Add a node, or find the one that makes the same."""
        return self.nodes.setdefault(node.key, node)


@dataclass(frozen=True)
class Texts:
    """A dataset (or part) in one language, ready to be searched."""

    dataset: DatasetConfig
    part: str
    language: str
    remove_self_matches: bool
    corpus: Node
    queries: Node
    qrels: Node

    @property
    def label(self) -> str:
        """``dataset/part/language``."""
        return "/".join(filter(None, (self.dataset.name, self.part, self.language)))
