"""Second stages: what another system found, ordered anew.

The passages that a run names are gathered first, once for all its queries and for all second stages over it:
each shard of the corpus is read once. A unit of a second stage then reads what it needs out of memory-mapped
files, which hold at most queries x depth passages whatever the size of the corpus.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.errors import StoreError
from beirnl.retrieval.late import LateSpec
from beirnl.schema import RUN, join_title_text
from beirnl.specs import RerankerSpec, Spec
from beirnl.stages.base import Inputs, Task, Unit
from beirnl.stages.searching import SearchSpec
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import digest, spec_fields
from beirnl.wording import counted

SHARDS_PER_GATHERING = 32
RERANKED_PER_UNIT = 100

#: What second stages read: a document's identifier, and its title and text as one.
GATHERED = pa.schema([("id", pa.string()), ("passage", pa.string())])


class RerankSpec(SearchSpec):
    """A second stage over the first ``depth`` of a run."""

    reranker: RerankerSpec | LateSpec

    @property
    def method(self) -> str:
        """How it scores a pair, for reports."""
        return "late-interaction" if isinstance(self.reranker, LateSpec) else self.reranker.kind


def gather_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per ``SHARDS_PER_GATHERING`` shards of the corpus."""
    return max(1, -(-len(inputs["corpus"].parts) // SHARDS_PER_GATHERING))


def gather(unit: Unit) -> None:
    """Collect the passages of a group of shards that the first ``depth`` of a run names."""
    spec = unit.task.spec
    assert isinstance(spec, SearchSpec)
    wanted = set(
        first_hits(unit.inputs["run"].table(), spec, remove_self=spec.remove_self_matches)[
            "doc_id"
        ].to_pylist()
    )
    corpus, part = unit.inputs["corpus"], unit.out.open(suffix=".arrow")
    with pa.ipc.new_file(part.path, GATHERED) as writer:
        for number in range(len(corpus.parts))[unit.number * SHARDS_PER_GATHERING :][:SHARDS_PER_GATHERING]:
            shard = corpus.read(number)
            ids = shard["id"].to_pylist()
            found = [row for row, name in enumerate(ids) if name in wanted]
            rows = shard.take(pa.array(found, pa.int64()))  # also of no rows, whose type Arrow cannot guess
            titles, texts = rows["title"].to_pylist(), rows["text"].to_pylist()
            passages = [join_title_text(*pair) for pair in zip(titles, texts, strict=True)]
            writer.write_table(pa.table([rows["id"], pa.array(passages, pa.string())], schema=GATHERED))
            part.rows += len(passages)
            unit.out.rows_in += len(ids)
            unit.tell(unit.out.rows_in)


def first_hits(run: pa.Table, spec: SearchSpec, *, remove_self: bool) -> pa.Table:
    """What a second stage takes from a run: its first ``depth``, if wanted without self-matches."""
    from beirnl.retrieval.topk import merge_runs

    return merge_runs([run], spec.depth, remove_self=remove_self)


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
    spec = unit.task.spec
    assert isinstance(spec, RerankSpec)
    queries = unit.inputs["queries"].table().slice(unit.number * RERANKED_PER_UNIT, RERANKED_PER_UNIT)
    texts = dict(zip(queries["id"].to_pylist(), queries["text"].to_pylist(), strict=True))
    run = unit.inputs["run"].table()
    run = run.filter(pc.is_in(run["query_id"], value_set=queries["id"].combine_chunks()))
    run = first_hits(run, spec, remove_self=spec.remove_self_matches)
    found, named = run["query_id"].to_pylist(), run["doc_id"].to_pylist()
    passages = _passages(unit.inputs["passages"], run["doc_id"].combine_chunks())
    pairs = [(texts[query], passages[document]) for query, document in zip(found, named, strict=True)]
    scored = unit.resource.score(pairs, unit.tell)
    unit.out.rows_in = len(pairs)
    unit.out.count("cut pairs", scored.truncated)
    unit.out.write(reordered(run, scored.scores, spec), RUN)


def reordered(run: pa.Table, scores: np.ndarray, spec: SearchSpec) -> pa.Table:
    """What a second stage makes of a run from :func:`first_hits` and a score for each of its rows."""
    from beirnl.retrieval.topk import merge_runs

    return merge_runs([run.set_column(2, "score", pa.array(scores, pa.float32()))], spec.depth)


def _passages(gathered: Artifact, ids: pa.Array) -> dict[str, str]:
    """The passages of the wanted documents by identifier.

    Raises:
        StoreError: one of them was not gathered.
    """
    passages = dict(_read(gathered, ids))
    missing = set(ids.to_pylist()) - passages.keys()
    if missing:
        raise StoreError(
            f"the run names {counted(len(missing), 'document')} that the corpus lacks, such as "
            f"{min(missing)!r}",
            where=gathered.directory,
            remedy="mend the run's file if it was imported, else delete the folder of the run; run again",
        )
    return passages


def _read(gathered: Artifact, ids: pa.Array) -> Iterator[tuple[str, str]]:
    for part in gathered.parts:
        with pa.memory_map(str(gathered.path(part))) as file:
            table = pa.ipc.open_file(file).read_all()
            found = table.filter(pc.is_in(table["id"], value_set=ids))
            yield from zip(found["id"].to_pylist(), found["passage"].to_pylist(), strict=True)
