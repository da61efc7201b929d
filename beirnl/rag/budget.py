"""Equal context: a ranked list of passages cut to so many tokens of the LLM that reads them.

With equal k, a model with long passages shows the LLM more text than one with short ones (BES4RAG compares at
equal k only; equal budgets are ours).
"""

from collections.abc import Sequence
from typing import NamedTuple

from beirnl.rag.tokenizers import Tokenizer, token_counts, token_ends
from beirnl.rag.windows import Windows


class Filled(NamedTuple):
    """The beginning of a ranking, within a budget.

    Attributes:
        texts: of the passages, best first; the last one may be a beginning.
        tokens: of all together, what stands between them included.
        cut: whether the last one is a beginning.
    """

    texts: list[str]
    tokens: int
    cut: bool


def fill(
    ranked: Sequence[str],
    tokenizer: Tokenizer,
    budget: int,
    *,
    between: int = 0,
    counts: Sequence[int] | None = None,
    whole: bool = False,
) -> Filled:
    """The best passages that a budget holds: whole ones, then the beginning of the next, in whole words.

    Args:
        ranked: texts of passages, best first.
        tokenizer: of the LLM.
        budget: most tokens.
        between: tokens that the prompt puts before every passage (a number, a line end).
        counts: tokens of the passages, where they are known.
        whole: leave out the passage that does not fit as a whole, and all after it.
    """
    known = token_counts(tokenizer, ranked) if counts is None else counts
    texts: list[str] = []
    used = 0
    for text, count in zip(ranked, known, strict=True):
        if used + between + count > budget:
            rest = budget - used - between
            piece, tokens = ("", 0) if whole else beginning(text, tokenizer, rest)
            return (
                Filled([*texts, piece], used + between + tokens, True)
                if piece
                else Filled(texts, used, False)
            )
        texts.append(text)
        used += between + count
    return Filled(texts, used, False)


def beginning(text: str, tokenizer: Tokenizer, room: int) -> tuple[str, int]:
    """The longest beginning of a text in whole words (or of a word, where not one fits) and its tokens.

    Args:
        text: any.
        tokenizer: counts.
        room: most tokens; where it holds nothing, the beginning is empty.
    """
    body = text.strip()
    windows = Windows(body, token_ends(tokenizer, [body]))
    while room > 0 and body:
        span = windows.first([room])
        piece = body[span.start : span.end]
        (count,) = token_counts(tokenizer, [piece])
        if count <= room:
            return piece, count
        room -= count - room
    return "", 0
