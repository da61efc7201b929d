"""Text that comes back: in itself, as models write when they are lost, or from the source, untranslated."""

import re
from collections.abc import Iterator
from itertools import islice

from beirnl.translation.language import unspaced

_RUN = re.compile(r"([^\s\d])\1{9,}")
_RUN_LENGTH = 10
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_LONG_WORD = 16  # mean characters per word from which a text may have no blanks between words
_PHRASE = 3  # words of the phrases that are counted; 8 characters where there are no words
_PHRASE_CHARACTERS = 8
_LOOP = 12  # words (characters: 30) of the longest phrase whose repetition at the end is looked for
_LOOP_CHARACTERS = 30
_PUNCTUATION = ".,;:!?…"
_TWICE = 8  # words from which a text can be there twice
_BLOCK = 4  # words whose occurrence in the source makes a passage of the translation suspicious
PASSAGE = 8  # words of a passage that matters, of which
_DISTINCT = 5  # at least are distinct
_TOLERANCE = 0.2  # by which more may come back than in the source
_VARIED = 0.7  # share of distinct words from which nothing can be degenerate


def repeats(before: str, after: str, tokens: list[str], most: float) -> bool:
    """Whether a translation repeats itself as its source does not.

    Args:
        before, after: source and translation.
        tokens: the translation, cut at white space.
        most: share of phrases that may have occurred before in the text.
    """
    if not tokens:
        return False
    if _has_run(tokens) and not _has_run(before.split()):
        return True
    spaced = len(after) < _LONG_WORD * len(tokens) or not unspaced(after)
    if spaced and _is_varied(tokens):
        return False
    words, source = _units(after, spaced), _units(before, not unspaced(before))
    size, longest = (_PHRASE, _LOOP) if spaced else (_PHRASE_CHARACTERS, _LOOP_CHARACTERS)
    repeated = _repeated_share(words, size)
    if repeated > most and repeated > _repeated_share(source, size) + _TOLERANCE:
        return True
    if _loops(words, longest) and not _loops(source, longest):
        return True
    return _is_twice(words) and not _is_twice(source)


def _has_run(tokens: list[str]) -> bool:
    """Whether a character comes ten times in a row."""
    long = [token for token in tokens if len(token) >= _RUN_LENGTH]
    # A run in a word of up to 19 characters covers its tenth character from either end.
    return any(
        _RUN.search(token)
        for token in long
        if len(token) >= 2 * _RUN_LENGTH or token[_RUN_LENGTH - 1] == token[-_RUN_LENGTH]
    )


def _is_varied(tokens: list[str]) -> bool:
    """Whether too many words are distinct for half of the phrases to be repetitions; a quick first look."""
    number = len(tokens)
    return len(set(tokens)) >= max(number / 2 + 1, _VARIED * number) and not _may_loop(tokens)


def _may_loop(tokens: list[str]) -> bool:
    """Whether the last word comes back at regular distances before it; a quick first look."""
    last = tokens[-1].rstrip(_PUNCTUATION) or tokens[-1]
    most = min(_LOOP, (len(tokens) - 1) // 3)
    return any(
        tokens[-1 - step].startswith(last)
        and tokens[-1 - 2 * step].startswith(last)
        and tokens[-1 - 3 * step].startswith(last)
        for step in range(1, most + 1)
    )


def _units(text: str, spaced: bool) -> list[str]:
    """Words, or characters of a text that has no blanks between its words."""
    return _WORD.findall(text.casefold()) if spaced else [letter for letter in text if letter.isalnum()]


def _repeated_share(words: list[str], size: int) -> float:
    """Share of phrases of ``size`` words that have occurred before."""
    phrases = list(zip(*(words[n:] for n in range(size)), strict=False))
    return 1 - len(set(phrases)) / len(phrases) if phrases else 0.0


def _loops(words: list[str], longest: int) -> bool:
    """Whether the text ends with one phrase four times, or one word six times."""
    for length in range(1, longest + 1):
        times = 6 if length == 1 else 4
        phrase = words[-length:]
        if len(words) >= length * times and words[-length * times :] == phrase * times:
            return True
    return False


def _is_twice(words: list[str]) -> bool:
    """Whether the text is there twice."""
    half = len(words) // 2
    return half >= _TWICE and len(words) == 2 * half and words[:half] == words[half:]


def passages(source: list[str], words: list[str]) -> list[tuple[int, int]]:
    """Passages of four words and more that stand in the source word by word: where they begin and end.

    A text that shares less than any passage of :data:`PASSAGE` words would has none.
    """
    vocabulary = set(source)
    if len(words) >= PASSAGE and len(vocabulary.intersection(words)) < _DISTINCT:
        return []
    blocks = (words[n : n + _BLOCK] for n in range(0, len(words) - _BLOCK + 1, _BLOCK))
    if not any(map(vocabulary.issuperset, blocks)):
        return []
    known = set(_phrases(source))
    found: list[tuple[int, int]] = []
    for place, phrase in enumerate(_phrases(words)):
        if phrase in known:
            begin = found.pop()[0] if found and place <= found[-1][1] else place
            found.append((begin, place + _BLOCK))
    return found


def _phrases(words: list[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(islice(words, n, None) for n in range(_BLOCK)), strict=False)
