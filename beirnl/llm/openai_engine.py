"""The OpenAI-compatible engine: any server of that API, asked by many requests at once."""

from beirnl.llm.http.calls import Calls
from beirnl.llm.http.client import Client
from beirnl.llm.protocol import Answer, Request, Surroundings
from beirnl.specs import LlmSpec


class OpenAiLlm(Calls[Request, Answer]):
    """A model behind an OpenAI-compatible API; see :class:`beirnl.llm.protocol.LLM`.

    Args:
        spec: model, server and decoding parameters.
        surroundings: share of the server's rate limits.

    Raises:
        ConfigError: no model, or a ``base_url`` that is not a URL.
        PrerequisiteError: the key is not in the environment.
        EngineError: the server cannot be reached, or refuses the key.
    """

    def __init__(self, spec: LlmSpec, surroundings: Surroundings) -> None:
        super().__init__(Client(spec, surroundings.share), spec.server.in_flight)
