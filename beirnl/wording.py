"""Counts with their nouns, and what a name that does not exist was likely meant to be."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_WORDS = re.compile(r"[^\W_]+")
_ALIKE = 0.75  # share of the letters of both names that are the same


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

    It is nearly the same by difflib's ratio, or has all words of ``name`` among its own; then the shortest.
    """
    wanted, by_lower = name.lower(), {one.lower(): one for one in names}
    if close := get_close_matches(wanted, by_lower, 1, _ALIKE):
        return by_lower[close[0]]
    words = set(_WORDS.findall(wanted))
    holding = [known for known in by_lower if words and words <= set(_WORDS.findall(known))]
    return by_lower[min(holding, key=len)] if holding else ""
