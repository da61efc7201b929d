"""Second stages: what another system found, ordered anew."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.schema import RUN, join_title_text
from beirnl.specs import RerankerSpec, Spec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.stages.searching import SearchSpec
from beirnl.store.keys import digest, spec_fields

RERANKED_PER_UNIT = 100


class RerankSpec(SearchSpec):
    """A second stage over the first ``depth`` of a run."""

    reranker: RerankerSpec


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
