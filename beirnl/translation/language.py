"""Languages: their names in prompts, and which one a text is in."""

import copy
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from beirnl import registry

#: Languages that a model drifts into; source and target join them. The fewer there are, the surer the answer.
CANDIDATES = ("ar", "da", "de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru", "sv", "tr", "zh")

_FEW = 16  # texts that are sooner identified one by one
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff]"
)  # Thai to Burmese, Khmer, CJK


def language_name(code: str) -> str:
    """English name of a language, from the registry.

    Raises:
        ConfigError: the code is not known; names the nearest.
    """
    return registry.language(code).name


def identify(text: str, languages: tuple[str, ...]) -> str:
    """The language of ``text``, as an ISO 639-1 code: the likeliest of :data:`CANDIDATES` and ``languages``.

    Languages that the identifier does not know are left out.
    """
    return str(_identifier(_considered(languages)).classify(text)[0])


def identify_many(texts: Sequence[str], languages: tuple[str, ...]) -> list[str]:
    """What :func:`identify` says of each text; many at once take a quarter of the time (:class:`_Scorer`)."""
    if len(texts) < _FEW:
        return [identify(text, languages) for text in texts]
    return _scorer(_considered(languages)).classify(texts)


def can_identify(code: str) -> bool:
    """Whether texts in this language are recognised; asked of the registry: the identifier loads slowly."""
    entry = registry.languages().get(code)
    return entry is not None and entry.identified


def _considered(languages: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*CANDIDATES, *languages}))


def unspaced(text: str) -> bool:
    """Whether a text has letters of a script that puts no blanks between words (Chinese, Japanese, Thai)."""
    return not text.isascii() and _UNSPACED.search(text) is not None


class _Scorer:
    """py3langid's model (naive Bayes over byte n-grams, found by an automaton), many texts at once.

    The texts go through the automaton side by side, the longest first, so that each step is one look-up for
    all that have not ended. Scores are the library's: the sum of log(1 + count) times the weights of every
    n-gram, in float32.

    Args:
        identifier: the library's, restricted to some languages.
    """

    _ROWS = 512  # texts at once: what they need stays in the processor's cache

    def __init__(self, identifier: Any) -> None:
        self._identifier = identifier
        self._next = np.frombuffer(identifier.tk_nextmove, np.dtype(f"u{identifier.tk_nextmove.itemsize}"))
        self._row = np.asarray(identifier._rowbase, np.int64)
        self._output = np.asarray(identifier.tk_output, np.int32)
        self._weights = np.ascontiguousarray(identifier.nb_ptc, np.float32)
        self._prior = np.asarray(identifier.nb_pc, np.float32)

    def classify(self, texts: Sequence[str]) -> list[str]:
        """The likeliest language of each text."""
        encoded = [self._identifier._encode(text) for text in texts]
        sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
        order = np.argsort(-sizes, kind="stable")
        best = np.empty(len(encoded), np.int64)
        for begin in range(0, len(order), self._ROWS):
            rows = order[begin : begin + self._ROWS]
            scores = self._scores(self._features([encoded[row] for row in rows], sizes[rows]))
            for first, other in self._identifier._alias_pairs:
                scores[:, first] = np.maximum(scores[:, first], scores[:, other])
                scores[:, other] = -np.inf
            best[rows] = scores.argmax(axis=1)
        return [self._identifier.nb_classes[label] for label in best.tolist()]

    def _features(self, texts: list[bytes], sizes: np.ndarray) -> np.ndarray:
        """The feature that each byte ends, or -1: (texts, bytes of the longest), each row sorted."""
        longest = int(sizes[0])
        letters = np.frombuffer(b"".join(text.ljust(longest, b"\0") for text in texts), np.uint8)
        columns = np.ascontiguousarray(letters.reshape(len(texts), longest).T)
        active = np.searchsorted(-sizes, -np.arange(longest), side="left")
        found = np.full((longest, len(texts)), -1, np.int32)
        state = np.zeros(len(texts), np.int64)
        for step, rows in enumerate(active.tolist()):
            state = self._next[self._row[state[:rows]] + columns[step, :rows]]
            found[step, :rows] = self._output[state]
        return np.sort(found.T, axis=1)

    def _scores(self, features: np.ndarray) -> np.ndarray:
        """Log posterior per text and language, up to a constant."""
        scores = np.zeros((len(features), len(self._prior)), np.float32)
        if not features.size:
            return scores
        new = features >= 0
        new[:, 1:] &= features[:, 1:] != features[:, :-1]
        places = np.flatnonzero(new)
        rows = places // features.shape[1]
        ends = np.minimum(np.append(places[1:], features.size), (rows + 1) * features.shape[1])
        parts = self._weights[features.ravel()[places]]
        parts *= np.log1p((ends - places).astype(np.float32))[:, None]
        known, begins = np.unique(rows, return_index=True)
        if len(known):
            scores[known] = np.add.reduceat(parts, begins, axis=0) + self._prior
        return scores


@cache
def _scorer(languages: tuple[str, ...]) -> _Scorer:
    return _Scorer(_identifier(languages))


@cache
def _identifier(languages: tuple[str, ...]) -> Any:
    """One identifier per set of languages; they share their tables."""
    identifier = copy.copy(_base())
    identifier.set_languages([code for code in languages if can_identify(code)])
    return identifier


@cache
def _base() -> Any:
    """An identifier of our own: the library's shared one has one setting for the whole process."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)
