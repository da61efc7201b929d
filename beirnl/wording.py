"""Counts with their nouns, and what a name that does not exist was likely meant to be."""

import re
from collections.abc import Iterable

_WORDS = re.compile(r"[^\W_]+")
_FAR = 4  # one letter in so many may be wrong
_SHORT = 3  # a name of so many letters may have one that is wrong; a shorter one is not guessed at


def counted(number: int, one: str, many: str = "", *, of: int | None = None) -> str:
    """A count with its noun: ``1 query``, ``2,000 queries``, ``1 of 12 queries has``.

    Args:
        number: how many.
        one: the noun of one, and what follows it if that changes with the number (``query has``).
        many: the same of several; by default the noun's regular plural, and the rest as of one.
        of: of how many; the noun is of these.
    """
    (noun, *rest), (nouns, *rests) = one.split(" ", 1), (many or _plural(one)).split(" ", 1)
    if of is None:
        of, said = number, f"{number:,}"
    else:
        said = f"{number:,} of {of:,}"
    return " ".join([said, noun if of == 1 else nouns, *(rest if number == 1 else rests)])


def _plural(one: str) -> str:
    noun, *rest = one.split(" ", 1)
    return " ".join([re.sub("(?<![aeiou])y$", "ie", noun) + "s", *rest])


def near(name: str, names: Iterable[str]) -> str:
    """The one of ``names`` that ``name`` was likely meant to be, or nothing; case does not matter.

    It differs by a letter in four at most (two that changed places are one), or has all words of ``name``
    among its own; of several the nearest.
    """
    wanted, words = name.lower(), set(_WORDS.findall(name.lower()))
    if len(wanted) < _SHORT:
        return ""
    found: list[tuple[int, str]] = []
    for candidate in names:
        known = candidate.lower()
        room = max(1, max(len(wanted), len(known)) // _FAR)
        edits = _edits(wanted, known) if abs(len(wanted) - len(known)) <= room else room + 1
        if edits <= room:
            found.append((edits, candidate))
        elif words and words <= set(_WORDS.findall(known)):
            found.append((len(known), candidate))
    return min(found, key=lambda one: one[0])[1] if found else ""


def _edits(first: str, second: str) -> int:
    """How many letters must come, go, change or swap places with the next to make one of the other."""
    before: list[int] = []
    above = list(range(len(second) + 1))
    for row, letter in enumerate(first, 1):
        line = [row]
        for at, other in enumerate(second, 1):
            edits = min(above[at] + 1, line[at - 1] + 1, above[at - 1] + (letter != other))
            if row > 1 and at > 1 and letter == second[at - 2] and first[row - 2] == other:
                edits = min(edits, before[at - 2] + 1)
            line.append(edits)
        before, above = above, line
    return above[-1]
