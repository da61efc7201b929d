"""Stages of dense retrieval: vectors, and exact search over them."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa

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
