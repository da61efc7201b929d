"""Tokens of texts, also where the model's own tokenizer is not at hand: by what three vocabularies make of a
parallel text.

The text is the first 1,000 sentences of NTREX-128 (Federmann et al. 2022); the vocabularies are those of
Gemma 3 (262,144 entries), Mistral's Tekken (131,072) and XLM-R (250,002). Models with smaller ones (32,000)
need a third more for Latin script, and several times as much for others.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from beirnl.cost.estimates import EXACT, EXPANSION, Factor

_DATA = 0.10  # by how much other texts differ from that one in bytes per token; ours are within it
_LENGTH = 0.15  # and their translations in length: those of BEIR-NL are a tenth shorter than those of NTREX


class _Measured(NamedTuple):
    """A language: thousands of UTF-8 bytes, and of tokens by each vocabulary."""

    size: float
    tokens: tuple[float, ...]


_MEASURED = """
af=138.4/40.3/41.3/36.3 am=223.5/54.2/205/40.2 ar=212.5/40.6/35.4/36.1 az=159.8/51.8/48/33.4
ba=238/60.8/68.5/60.2 be=238.1/52.4/53.6/39.9 bg=251.5/45.1/46.8/36 bn=341.1/31.8/56.1/40.4
bs=133.8/39.2/41.3/33.8 ca=150.8/41.5/40.2/38.2 cs=135.7/41.7/42.2/33.9 cy=139.3/50.3/52.8/41
da=133.1/37.3/39/32.4 de=154.3/35.4/35.5/34.8 ee=125.5/50.3/61.9/52.5 el=276.1/58.8/57.7/43.3
en=126.3/26.8/27.4/30.1 es=150/33.2/34.4/34 et=131.9/41.6/43.4/33.8 eu=138.9/44.2/41.7/34.6
fa=218.6/37.8/38.7/33.3 fi=142.3/43.2/43.7/33.8 fj=152.8/51.7/56.5/52.1 fo=142.1/47.6/49.3/42.3
fr=156.1/37.3/35.5/37.8 ga=159.2/53.6/58/44.1 gl=139.6/34.2/34.5/32.4 gu=326.9/49.1/74.5/42.6
ha=146.7/48.5/55/44.3 he=182.7/47.5/46.2/34.8 hi=349.2/37.2/52.4/39.9 hr=135/39.6/41.6/33.8
hu=158.4/46.7/46/37.5 hy=245.8/72.8/51/40 id=146/30.8/36.3/28.8 ig=149.4/51.8/58.6/58
is=147.4/49.9/52.2/37.4 it=150.9/35.1/36.8/34.6 ja=159.9/31.9/40.7/33.4 ka=364.6/59.5/63.4/39.3
kk=243.6/54.6/56.6/35.4 km=404/65.2/389.4/45.1 kn=364.9/50.2/60.7/39.9 ko=162.7/38.4/36.5/36.8
ky=232.1/49.7/56.6/34.2 lb=145.2/44.3/46.6/46.2 lo=367.5/77.1/333.9/45.7 lt=143.9/46.6/49.3/36.9
lv=152.4/53.3/54.9/39.6 mg=174.5/58.8/61.6/50.7 mi=146.8/51.9/56.7/54.1 mk=242.3/47.5/44.6/34.7
ml=436.4/52.8/75.4/43.8 mn=245.6/61.8/64.7/35.7 mr=351.6/38.3/60.3/37.7 ms=139.9/31.4/35.7/27.8
mt=149.1/55.2/61/57.2 my=415.9/115.2/133.8/49.7 ne=331.2/41.4/58.7/34.4 nl=147.6/36.9/39/35.2
nn=129.2/37.3/38.1/34 no=132/36.4/37.7/31.8 ny=145.4/49/54.1/47.4 om=126.3/43.4/47.3/41.4
pa=321.2/67.9/77.3/45.6 pl=154.6/46.4/47.1/37 ps=223.9/52.8/58.3/41.6 pt=146.3/34/35.3/34.2
ro=157/42.1/44.3/37.7 ru=256.4/38.5/42.9/36.3 rw=157.1/54.5/57.8/53.6 si=345.8/62.2/341.6/39.7
sk=140.9/42.6/45.1/35.6 sl=132.6/41.7/42.8/34.2 sm=143.1/51.5/53.6/52.2 so=146.6/49.8/56.3/40.2
sq=158.4/51.6/50.8/39.4 sr=233.3/49.5/48.2/39.2 ss=149.2/52.7/56/50 sv=130.1/34.8/36.4/30.9
sw=141.7/44.5/50.4/34.6 ta=398.3/38.5/59.1/39.2 te=337.2/44.3/60.3/36.6 th=324.5/39.2/58.8/31
ti=212.4/62.3/192.7/56.2 tk=148.7/52.9/54.9/51.7 tn=174.1/59.2/63.8/59.4 tr=147.8/36.9/41.1/32.2
tt=222.5/49.6/53.9/50.3 ug=299.6/89.1/129.4/49.8 uk=238.7/44.3/48.1/36.7 ur=224/39.8/47.6/35.7
uz=148.5/49.9/48.2/39.7 vi=182.3/36.7/39.2/35.8 wo=122.1/43.3/46.5/43.8 xh=141.2/51.1/55/46.7
yo=240.3/105.6/157.8/90.6 zh=119.7/29.7/38.7/29.6 zu=126.4/44.6/48/40.8
"""


@cache
def _languages() -> dict[str, _Measured]:
    """The table, by ISO 639-1 code."""
    found = {}
    for entry in _MEASURED.split():
        code, _, numbers = entry.partition("=")
        size, *tokens = map(float, numbers.split("/"))
        found[code] = _Measured(size, tuple(tokens))
    return found


def bytes_per_token(language: str) -> Factor:
    """UTF-8 bytes of a text for each of its tokens; of a language that is not in the table, all is possible.

    Args:
        language: ISO 639-1 code.
    """
    table = _languages()
    of = [table[language]] if language in table else list(table.values())
    rates = [one.size / tokens for one in of for tokens in one.tokens]
    return _spread(rates, _DATA, "of three vocabularies")


def usual_expansion(source: str, target: str) -> Factor:
    """Tokens of a translation for each of its source, where no answer has been measured.

    Args:
        source, target: ISO 639-1 codes.
    """
    table = _languages()
    if not {source, target} <= table.keys():
        return EXPANSION
    pairs = zip(table[target].tokens, table[source].tokens, strict=True)
    rates = [translated / original for translated, original in pairs]
    return _spread(rates, _LENGTH, f"assumed, as of news from {source} to {target}")


def _spread(rates: list[float], margin: float, origin: str) -> Factor:
    mid = math.exp(sum(map(math.log, rates)) / len(rates))
    return Factor(min(rates) * (1 - margin), mid, max(rates) * (1 + margin), origin)


class TokenCounter:
    """Counts the tokens of texts and of the prompts that hold them.

    Args:
        model: whose tokens, for people.
        language: of the texts; prompts are English around them.
        own: the model's own tokenizer, where it is at hand.

    Attributes:
        counted: tokens that the provider counts for each that is counted here, as far as is known beforehand.
        description: what counts, for people.
    """

    def __init__(self, model: str, language: str, own: Callable[[str], int] | None = None) -> None:
        rate, around = bytes_per_token(language), bytes_per_token("en")
        self._own, self._rate, self._around = own, rate.mid, around.mid
        self.counted, self.description = EXACT, f"counted by the tokenizer of {model}"
        if own is None:
            self.counted = Factor(rate.mid / rate.high, 1.0, rate.mid / rate.low, rate.origin)
            self.description = f"one for {rate.mid:.2g} bytes, since the tokenizer of {model} is not at hand"

    def __call__(self, text: str, prompts: Sequence[str], share: float = 1.0) -> tuple[float, float]:
        """Tokens of prompts, and of the share of a text that they hold."""
        if self._own:
            return sum(map(self._own, prompts)), self._own(text) * share
        source = _size(text) * share
        around = max(0.0, sum(map(_size, prompts)) - source)
        return around / self._around + source / self._rate, source / self._rate


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
