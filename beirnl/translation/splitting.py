"""Long texts in pieces that fit a model, cut where it hurts least; the pieces joined are the text again."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Piece(NamedTuple):
    """A piece of a text: ``gap``, the white space before it, and its ``text``."""

    gap: str
    text: str


class _Breaks(NamedTuple):
    """Places where a text may be cut: a piece ends at ``ends[n]``, the next one begins at ``starts[n]``."""

    ends: Sequence[int]
    starts: Sequence[int]


_STOPS = ".!?…"
_WIDE_STOPS = "。！？｡．؟۔।॥"
_CLOSING = "\"'”’»)\\]】」』）"
#: White space after a full stop, a wide full stop with or without white space, or a line end.
_CANDIDATE = re.compile(
    rf"(?P<stop>[{_STOPS}]+)[{_CLOSING}]*(?P<gap>\s+)"
    rf"|[{_WIDE_STOPS}]+[{_CLOSING}]*(?P<wide>\s*)"
    r"|(?P<line>[^\S\n]*\n\s*)"
)
_BLANK = re.compile(r"\s+")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘«]*$")
_LONGEST_WORD = 24  # characters looked at before a full stop
_INITIAL = re.compile(r"\w|(?:\w{1,2}\.)+\w{1,3}|\d{1,2}")  # J. R. R.; e.g., i.e., d.w.z., U.S.; 1. 2.
#: Words that end in a full stop inside a sentence, in the languages that corpora are likely to be in.
_LISTED = """
    adj al approx apr art aug bros ca capt cf ch chap co col corp dec dept dr ed eds eq eqs esp est etc ex feb
    fig figs gen gov hon inc jan jr jul jun lt ltd mar max messrs min mr mrs ms mt no nos nov nr oct op para
    pp prof rep resp rev sec sen sep sept sgt sp spp sr st suppl tab univ viz vol vols vs
    afb bijv blz bv dhr drs enz evt fr hfst incl ing ir jl ll mevr mgr mld mln mr mw nl ong red resp secr
    abb abs allg bd bspw bzgl bzw evtl frl geb ggf hr nr sog str tel usw vgl zzgl
    av bd boul chap env éd fasc janv juil mlle mm mme obs réf
    avv cap dott ecc gent ing lett pag pagg prof sig sigg sigra tav
    admón avda cía dpto dra gral núm pág prov sra srta tít ud uds
"""
_ABBREVIATIONS = frozenset(_LISTED.split())


def split(text: str, fits: Callable[[str], bool]) -> list[Piece]:
    """Cut a text into few pieces that fit.

    A piece is as long as fits. It ends at a sentence end, or at a paragraph end if one lies in its second
    half; if not even one sentence fits, at a blank; if not even one word fits, anywhere. ``fits`` is called
    about 2 log(sentences per piece) times per piece, on texts about as long as a piece.

    Args:
        text: any text; ``"".join(gap + text)`` of the pieces is this text. White space at its end stays with
            the last piece, whether it fits or not: no piece is white space alone, unless the text is.
        fits: whether a piece is short enough; a part of what fits should fit.

    Raises:
        ValueError: not even one character fits.
    """
    body = text.rstrip()
    if not body or fits(text):
        return [Piece("", text)] if text else []
    pieces = _Cutter(body, fits).pieces()
    gap, last = pieces[-1]
    return [*pieces[:-1], Piece(gap, last + text[len(body) :])]


def sentences(text: str) -> list[Piece]:
    """The sentences of a text; ``"".join(gap + text)`` of them is the text.

    Abbreviations, initials, numbers and list numbers do not end a sentence; a line ends one if the next does
    not go on in lower case. White space at the end stays with the last sentence.
    """
    breaks = _sentence_breaks(text)
    begin = len(text) - len(text.lstrip())
    if begin == len(text):
        return [Piece("", text)] if text else []
    starts = [begin, *(start for start in breaks.starts if begin < start < len(text))]
    ends = [end for end, start in zip(*breaks, strict=True) if begin < start < len(text)]
    gaps = [text[:begin], *(text[end:start] for end, start in zip(ends, starts[1:], strict=True))]
    return [
        Piece(gap, text[start:end]) for gap, start, end in zip(gaps, starts, [*ends, len(text)], strict=True)
    ]


def _sentence_breaks(text: str) -> _Breaks:
    ends, starts = [], []
    for match in _CANDIDATE.finditer(text):
        if match.end() < len(text) and _ends_sentence(text, match):
            kind = match.lastgroup if match.lastgroup in ("line", "wide") else "gap"
            ends.append(match.start(kind))
            starts.append(match.end())
    return _Breaks([*ends, len(text)], [*starts, len(text)])


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    after = text[match.end()]
    if match["wide"] is not None:
        return True
    if match["line"] is not None:
        return not after.islower() or bool(_PARAGRAPH.search(match["line"]))
    if _PARAGRAPH.search(match["gap"]):
        return True
    if after.islower():
        return False
    if match["stop"] != ".":
        return True
    stop = match.start("stop")
    found = _LAST_WORD.search(text[max(0, stop - _LONGEST_WORD) : stop])
    word = found[0] if found else ""
    return not _INITIAL.fullmatch(word) and word.lower() not in _ABBREVIATIONS


class _Cutter:
    """Cuts one text, from its beginning to its end."""

    def __init__(self, text: str, fits: Callable[[str], bool]) -> None:
        self._text, self._fits = text, fits
        self._levels: dict[str, _Breaks] = {}
        self._guess = len(text)  # characters that the next piece is likely to hold

    def pieces(self) -> list[Piece]:
        text = self._text
        start = len(text) - len(text.lstrip())
        while self._guess > 1 and not self._fits(text[start : start + self._guess]):
            self._guess //= 2
        pieces, gap = [], text[:start]
        while start < len(text):
            end, after = self._cut(start)
            pieces.append(Piece(gap, text[start:end]))
            self._guess, gap, start = end - start, text[end:after], after
        return pieces

    def _cut(self, start: int) -> tuple[int, int]:
        """Where the piece that begins at ``start`` ends, and where the next one begins."""
        limit = self._limit(start)
        for level in ("sentence", "blank", "character"):
            breaks = self._breaks(level)
            found = self._farthest(breaks.ends, start, limit)
            if found is None:
                continue
            end = breaks.ends[found]
            return (level == "sentence" and self._paragraph_end(start, end)) or (end, breaks.starts[found])
        raise ValueError("not even one character fits")

    def _limit(self, start: int) -> int:
        """A place to which a piece from ``start`` does not fit, near the last one to which it does."""
        length = self._guess
        while start + length < len(self._text):
            length = max(16, 2 * length)
            if not self._fits(self._text[start : start + length]):
                return start + length
        return len(self._text) + 1

    def _paragraph_end(self, start: int, end: int) -> tuple[int, int] | None:
        """The last paragraph end up to ``end``, if the piece is at least half as long then."""
        breaks = self._breaks("paragraph")
        place = bisect_right(breaks.ends, end) - 1
        if place < 0 or breaks.ends[place] - start < (end - start) / 2:
            return None
        fitting = breaks.ends[place] == end or self._fits(self._text[start : breaks.ends[place]])
        return (breaks.ends[place], breaks.starts[place]) if fitting else None

    def _breaks(self, level: str) -> _Breaks:
        if level not in self._levels:
            self._levels[level] = self._find_breaks(level)
        return self._levels[level]

    def _find_breaks(self, level: str) -> _Breaks:
        size = len(self._text)
        if level == "sentence":
            return _sentence_breaks(self._text)
        if level == "character":
            return _Breaks(range(1, size + 1), range(1, size + 1))
        if level == "blank":
            spans = [match.span() for match in _BLANK.finditer(self._text)]
        else:
            spans = list(zip(*self._breaks("sentence"), strict=True))
            spans = [span for span in spans if _PARAGRAPH.search(self._text, *span)]
        spans = [(end, start) for end, start in spans if end > 0 and start < size]
        return _Breaks([*(end for end, _ in spans), size], [*(start for _, start in spans), size])

    def _farthest(self, ends: Sequence[int], start: int, limit: int) -> int | None:
        """Index of the last of ``ends`` to which a piece from ``start`` fits: gallop from a guess, bisect."""
        low, high = bisect_right(ends, start), bisect_left(ends, limit)
        if low == high:
            return None

        def fits(index: int) -> bool:
            return self._fits(self._text[start : ends[index]])

        probe = min(max(low, bisect_left(ends, start + self._guess)), high - 1)
        step = 1
        if fits(probe):
            bad = probe + step
            while bad < high and fits(bad):
                probe, step = bad, step * 2
                bad = probe + step
            good, bad = probe, min(bad, high)
        else:
            bad, good = probe, probe - step
            while good >= low and not fits(good):
                bad, step = good, step * 2
                good = bad - step
            good = max(good, low - 1)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if fits(middle) else (good, middle)
        return good if good >= low else None
