"""Reading an experiment file; what is wrong with it is one line."""

import tomllib
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from beirnl.config.experiment import Experiment
from beirnl.config.systems import Bm25System, DenseSystem, FusionSystem, LateSystem, RerankSystem, RunSystem
from beirnl.errors import ConfigError, nearest

#: What pydantic says of the type of a value, in the words of TOML.
_WORDS = {
    "bool_type": "must be true or false, without quotes",
    "dict_type": "must be a table",
    "finite_number": "must be a finite number",
    "float_type": "must be a number, without quotes",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number, without quotes",
    "less_than_equal": "must be {le:g} at most",
    "literal_error": "must be {expected}",
    "missing": "is missing",
    "model_attributes_type": "must be a table",
    "model_type": "must be a table",
    "string_too_short": "must not be empty",
    "string_type": "must be a text in quotes",
    "too_short": "must have at least {min_length}; where the default is meant, leave the key out",
    "tuple_type": "must be a list: [...], or [[...]] above each of several tables",
    "union_tag_invalid": "kind must be one of {expected_tags}",
    "union_tag_not_found": "kind is missing",
}

_SHOWN = 40  # characters of a wrong value

KINDS: dict[str, type[BaseModel]] = {
    "bm25": Bm25System,
    "dense": DenseSystem,
    "rerank": RerankSystem,
    "late": LateSystem,
    "fusion": FusionSystem,
    "run": RunSystem,
}


def load_experiment(path: Path) -> Experiment:
    """Read and validate an experiment file.

    Raises:
        ConfigError: the file is absent or not TOML, a key is unknown, a value is wrong.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        what = (
            "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        )
        raise ConfigError(what, where=path, remedy="give the path of an experiment file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"is not TOML: {error}", where=path) from error
    return experiment_of(data, path)


def experiment_of(data: dict[str, Any], path: Path) -> Experiment:
    """An experiment from what its file says.

    Args:
        data: its tables, as ``tomllib`` reads them.
        path: of the file; relative paths are against its folder, and errors name it.

    Raises:
        ConfigError: a key is unknown, a value is wrong.
    """
    if "file" in data:
        raise ConfigError("unknown key 'file'", where=path, remedy="leave it out")
    try:
        return Experiment.model_validate({**_frozen(data), "file": path.resolve()}, strict=True)
    except ValidationError as error:
        what, remedy = _first(error, data)
        raise ConfigError(what, where=path, remedy=remedy) from error


def _frozen(value: Any) -> Any:
    """TOML's lists as tuples, which is what they are to strict types."""
    if isinstance(value, dict):
        return {key: _frozen(one) for key, one in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _first(error: ValidationError, data: dict[str, Any]) -> tuple[str, str | None]:
    """What is wrong first, unknown keys before all else, and the remedy."""
    errors = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    first = errors[0]
    place = [part for part in first["loc"] if not _is_kind(part, first["loc"])]
    table, key = _called(place, data)
    if first["type"] == "extra_forbidden":
        said = f"unknown key {key!r}"
        return ": ".join(filter(None, (table, said))), nearest(str(place[-1]), _valid_keys(first["loc"][:-1]))
    words = _WORDS.get(first["type"])
    message = words.format(**first.get("ctx", {})) if words else first["msg"].removeprefix("Value error, ")
    if first["type"] == "literal_error":
        message += f", not {str(first['input'])[:_SHOWN]!r}"
    return ": ".join(filter(None, (table, key, message))), None


def _called(place: Sequence[str | int], data: Any) -> tuple[str, str]:
    """A place of the file as its author would call it: a table among several by its name, and the key there.

    ``system.1.depth`` is ``depth`` of ``system 'BM25'``; a table without a name, and an entry of a list, are
    called by their number, from 1.
    """
    table, keys = "", []
    for part in place:
        data = _inside(data, part)
        if isinstance(part, str):
            keys.append(part)
        else:
            name = data.get("name") if isinstance(data, dict) else None
            named = isinstance(name, str) and name.strip() and name.isprintable()
            called = f"{'.'.join(keys)} {repr(name) if named else f'number {part + 1}'}"
            table, keys = ": ".join(filter(None, (table, called))), []
    return table, ".".join(keys)


def _inside(data: Any, part: str | int) -> Any:
    """What stands at a key or a position; None where there is nothing."""
    try:
        return data[part]
    except (KeyError, IndexError, TypeError):
        return None


def _is_kind(part: Any, location: tuple[Any, ...]) -> bool:
    """Whether a part of a location says of which kind a system is."""
    return location[0] == "system" and part in KINDS


def _valid_keys(location: tuple[Any, ...]) -> list[str]:
    """The keys that are valid in the table at ``location`` of the experiment file."""
    model: type[BaseModel] = Experiment
    for part in location:
        if _is_kind(part, location):
            model = KINDS[part]
        elif isinstance(part, str) and part in model.model_fields:
            model = _inner(model.model_fields[part].annotation) or model
    return [name for name in model.model_fields if name != "file"]


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model within an annotation such as ``tuple[DatasetConfig, ...]`` or ``X | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if typing.get_origin(annotation) in (tuple, dict, types.UnionType, typing.Union):
        models = [_inner(argument) for argument in typing.get_args(annotation)]
        return next((model for model in models if model), None)
    return None
