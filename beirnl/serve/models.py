"""The models that a query is asked of, each behind one function of a batch."""

import asyncio
import re
from collections.abc import Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from beirnl.config import Runtime
from beirnl.retrieval.late import LateSpec
from beirnl.specs import EncoderSpec, RerankerSpec
from beirnl.store.journal import Entry, Journal
from beirnl.store.keys import digest, spec_fields

#: Takes what was asked by several requests and gives an answer for each.
Batch = Callable[[Sequence[Any]], list[Any]]
Role = Literal["encoder", "token-encoder", "reranker"]
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Model:
    """A model in a role. What it is asked and answers, by role:

    - ``encoder``: a query; its vector, float32 [dimension];
    - ``token-encoder``: a query; the vectors of its tokens, float32 [tokens, dimension];
    - ``reranker``: pairs of a query and a passage; a score for each, float32 [pairs].
    """

    role: Role
    spec: EncoderSpec | LateSpec | RerankerSpec

    @cached_property
    def name(self) -> str:
        """Role, model and what tells it from the same model under other conditions."""
        model = re.sub(r"[^A-Za-z0-9.]+", "-", self.spec.model.name.rstrip("/").split("/")[-1])
        return f"{self.role}-{model}-{digest([self.role, spec_fields(self.spec)])[:6]}"


class Models(Protocol):
    """Answers for models, wherever they are loaded."""

    async def ask(self, model: Model, item: Any) -> Any:
        """What a model answers to one request."""
        ...

    async def waiting(self, models: Sequence[Model]) -> list[str]:
        """Names of those that cannot answer yet."""
        ...


def load(model: Model, runtime: Runtime) -> Batch:
    """Load a model.

    Raises:
        PrerequisiteError: its weights are not there.
        ConfigError: it cannot be what it is asked for.
    """
    return {"encoder": _encoder, "token-encoder": _token_encoder, "reranker": _reranker}[model.role](
        model.spec, runtime
    )


def _encoder(spec: Any, runtime: Runtime) -> Batch:
    from beirnl.retrieval.api_encoder import ApiEncoder, JournalledEncoder
    from beirnl.stages.dense import encoder_of

    loaded: Any = encoder_of(spec, runtime)
    encoder = JournalledEncoder(loaded, _NoJournal()) if isinstance(loaded, ApiEncoder) else loaded
    return lambda texts: list(encoder.encode(texts, "query").vectors)


class _NoJournal(Journal):
    """Keeps nothing: what people ask is not written down."""

    def __init__(self) -> None:
        pass

    def known(self, keys: Container[str]) -> dict[str, Entry]:
        """Nothing."""
        return {}

    def append(self, entry: Entry) -> None:
        """Forget."""


def _token_encoder(spec: Any, runtime: Runtime) -> Batch:
    from beirnl.retrieval.late import LateEncoder

    encoder = LateEncoder(spec, runtime.device, runtime.worker_threads)

    def encode(texts: Sequence[str]) -> list[np.ndarray]:
        found = encoder.encode(texts, "query")
        return [found.of(number) for number in range(len(texts))]

    return encode


def _reranker(spec: Any, runtime: Runtime) -> Batch:
    from beirnl.retrieval.reranking import load_reranker

    reranker = load_reranker(spec, device=runtime.device, threads=runtime.worker_threads)

    def score(requests: Sequence[Pairs]) -> list[np.ndarray]:
        scores = reranker.score([pair for pairs in requests for pair in pairs]).scores
        return np.split(scores, np.cumsum([len(pairs) for pairs in requests])[:-1])

    return score


class LocalModels:
    """Models in this process, each loaded when it is first asked."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loaded: dict[str, Batch] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")

    async def ask(self, model: Model, item: Any) -> Any:
        """See :meth:`Models.ask`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, model, item)

    def _ask(self, model: Model, item: Any) -> Any:
        if model.name not in self._loaded:
            self._loaded[model.name] = load(model, self._runtime)
        return self._loaded[model.name]([item])[0]

    async def waiting(self, models: Sequence[Model]) -> list[str]:
        """None: they are loaded when they are asked."""
        return []
