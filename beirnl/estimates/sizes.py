"""How large the work of every stage is, from what is imported and what the specs say."""

import pyarrow.parquet as pq

from beirnl.estimates.laws import Size
from beirnl.estimates.texts import Texts, origin
from beirnl.graph import Node
from beirnl.graph.expected import expected, expected_inputs
from beirnl.pipeline import Pipeline
from beirnl.retrieval.late import LateSpec
from beirnl.specs import EncoderSpec
from beirnl.stages import STAGES
from beirnl.stages.ann import AnnIndexSpec, AnnSearchSpec
from beirnl.stages.dense import EmbedSpec, stated_dimension
from beirnl.stages.late import EmbedTokensSpec
from beirnl.stages.searching import SearchSpec, group
from beirnl.stages.second import RerankSpec
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import digest, spec_fields

_NUMBER = {"float32": 4, "float16": 2, "int8": 1, "bf16": 2, "i8": 1}


class Sizes:
    """The sizes of an experiment whose sources are imported.

    Args:
        pipeline: the experiment.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._workspace, self._runtime = pipeline.workspace, pipeline.experiment.runtime
        self.texts = Texts(pipeline.workspace)
        self._known: dict[str, Artifact | None] = {}
        self._dimensions: dict[str, int] = {}

    def of(self, node: Node) -> Size:
        """The size of a node's work."""
        searched = "queries" in node.inputs or any(name.startswith("run") for name in node.inputs)
        read = origin(node, "document")
        lengths = self.texts.lengths(read)
        asked = origin(node, "query") if searched else None
        queries = self._rows(asked) if asked else 0
        units = self.units(node)
        index = graph_of(node)
        return Size(
            documents=self._rows(read),
            queries=queries,
            hits=self._hits_of(node) if asked else 0,
            units=units,
            largest=self._largest(node, units),
            text=lengths.text,
            query_text=self.texts.lengths(asked).text if asked else 0.0,
            name=lengths.name,
            dimension=self.dimension(node) or 0,
            number=_NUMBER[index.numbers] if index else 0,
            links=index.connectivity if index else 0,
            recalled=min(queries, node.spec.recall_queries) if isinstance(node.spec, AnnSearchSpec) else 0,
            memory=self._runtime.search_memory_mb << 20,
            once=isinstance(node.spec, RerankSpec) and node.spec.method != "cross-encoder",
        )

    def units(self, node: Node) -> int:
        """How many units of work the node is."""
        return STAGES[node.stage].units(node.spec, self._inputs(node))

    def dimension(self, node: Node) -> int | None:
        """Of the vectors that a node makes or reads, where it is known: from the vectors themselves, from a
        probe, from the spec or from the registry."""
        made = embedding_of(node)
        if made is None:
            return None
        encoder = encoder_of(made)
        found = self._dimensions.get(digest(spec_fields(encoder))) or self._stored(made)
        return found or (stated_dimension(encoder) if isinstance(encoder, EncoderSpec) else None)

    def learn(self, node: Node, dimension: int) -> None:
        """Remember the dimension that a probe of an embedding has shown."""
        self._dimensions[digest(spec_fields(encoder_of(node)))] = dimension

    def _stored(self, embed: Node) -> int | None:
        artifact = embed.artifact(self._workspace)
        if embed.stage != "embed" or not artifact.find_manifest():
            return None
        file = artifact.path(artifact.parts[0])
        return int(pq.read_schema(file).field("vector").type.list_size)

    def _rows(self, texts: Node) -> int:
        artifact = expected(texts, self._workspace, self._known)
        assert artifact is not None, f"{texts.label} is not imported"
        return artifact.rows

    def _inputs(self, node: Node) -> dict[str, Artifact]:
        inputs = expected_inputs(node, self._workspace, self._known)
        assert inputs is not None, f"{node.label} is not imported"
        return inputs

    def _largest(self, node: Node, units: int) -> int:
        if node.stage == "search-ann":
            return max((part.rows for part in self._inputs(node)["index"].parts), default=0)
        parts = self._inputs(node)["rows"].parts if "rows" in node.inputs else []
        shares = (group(number, units, len(parts)) for number in range(units))
        return max((sum(parts[n].rows for n in share) for share in shares), default=0)

    def _hits_of(self, node: Node) -> int:
        """Hits that go in, where they do, else that come out; of a second stage those that it scores."""
        runs = [other for name, other in node.inputs.items() if name.startswith("run")]
        found = sum(self.hits(run) for run in runs) if runs else self.hits(node)
        return min(found, self._most(node)) if node.stage in ("rerank", "gather") else found

    def hits(self, node: Node) -> int:
        """Rows of a run: as it is, or the most that it can have."""
        artifact = node.artifact(self._workspace)
        manifest = artifact.find_manifest()
        if manifest is None:
            return self._most(node)
        return manifest.reduced.parts[0].rows if manifest.reduced else artifact.rows

    def _most(self, node: Node) -> int:
        assert isinstance(node.spec, SearchSpec)
        depth = min(node.spec.depth, self._rows(origin(node, "document")))
        return self._rows(origin(node, "query")) * depth


def embedding_of(node: Node) -> Node | None:
    """The embedding of documents that a node is, or stands on."""
    while node.stage not in ("embed", "embed-tokens"):
        name = next((name for name in ("rows", "index") if name in node.inputs), None)
        if name is None:
            return None
        node = node.inputs[name]
    return node


def encoder_of(embedding: Node) -> EncoderSpec | LateSpec:
    """The model of an embedding."""
    assert isinstance(embedding.spec, EmbedSpec | EmbedTokensSpec)
    return embedding.spec.encoder


def graph_of(node: Node) -> AnnIndexSpec | None:
    """The spec of the approximate index that a node is, or searches."""
    for one in (node, *node.inputs.values()):
        if isinstance(one.spec, AnnIndexSpec):
            return one.spec
    return None
