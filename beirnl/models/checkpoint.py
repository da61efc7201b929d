"""What a folder with a model is for, as far as its files say."""

import json
from pathlib import Path
from typing import Any, Literal

Use = Literal["dense", "rerank", "late"]


def use_of(folder: Path) -> Use:
    """How a checkpoint is meant to be used: for a vector per text, to score pairs, or for a vector per token.

    What pools token vectors among its modules has a vector per text. A late-interaction model names its class
    (``HF_ColBERT``, ``...ForRetrieval``), or has a mask or a projection of token vectors among its modules. A
    cross-encoder has a module of its own kind, or classifies sequences. Any other has a vector per text.

    Args:
        folder: with ``config.json`` or ``modules.json``.
    """
    types = [str(module.get("type", "")) for module in _json(folder / "modules.json", [])]
    modules = [name.rpartition(".")[2] for name in types]
    kinds = [str(kind) for kind in _json(folder / "config.json", {}).get("architectures") or ()]
    if "Pooling" in modules:
        return "dense"
    if "HF_ColBERT" in kinds or any(kind.endswith("ForRetrieval") for kind in kinds):
        return "late"
    if "MultiVectorMask" in modules or modules[:2] == ["Transformer", "Dense"]:
        return "late"
    scores = any(".cross_encoder." in name for name in types)
    classifies = any(kind.endswith("ForSequenceClassification") for kind in kinds)
    return "rerank" if scores or classifies else "dense"


def _json(path: Path, absent: Any) -> Any:
    """The content of a JSON file; what stands for one that is not there, or of another type."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return absent
    return found if isinstance(found, type(absent)) else absent
