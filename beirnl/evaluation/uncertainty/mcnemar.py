"""The exact McNemar test of two systems on the same questions: its p value, and what it could have shown.

Only discordant questions count, those that one system answers rightly and the other does not; if the systems
are equal, each falls to either with probability 1/2 (McNemar 1947; exact by the binomial distribution).
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_STEPS = 34  # of halving: differences to 1e-10
_BEYOND = 1e-18  # probability of the discordant counts on either side that are not enumerated


def p_values(wins: "ArrayLike", losses: "ArrayLike") -> np.ndarray:
    """Two-sided exact p values.

    Args:
        wins: discordant questions that the first system answers rightly; any shape.
        losses: those that the second does; of the same shape.

    Returns:
        Of the same shape; 1 where there is no discordant question.
    """
    from scipy.stats import binom

    fewer, discordant = np.minimum(wins, losses), np.add(wins, losses)
    return np.asarray(np.minimum(1.0, 2.0 * binom.cdf(fewer, discordant, 0.5)))


def power(n: int, difference: float, discordance: float, alpha: float = 0.05) -> float:
    """The probability that the test finds a difference, by enumeration of all discordant counts.

    With difference 0 it is the rate of false alarms, which stays below ``alpha`` since the test is exact.

    Args:
        n: number of questions.
        difference: true difference of the accuracies, from 0 to ``discordance``.
        discordance: probability that a question is discordant, above 0.
        alpha: the test rejects at p of this or less.

    Raises:
        ValueError: a difference larger than the discordance, or a number out of its range.
    """
    if not 0 <= difference <= discordance <= 1 or discordance == 0 or not 0 < alpha < 1:
        raise ValueError("0 <= difference <= discordance <= 1, discordance > 0 and 0 < alpha < 1")
    from scipy.stats import binom

    ends = binom.ppf(_BEYOND, n, discordance), binom.isf(_BEYOND, n, discordance)
    discordant = np.arange(max(0, int(ends[0])), int(ends[1]) + 1)
    fewest = _critical(n, alpha)[discordant]
    share = (1 + difference / discordance) / 2
    rejected = binom.cdf(fewest, discordant, share) + binom.sf(discordant - fewest - 1, discordant, share)
    return float(binom.pmf(discordant, n, discordance) @ rejected)


@lru_cache(maxsize=64)
def _critical(n: int, alpha: float) -> np.ndarray:
    """For 0 to n discordant questions the largest count of one side that is rejected, -1 for none."""
    from scipy.stats import binom

    discordant = np.arange(n + 1)
    reached = binom.ppf(alpha / 2, discordant, 0.5)  # the smallest count whose tail is alpha / 2 or more
    return np.asarray(reached - (binom.cdf(reached, discordant, 0.5) > alpha / 2))


@lru_cache(maxsize=1024)
def smallest_difference(n: int, discordance: float, alpha: float = 0.05, wanted: float = 0.8) -> float | None:
    """The smallest true difference that the test finds with a given power.

    A difference takes at least as many discordant questions, so that the discordance is at least the
    difference.

    Args:
        n: number of questions.
        discordance: share of discordant questions, as observed.
        alpha: level of the test; under Holm's correction the strictest is alpha over the number of tests.
        wanted: the power.

    Returns:
        The difference as a fraction; None if the set is too small to show even a difference of 1.
    """

    def found(difference: float) -> bool:
        return power(n, difference, max(discordance, difference), alpha) >= wanted

    if not found(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high
