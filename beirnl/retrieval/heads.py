"""What a model's folder says that the model was trained for, before a library makes up what is missing."""

from pathlib import Path
from typing import Any

from beirnl.errors import ConfigError
from beirnl.retrieval.own_code import read_json


def check_cross_encoder(folder: Path, name: str) -> None:
    """Refuse a model without a trained head: libraries would give it a random one and score with that.

    Raises:
        ConfigError: the model does not score a pair with one number.
    """
    facts = read_json(folder / "config.json")
    if not facts:
        return
    modular = (folder / "modules.json").is_file() and not pools(folder)
    labels = facts.get("num_labels", len(facts.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}))
    if not modular and not _is_classifier(facts):
        raise ConfigError(
            "this model has no classification head, so it is not a cross-encoder",
            where=name,
            remedy='set method = "bi-encoder", or use a model trained for reranking',
        )
    if _is_classifier(facts) and labels != 1:
        raise ConfigError(
            f"this model gives {labels} numbers for a pair, not one score",
            where=name,
            remedy="use a model trained for reranking",
        )


def check_encoder(folder: Path, name: str) -> None:
    """Refuse a classifier: libraries would leave its head out, and pool what it was not trained to pool.

    Raises:
        ConfigError: the model was not trained to give vectors of texts.
    """
    if _is_classifier(read_json(folder / "config.json")) and not (folder / "modules.json").is_file():
        raise ConfigError(
            "this model is a classifier or cross-encoder, which gives no vectors of texts",
            where=name,
            remedy='use an encoder, or kind = "rerank" with method = "cross-encoder"',
        )


def pools(folder: Path) -> bool:
    """Whether the folder's modules pool token vectors into one, as a bi-encoder's do."""
    return any(
        str(module["type"]).endswith(".Pooling") for module in read_json(folder / "modules.json") or ()
    )


def has_projection(folder: Path) -> bool:
    """Whether the checkpoint brings the projection of token vectors; libraries would make up a random one."""
    modules = [str(module["type"]) for module in read_json(folder / "modules.json") or ()]
    kinds = (read_json(folder / "config.json") or {}).get("architectures") or ()
    return (
        any(module.endswith((".Dense", ".MultiVectorMask")) for module in modules)
        or "HF_ColBERT" in kinds
        or any(str(kind).endswith("ForRetrieval") for kind in kinds)
    )


def _is_classifier(facts: Any) -> bool:
    kinds = (facts or {}).get("architectures") or ()
    return any("ForSequenceClassification" in kind for kind in kinds)
