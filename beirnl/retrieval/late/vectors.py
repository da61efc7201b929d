"""Vectors of tokens, and MaxSim."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """Vectors of the tokens of texts, one text after another.

    Attributes:
        vectors: [tokens, dimension], float32 or float16.
        offsets: int64 [texts + 1]; text ``n`` has the vectors from ``offsets[n]`` to ``offsets[n + 1]``.
        truncated: number of texts that were longer than the model reads.
    """

    vectors: np.ndarray
    offsets: np.ndarray
    truncated: int = 0

    def of(self, text: int) -> np.ndarray:
        """The vectors of one text, [tokens, dimension]."""
        found: np.ndarray = self.vectors[self.offsets[text] : self.offsets[text + 1]]
        return found

    @classmethod
    def join(cls, parts: Sequence["TokenVectors"]) -> "TokenVectors":
        """Texts one part after another; at least one part."""
        ends = np.cumsum([0, *(len(part.vectors) for part in parts)])
        offsets = [part.offsets[1:] + begin for part, begin in zip(parts, ends, strict=False)]
        vectors = np.concatenate([part.vectors for part in parts])
        return cls(vectors, np.concatenate([[0], *offsets]), sum(part.truncated for part in parts))


def maxsim(query: np.ndarray, document: np.ndarray) -> np.float32:
    """MaxSim of two texts' vectors, [tokens, dimension] each; computed in float64."""
    products = query.astype(np.float64) @ document.astype(np.float64).T
    return np.float32(products.max(axis=1).sum())
