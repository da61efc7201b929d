"""What a graph is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from beirnl.config import DatasetConfig, System
from beirnl.specs import LlmSpec, Spec
from beirnl.stages import STAGES
from beirnl.stages.translate import llm_of
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
    """A system evaluated on a dataset (or a part of one) in a language (as reports call it: ``version``).

    ``profile``: whose conditions hold; of BM25 the name of its own.
    """

    dataset: str
    part: str
    language: str
    system: System
    node: Node
    corpus: Node
    queries: Node
    qrels: Node
    remove_self_matches: bool
    profile: str = ""


@dataclass(frozen=True)
class Translation:
    """The translation of the queries or documents of a dataset (or a part of one, or a parallel text).

    Attributes:
        dataset, part: what was translated.
        kind: queries or documents.
        language: ISO code of the target.
        source: the imported rows (schema ``CORPUS``).
        answers: what the LLM said first.
        checked: the first verdict.
        final: the rows as they stand in the end (schema ``TRANSLATED``).
        quality: scores against a reference, or None.
        back: whether it is a translation back into the original's language.
    """

    dataset: str
    part: str
    kind: Kind
    language: str
    source: Node
    answers: Node
    checked: Node
    final: Node
    quality: Node | None = None
    back: bool = False

    @property
    def is_of_a_dataset(self) -> bool:
        """Whether it is to be published: neither one back nor a parallel text, which only measure."""
        return not self.back and self.source.stage != "import-lines"

    @property
    def label(self) -> str:
        """``dataset/part/language/kind``."""
        return self.final.label


@dataclass(frozen=True)
class Searched:
    """A system that searches passages: the reader of its model, its run, what it searched, and the vectors of
    it (or the index)."""

    system: System
    reader: Node
    run: Node
    passages: Node
    searched: Node


@dataclass(frozen=True)
class Answering:
    """Question answering on one corpus as far as reports need it.

    Attributes:
        questions: as queries.
        generated: those that an LLM made, with every attempt; or None.
        searched: the systems that search.
        plans, answers: by answering model.
    """

    documents: Node
    questions: Node
    generated: Node | None
    searched: tuple[Searched, ...]
    plans: Mapping[str, Node]
    answers: Mapping[str, Node]


@dataclass
class Graph:
    """All nodes in order of making, each key once, what is translated, evaluated and answered.

    ``corpora``: question answering by corpus. ``failed``: reason by system of those that are left out, since
    they gave nothing.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    translations: list[Translation] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    source_languages: dict[str, str] = field(default_factory=dict)
    expected_parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    corpora: dict[str, Answering] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def answering(self) -> Answering | None:
        """Question answering on the only corpus, or the first one; None where there is none."""
        return next(iter(self.corpora.values()), None)

    @property
    def searching(self) -> list[Searched]:
        """The systems of question answering, on every corpus."""
        return [one for answering in self.corpora.values() for one in answering.searched]

    def add(self, node: Node) -> Node:
        """Add a node, or find the one that makes the same."""
        return self.nodes.setdefault(node.key, node)

    def systems_on(self, node: Node) -> list[str]:
        """Systems that can be left out where a node fails, since everything else goes on without it: those
        whose runs are made from it, if that is not all that is made from it."""
        shared = [node for one in self.corpora.values() for node in (one.documents, one.questions)]
        if any(_stands_on(one, node) for one in shared):
            return []
        searched = self.searching
        readers = [one.system.name for one in searched if one.reader.key == node.key]
        found = readers or [one.system.name for one in searched if _stands_on(one.run, node)]
        return list(dict.fromkeys(found))

    def asked(self) -> list[LlmSpec]:
        """The LLMs that the nodes ask, each once."""
        asking = (node.spec for node in self.nodes.values() if STAGES[node.stage].asks)
        return list(dict.fromkeys(map(llm_of, asking)))


def _stands_on(node: Node, other: Node) -> bool:
    """Whether a node is another one, or made from it."""
    return node.key == other.key or any(_stands_on(one, other) for one in node.inputs.values())


def back_version(language: str, through: str) -> str:
    """How reports call texts that were translated into another language and back: ``en-nl-en``."""
    return f"{language}-{through}-{language}"


@dataclass(frozen=True)
class Texts:
    """A dataset (or part) in one language, ready to be searched.

    ``version`` is the language as reports call it: ``en-nl-en`` is English that was translated into Dutch and
    back.
    """

    dataset: DatasetConfig
    part: str
    language: str
    version: str
    remove_self_matches: bool
    corpus: Node
    queries: Node
    qrels: Node

    @property
    def label(self) -> str:
        """``dataset/part/version``."""
        return "/".join(filter(None, (self.dataset.name, self.part, self.version)))
