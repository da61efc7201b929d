"""One model and one set as an experiment, without a file: what ``beirnl evaluate`` asks for, as tables."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from beirnl import registry
from beirnl.config.fields import LONGEST_NAME
from beirnl.errors import ConfigError, nearest
from beirnl.models import checkpoint
from beirnl.retrieval.checkpoints import weights

Kind = Literal["bm25", "dense", "rerank", "late"]

#: How a model of the registry is used.
_USES: dict[str, Kind] = {"encoder": "dense", "reranker": "rerank", "late-interaction": "late"}
_BM25 = "BM25"
#: Names before a colon that say where a dataset is fetched from.
_SOURCE = re.compile(r"[a-z]+:[^/\\]")


def default_workspace() -> Path:
    """Where evaluations without a file keep what they make: beside the cache of models."""
    cache = os.environ.get("BEIRNL_CACHE")
    return Path(cache, "workspace") if cache else Path("~/.cache/beirnl/workspace").expanduser()


def _whole(workspace: str | Path) -> str:
    """A workspace as it is found from every folder; an address in an object store is."""
    return str(workspace) if "://" in str(workspace) else str(Path(workspace).expanduser().resolve())


def tables(
    models: Sequence[str],
    datasets: Sequence[str],
    *,
    kind: Kind | None = None,
    first: str | None = None,
    runs: Sequence[str] = (),
    profile: str | None = None,
    measures: Sequence[str] = (),
    language: str | None = None,
    split: str | None = None,
    depth: int | None = None,
    workspace: str | Path | None = None,
) -> dict[str, Any]:
    """The tables of an experiment, as its TOML file has them.

    Args:
        models: names of the registry, paths on the hub, folders, or ``BM25``.
        datasets: names of the registry, folders, or names with a source (``hub:ORG/NAME``).
        kind: how all models are used (default: as the registry or the checkpoint says).
        first: what finds candidates for second stages (default: BM25), also for late-interaction models.
        runs: run files that are scored beside the models.
        profile: whose conditions hold.
        measures: by their names (default: those of an experiment).
        language, split: of the datasets (default: those of the registry).
        depth: hits of a query.
        workspace: folder of the results, or its address in an object store (default:
            :func:`default_workspace`).

    Raises:
        ConfigError: a name is unknown, or nothing is to be evaluated.
        PrerequisiteError: a model is not there.
    """
    if not models and not runs:
        raise ConfigError("there is neither a model nor a run", remedy="give --model or --run")
    if not datasets:
        raise ConfigError("there is no dataset", remedy="give --dataset")
    sets = [_dataset(text, language, split) for text in datasets]
    systems = _systems(models, kind, first) + _runs(runs)
    for system in systems:
        system |= {"depth": depth} if depth and system["kind"] != "run" else {}
    _distinguish(systems)
    _distinguish(sets)
    evaluation = {"measures": list(measures) or None, "profile": profile}
    stated = {key: value for key, value in evaluation.items() if value}
    return {
        "name": _title(models, systems, sets),
        "workspace": _whole(workspace or default_workspace()),
        "dataset": sets,
        "system": systems,
        **({"evaluation": stated} if stated else {}),
    }


def _title(models: Iterable[str], systems: list[dict[str, Any]], sets: list[dict[str, Any]]) -> str:
    """The name of the experiment: what is evaluated on what."""
    names = (*map(_name, models), *(system["name"] for system in systems if system["kind"] == "run"))
    return _clean(f"{'+'.join(names)}-on-{'+'.join(one['name'] for one in sets)}")


def _systems(models: Iterable[str], kind: Kind | None, first: str | None) -> list[dict[str, Any]]:
    """Tables of systems; a first stage stands above those that need it, once."""
    found: list[dict[str, Any]] = []
    below = None
    for text in models:
        used = kind or use_of(text)
        if used == "rerank" or (used == "late" and first):
            below = below or _first(first or _BM25, found)
        found.append(_system(text, used, below if used in ("rerank", "late") else None))
    unique = {(one.get("model"), one["kind"], one.get("first")): one for one in found}
    return list(unique.values())


def _first(text: str, found: list[dict[str, Any]]) -> str:
    """The name of the first stage, which is put among the systems."""
    used = use_of(text)
    if used not in ("bm25", "dense"):
        raise ConfigError(f"first stage {text!r} finds no candidates", remedy=f"give {_BM25} or an encoder")
    table = _system(text, used, None)
    found.append(table)
    return str(table["name"])


def _system(text: str, kind: Kind, first: str | None) -> dict[str, Any]:
    if kind == "bm25":
        return {"name": _BM25, "kind": "bm25"}
    folder = Path(text).expanduser()
    model = text if registry.find_model(text) or not folder.is_dir() else str(folder.resolve())
    name = f"{first}+{_name(text)}" if first else _name(text)
    return {"name": name, "kind": kind, "model": model, **({"first": first} if first else {})}


def use_of(text: str) -> Kind:
    """How a model is used: as the registry says, else as its checkpoint looks, which is fetched for that.

    Raises:
        ConfigError: the name is neither of the registry nor a path on the hub; or it is that of an LLM.
        PrerequisiteError: it is not there, and cannot be fetched.
    """
    if text.lower() == _BM25.lower():
        return "bm25"
    entry = registry.find_model(text)
    if entry and entry.kind == "llm":
        raise ConfigError(f"model {text!r} is an LLM: it retrieves nothing", remedy="give an encoder")
    if entry:
        return _USES[entry.kind]
    if "/" not in text and not Path(text).is_dir():
        names = [_BM25, *(entry.name for entry in registry.models().values() if entry.kind != "llm")]
        raise ConfigError(
            f"unknown model {text!r}",
            remedy=nearest(text, names, "give a hub path ORG/NAME or a folder"),
        )
    return checkpoint.use_of(weights(registry.resolve_model(text, "encoder")))


def _dataset(text: str, language: str | None, split: str | None) -> dict[str, Any]:
    stated = {key: value for key, value in (("language", language), ("split", split)) if value}
    entry = registry.dataset(text)
    if entry:
        return {"name": entry.name, **stated}
    folder = Path(text).expanduser()
    if folder.is_dir():
        return {"name": _clean(folder.resolve().name), "path": str(folder.resolve()), **stated}
    if _SOURCE.match(text):
        return {"name": _clean(re.split("[:/]", text.partition("@")[0])[-1]), "path": text, **stated}
    raise registry.unknown_dataset(text)


def _runs(paths: Sequence[str]) -> list[dict[str, Any]]:
    from beirnl.evaluation.runs import names

    files = [Path(path).absolute() for path in paths]
    called = (_clean(name.replace("{", "").replace("}", "")) for name in names(files))
    return [
        {"name": name, "kind": "run", "path": str(file)} for name, file in zip(called, files, strict=True)
    ]


def _name(text: str) -> str:
    return _clean(Path(text).expanduser().resolve().name if Path(text).is_dir() else text.rpartition("/")[2])


def _clean(text: str) -> str:
    """Text as a name of an experiment file."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).lstrip("._+-")[:LONGEST_NAME] or "unnamed"


def _distinguish(tables: Sequence[dict[str, Any]]) -> None:
    """Number those that have a name in common."""
    names = [table["name"] for table in tables]
    for at, table in enumerate(tables):
        if before := names[:at].count(table["name"]):
            table["name"] = f"{table['name']}-{before + 1}"
