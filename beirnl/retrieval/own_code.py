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
        ConfigError: the model needs code of its own, which the registry does not allow or does not pin; or
            which fails with the library that is installed.
    """
    check_pinned(model)
    try:
        yield
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise _not_allowed(model) from error
    except (AttributeError, ImportError, TypeError) as error:
        if not model.trust_remote_code:
            raise
        import transformers

        raise ConfigError(
            f"this model's own code fails with transformers {transformers.__version__} "
            f"({type(error).__name__}: {error})",
            where=model.name,
            remedy="install what it asks for, or use a checkpoint that transformers reads without such code",
        ) from error


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


def check_code(model: ModelRef, folder: Path) -> None:
    """Refuse a model whose code lies in another repository, which its own revision does not pin.

    Args:
        model: what is loaded.
        folder: its files; where its entry names that repository, the code lies among them.

    Raises:
        ConfigError: names the repository.
    """
    for file in (folder / "config.json", folder / "tokenizer_config.json"):
        for reference in _references((read_json(file) or {}).get("auto_map")):
            repository, elsewhere, _ = reference.partition("--")
            if elsewhere and model.trust_remote_code:
                raise ConfigError(
                    f"this model runs code of {repository}, and no revision pins it",
                    where=model.name,
                    remedy=f'add code = "{repository}@COMMIT" to {_ENTRY}',
                )


def restore_buffers(model: Any) -> None:
    """Give buffers that no checkpoint holds the values that the model's own code computes for them.

    transformers 5 makes a model without memory first and leaves such buffers (positions, frequencies of
    rotary embeddings) to a hook that only its own architectures have; in others they hold whatever was there.

    Args:
        model: a torch module that may hold models of transformers.
    """
    import torch
    from transformers import PreTrainedModel
    from transformers.initialization import no_init_weights

    restored: set[int] = set()
    for part in model.modules():
        loaded = dict(part.named_non_persistent_buffers()) if isinstance(part, PreTrainedModel) else {}
        if not type(part).__module__.startswith("transformers_modules.") or restored >= set(
            map(id, loaded.values())
        ):
            continue
        with torch.device("cpu"), no_init_weights():
            computed = dict(type(part)(part.config).named_non_persistent_buffers())
        for name, buffer in loaded.items():
            buffer.copy_(computed[name])
            restored.add(id(buffer))


def needs_own_code(folder: Path) -> bool:
    """Whether a model's folder names modules that neither sentence-transformers nor transformers has."""
    listed = read_json(folder / "modules.json") or []
    modules = [module for module in listed if isinstance(module, dict)]
    if any(not str(module.get("type", _OURS[0])).startswith(_OURS) for module in modules):
        return True
    places = {folder, *(folder / str(module.get("path", "")) for module in modules)}
    configs = [read_json(place / "config.json") or {} for place in places]
    return any(config.get("auto_map") and not _is_known(config.get("model_type")) for config in configs)


def _is_known(model_type: Any) -> bool:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return model_type in CONFIG_MAPPING_NAMES


def _references(auto_map: Any) -> Iterator[str]:
    """The classes that a configuration names: one, or (of tokenizers) a slow and a fast one, for each use."""
    for named in (auto_map or {}).values() if isinstance(auto_map, dict) else ():
        yield from (reference for reference in (named if isinstance(named, list) else [named]) if reference)


def read_json(path: Path) -> Any:
    """What a file of a checkpoint says; None where it is not there or is not JSON."""
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
