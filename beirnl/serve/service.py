"""The service: what is served, and its answers; whoever asks is told what is wrong by a problem."""

import time
from collections.abc import Mapping, Sequence

import pyarrow as pa

from beirnl.errors import nearest
from beirnl.pipeline import Pipeline
from beirnl.serve.answers import (
    Asked,
    DocumentsAnswer,
    Hit,
    QueriesAnswer,
    SearchAnswer,
    State,
    SystemsAnswer,
)
from beirnl.serve.collections import Collection, collections
from beirnl.serve.models import Models
from beirnl.serve.problems import ProblemError
from beirnl.serve.searching import Opener, models_of
from beirnl.serve.settings import Order


class Service:
    """Answers over the artifacts of an experiment, which are opened at once, memory-mapped.

    Args:
        pipeline: the experiment; everything that is served is built.
        models: answer for encoders and rerankers.

    Raises:
        StoreError: an artifact is damaged.
    """

    def __init__(self, pipeline: Pipeline, models: Models) -> None:
        self._name, self._models = pipeline.experiment.name, models
        self._opener = Opener(pipeline.workspace, pipeline.experiment.runtime, models)
        self._asked = models_of(pipeline)
        self._collections = collections(pipeline, self._opener)

    async def search(
        self, dataset: str, system: str, k: int, text: str | None, name: str | None
    ) -> SearchAnswer:
        """What a system finds; the query is a text, or named by its identifier."""
        collection = self._collection(dataset)
        searcher = collection.searchers.get(system)
        if searcher is None:
            raise _no_system(collection, system)
        query = collection.query(text, name)
        if query is None:
            raise ProblemError(404, f"{collection.name} has no query {name!r}; /queries lists them")
        begin = time.perf_counter()
        run = await searcher.search(query, k)
        labels = collection.labels(query)
        relevant = sum(label > 0 for label in labels.values()) if query.id else None
        return SearchAnswer(
            dataset=collection.name,
            system=system,
            query=Asked(text=query.text, id=query.id or None, relevant=relevant),
            seconds=round(time.perf_counter() - begin, 6),
            hits=_hits(run, labels),
        )

    async def documents(self, dataset: str, ids: Sequence[str]) -> DocumentsAnswer:
        """Documents by their identifiers."""
        collection = self._collection(dataset)
        found, missing = await self._opener.work(collection.documents, ids)
        if missing:
            raise ProblemError(404, f"{collection.name} has no document {missing[0]!r}")
        return DocumentsAnswer(dataset=collection.name, documents=found)

    async def queries(self, dataset: str, offset: int, limit: int, order: Order) -> QueriesAnswer:
        """Some of a dataset's judged queries, with a value for each system."""
        return await self._opener.work(self._collection(dataset).queries, offset, limit, order)

    async def systems(self) -> SystemsAnswer:
        """What can be asked."""
        described = [await self._opener.work(one.described) for one in self._collections.values()]
        return SystemsAnswer(experiment=self._name, datasets=described)

    async def ready(self) -> State:
        """Whether every model answers; the artifacts are open."""
        waiting = await self._models.waiting(self._asked)
        return State(status="waiting" if waiting else "ready", waiting=waiting)

    def _collection(self, name: str) -> Collection:
        """The collection of a name, for which that of a dataset is enough where it has one language."""
        known = self._collections
        alike = [one for one in known if one.split("/")[0] == name]
        found = known.get(alike[0] if len(alike) == 1 else name)
        if found is None:
            remedy = f"it has several: {', '.join(alike)}" if alike else nearest(name, known)
            raise ProblemError(404, f"there is no dataset {name!r}; {remedy}")
        return found


def _no_system(collection: Collection, name: str) -> ProblemError:
    if name in collection.systems:
        return ProblemError(404, f"system {name!r} is a run that was made elsewhere: it cannot be asked")
    return ProblemError(
        404, f"{collection.name} has no system {name!r}; {nearest(name, collection.searchers)}"
    )


def _hits(run: pa.Table, labels: Mapping[str, int]) -> list[Hit]:
    columns = zip(run["doc_id"].to_pylist(), run["score"].to_pylist(), strict=True)
    return [
        Hit(rank=rank, id=name, score=score, relevance=labels.get(name))
        for rank, (name, score) in enumerate(columns, 1)
    ]
