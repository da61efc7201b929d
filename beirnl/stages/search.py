"""Stages of retrieval: BM25 index and search, vectors and exact search, second stage."""

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.schema import RUN, embeddings, join_title_text
from beirnl.specs import Bm25Spec, EncoderSpec, RerankerSpec, Spec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.store.keys import digest, spec_fields

INDEX_UNITS = 8  # more segments answer fewer queries a second
SHARDS_PER_SEARCH = 64  # shards of vectors in one unit of exact search
QUERIES_PER_UNIT = 1000
RERANKED_PER_UNIT = 100


class IndexSpec(Spec):
    """What a BM25 index depends on; k1, b and the tie breaker belong to the search."""

    profile: Literal["elasticsearch", "flat"]
    analyzer: str
    analyzer_version: int

    @property
    def bm25(self) -> Bm25Spec:
        """The conditions that the builder reads."""
        return Bm25Spec(profile=self.profile, analyzer=self.analyzer)


class EmbedSpec(Spec):
    """Vectors of documents or of queries."""

    encoder: EncoderSpec
    kind: Literal["query", "document"]


class SearchSpec(Spec):
    """How deep to search, and whether a hit whose id is the query's is dropped before the cut."""

    depth: int
    remove_self_matches: bool = False


class Bm25SearchSpec(SearchSpec):
    """A search of a BM25 index."""

    bm25: Bm25Spec


class RerankSpec(SearchSpec):
    """A second stage over the first ``depth`` of a run."""

    reranker: RerankerSpec


# BM25 -------------------------------------------------------------------------------------------------------


def index_units(spec: Spec, inputs: Inputs) -> int:
    """At most ``INDEX_UNITS`` groups of shards."""
    return min(INDEX_UNITS, len(inputs["rows"].parts))


def _group(number: int, units: int, parts: int) -> range:
    """The shards of a unit: consecutive, as even as can be."""
    return range(number * parts // units, (number + 1) * parts // units)


def build_index(unit: Unit) -> None:
    """Index a group of shards into a segment."""
    from beirnl.retrieval.bm25 import UnitWriter

    spec = unit.task.spec
    assert isinstance(spec, IndexSpec)
    corpus = unit.inputs["rows"]
    group = _group(unit.number, index_units(spec, unit.inputs), len(corpus.parts))
    part = unit.out.open(suffix="", rows=sum(corpus.parts[number].rows for number in group))
    first_row = sum(shard.rows for shard in corpus.parts[: group.start])
    writer = UnitWriter(part.path, spec.bm25, first_row)
    for number in group:
        shard = corpus.read(number)
        writer.add(*(shard[name].to_pylist() for name in ("id", "title", "text")))
    writer.close()
    unit.out.rows_in = part.rows


def combine_index(unit: Unit) -> None:
    """Place the segments of all units together as one index with the statistics of the whole."""
    from beirnl.retrieval.bm25 import combine
    from beirnl.store.artifacts import Artifact

    spec = unit.task.spec
    assert isinstance(spec, IndexSpec)
    part = unit.out.open(suffix="", rows=unit.inputs["rows"].rows)
    combine(Artifact(unit.task.directory).unit_paths(), part.path, spec.bm25)


def query_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``QUERIES_PER_UNIT`` queries."""
    return max(1, -(-inputs["queries"].rows // QUERIES_PER_UNIT))


def index_pool(spec: Spec, inputs: Mapping[str, str]) -> str:
    """Workers keep one index open."""
    return inputs["index"]


def load_index(task: Task) -> object:
    """Open the index of a search, memory-mapped."""
    from beirnl.retrieval.bm25 import Bm25Index

    assert isinstance(task.spec, Bm25SearchSpec)
    return Bm25Index.open(task.inputs["index"].reduced_path(), task.spec.bm25)


def search_bm25(unit: Unit) -> None:
    """Search a block of queries."""
    spec = unit.task.spec
    assert isinstance(spec, Bm25SearchSpec)
    queries = unit.inputs["queries"].table().slice(unit.number * QUERIES_PER_UNIT, QUERIES_PER_UNIT)
    ids, texts = queries["id"].to_pylist(), queries["text"].to_pylist()
    exclude = ids if spec.remove_self_matches else None
    results = unit.resource.search(texts, spec.depth, exclude)
    tables = [_run(query, *hits) for query, hits in zip(ids, results, strict=True)]
    unit.out.rows_in = len(ids)
    unit.out.count("queries without hits", sum(table.num_rows == 0 for table in tables))
    unit.out.write(pa.concat_tables([RUN.empty_table(), *tables]), RUN)


def _run(query: str, ids: list[str], scores: np.ndarray) -> pa.Table:
    return pa.table([[query] * len(ids), list(ids), np.asarray(scores, np.float32)], schema=RUN)


# Vectors ----------------------------------------------------------------------------------------------------


def embed_pool(spec: EmbedSpec, inputs: Mapping[str, str]) -> str:
    """Documents and queries of all datasets go through one pool per encoder."""
    return digest(spec_fields(spec.encoder))


def load_embedder(task: Task) -> object:
    """The encoder of an embedding."""
    from beirnl.retrieval.encoders import load_encoder

    assert isinstance(task.spec, EmbedSpec)
    runtime = task.runtime
    return load_encoder(task.spec.encoder, device=runtime.device, threads=runtime.worker_threads)


def embed(unit: Unit) -> None:
    """Encode a shard; vectors lie in the order of its rows, with their ids."""
    spec = unit.task.spec
    assert isinstance(spec, EmbedSpec)
    rows = unit.inputs["rows"].read(unit.number)
    texts = [
        join_title_text(t, x)
        for t, x in zip(rows["title"].to_pylist(), rows["text"].to_pylist(), strict=True)
    ]
    encoded = unit.resource.encode(texts, spec.kind)
    vectors = encoded.vectors.astype(spec.encoder.vectors)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    unit.out.rows_in = rows.num_rows
    unit.out.count("truncated", encoded.truncated)
    table = pa.table({"row": rows["row"], "id": rows["id"], "vector": column})
    unit.out.write(table, embeddings(vectors.shape[1], spec.encoder.vectors))


def vectors_of(table: pa.Table) -> np.ndarray:
    """The vectors of an EMBEDDINGS table, [rows, dimension] float32."""
    dimension = table.schema.field("vector").type.list_size
    chunks = [chunk.flatten().to_numpy() for chunk in table["vector"].chunks]
    flat = np.concatenate(chunks) if chunks else np.zeros(0, np.float32)
    return flat.reshape(len(table), dimension).astype(np.float32, copy=False)


def search_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``SHARDS_PER_SEARCH`` shards of vectors."""
    return -(-len(inputs["rows"].parts) // SHARDS_PER_SEARCH)


def search_exact(unit: Unit) -> None:
    """The top of a group of shards for every query: a partial run."""
    from beirnl.retrieval.exact import ExactSearch

    spec = unit.task.spec
    assert isinstance(spec, SearchSpec)
    queries = unit.inputs["queries"].table()
    search = ExactSearch(
        queries["id"].to_pylist(),
        vectors_of(queries),
        spec.depth,
        remove_self=spec.remove_self_matches,
        threads=unit.task.runtime.worker_threads,
        device=unit.task.runtime.device,
    )
    corpus = unit.inputs["rows"]
    group = range(len(corpus.parts))[unit.number * SHARDS_PER_SEARCH :][:SHARDS_PER_SEARCH]
    for number in group:
        shard = corpus.read(number)
        search.add(shard["id"].to_pylist(), vectors_of(shard))
        unit.out.rows_in += shard.num_rows
    unit.out.write(search.result(), RUN)


def merge_search(unit: Unit) -> None:
    """The top of all partial runs."""
    from beirnl.retrieval.topk import merge_runs
    from beirnl.store.artifacts import Artifact
    from beirnl.store.parquet import read_table

    spec = unit.task.spec
    assert isinstance(spec, SearchSpec)
    partial = [read_table(path) for path in Artifact(unit.task.directory).unit_paths()]
    unit.out.write(merge_runs(partial, spec.depth, remove_self=spec.remove_self_matches), RUN)


# Second stage -----------------------------------------------------------------------------------------------


def rerank_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``RERANKED_PER_UNIT`` queries."""
    return max(1, -(-inputs["queries"].rows // RERANKED_PER_UNIT))


def rerank_pool(spec: RerankSpec, inputs: Mapping[str, str]) -> str:
    """One pool per reranker."""
    return digest(spec_fields(spec.reranker))


def load_second_stage(task: Task) -> object:
    """The reranker of a second stage."""
    from beirnl.retrieval.reranking import load_reranker

    assert isinstance(task.spec, RerankSpec)
    runtime = task.runtime
    return load_reranker(task.spec.reranker, device=runtime.device, threads=runtime.worker_threads)


def rerank(unit: Unit) -> None:
    """Score the first stage's hits of a block of queries and order them anew."""
    from beirnl.retrieval.topk import merge_runs

    spec = unit.task.spec
    assert isinstance(spec, RerankSpec)
    queries = unit.inputs["queries"].table().slice(unit.number * RERANKED_PER_UNIT, RERANKED_PER_UNIT)
    texts = dict(zip(queries["id"].to_pylist(), queries["text"].to_pylist(), strict=True))
    run = unit.inputs["run"].table()
    run = run.filter(pc.is_in(run["query_id"], value_set=queries["id"].combine_chunks()))
    run = merge_runs([run], spec.depth, remove_self=spec.remove_self_matches)
    documents = dict(_documents(unit, run["doc_id"].combine_chunks()))
    pairs = [
        (texts[query], documents[document])
        for query, document in zip(run["query_id"].to_pylist(), run["doc_id"].to_pylist(), strict=True)
    ]
    scores = unit.resource.score(pairs) if pairs else np.zeros(0, np.float32)
    run = run.set_column(2, "score", pa.array(scores, pa.float32()))
    unit.out.rows_in = len(pairs)
    unit.out.write(merge_runs([run], spec.depth), RUN)


def _documents(unit: Unit, ids: pa.Array) -> Iterator[tuple[str, str]]:
    """Identifier and passage of the wanted documents, from one pass over the corpus."""
    for shard in unit.inputs["corpus"].tables():
        found = shard.filter(pc.is_in(shard["id"], value_set=ids))
        for row in found.select(["id", "title", "text"]).to_pylist():
            yield row["id"], join_title_text(row["title"], row["text"])
