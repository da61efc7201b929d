"""What a model must give back: as many answers as it was asked for, and finite numbers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from beirnl.errors import EngineError
from beirnl.wording import counted

_SHOWN = 60  # characters of a text


class Scored(NamedTuple):
    """Scores of pairs.

    Attributes:
        scores: float32 [n].
        truncated: number of pairs of which the model does not read all: query, document, or both together.
    """

    scores: np.ndarray
    truncated: int


def check_number(found: int, texts: Sequence[Any], model: str, what: str = "vectors") -> None:
    """Refuse fewer or more answers than texts.

    Raises:
        EngineError: says how many there are of both.
    """
    if found != len(texts):
        raise EngineError(
            f"the model returned {found} {what} for {counted(len(texts), 'text')}",
            where=model,
            remedy="it must return one for each; what was finished before stays",
        )


def check_finite(finite: np.ndarray, texts: Sequence[Any], model: str, remedy: str) -> None:
    """Refuse answers that hold NaN or infinity.

    Args:
        finite: whether all numbers of an answer are finite, [texts].
        texts: what was asked, for instance pairs of a query and a document.
        model: its name.
        remedy: what to do.

    Raises:
        EngineError: says for how many texts, and for which one first.
    """
    broken = np.flatnonzero(~finite)
    if len(broken):
        first = texts[broken[0]]
        shown = " | ".join([first] if isinstance(first, str) else first)
        raise EngineError(
            f"the model returned NaN or infinity for {counted(len(broken), 'text', of=len(texts))}, "
            f"first {shown[:_SHOWN]!r}",
            where=model,
            remedy=remedy,
        )


def other_dtype(dtype: str) -> str:
    """The remedy for a model that gives NaN in a number format."""
    if dtype == "float32":
        return "its weights may be damaged: get the model again, or use another"
    return f'dtype is {dtype}: try dtype = "float32"'
