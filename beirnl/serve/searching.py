"""One query through a system, as the stages put all queries of a dataset through it.

A query has the hits that its run has: the same indexes and vectors are searched by the same functions, to the
same depth. Where a model is asked, scores can differ in their last digits, since its batches do.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from beirnl.config import Runtime
from beirnl.graph import Node
from beirnl.pipeline import Pipeline
from beirnl.retrieval.ann import AnnIndex, rescored
from beirnl.retrieval.topk import id_ranks, merge_runs, own_ranks
from beirnl.schema import join_title_text
from beirnl.serve.models import Model, Models, Role
from beirnl.serve.texts import Texts
from beirnl.stages.dense import stored_as
from beirnl.stages.fusion import FuseSpec, fused
from beirnl.stages.late import read_tokens
from beirnl.stages.searching import run_of
from beirnl.stages.second import first_hits, reordered
from beirnl.store.artifacts import Artifact
from beirnl.store.workspace import Workspace

_T = TypeVar("_T")


class Query(NamedTuple):
    """A question; ``id`` is that of the dataset's query that it is, or empty."""

    text: str
    id: str = ""

    def own(self, spec: Any) -> str | None:
        """The document that must not be found: with the query's id, where self-matches are removed."""
        return self.id if self.id and spec.remove_self_matches else None


class Searcher(Protocol):
    """A system on a dataset in a language."""

    async def search(self, query: Query, depth: int) -> pa.Table:
        """The ``RUN`` of one query: its best hits, at most ``depth`` and at most as many as the run has."""
        ...


@dataclass
class Opener:
    """Opens the searchers of runs, each run and each artifact once.

    All work that is not a model's is done in one thread: searches keep a core busy, and there are replicas.
    """

    workspace: Workspace
    runtime: Runtime
    models: Models
    opened: dict[str, Searcher] = field(default_factory=dict)
    _texts: dict[str, Texts] = field(default_factory=dict)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "search"))

    def open(self, run: Node) -> Searcher:
        """The searcher that does what made a run, which :func:`is_searchable`."""
        if run.key not in self.opened:
            self.opened[run.key] = _SEARCHERS[run.stage](run, self)
        return self.opened[run.key]

    def artifact(self, node: Node) -> Artifact:
        """Where a node lies."""
        return node.artifact(self.workspace)

    def texts(self, node: Node) -> Texts:
        """The rows of a node by identifier."""
        if node.key not in self._texts:
            self._texts[node.key] = Texts(self.artifact(node))
        return self._texts[node.key]

    async def work(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Do something in the thread for it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


def is_searchable(run: Node) -> bool:
    """Whether new queries can be put through what made a run: not where it was imported."""
    needed = [node for name, node in run.inputs.items() if name.startswith("run")]
    return run.stage in _SEARCHERS and all(map(is_searchable, needed))


def models_of(pipeline: Pipeline) -> list[Model]:
    """The models that queries of an experiment are asked of, each once; nothing is opened."""
    found: dict[str, Model] = {}

    def note(run: Node) -> None:
        for name, node in run.inputs.items():
            if name.startswith("run"):
                note(node)
        if model := _asked(run):
            found[model.name] = model

    for evaluation in pipeline.graph.evaluations:
        if is_searchable(run := evaluation.node.inputs["run"]):
            note(run)
    return list(found.values())


def _asked(run: Node) -> Model | None:
    """The model that made this run itself, of which queries are asked; None: there is none."""
    spec: Any = run.spec
    if run.stage == "rerank":
        return Model("reranker", spec.reranker)
    if run.stage not in _ENCODERS:
        return None
    embed: Any = run.inputs["queries"].spec
    return Model(_ENCODERS[run.stage], embed.encoder)


class _Base:
    def __init__(self, run: Node, opener: Opener) -> None:
        self.spec: Any = run.spec
        self._opener = opener
        self._model = _asked(run)
        self._inputs = {name: opener.artifact(node) for name, node in run.inputs.items()}

    async def _ask(self, item: Any) -> Any:
        assert self._model
        return await self._opener.models.ask(self._model, item)


class _Bm25(_Base):
    """``search-bm25`` and ``search-shards``."""

    def __init__(self, run: Node, opener: Opener) -> None:
        from beirnl.retrieval.bm25 import Bm25Index

        super().__init__(run, opener)
        index, spec = self._inputs["index"], self.spec.bm25
        if run.stage == "search-bm25":
            self._indexes = [Bm25Index.open(index.reduced_path(), spec)]
        else:
            whole = index.reduced_path()
            self._indexes = [Bm25Index.open(index.path(part), spec, whole) for part in index.parts]

    async def search(self, query: Query, depth: int) -> pa.Table:
        return await self._opener.work(self._search, query, min(depth, self.spec.depth))

    def _search(self, query: Query, depth: int) -> pa.Table:
        own = [query.own(self.spec)]
        runs = [run_of(query.id, *index.search([query.text], depth, own)[0]) for index in self._indexes]
        return runs[0] if len(runs) == 1 else merge_runs(runs, depth)


class _Dense(_Base):
    """What exact and approximate search have in common: a query's vector."""

    def __init__(self, run: Node, opener: Opener) -> None:
        super().__init__(run, opener)
        embed: Any = run.inputs["queries"].spec
        self._number = stored_as(embed)

    async def search(self, query: Query, depth: int) -> pa.Table:
        vector = await self._ask(join_title_text("", query.text))
        vectors = np.asarray(vector)[None].astype(self._number).astype(np.float32)
        return await self._opener.work(self._search, query, vectors, min(depth, self.spec.depth))

    def _search(self, query: Query, vectors: np.ndarray, depth: int) -> pa.Table:
        raise NotImplementedError


class _Exact(_Dense):
    """``search-exact``."""

    def __init__(self, run: Node, opener: Opener) -> None:
        from beirnl.retrieval.vectors import VectorFiles

        super().__init__(run, opener)
        rows = self._inputs["rows"]
        self._files = VectorFiles([rows.path(part) for part in rows.parts])
        self._ranks, self._ids = id_ranks(self._files.ids())

    def _search(self, query: Query, vectors: np.ndarray, depth: int) -> pa.Table:
        from beirnl.retrieval.exact import ExactSearch

        runtime, own = self._opener.runtime, query.own(self.spec)
        search = ExactSearch(
            vectors,
            depth,
            own=None if own is None else own_ranks(pa.array([own]), self._ids),
            products="float32",  # for one query, rounding the documents would take longer
            threads=runtime.worker_threads,
            device=runtime.device,
            memory=runtime.search_memory_mb << 20,
        )
        for begin, block in self._files.blocks(search.block_rows):
            search.add(block, self._ranks[begin : begin + len(block)])
        return search.top.run(pa.array([query.id]), self._ids)


class _Approximate(_Dense):
    """``search-ann``: which candidates are found depends on the depth, so it is always the run's."""

    def __init__(self, run: Node, opener: Opener) -> None:
        super().__init__(run, opener)
        index = self._inputs["index"]
        self._indexes = [AnnIndex(index.path(part), self.spec.expansion_search) for part in index.parts]

    def _search(self, query: Query, vectors: np.ndarray, depth: int) -> pa.Table:
        spec, threads = self.spec, self._opener.runtime.worker_threads
        deep = spec.depth + spec.remove_self_matches
        found = (index.candidates(vectors, index.fetched(deep), threads=threads) for index in self._indexes)
        remove, name = query.own(spec) is not None, pa.array([query.id])
        return rescored(self._indexes, found, vectors, name, spec.depth, remove_self=remove, threads=threads)[
            :depth
        ]


class _Late(_Base):
    """``search-late``."""

    def __init__(self, run: Node, opener: Opener) -> None:
        super().__init__(run, opener)
        embed: Any = run.inputs["queries"].spec
        self._number = embed.encoder.vectors

    async def search(self, query: Query, depth: int) -> pa.Table:
        vectors = await self._ask(join_title_text("", query.text))
        vectors = vectors.astype(self._number).astype(np.float32)
        return await self._opener.work(self._search, query, vectors, min(depth, self.spec.depth))

    def _search(self, query: Query, vectors: np.ndarray, depth: int) -> pa.Table:
        from beirnl.retrieval.late import LateSearch, TokenVectors

        runtime, documents = self._opener.runtime, self._inputs["rows"]
        search = LateSearch(
            [query.id],
            TokenVectors(vectors, np.array([0, len(vectors)])),
            depth,
            remove_self=query.own(self.spec) is not None,
            threads=runtime.worker_threads,
            device=runtime.device,
        )
        for names, tokens in read_tokens(documents, range(len(documents.parts))):
            search.add(names, tokens)
        return search.result()


class _Second(_Base):
    """``rerank``."""

    def __init__(self, run: Node, opener: Opener) -> None:
        super().__init__(run, opener)
        self._first, self._first_depth = opener.open(run.inputs["run"]), _depth(run.inputs["run"])
        self._corpus = opener.texts(run.inputs["passages"].inputs["corpus"])

    async def search(self, query: Query, depth: int) -> pa.Table:
        found = await self._first.search(query, self._first_depth)
        run, pairs = await self._opener.work(self._pairs, query, found)
        if not pairs:
            return run
        scores = await self._ask(pairs)
        return (await self._opener.work(reordered, run, scores, self.spec))[:depth]

    def _pairs(self, query: Query, found: pa.Table) -> tuple[pa.Table, list[tuple[str, str]]]:
        run = first_hits(found, self.spec, remove_self=query.own(self.spec) is not None)
        names = run["doc_id"].to_pylist()
        rows = self._corpus.find(names)
        return run, [(query.text, join_title_text(rows[name].title, rows[name].text)) for name in names]


class _Fused(_Base):
    """``fuse``."""

    def __init__(self, run: Node, opener: Opener) -> None:
        super().__init__(run, opener)
        nodes = [run.inputs[f"run-{number}"] for number in range(len(run.inputs))]
        self._of = [(opener.open(node), _depth(node)) for node in nodes]

    async def search(self, query: Query, depth: int) -> pa.Table:
        runs = await asyncio.gather(*(searcher.search(query, deep) for searcher, deep in self._of))
        return (await self._opener.work(self._fuse, query, runs))[:depth]

    def _fuse(self, query: Query, runs: Sequence[pa.Table]) -> pa.Table:
        assert isinstance(self.spec, FuseSpec)
        return fused(self.spec, runs, remove_self=query.own(self.spec) is not None)


def _depth(run: Node) -> int:
    spec: Any = run.spec
    return int(spec.depth)


_ENCODERS: dict[str, Role] = {
    "search-exact": "encoder",
    "search-ann": "encoder",
    "search-late": "token-encoder",
}
_SEARCHERS: dict[str, Callable[[Node, Opener], Searcher]] = {
    "search-bm25": _Bm25,
    "search-shards": _Bm25,
    "search-exact": _Exact,
    "search-ann": _Approximate,
    "search-late": _Late,
    "rerank": _Second,
    "fuse": _Fused,
}
