"""Which retrieval system makes the answers right: tests of pairs, the best, and a held-out half."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from beirnl.evaluation.uncertainty import Resampling, mcnemar, resampling
from beirnl.rag.marks import Estimate, Marks, Setup, accuracies, by_document, resampled

_EQUAL = 1e-9  # two values of a question that differ by less are a tie
_POWER = 0.8  # of the smallest difference that a set could have shown


class Comparison(NamedTuple):
    """Two setups on the same questions.

    Attributes:
        setup, other: which.
        difference: of their accuracies, ``setup`` minus ``other``.
        low, high: 95 % paired bootstrap interval of it, by document.
        p: two-sided; of the exact McNemar test where its assumptions hold (:attr:`.marks.Marks.plain`), else
            of the paired randomisation test by document.
        p_holm: corrected for the tests of its family (Holm 1979).
        wins, losses, ties: questions on which the setup has a higher, lower, equal value.
        smallest: the smallest difference that the test would have found with a power of 0.8 at Holm's
            strictest level: exact for McNemar's test, else by the bootstrap's standard error; None where
            there is none (the set is too small, or nothing varies).
    """

    setup: Setup
    other: Setup
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int
    losses: int
    ties: int
    smallest: float | None

    def turned(self) -> "Comparison":
        """The same, seen from the other side."""
        return self._replace(
            setup=self.other,
            other=self.setup,
            difference=-self.difference,
            low=-self.high,
            high=-self.low,
            wins=self.losses,
            losses=self.wins,
        )


class Choice(NamedTuple):
    """The best setup of some, and those that are not shown to differ from it.

    Attributes:
        best: highest accuracy; among equals the first.
        equals: the others whose comparison with the best is not significant: not shown to differ, which is
            not the same as equal.
        comparisons: of all pairs, which are one family of tests.
    """

    best: Setup
    equals: Sequence[Setup]
    comparisons: Sequence[Comparison]

    def against_best(self, setup: Setup) -> Comparison | None:
        """How a setup stands beside the best; None for the best itself."""
        for one in self.comparisons:
            if (one.setup, one.other) == (self.best, setup):
                return one.turned()
            if (one.other, one.setup) == (self.best, setup):
                return one
        return None


class Confirmation(NamedTuple):
    """A system and k that were chosen on one half of the documents, and how they do on the other.

    Attributes:
        chosen: highest accuracy on the first half, of all systems and k.
        first: its accuracy there, which is too high because it was chosen there.
        held: its accuracy on the held-out half, which is not.
        comparisons: with every other system at the k that was best for it on the first half, tested on the
            held-out half; one family of tests.
    """

    chosen: Setup
    first: Estimate
    held: Estimate
    comparisons: Sequence[Comparison]


def compare(marks: Marks, pairs: Sequence[tuple[Setup, Setup]], settings: Resampling) -> list[Comparison]:
    """Compares pairs of complete setups, which are one family of tests.

    Args:
        marks: with a value of every question for every setup of the pairs.
        pairs: of setups.
        settings: of resampling; its ``alpha`` is the level of the family.
    """
    setups = list(dict.fromkeys(setup for pair in pairs for setup in pair))
    if not setups or not len(marks.questions):
        return []
    values = marks.of(setups)
    drawn = resampled(marks, setups, settings)
    places = [(setups.index(a), setups.index(b)) for a, b in pairs]
    signs = [np.sign(_rounded(values[:, a] - values[:, b])) for a, b in places]
    wins, losses = ([int((sign == way).sum()) for sign in signs] for way in (1, -1))
    raw = (
        list(mcnemar.p_values(wins, losses)) if marks.plain else _randomised(marks, setups, places, settings)
    )
    corrected = resampling.holm(raw)
    made = []
    for at, (a, b) in enumerate(places):
        spread = drawn[:, a] - drawn[:, b]
        smallest = _smallest(marks, wins[at] + losses[at], spread, settings.alpha / len(pairs))
        ties = len(values) - wins[at] - losses[at]
        difference = float(values[:, a].mean() - values[:, b].mean())
        low, high = resampling.interval(spread)
        tested = (float(raw[at]), corrected[at]), (wins[at], losses[at], ties)
        made.append(Comparison(*pairs[at], difference, low, high, *tested[0], *tested[1], smallest))
    return made


def _rounded(differences: np.ndarray) -> np.ndarray:
    return np.where(np.abs(differences) < _EQUAL, 0.0, differences)


def _randomised(
    marks: Marks, setups: Sequence[Setup], places: Sequence[tuple[int, int]], settings: Resampling
) -> list[float]:
    """P values under random signs of the documents' differences."""
    sums, _ = by_document(marks, setups)
    flipped = resampling.flipped_means(sums, settings.randomisation, [1, settings.seed])
    means = sums.mean(axis=0)
    return [resampling.p_value(float(means[a] - means[b]), flipped[:, a] - flipped[:, b]) for a, b in places]


def _smallest(marks: Marks, discordant: int, spread: np.ndarray, alpha: float) -> float | None:
    questions = len(marks.questions)
    if marks.plain:
        return mcnemar.smallest_difference(questions, discordant / questions, alpha, _POWER)
    from scipy.stats import norm

    difference = float((norm.ppf(1 - alpha / 2) + norm.ppf(_POWER)) * spread.std())
    return difference if 0 < difference <= 1 else None


def choose(marks: Marks, setups: Sequence[Setup], settings: Resampling) -> Choice | None:
    """The best of complete setups, and those not shown to differ from it; all pairs are tested.

    Args:
        marks: of all setups.
        setups: candidates, declared before the answers were seen: usually all systems at one k.
        settings: of resampling.

    Returns:
        None where no candidate is complete.
    """
    known = [setup for setup in setups if setup in marks.complete]
    if not known:
        return None
    order = sorted(known, key=lambda setup: -round(float(marks.of([setup]).mean()), 12))
    found = compare(marks, list(combinations(order, 2)), settings)
    equals = [one.other for one in found if one.setup == order[0] and one.p_holm > settings.alpha]
    return Choice(order[0], equals, found)


def best_k(found: Mapping[Setup, Estimate], llm: str) -> dict[str, Setup]:
    """The k of highest accuracy for each system of an LLM, of equal ones the smallest; k = 0 is a system."""
    best: dict[str, Setup] = {}
    for setup in sorted((s for s, e in found.items() if s.llm == llm and e.complete), key=lambda s: s.k):
        now = best.get(setup.system)
        if now is None or found[setup].value > found[now].value + _EQUAL:
            best[setup.system] = setup
    return best


def halves(marks: Marks, seed: int) -> tuple[Marks, Marks]:
    """Two halves of the documents, drawn by seed; the questions of a document stay together."""
    documents = np.unique(marks.documents)
    first = np.random.default_rng(seed).permutation(documents)[: (len(documents) + 1) // 2]
    kept = np.isin(marks.documents, first)
    return marks.only(kept), marks.only(~kept)


def confirm(marks: Marks, llm: str, settings: Resampling) -> Confirmation | None:
    """Chooses system and k on one half of the documents, and judges the choice on the other.

    Args:
        marks: of all setups.
        llm: which answers.
        settings: of resampling; its seed splits.

    Returns:
        None where there are fewer than two systems (no passages is one) or two documents.
    """
    first, held = halves(marks, settings.seed)
    found = accuracies(first, settings)
    best = {s: e for s, e in best_k(found, llm).items() if e in marks.complete}
    if len(best) < 2 or not held.questions:
        return None
    chosen = max(best.values(), key=lambda setup: found[setup].value)
    pairs = [(chosen, other) for other in best.values() if other != chosen]
    judged = accuracies(held, settings)[chosen]
    return Confirmation(chosen, found[chosen], judged, compare(held, pairs, settings))
