"""Late interaction over a whole corpus: vectors of tokens, and exhaustive search by MaxSim.

As a second stage, late interaction is a reranker: see :mod:`beirnl.stages.second`.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from beirnl.errors import ConfigError
from beirnl.retrieval.late import LateEncoder, LateSearch, LateSpec, TokenVectors
from beirnl.schema import RUN, join_title_text
from beirnl.specs import Spec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.stages.searching import SearchSpec
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import digest, spec_fields
from beirnl.wording import counted

PASSAGES_AT_ONCE = 1024  # encoded and written together, which bounds the memory
SHARDS_PER_SEARCH = 16
MAX_PASSAGES = 100_000


class EmbedTokensSpec(Spec):
    """Vectors of the tokens of documents or of queries.

    Attributes:
        encoder: the model.
        kind: whether the rows are queries or documents.
        max_passages: a larger corpus is refused; not part of the key.
    """

    encoder: LateSpec
    kind: Literal["query", "document"]
    max_passages: int = Field(default=MAX_PASSAGES, exclude=True)


def token_vectors(dimension: int, dtype: str) -> pa.Schema:
    """Vectors of the tokens of one shard: ``row``, ``id``, and a list of vectors of ``dimension`` numbers."""
    vector = pa.list_(pa.from_numpy_dtype(dtype), dimension)
    return pa.schema([("row", pa.int64()), ("id", pa.string()), ("vectors", pa.list_(vector))])


def embed_tokens_pool(spec: EmbedTokensSpec, inputs: Mapping[str, str]) -> str:
    """Documents and queries of all datasets in a language go through one pool per model."""
    return digest(spec_fields(spec.encoder))


def load_token_embedder(task: Task) -> LateEncoder:
    """The model of an embedding."""
    spec, runtime = task.spec, task.runtime
    assert isinstance(spec, EmbedTokensSpec)
    return LateEncoder(spec.encoder, runtime.device, runtime.worker_threads)


def embed_tokens(unit: Unit) -> None:
    """Encode a shard; texts lie in the order of its rows, with their ids.

    Raises:
        ConfigError: the corpus is too large for exhaustive search.
    """
    spec, encoder = unit.task.spec, unit.resource
    assert isinstance(spec, EmbedTokensSpec)
    check_passages(spec, unit.inputs, unit.task.label)
    rows = unit.inputs["rows"].read(unit.number)
    schema = token_vectors(encoder.dimension, spec.encoder.vectors)
    part = unit.out.open(suffix=".arrow", rows=rows.num_rows)
    with pa.ipc.new_file(part.path, schema) as writer:
        for begin in range(0, rows.num_rows, PASSAGES_AT_ONCE):
            some = rows.slice(begin, PASSAGES_AT_ONCE)
            pairs = zip(some["title"].to_pylist(), some["text"].to_pylist(), strict=True)
            texts = [join_title_text(*pair) for pair in pairs]
            encoded = encoder.encode(texts, spec.kind, lambda done, begin=begin: unit.tell(begin + done))
            column = _column(encoded, schema.field("vectors").type)
            writer.write_table(pa.table([some["row"], some["id"], column], schema=schema))
            unit.out.count("truncated", encoded.truncated)
            unit.out.rows_in += some.num_rows


def check_passages(spec: EmbedTokensSpec, inputs: Inputs, label: str) -> None:
    """Refuse a corpus that is too large for exhaustive search.

    Raises:
        ConfigError: it has more than ``max_passages``.
    """
    passages = inputs["rows"].rows
    if spec.kind == "document" and passages > spec.max_passages:
        raise ConfigError(
            f"exhaustive late interaction takes {counted(spec.max_passages, 'passage')} at most, not "
            f"{passages:,}",
            where=label,
            remedy='let another system find candidates (first = "BM25"), or raise max_passages',
        )


def _column(texts: TokenVectors, kind: pa.ListType) -> pa.ListArray:
    dtype = kind.value_type.value_type.to_pandas_dtype()
    flat = pa.array(texts.vectors.astype(dtype).reshape(-1))
    vectors = pa.FixedSizeListArray.from_arrays(flat, type=kind.value_type)
    return pa.ListArray.from_arrays(texts.offsets.astype(np.int32), vectors, type=kind)


def read_tokens(artifact: Artifact, numbers: range) -> Iterator[tuple[list[str], TokenVectors]]:
    """Identifiers and float32 vectors of what was encoded together, one after another."""
    for number in numbers:
        with pa.memory_map(str(artifact.path(artifact.parts[number]))) as file:
            reader = pa.ipc.open_file(file)
            for batch in range(reader.num_record_batches):
                table = reader.get_batch(batch)
                column = table["vectors"]
                vectors = column.flatten()
                flat = vectors.flatten().to_numpy().reshape(len(vectors), vectors.type.list_size)
                offsets = column.offsets.to_numpy().astype(np.int64)
                texts = TokenVectors(flat.astype(np.float32), offsets - offsets[0])
                yield table["id"].to_pylist(), texts


def search_late_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``SHARDS_PER_SEARCH`` shards of vectors."""
    return max(1, -(-len(inputs["rows"].parts) // SHARDS_PER_SEARCH))


def search_late(unit: Unit) -> None:
    """The top of a group of shards for every query: a partial run."""
    spec, runtime = unit.task.spec, unit.task.runtime
    assert isinstance(spec, SearchSpec)
    everything = unit.inputs["queries"]
    ids: list[str] = []
    queries = []
    for some, vectors in read_tokens(everything, range(len(everything.parts))):
        ids += some
        queries.append(vectors)
    search = LateSearch(
        ids,
        TokenVectors.join(queries),
        spec.depth,
        remove_self=spec.remove_self_matches,
        threads=runtime.worker_threads,
        device=runtime.device,
    )
    corpus = unit.inputs["rows"]
    group = range(len(corpus.parts))[unit.number * SHARDS_PER_SEARCH :][:SHARDS_PER_SEARCH]
    for names, documents in read_tokens(corpus, group):
        search.add(names, documents)
        unit.out.rows_in += len(names)
        unit.tell(unit.out.rows_in)
    unit.out.write(search.result(), RUN)
