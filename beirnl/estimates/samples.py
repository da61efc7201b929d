"""Small inputs for every stage: texts and queries as imported, vectors and runs of the right kind made up."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from beirnl.estimates.laws import Size
from beirnl.estimates.measuring import GROWTH, close
from beirnl.estimates.sizes import Sizes, embedding_of, encoder_of
from beirnl.estimates.texts import POOL, origin
from beirnl.graph import Node
from beirnl.retrieval.vectors import vector_columns
from beirnl.schema import CORPUS, QRELS, QUERIES, RUN, embeddings, join_title_text
from beirnl.specs import Spec
from beirnl.stages.second import GATHERED, RERANKED_PER_UNIT
from beirnl.store.artifacts import Artifact
from beirnl.store.places import Place
from beirnl.store.writing import PartWriter

INDEXED = (1_000, 59_000)  # documents of a small index, in two units
ENCODED = tuple(4 * GROWTH**n for n in range(5))  # texts, or pairs, of the units of a model
QUERIES_ASKED = 200  # of BM25, and of a graph
SEARCHED = 25_000_000, 1_000  # numbers of the vectors of exact search, and queries
NODES = 16_384  # vectors of a small graph
PASSAGES = 256  # of late interaction
SEARCH_MB = 96  # for blocks of a small exact search, so that there are several
_TOPICS, _SHARD = 64, 10_000  # of made-up vectors: topics, and vectors in a file

Made = Callable[[Node], Place]


class Sample(NamedTuple):
    """A small input: folders of the artifacts, how large it is, and the spec that the stage runs under."""

    inputs: dict[str, Place]
    size: Size
    spec: Spec


class Samples:
    """Makes small inputs.

    Args:
        folder: where they are put.
        sizes: of the experiment.
        made: the folder of what a node makes: itself where it is finished, else what its probe has made.
    """

    def __init__(self, folder: Path, sizes: Sizes, made: Made) -> None:
        self._folder, self._sizes, self._made = folder, sizes, made
        self._count = 0

    def of(self, node: Node) -> Sample:
        """The small input of a node's stage, from the node's own sources."""
        sample: Sample = _SAMPLES[node.stage](self, node, self._sizes.of(node))
        return sample

    # of each stage ------------------------------------------------------------------------------------------

    def _indexed(self, node: Node, size: Size) -> Sample:
        rows, counts = self._texts(origin(node, "document"), INDEXED, CORPUS)
        size = size._replace(documents=sum(counts), largest=max(counts), units=1)
        return Sample({"rows": rows}, size, node.spec)

    def _found(self, node: Node, size: Size) -> Sample:
        """A search of an index that has been made, or of the small one."""
        index, queries = node.inputs["index"], origin(node, "query")
        rows, counts = self._texts(queries, [QUERIES_ASKED], QUERIES)
        folder = self._made(index)
        size = size._replace(queries=sum(counts), hits=sum(counts) * size.hits // max(1, size.queries))
        if self._is_small(folder):
            size = size._replace(documents=min(sum(INDEXED), size.documents))
        if self._is_small(folder) or node.stage == "search-bm25":
            size = size._replace(units=1)
        return Sample({"index": folder, "queries": rows}, size, node.spec)

    def _is_small(self, folder: Place) -> bool:
        """Whether it was made for a probe; else it is the experiment's own."""
        return isinstance(folder, Path) and folder.is_relative_to(self._folder)

    def _encoded(self, node: Node, size: Size) -> Sample:
        rows, counts = self._texts(node.inputs["rows"], ENCODED, CORPUS)
        size = size._replace(documents=sum(counts), largest=max(counts), units=len(counts))
        return Sample({"rows": rows}, size, node.spec)

    def _products(self, node: Node, size: Size) -> Sample:
        numbers, queries = SEARCHED[0], min(SEARCHED[1], size.queries)
        documents = min(numbers // size.dimension, size.documents, 1 << 16)
        inputs = {
            "rows": self._vectors(node, documents, size.dimension, self._stored(node)),
            "queries": self._vectors(node, queries, size.dimension, "float32"),
        }
        hits = queries * size.hits // max(1, size.queries)
        size = size._replace(documents=documents, queries=queries, hits=hits, units=1, largest=documents)
        return Sample(inputs, size._replace(memory=SEARCH_MB << 20), node.spec)

    def _graph(self, node: Node, size: Size) -> Sample:
        documents = min(NODES, size.documents)
        rows = self._vectors(node, documents, size.dimension, self._stored(node))
        return Sample({"rows": rows}, size._replace(documents=documents, largest=documents), node.spec)

    def _graph_searched(self, node: Node, size: Size) -> Sample:
        """The graph alone: exact search beside it is a probe of its own."""
        queries, folder = min(QUERIES_ASKED, size.queries), self._made(node.inputs["index"])
        inputs = {"index": folder, "queries": self._vectors(node, queries, size.dimension, "float32")}
        size = size._replace(queries=queries, hits=queries * size.hits // max(1, size.queries))
        if self._is_small(folder):
            size = size._replace(documents=min(NODES, size.documents), largest=NODES, units=1)
        spec = node.spec.model_copy(update={"recall_queries": 1, "min_recall": 0.0})
        return Sample(inputs, size._replace(memory=SEARCH_MB << 20, recalled=1), spec)

    def _late(self, node: Node, size: Size) -> Sample:
        inputs = {name: self._first(self._made(node.inputs[name]), PASSAGES) for name in ("rows", "queries")}
        documents, queries = (Artifact(inputs[name]).rows for name in ("rows", "queries"))
        hits = queries * min(documents, size.hits // max(1, size.queries))
        size = size._replace(documents=documents, queries=queries, hits=hits, units=1, largest=documents)
        return Sample(inputs, size, node.spec)

    def _gathered(self, node: Node, size: Size) -> Sample:
        corpus, counts = self._texts(origin(node, "document"), [INDEXED[1]], CORPUS)
        depth = _depth(size)
        size = size._replace(documents=sum(counts), hits=min(size.hits, 4 * sum(counts)))
        return Sample({"corpus": corpus, "run": self._run(node, size.hits, depth)}, size, node.spec)

    def _reranked(self, node: Node, size: Size) -> Sample:
        """Units of so many pairs each; a unit of the stage is a number of queries."""
        asked = self._sizes.texts.sample(origin(node, "query"), RERANKED_PER_UNIT)
        found = self._sizes.texts.sample(origin(node, "document"), sum(ENCODED))
        draw = np.random.default_rng(0)
        queries, runs = [], []
        for unit, pairs in enumerate(ENCODED):
            names = pa.array([f"{unit}-{n}" for n in range(RERANKED_PER_UNIT)])
            texts = asked["text"].take(pa.array(np.arange(RERANKED_PER_UNIT) % len(asked)))
            columns = [range(RERANKED_PER_UNIT), names, [""] * RERANKED_PER_UNIT, texts]
            queries.append(pa.table(columns, schema=QUERIES))
            of_query = names.take(pa.array(np.arange(pairs) % RERANKED_PER_UNIT))
            each = draw.permutation(len(found))[np.arange(pairs) % len(found)]
            runs.append(_run(of_query, found["id"].take(pa.array(each))))
        passages = [join_title_text(row["title"], row["text"]) for row in found.to_pylist()]
        inputs = {
            "queries": self._write([pa.concat_tables(queries)], QUERIES),
            "run": self._write([pa.concat_tables(runs)], RUN),
            "passages": self._arrow(pa.table([found["id"], pa.array(passages)], schema=GATHERED)),
        }
        units = len(ENCODED)
        size = size._replace(hits=sum(ENCODED), units=units, queries=units * RERANKED_PER_UNIT)
        return Sample(inputs, size, node.spec)

    def _fused(self, node: Node, size: Size) -> Sample:
        runs, depth = len(node.inputs), _depth(size)
        size = size._replace(hits=min(size.hits, 20_000))
        inputs = {name: self._run(node, size.hits // runs, -(-depth // runs)) for name in node.inputs}
        return Sample(inputs, size, node.spec)

    def _evaluated(self, node: Node, size: Size) -> Sample:
        depth = _depth(size)
        size = size._replace(hits=min(size.hits, 20_000))
        queries = self._sizes.texts.sample(origin(node, "query"), QUERIES_ASKED)["id"]
        document = self._sizes.texts.sample(origin(node, "document"), 1)["id"].to_pylist()
        judged = pa.table([queries, document * len(queries), [1] * len(queries)], schema=QRELS)
        inputs = {"run": self._run(node, size.hits, depth), "qrels": self._write([judged], QRELS)}
        return Sample(inputs, size, node.spec)

    # tables -------------------------------------------------------------------------------------------------

    def _texts(self, node: Node, wanted: Sequence[int], schema: pa.Schema) -> tuple[Place, list[int]]:
        """Parts of at most so many rows each, and how many they have; the first ones go without."""
        table = self._sizes.texts.sample(node, sum(wanted))
        parts, end = [], len(table)
        for count in reversed(wanted):
            begin = max(0, end - count)
            if begin < end:
                parts.append(table.slice(begin, end - begin))
            end = begin
        return self._write(parts[::-1], schema), [len(part) for part in parts]

    def _vectors(self, node: Node, rows: int, dimension: int, dtype: str) -> Place:
        """Unit vectors around some topics."""
        draw = np.random.default_rng(rows)
        topics = np.random.default_rng(0).standard_normal((_TOPICS, dimension), np.float32)
        vectors = draw.standard_normal((rows, dimension), np.float32)
        vectors += topics[draw.integers(0, _TOPICS, rows)]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        names = self._sizes.texts.sample(origin(node, "document"), rows)["id"].to_pylist()
        ids = [names[n] if n < len(names) else f"{names[n % len(names)]}+{n}" for n in range(rows)]
        table = pa.table({"row": pa.array(range(rows)), "id": ids, **vector_columns(vectors, dtype)})
        shards = [table.slice(begin, _SHARD) for begin in range(0, rows, _SHARD)]
        return self._write(shards, embeddings(dimension, dtype))

    def _stored(self, node: Node) -> str:
        embedding = embedding_of(node)
        assert embedding is not None
        return encoder_of(embedding).vectors

    def _run(self, node: Node, hits: int, depth: int) -> Place:
        """A run of about so many hits, so many for each query."""
        queries = self._sizes.texts.sample(origin(node, "query"), -(-hits // depth))["id"]
        documents = self._sizes.texts.sample(origin(node, "document"), POOL)["id"]
        depth, draw = min(depth, len(documents)), np.random.default_rng(0)
        asked = np.arange(len(queries))
        each = np.concatenate([draw.permutation(len(documents))[:depth] for _ in asked])
        of_query = queries.take(pa.array(np.repeat(asked, depth)))
        return self._write([_run(of_query, documents.take(pa.array(each)))], RUN)

    def _write(self, tables: Sequence[pa.Table], schema: pa.Schema) -> Place:
        folder = self._new()
        for number, table in enumerate(tables):
            out = PartWriter(folder, number, "probe")
            out.write(table, schema)
            out.commit()
        return close(folder).directory

    def _first(self, artifact: Place, rows: int) -> Place:
        """The first rows of an artifact of Arrow files."""
        made = Artifact(artifact)
        with pa.memory_map(str(made.path(made.parts[-1]))) as file:
            return self._arrow(pa.ipc.open_file(file).read_all().slice(0, rows))

    def _arrow(self, table: pa.Table) -> Place:
        """One part as an Arrow file."""
        out = PartWriter(self._new(), 0, "probe")
        part = out.open(suffix=".arrow", rows=len(table))
        with pa.ipc.new_file(part.path, table.schema) as writer:
            writer.write_table(table)
        out.commit()
        return close(part.path.parent).directory

    def _new(self) -> Path:
        self._count += 1
        return self._folder / f"input-{self._count}"


def _depth(size: Size) -> int:
    """Hits of a query."""
    return max(1, -(-size.hits // max(1, size.queries)))


def _run(queries: pa.Array, documents: pa.Array) -> pa.Table:
    """A run in order: within a query, scores fall."""
    scores = np.linspace(1, 0, len(queries), dtype=np.float32)
    return pa.table([queries, documents, pa.array(scores)], schema=RUN)


_SAMPLES: dict[str, Callable[[Samples, Node, Size], Sample]] = {
    "index": Samples._indexed,
    "index-shards": Samples._indexed,
    "search-bm25": Samples._found,
    "search-shards": Samples._found,
    "embed": Samples._encoded,
    "search-exact": Samples._products,
    "ann-index": Samples._graph,
    "search-ann": Samples._graph_searched,
    "embed-tokens": Samples._encoded,
    "search-late": Samples._late,
    "gather": Samples._gathered,
    "rerank": Samples._reranked,
    "fuse": Samples._fused,
    "evaluate": Samples._evaluated,
}
