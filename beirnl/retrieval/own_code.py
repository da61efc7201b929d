"""Code that comes with a model: it runs only where the registry allows it and a revision pins it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from beirnl.errors import ConfigError
from beirnl.specs import ModelRef

_ENTRY = "its entry in beirnl/registry/models.toml"
_OURS = "sentence_transformers.", "pylate."  # modules that the library has, also by a name of PyLate's


@contextmanager
def own_code(model: ModelRef) -> Iterator[None]:
    """Around the loading of a model.

    Raises:
        ConfigError: the model needs code of its own, which the registry does not allow or does not pin.
    """
    check_pinned(model)
    try:
        yield
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise _not_allowed(model) from error


def check_pinned(model: ModelRef) -> None:
    """Refuse a model whose own code may run, and could be another one tomorrow.

    Raises:
        ConfigError: the registry allows its code, and no revision pins it.
    """
    if model.trust_remote_code and model.revision == "unpinned":
        raise ConfigError(
            "this model runs code of its own, and no revision pins it",
            where=model.name,
            remedy=f"add a revision to {_ENTRY}",
        )


def check_allowed(model: ModelRef, folder: Path) -> None:
    """Refuse a model before it is loaded, from what its folder says.

    Raises:
        ConfigError: it needs code of its own, which the registry does not allow.
    """
    if not model.trust_remote_code and needs_own_code(folder):
        raise _not_allowed(model)


def needs_own_code(folder: Path) -> bool:
    """Whether a model's folder names modules that neither sentence-transformers nor transformers has."""
    listed = _json(folder / "modules.json") or []
    modules = [module for module in listed if isinstance(module, dict)]
    if any(not str(module.get("type", _OURS[0])).startswith(_OURS) for module in modules):
        return True
    places = {folder, *(folder / str(module.get("path", "")) for module in modules)}
    configs = [_json(place / "config.json") or {} for place in places]
    return any(config.get("auto_map") and not _is_known(config.get("model_type")) for config in configs)


def _is_known(model_type: Any) -> bool:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return model_type in CONFIG_MAPPING_NAMES


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # whoever loads the model says what is wrong


def _not_allowed(model: ModelRef) -> ConfigError:
    return ConfigError(
        "this model runs code of its own, which the registry does not allow",
        where=model.name,
        remedy=f"read that code, then set trust_remote_code = true and a revision in {_ENTRY}",
    )
