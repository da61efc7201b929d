"""What a model's weights take in memory, where its folder is on this machine; the model is not loaded."""

import json
import math
from pathlib import Path
from typing import Any

from beirnl.graph import Node
from beirnl.models.cache import folder_at_hand

_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def weights_of(node: Node) -> int | None:
    """Bytes of the weights of the model that a stage loads; None where it loads none, or it is not here."""
    spec: Any = getattr(node.spec, "encoder", None) or getattr(node.spec, "reranker", None)
    if spec is None or getattr(spec, "is_remote", False):
        return None
    folder = folder_at_hand(spec.model)
    return weights(folder, spec.dtype) if folder else None


def weights(folder: Path, dtype: str) -> int:
    """Bytes of a model folder's weights when they are loaded as ``dtype``.

    Numbers of safetensors files are counted by their headers; other files of weights count as they are.
    """
    sizes = [_tensors(file, _BYTES[dtype]) for file in folder.rglob("*.safetensors")]
    return sum(sizes) or sum(file.stat().st_size for file in folder.rglob("*.bin"))


def _tensors(file: Path, number: int) -> int:
    """Bytes of the tensors of a safetensors file, whose header is JSON behind its length in eight bytes."""
    with file.open("rb") as opened:
        header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
    total = 0
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            floats = tensor["dtype"] in ("F64", "F32", "F16", "BF16")
            total += math.prod(tensor["shape"]) * number if floats else end - begin
    return total
