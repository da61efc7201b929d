"""LLM engines: a table, and what loads one of them. No engine's library is imported before it is used."""

import importlib
import importlib.util

from beirnl.llm.protocol import LLM, Answer, Request
from beirnl.registry import unknown
from beirnl.specs import LlmSpec

__all__ = ["ENGINES", "LLM", "Answer", "Request", "available_engine", "load_llm", "resolve_engine"]

#: Engines by name: the class, as ``module:class``, that takes an :class:`LlmSpec` and a number of threads.
ENGINES: dict[str, str] = {
    "mock": "beirnl.llm.mock:MockLlm",
    "transformers": "beirnl.llm.transformers_engine:TransformersLlm",
    "vllm": "beirnl.llm.vllm_engine:VllmLlm",
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


def load_llm(spec: LlmSpec, threads: int = 1) -> LLM:
    """Load an engine with its model.

    Args:
        spec: engine, model and decoding parameters.
        threads: CPU threads of the engine.

    Raises:
        ConfigError: no such engine, or an engine without a model that needs one.
        PrerequisiteError: the engine or the model is not installed.
    """
    module, _, name = ENGINES[resolve_engine(spec.engine)].partition(":")
    engine: LLM = getattr(importlib.import_module(module), name)(spec, threads)
    return engine
