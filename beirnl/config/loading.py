"""Reading an experiment file; what is wrong with it is one line."""

import tomllib
import types
import typing
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from beirnl.config.experiment import Experiment
from beirnl.config.paths import nearest
from beirnl.config.sections import Bm25System, DenseSystem, RerankSystem
from beirnl.errors import ConfigError


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
    try:
        return Experiment.model_validate({**data, "file": path.resolve()})
    except ValidationError as error:
        raise ConfigError(_first_line(error), where=path) from error


def _first_line(error: ValidationError) -> str:
    """One line for the first error, an unknown key first, with the nearest valid key."""
    errors = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    first = errors[0]
    place = [part for part in first["loc"] if part not in ("bm25", "dense", "rerank")]
    where = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        key = str(place[-1])
        return f"unknown key {where!r}{nearest(key, _valid_keys(first['loc'][:-1]))}"
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _valid_keys(location: tuple[Any, ...]) -> list[str]:
    """The keys that are valid in the table at ``location`` of the experiment file."""
    kinds: dict[str, type[BaseModel]] = {"bm25": Bm25System, "dense": DenseSystem, "rerank": RerankSystem}
    model: type[BaseModel] = Experiment
    for part in location:
        if part in kinds:
            model = kinds[part]
        elif isinstance(part, str) and part in model.model_fields:
            model = _inner(model.model_fields[part].annotation) or model
    return [name for name in model.model_fields if name != "file"]


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model within an annotation such as ``tuple[DatasetConfig, ...]`` or ``X | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if typing.get_origin(annotation) in (tuple, types.UnionType, typing.Union):
        models = [_inner(argument) for argument in typing.get_args(annotation)]
        return next((model for model in models if model), None)
    return None
