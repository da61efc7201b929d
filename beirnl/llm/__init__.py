"""LLM engines: a table, and what loads one of them. No engine's library is imported before it is used."""

import importlib
import importlib.util
from typing import NamedTuple

from beirnl.llm.protocol import LLM, Answer, Request, Surroundings, in_order
from beirnl.registry import unknown
from beirnl.specs import LlmSpec

__all__ = [
    "ENGINES",
    "LLM",
    "Answer",
    "Request",
    "Surroundings",
    "available_engine",
    "in_order",
    "load_llm",
    "resolve_engine",
]


class Engine(NamedTuple):
    """An engine of the table.

    Attributes:
        path: its class, as ``module:class``; takes an :class:`LlmSpec` and :class:`Surroundings`.
        units: units (shards) that one worker has in flight, so that the engine does not drain between them.
        remote: the model is reached over the network: it is named, not loaded.
        weights: the model is loaded, and has to be named.
        deferred: answers are paid for when they are ordered, at the batch price.
        key: the environment variable of its key, where ``api_key_env`` is left at its default.
    """

    path: str
    units: int = 1
    remote: bool = False
    weights: bool = False
    deferred: bool = False
    key: str = ""


#: Engines by name.
ENGINES: dict[str, Engine] = {
    "mock": Engine("beirnl.llm.mock:MockLlm"),
    "transformers": Engine("beirnl.llm.transformers_engine:TransformersLlm", weights=True),
    "vllm": Engine("beirnl.llm.vllm_engine:VllmLlm", units=4, weights=True),
    "openai": Engine("beirnl.llm.openai_engine:OpenAiLlm", units=4, remote=True),
    "batch": Engine("beirnl.llm.batch:OpenAiBatchLlm", units=64, remote=True, deferred=True),
    "gemini-batch": Engine(
        "beirnl.llm.batch:GeminiBatchLlm", units=64, remote=True, deferred=True, key="GEMINI_API_KEY"
    ),
    "answer-key": Engine("beirnl.llm.answer_key:AnswerKeyLlm"),
}


def available_engine() -> str:
    """``vllm`` where it is installed, else ``transformers``; finds out without importing either."""
    return "vllm" if importlib.util.find_spec("vllm") else "transformers"


def resolve_engine(name: str) -> str:
    """The engine meant by ``name``: ``auto`` is the available one, any other name is checked.

    An artifact's key holds the resolved name, since engines differ in what they answer.

    Raises:
        ConfigError: no such engine; names the nearest.
    """
    if name == "auto":
        return available_engine()
    if name not in ENGINES:
        raise unknown("engine", name, ("auto", *ENGINES))
    return name


def load_llm(spec: LlmSpec, surroundings: Surroundings | None = None) -> LLM:
    """Load an engine with its model.

    Args:
        spec: engine, model and decoding parameters.
        surroundings: threads, GPUs, share of the rate limits, a folder to remember things in.

    Raises:
        ConfigError: no such engine, or an engine without a model that needs one.
        PrerequisiteError: the engine, the model or the key is not there.
        EngineError: the server cannot be reached, or refuses the key or the model.
    """
    module, _, name = ENGINES[resolve_engine(spec.engine)].path.partition(":")
    engine: LLM = getattr(importlib.import_module(module), name)(spec, surroundings or Surroundings())
    return engine
