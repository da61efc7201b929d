"""Windows of tokens in a text, for one or several tokenizers at once."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from beirnl.rag.tokenizers import BLANKS, Ends
from beirnl.translation.splitting import sentences

_WORD_START = re.compile(rf"(?<=[{BLANKS}])\S")


class Span(NamedTuple):
    """Characters ``start`` to ``end`` of a text."""

    start: int
    end: int


class Windows:
    """Cuts one text into windows that are as long as all tokenizers allow, from its beginning to its end.

    Args:
        text: without white space at its ends.
        ends: per tokenizer int32 [tokens], where its tokens of the text end.
        whole_sentences: cut at sentence ends, wherever a sentence fits.
    """

    def __init__(self, text: str, ends: Sequence[Ends], whole_sentences: bool = False) -> None:
        self._text, self._ends = text, ends
        words = [0, *(match.start() for match in _WORD_START.finditer(text)), len(text)]
        #: Where windows may begin and end, the best first; after these, at any token's end.
        self._levels = [*([_sentence_starts(text)] if whole_sentences else []), words]

    def spans(self, rooms: Sequence[int], overlap: int = 0) -> list[Span]:
        """The windows, without white space at their ends.

        Args:
            rooms: per tokenizer the most tokens of a window, at least 1.
            overlap: most tokens that a window repeats.

        Returns:
            Spans whose starts and ends ascend, and between which there is white space only.
        """
        found: list[Span] = []
        start = reached = 0
        while reached < len(self._text):
            end, level = self._end(start, rooms)
            if end <= reached:  # what follows does not fit beside what would be repeated
                start = reached
                continue
            if self._text[reached:end].strip():
                found.append(self._stripped(start, end))
            start, reached = self._repeated(start, end, level, overlap), end
        return found

    def tokens(self, span: Span, tokenizer: int = 0) -> int:
        """How many tokens of a tokenizer a span has within the text."""
        ends = self._ends[tokenizer]
        return bisect_right(ends, span.end) - bisect_right(ends, span.start)

    def between_words(self, span: Span) -> bool:
        """Whether a span begins and ends at a blank, or where the text does."""
        text, (start, end) = self._text, span
        return (start == 0 or text[start - 1] in BLANKS) and (end == len(text) or text[end] in BLANKS)

    def first(self, rooms: Sequence[int]) -> Span:
        """The first window alone; the text is not empty."""
        return Span(0, len(self._text[: self._end(0, rooms)[0]].rstrip()))

    def _end(self, start: int, rooms: Sequence[int]) -> tuple[int, int]:
        """Where the window from ``start`` ends, and at which level."""
        far = token = len(self._text)
        for ends, room in zip(self._ends, rooms, strict=True):
            over = bisect_right(ends, start) + room  # the first token that is too many
            if over < len(ends):
                far = min(far, int(ends[over]) - 1)
                token = min(token, int(ends[over - 1]))
        for level, places in enumerate(self._levels):
            place = places[bisect_right(places, far) - 1]
            if place > start:
                return place, level
        return max(token, start + 1), len(self._levels)

    def _repeated(self, start: int, end: int, level: int, overlap: int) -> int:
        """Where the next window begins: ``end``, or before it by at most ``overlap`` tokens."""
        if not overlap or end == len(self._text):
            return end
        near = 0
        for ends in self._ends:
            kept = bisect_right(ends, end) - overlap
            near = max(near, int(ends[kept - 1]) if kept > 0 else 0)
        if level < len(self._levels):
            places = self._levels[level]
            near = places[bisect_left(places, near)]
        return near if start < near < end else end

    def _stripped(self, start: int, end: int) -> Span:
        piece = self._text[start:end]
        begin = start + len(piece) - len(piece.lstrip())
        return Span(begin, begin + len(piece.strip()))


def _sentence_starts(text: str) -> list[int]:
    starts, place = [0], 0
    for gap, sentence in sentences(text):
        starts.append(place + len(gap))
        place = starts[-1] + len(sentence)
    return [*starts, len(text)]
