"""MTEB's names of what is evaluated here: tasks and models."""

from typing import Any

from beirnl import registry
from beirnl.evaluation.records import Conditions
from beirnl.evaluation.runs.exchange import NO_REVISION

_OURS = "beirnl"  # whose name stands before that of a system that is no model of the hub
_TYPES = {"rerank": "cross-encoder", "late": "late-interaction"}


def task_of(dataset: str, part: str = "") -> str | None:
    """MTEB's task of a dataset (or a part of one) of the registry, or None."""
    entry = registry.dataset(dataset)
    name = entry.name if entry else dataset
    for row in registry.published("mteb-tasks"):
        if (row["dataset"], row["part"]) == (name, part):
            return row["task"]
    return None


def dataset_of(task: str) -> tuple[str, str] | None:
    """Dataset of the registry and part of a task of MTEB, or None."""
    for row in registry.published("mteb-tasks"):
        if row["task"] == task:
            return row["dataset"], row["part"]
    return None


def meta_of(system: str, told: Conditions, *, own_name: bool = False) -> dict[str, Any]:
    """The ``model_meta.json`` of a system.

    A system is called by its model's path on the hub if it is that model and nothing else: in float32,
    searched exactly. Any other is ``beirnl/SYSTEM``: BM25, second stages, fusions, models that are not on
    the hub.

    Args:
        system: its name in the experiment.
        told: conditions of one of its values.
        own_name: call it ``beirnl/SYSTEM`` anyway.
    """
    more = told.model_extra or {}
    entry = registry.find_model(told.model) if told.model else None
    plain = told.search == "exact" and (told.dtype, more.get("vectors")) == ("float32", "float32")
    hub = entry.hub if entry else _hub_path(str(more.get("source") or ""))
    licence = entry.licence.lower() if entry else ""
    return {
        "name": hub if hub and plain and not own_name else f"{_OURS}/{system}",
        "revision": told.revision if told.revision not in (None, "", "unpinned") else NO_REVISION,
        "release_date": None,
        "languages": None,
        "loader": None,
        "n_parameters": None,
        "memory_usage_mb": None,
        "max_tokens": entry.max_tokens if entry else None,
        "embed_dim": entry.dimension if entry else None,
        "license": licence if licence in _LICENCES else None,
        "open_weights": (not entry.api) if entry else None,
        "public_training_code": None,
        "public_training_data": None,
        "framework": ["Sentence Transformers"] if told.model else [],
        "similarity_fn_name": {"exact": "cosine", "ann": "cosine", "late": "MaxSim"}.get(told.search),
        "use_instructions": bool(more.get("query_prompt") or more.get("document_prompt")),
        "training_datasets": None,
        "model_type": [_TYPES.get(told.search, "sparse" if told.search == "bm25" else "dense")],
    }


#: Licences of models of the registry that MTEB has by the same name; others are left open.
_LICENCES = {"mit", "apache-2.0", "cc-by-nc-4.0", "cc-by-4.0", "gemma"}


def _hub_path(source: str) -> str:
    return source.removeprefix("hub:") if source.startswith("hub:") else ""
