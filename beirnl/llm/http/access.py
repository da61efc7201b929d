"""What a server asks for before it answers: the name of a model, and a key. Found without the network."""

import os

from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.llm import ENGINES
from beirnl.specs import LlmSpec, Server


def model_name(spec: LlmSpec) -> str:
    """The name by which the server knows the spec's model.

    Raises:
        ConfigError: the spec has no model.
    """
    if spec.model is None:
        raise ConfigError(f"engine {spec.engine!r} needs a model", remedy="set `model`")
    return spec.model.source.removeprefix("api:")


def key_variable(spec: LlmSpec) -> str:
    """The environment variable with the key of the spec's server; empty for a server without keys."""
    engine, named = ENGINES[spec.engine], spec.server.api_key_env
    return engine.key or named if named == Server().api_key_env else named


def api_key(spec: LlmSpec) -> str:
    """The key of the spec's server, from the environment; empty for one without keys, or no server.

    Raises:
        PrerequisiteError: the variable is not set, or holds what no key can.
    """
    name = key_variable(spec) if ENGINES[spec.engine].remote else ""
    key = os.environ.get(name, "").strip() if name else ""
    where = f"engine {spec.engine}" + (f" with {spec.model.name}" if spec.model else "")
    if name and not key:
        raise PrerequisiteError(
            f"the environment variable {name} is not set",
            where=where,
            remedy="put the server's key there, or set api_key_env (to an empty string, if it has no keys)",
        )
    if not (key.isascii() and (key + "x").isprintable()):
        raise PrerequisiteError(
            f"{name} holds characters that no key has", where=where, remedy="set it again"
        )
    return key
