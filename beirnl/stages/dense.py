"""Stages of dense retrieval: vectors, and exact search over them."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa

from beirnl.retrieval.topk import id_ranks, merge_each, own_ranks
from beirnl.retrieval.vectors import VectorFiles, vectors_of
from beirnl.schema import RUN, embeddings, join_title_text
from beirnl.specs import EncoderSpec, Spec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.stages.searching import SearchSpec
from beirnl.store.keys import digest, spec_fields

SHARDS_PER_SEARCH = 64  # shards of vectors in one unit of exact search


class EmbedSpec(Spec):
    """Vectors of documents or of queries."""

    encoder: EncoderSpec
    kind: Literal["query", "document"]


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


def search_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``SHARDS_PER_SEARCH`` shards of vectors."""
    return -(-len(inputs["rows"].parts) // SHARDS_PER_SEARCH)


def search_exact(unit: Unit) -> None:
    """The top of a group of shards for every query: a partial run."""
    from beirnl.retrieval.exact import ExactSearch

    spec = unit.task.spec
    assert isinstance(spec, SearchSpec)
    query_ids, queries = query_vectors(unit)
    corpus = unit.inputs["rows"]
    shards = corpus.parts[unit.number * SHARDS_PER_SEARCH :][:SHARDS_PER_SEARCH]
    files = VectorFiles([corpus.path(part) for part in shards])
    ranks, ids = id_ranks(files.ids())
    search = ExactSearch(
        queries,
        spec.depth,
        own=own_ranks(query_ids, ids) if spec.remove_self_matches else None,
        threads=unit.task.runtime.worker_threads,
        device=unit.task.runtime.device,
    )
    for begin, vectors in files.blocks(search.block_rows):
        search.add(vectors, ranks[begin : begin + len(vectors)])
        unit.out.tell(begin + len(vectors))
    unit.out.rows_in = files.rows
    unit.out.write(search.top.run(query_ids, ids), RUN)


def query_vectors(unit: Unit) -> tuple[pa.Array, np.ndarray]:
    """Identifiers and vectors of all queries, [q, dimension] float32."""
    queries = unit.inputs["queries"].table()
    return queries["id"].combine_chunks(), vectors_of(queries)


def merge_search(unit: Unit) -> None:
    """The top of all partial runs."""
    from beirnl.store.artifacts import Artifact
    from beirnl.store.parquet import read_table

    spec = unit.task.spec
    assert isinstance(spec, SearchSpec)
    partial = (read_table(path) for path in Artifact(unit.task.directory).unit_paths())
    unit.out.write(merge_each(partial, spec.depth, remove_self=spec.remove_self_matches), RUN)
