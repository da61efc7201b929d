"""The files around the weights of a sentence-transformers folder."""

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, content: Any) -> None:
    """Write one JSON file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def write_pipeline(out: Path, *, dimension: int, max_tokens: int, normalize: bool) -> None:
    """Describe a transformer whose token vectors are averaged, for :class:`SentenceTransformer` to load.

    Args:
        out: model folder.
        dimension: length of the token vectors.
        max_tokens: longer inputs are cut, special tokens included.
        normalize: whether vectors are brought to length 1 by the model itself.
    """
    parts = [("", "Transformer"), ("1_Pooling", "Pooling")] + [("2_Normalize", "Normalize")] * normalize
    modules = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (path, kind) in enumerate(parts)
    ]
    write_json(out / "modules.json", modules)
    write_json(out / "sentence_bert_config.json", {"max_seq_length": max_tokens, "do_lower_case": False})
    pooling = {"word_embedding_dimension": dimension, "pooling_mode_mean_tokens": True}
    write_json(out / "1_Pooling" / "config.json", pooling)
    if normalize:
        (out / "2_Normalize").mkdir()
