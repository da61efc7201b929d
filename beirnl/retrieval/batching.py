"""Texts into batches of similar length; which of them a model does not read whole."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

#: A text longer than this many characters for each token of the limit is cut before it is tokenised.
CHARACTERS_PER_TOKEN = 16


def batches(
    lengths: Sequence[int],
    texts: Sequence[Any],
    size: int,
    budget: int | None = None,
    limit: int | None = None,
) -> Iterator[list[int]]:
    """Places in batches, longest first; equal lengths in the order of their texts.

    A batch ends before its padding would be as much as another text, its longest. Among many texts that
    hardly ever is so; among few their lengths lie far apart, and full batches would be a tenth padding.

    Args:
        lengths: tokens of each text.
        texts: what makes the order of equal lengths the same for every order of the input.
        size: most texts in a batch.
        budget: most tokens in a batch, padding included; one text may have more. None: no budget.
        limit: a text is read no further than this many tokens.
    """
    read = [min(length, limit) if limit else length for length in lengths]
    batch: list[int] = []
    longest = padding = 0
    for place in sorted(range(len(lengths)), key=lambda place: (-lengths[place], texts[place])):
        padding += longest - read[place]
        most = min(size, max(1, budget // max(1, longest))) if budget else size
        if batch and (len(batch) >= most or padding >= longest):
            yield batch
            batch = []
        if not batch:
            longest, padding = read[place], 0
        batch.append(place)
    if batch:
        yield batch


def longer(lengths: Sequence[int], limit: int | None) -> np.ndarray:
    """Which texts have more tokens than the model reads, bool [n]; none where it has no limit."""
    return np.array(lengths, np.int64) > (limit or np.inf)


def clip(text: str, limit: int | None, lengths: Callable[[Sequence[str]], list[int]]) -> str:
    """Cut a very long text where the model would not read on, so that it is not tokenised whole.

    The cut is safe: what is kept has more than twice ``limit`` tokens, so the first ``limit`` are those of
    the whole text and it still counts as truncated. Text of few tokens, such as blanks, is kept longer.
    """
    if not limit:
        return text
    size = CHARACTERS_PER_TOKEN * limit
    while len(text) > size and lengths([text[:size]])[0] <= 2 * limit:
        size *= 4
    return text[:size]
