"""Stages of dense retrieval: vectors, and exact search over them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from beirnl.config import Runtime
from beirnl.registry import find_model
from beirnl.retrieval.topk import id_ranks, merge_each, own_ranks
from beirnl.retrieval.vectors import VectorFiles, is_compressible, vector_columns, vectors_of
from beirnl.schema import RUN, embeddings, join_title_text
from beirnl.specs import EncoderSpec, LlmSpec, Spec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.stages.searching import SearchSpec
from beirnl.store.keys import digest, spec_fields

if TYPE_CHECKING:
    from beirnl.retrieval.api_encoder import ApiEncoder
    from beirnl.retrieval.encoders import Encoded, Encoder

SHARDS_PER_SEARCH = 64  # shards of vectors in one unit of exact search
_BYTES = {"float32": 4.0, "float16": 2.0, "int8": 1.0}
_JOURNALLED = 16 / 3  # bytes of a number: float32 in base64
_UNITS_OF_AN_API = 2  # each holds its vectors, twice while it asks for them


class EmbedSpec(Spec):
    """Vectors of documents or of queries."""

    encoder: EncoderSpec
    kind: Literal["query", "document"]


def embed_pool(spec: EmbedSpec, inputs: Mapping[str, str]) -> str:
    """Documents and queries of all datasets go through one pool per encoder."""
    return digest(spec_fields(spec.encoder))


def embeds_in_flight(spec: EmbedSpec) -> int:
    """A model that is loaded takes one unit at a time; an API is kept busy across their ends."""
    return _UNITS_OF_AN_API if spec.encoder.is_remote else 1


def embed_server(spec: EmbedSpec) -> LlmSpec | None:
    """The API of an encoder that is not loaded."""
    return spec.encoder.api


def embeds_here(spec: EmbedSpec) -> bool:
    """Whether the encoder runs in the worker itself, and not at a server."""
    return not spec.encoder.is_remote


def embed_openings(spec: EmbedSpec) -> tuple[str, ...]:
    """What the texts that are sent to an API begin with; none are sent to a model that is loaded."""
    prompt = {"query": spec.encoder.query_prompt, "document": spec.encoder.document_prompt}[spec.kind]
    return (prompt,) if spec.encoder.is_remote else ()


def stated_dimension(encoder: EncoderSpec) -> int | None:
    """How many numbers its vectors have, where the spec or the registry says."""
    entry = find_model(encoder.model.name)
    return encoder.dimensions or (entry.dimension if entry else None)


def stored_as(spec: EmbedSpec) -> str:
    """The number format of stored vectors; int8 is for documents, since queries are few."""
    return "float32" if spec.kind == "query" and spec.encoder.vectors == "int8" else spec.encoder.vectors


def embedded_bytes(spec: EmbedSpec, rows: int) -> float | None:
    """What the vectors of so many texts take; None where nothing tells their dimension beforehand."""
    encoder = spec.encoder
    dimension = stated_dimension(encoder)
    return rows * dimension * _BYTES[stored_as(spec)] if dimension else None


def journalled_bytes(spec: EmbedSpec, rows: int) -> float:
    """What vectors that an API is asked for take in the journal, as far as they are not there."""
    return rows * (stated_dimension(spec.encoder) or 0) * _JOURNALLED if spec.encoder.is_remote else 0.0


def load_embedder(task: Task) -> object:
    """The encoder of an embedding."""
    assert isinstance(task.spec, EmbedSpec)
    return encoder_of(task.spec.encoder, task.runtime)


def encoder_of(encoder: EncoderSpec, runtime: Runtime) -> "Encoder | ApiEncoder":
    """An encoder: loaded, or reached over the network."""
    from beirnl.retrieval.encoders import load_encoder

    if encoder.is_remote:
        from beirnl.retrieval.api_encoder import ApiEncoder

        return ApiEncoder(encoder, share=1 / runtime.workers)
    return load_encoder(encoder, device=runtime.device, threads=runtime.worker_threads)


def embed(unit: Unit) -> None:
    """Encode a shard; vectors lie in the order of its rows, with their ids."""
    spec = unit.task.spec
    assert isinstance(spec, EmbedSpec)
    rows = unit.inputs["rows"].read(unit.number)
    texts = [
        join_title_text(t, x)
        for t, x in zip(rows["title"].to_pylist(), rows["text"].to_pylist(), strict=True)
    ]
    asked = _asked if spec.encoder.is_remote else _encoded
    encoded = asked(unit, spec, texts)
    unit.out.rows_in = rows.num_rows
    unit.out.count("truncated", encoded.truncated)
    dtype = stored_as(spec)
    columns = vector_columns(encoded.vectors, dtype)
    table = pa.table({"row": rows["row"], "id": rows["id"], **columns})
    unit.out.write(table, embeddings(encoded.vectors.shape[1], dtype), compress=is_compressible(dtype))


def _encoded(unit: Unit, spec: EmbedSpec, texts: list[str]) -> "Encoded":
    """Vectors from the model that the worker has loaded."""
    encoded: Encoded = unit.resource.encode(texts, spec.kind, unit.tell)
    return encoded


def _asked(unit: Unit, spec: EmbedSpec, texts: list[str]) -> "Encoded":
    """Vectors from an API, through the unit's journal."""
    from beirnl.retrieval.api_encoder import JournalledEncoder, journal_name
    from beirnl.store.journal import Journal, bucket_range
    from beirnl.store.workspace import Workspace

    folder = Workspace(unit.task.workspace).journal / journal_name(spec.encoder, spec.kind)
    buckets = bucket_range(unit.number, len(unit.inputs["rows"].parts))
    with Journal(folder, *buckets, unit.out.attempt) as journal:
        encoder = JournalledEncoder(unit.resource, journal, unit.number, unit.tell)
        encoded = encoder.encode(texts, spec.kind)
    for name, number in encoder.counts.items():
        unit.out.count(name, number)
    return encoded


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
        products=unit.task.runtime.products,
        memory=unit.task.runtime.search_memory_mb << 20,
    )
    for begin, vectors in files.blocks(search.block_rows):
        search.add(vectors, ranks[begin : begin + len(vectors)])
        unit.tell(begin + len(vectors))
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
