"""From text to terms, as the language analyzers of Elasticsearch (Lucene 9) do it.

What Lucene does: words by Unicode's rules for word boundaries (UAX #29, in the variant of Lucene's
``StandardTokenizer``), possessives and elisions, lower case per code point, a stop list, stems that override
the stemmer, the stemmer. The languages are entries in ``registry/analyzers.toml``.

Words never span white space, so a text is first split at white space, and the work is done once per distinct
piece and not once per word of the text.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate, chain, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.errors import ConfigError, nearest

if TYPE_CHECKING:
    import regex

#: What Unicode 12.1, which Lucene 9 follows, had among pictographs and not yet among letters.
_PICTOGRAPHS = (
    r"\u2388\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u270E\u2710\u2711\u2765-\u2767"
    r"\U0001F000-\U0001F0FF\U0001F10D-\U0001F10F\U0001F12F\U0001F16C-\U0001F16F\U0001F1AD-\U0001F1E5"
    r"\U0001F260-\U0001F265\U0001F300-\U0001F3FA\U0001F400-\U0001F53D\U0001F546-\U0001F64F"
    r"\U0001F680-\U0001F6FF\U0001F774-\U0001F77F\U0001F7D5-\U0001F7FF\U0001F8AE-\U0001F8FF\U0001F947-\U0001FBFF"
)
_NOT_LETTERS = r"\u00B8\u02E5-\u02EB\u0558\u055A\u058A-\u058C\uA708-\uA716"
#: Characters that stay together in any order: digits and letters of Latin, Greek and Cyrillic.
_PLAIN = (
    "^[0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af"
    "\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03ce\u0400-\u0481]+$"
)

#: Lucene cuts longer words into several.
MAX_WORD = 255
#: Pieces remembered before the memory is cleared (about 250 bytes each), and the longest that is.
MAX_CACHE, MAX_PIECE = 500_000, 64

#: What may stand around a plain word.
_AROUND = ".,:;!?()[]{}\"'/- \t\n\r"
_APOSTROPHES = re.compile("['\u2019\uff07]")

_DATA = files("beirnl").joinpath("registry")
Terms = list[str]


class Facts(NamedTuple):
    """An entry of ``analyzers.toml``; the attributes are explained there."""

    version: int
    language: str
    stemmer: str
    stopwords: str = ""
    adjustment: str = ""
    apostrophe: str = ""
    elisions: tuple[str, ...] = ()
    lowercase: str = ""
    words: str = ""
    overrides: Mapping[str, str] = MappingProxyType({})


ANALYZERS: dict[str, Facts] = {
    name: Facts(**entry)
    for name, entry in tomllib.loads(_DATA.joinpath("analyzers.toml").read_text("utf-8")).items()
}


class Analyzer:
    """Turns texts into lists of terms.

    Attributes:
        name: key in ``ANALYZERS``.
        version: an index made with another version of the analyzer has other terms.
    """

    def __init__(self, name: str, facts: Facts) -> None:
        from Stemmer import Stemmer

        self.name, self.version = name, facts.version
        self._stop, self._overrides = _stopwords(facts.stopwords), facts.overrides
        self._strip = _APOSTROPHE[facts.apostrophe] if facts.apostrophe else _elision(facts.elisions)
        self._lower = _LOWER[facts.lowercase]
        self._pattern = re.compile(facts.words) if facts.words else None
        stemmer = Stemmer(facts.stemmer, 0)
        self._stem: Callable[[Terms], Terms] = stemmer.stemWords
        if facts.adjustment:
            self._stem = _ADJUSTMENTS[facts.adjustment](stemmer.stemWords)
        self._pieces: dict[str, Terms] = {}

    def terms(self, text: str) -> Terms:
        """The terms of one text, in order, repeated as often as they occur."""
        return self.batch([text])[0]

    def batch(self, texts: Iterable[str]) -> list[Terms]:
        """The terms of each text."""
        known = self._pieces
        split = [_split(text) for text in texts]
        new = [piece for piece in dict.fromkeys(chain.from_iterable(split)) if piece not in known]
        # Half a pair of surrogates is no character: no word has it.
        counts, found = self.pieces(
            pa.array([p.encode("utf-8", "replace").decode() for p in new], pa.large_string())
        )
        terms, ends = found.to_pylist(), accumulate(counts.tolist(), initial=0)
        known.update((piece, terms[a:b]) for piece, (a, b) in zip(new, pairwise(ends), strict=True))
        result = [list(chain.from_iterable(map(known.__getitem__, pieces))) for pieces in split]
        if len(known) > MAX_CACHE:
            known.clear()
        for piece in new:
            if len(piece) > MAX_PIECE:
                known.pop(piece, None)
        return result

    def pieces(self, pieces: pa.LargeStringArray) -> tuple[np.ndarray, pa.LargeStringArray]:
        """The terms of pieces of text, cut at white space: how many each has (int64), and all in order."""
        owners, found = self._words(pieces)
        # In one string, since a call per word takes longer; words hold no line ends.
        lower = self._lower("\n".join(found.to_pylist())).split("\n") if len(found) else []
        distinct = pa.array(lower, pa.large_string()).dictionary_encode()
        terms = pa.array(self._stems(distinct.dictionary.to_pylist()), pa.large_string()).take(
            distinct.indices
        )
        kept = owners[terms.is_valid().to_numpy(zero_copy_only=False)]
        return np.bincount(kept, minlength=len(pieces)), terms.drop_null()

    def _words(self, pieces: pa.LargeStringArray) -> tuple[np.ndarray, pa.LargeStringArray]:
        """The words of all pieces in order, and the number of the piece that each is from."""
        if self._pattern:
            return self._matches(self._pattern, pieces)
        core = pc.utf8_trim(pieces, _AROUND)
        plain = pc.and_(pc.match_substring_regex(core, _PLAIN), pc.less_equal(pc.utf8_length(core), MAX_WORD))
        others = pc.invert(plain)
        several = [list(map(self._strip, words(piece))) for piece in pieces.filter(others).to_pylist()]
        several_of = np.repeat(pc.indices_nonzero(others).to_numpy(), list(map(len, several)))
        owners = np.concatenate([pc.indices_nonzero(plain).to_numpy(), several_of]).astype(np.int64)
        found = pa.array(list(chain.from_iterable(several)), pa.large_string())
        order = np.argsort(owners, kind="stable")
        return owners[order], pa.concat_arrays([core.filter(plain), found]).take(pa.array(order))

    def _matches(
        self, pattern: re.Pattern[str], pieces: pa.LargeStringArray
    ) -> tuple[np.ndarray, pa.LargeStringArray]:
        """What matches a pattern in the pieces in lower case, cut to the longest word that there may be."""
        found = [[w[:MAX_WORD] for w in pattern.findall(piece.lower())] for piece in pieces.to_pylist()]
        owners = np.repeat(np.arange(len(found)), list(map(len, found)))
        return owners, pa.array(list(chain.from_iterable(found)), pa.large_string())

    def _stems(self, distinct: Terms) -> list[str | None]:
        """The term of each word, None where it is empty or a stop word."""
        kept = [word for word in distinct if word and word not in self._stop]
        stems = dict(zip(kept, self._stem(kept), strict=True))
        stems.update((word, stem) for word, stem in self._overrides.items() if word in stems)
        return list(map(stems.get, distinct))


@cache
def analyzer(name: str) -> Analyzer:
    """The analyzer of that name; one per process, since it remembers what it has seen.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in ANALYZERS:
        remedy = nearest(name, sorted(ANALYZERS))
        raise ConfigError(f"there is no analyzer {name!r}", where="analyzer", remedy=remedy)
    return Analyzer(name, ANALYZERS[name])


def for_language(language: str) -> str:
    """Name of the analyzer for a language, given as ISO 639-1 code (``nl``).

    Raises:
        ConfigError: no analyzer is meant for that language.
    """
    for name, facts in ANALYZERS.items():
        if facts.language == language:
            return name
    known = ", ".join(sorted(facts.language for facts in ANALYZERS.values() if facts.language))
    raise ConfigError(
        f"no analyzer is meant for language {language!r}", where="analyzer", remedy=f"use one of: {known}"
    )


def _split(text: str) -> list[str]:
    # The narrow no-break space joins words (it is ExtendNumLet in UAX #29), and Python splits at it.
    return [text] if "\u202f" in text else text.split()


def _stopwords(file: str) -> frozenset[str]:
    if not file:
        return frozenset()
    lines = _DATA.joinpath("stopwords", file).read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def _lower(text: str) -> str:
    # Lucene maps each code point by itself, Python knows two exceptions: a final sigma, and dotted I.
    return text.replace("Σ", "σ").replace("İ", "i").lower()


def _lower_turkish(text: str) -> str:
    """Lower case as Lucene's ``TurkishLowerCaseFilter``: I without a dot keeps having none."""
    return _lower(text.replace("I\u0307", "i").replace("I", "ı"))


def _lower_greek(text: str) -> str:
    """Lower case as Lucene's ``GreekLowerCaseFilter``: without accents and final sigma."""
    return _lower(text).translate(_GREEK)


_GREEK = str.maketrans("άέήίϊΐόύϋΰώς", "αεηιιιουυυωσ")
_LOWER = {"": _lower, "turkish": _lower_turkish, "greek": _lower_greek}


def _without_possessive(word: str) -> str:
    return word[:-2] if word.endswith(("'s", "'S", "’s", "’S", "＇s", "＇S")) else word


def _without_suffix(word: str) -> str:
    return _APOSTROPHES.split(word, 1)[0]


_APOSTROPHE = {"possessive": _without_possessive, "suffix": _without_suffix}


def _elision(articles: Sequence[str]) -> Callable[[str], str]:
    """Takes an elided word from the beginning, as Lucene's ``ElisionFilter``."""
    elided = frozenset(articles)

    def strip(word: str) -> str:
        parts = _APOSTROPHES.split(word, 1)
        return parts[1] if len(parts) == 2 and parts[0].lower() in elided else word

    return strip if elided else str


def words(text: str) -> list[str]:
    """Words of a text by the grammar of Lucene's ``StandardTokenizer``."""
    pattern = _grammar()
    if len(text) <= MAX_WORD:
        return list(pattern.findall(text))
    found, at = [], 0
    while at < len(text):
        window = text[at : at + 2 * MAX_WORD]
        if first := pattern.search(window):
            start = first.start()
            word = pattern.match(window[: start + MAX_WORD], start) or first
            found.append(word[0])
        at += word.end() if first else MAX_WORD
    return found


@cache
def _grammar() -> "regex.Pattern[str]":
    """UAX #29 rules WB4 to WB13b, and what Lucene adds: South-East Asian runs, Han, Hiragana, emoji."""
    import regex

    hebrew, katakana, joiner = map(
        _unit, (r"\p{WB=Hebrew_Letter}", r"\p{WB=Katakana}", r"\p{WB=ExtendNumLet}")
    )
    other = _unit(rf"[\p{{WB=ALetter}}--[{_NOT_LETTERS}]]")
    letter = rf"(?:{other}|{hebrew}(?:{_unit(chr(34))}(?={hebrew})|{_unit(chr(39))})?+)"
    number = _unit(r"[\p{WB=Numeric}[\p{Blk=HalfAndFullForms}&&\p{Nd}]]")
    in_letters = _unit(r"[\p{WB=MidLetter}\p{WB=MidNumLet}\p{WB=Single_Quote}]")
    in_numbers = _unit(r"[\p{WB=MidNum}\p{WB=MidNumLet}\p{WB=Single_Quote}]")
    letters = rf"{letter}(?:(?:{joiner}*|{in_letters}){letter})*"
    numbers = rf"{number}(?:(?:{joiner}*|{in_numbers}){number})*"
    run = rf"(?:{katakana}(?:{joiner}*{katakana})*|(?:{numbers}|{letters})+)"
    # The first condition keeps a long line of underscores from being tried from each of them.
    word = rf"(?<!\p{{WB=ExtendNumLet}}){joiner}*+{run}(?:{joiner}+{run})*{joiner}*"
    asian = [_unit(r"\p{LB=SA}") + "+", _unit(r"[\p{Script=Han}\p{Script=Hiragana}]")]
    return regex.compile("|".join([word, *asian, *_emoji()]), regex.V1)


def _unit(characters: str) -> str:
    """A character of a class with the marks that follow it (WB4)."""
    return rf"(?:{characters}[\p{{WB=Format}}\p{{WB=Extend}}\p{{WB=ZWJ}}]*+)"


def _emoji() -> list[str]:
    """Emoji sequences as in UTS #51: joined emoji, keycaps (those of digits are words), flags."""
    mark = r"[[\p{WB=Format}\p{WB=Extend}]--[\uFE0E\uFE0F]]"
    flag = r"\p{WB=Regional_Indicator}"
    symbol = rf"[[\p{{Emoji}}\p{{Extended_Pictographic}}{_PICTOGRAPHS}]--[0-9#*{flag}\p{{Emoji_Modifier}}]]"
    one = rf"(?:\u200D*{symbol}{mark}*+\uFE0F?|\p{{Emoji_Modifier}}{mark}*+)"
    return [
        rf"{one}(?:\u200D{one})*(?:(?<!\uFE0F)\u200D{mark}*)*",
        rf"[#*]{mark}*\uFE0F?\u20E3{mark}*",
        _unit(flag) + "{2}",
    ]


#: Where Lucene departs from Porter: ``X-bli`` and ``X-logi`` in the forms that become those, if the measure
#: of X is more than 0 (it has a vowel before a consonant); other double consonants than Snowball undoubles.
_LOGY = (
    r"(.*(?:[aeiou][^aeiou]|(?:[^aeiouy]|^y)y[^aeiou]).*)"
    r"(bl|log)(?:is?|ies|ys?|[iy](?:ed|ing)s?)"
)
_DOUBLED = r"(.*(?:[aeiou]|[^aeiou]y).*([^abdefgilmnoprstuyz]))\2(?:ed|ing)s?"

_ADJUSTED = ("i", "is", "ies", "y", "ys", "ed", "eds", "ing", "ings")


def _lucene_porter(stem: Callable[[Terms], Terms]) -> Callable[[Terms], Terms]:
    """Porter's stemmer as Lucene has it, from Snowball's, which keeps to the article (Porter, 1980).

    Words of two letters stay as they are; ``-bli`` becomes ``-ble`` (Porter has it after ``a`` only) and
    ``-logi`` becomes ``-log``; all double consonants but ``l, s, z`` are undoubled (``trekking``).
    """
    logy, doubled = re.compile(_LOGY), re.compile(_DOUBLED)

    def adjusted(word: str, stemmed: str) -> str:
        if len(word) < 3:
            return word
        if not word.endswith(_ADJUSTED):
            return stemmed
        if match := logy.fullmatch(word):
            return f"{match[1]}log" if match[2] == "log" else stem([f"{match[1]}ble"])[0]
        if match := doubled.fullmatch(word):
            return stem([match[1]])[0]
        return stemmed

    return lambda terms: list(map(adjusted, terms, stem(terms)))


_ADJUSTMENTS = {"lucene_porter": _lucene_porter}
