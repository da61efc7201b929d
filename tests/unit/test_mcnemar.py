"""The exact McNemar test beside scipy's binomial test, full enumeration, and simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest

from beirnl.evaluation.uncertainty import mcnemar


def test_p_values_are_those_of_the_binomial_test():
    pairs = [(0, 0), (0, 1), (5, 0), (3, 3), (8, 2), (2, 8), (40, 61), (500, 430)]
    found = mcnemar.p_values(*np.transpose(pairs))
    peer = [binomtest(wins, wins + losses).pvalue if wins + losses else 1.0 for wins, losses in pairs]
    assert found == pytest.approx(peer, rel=1e-12)


@pytest.mark.parametrize(
    ("difference", "discordance", "alpha"), [(0.2, 0.5, 0.05), (0.0, 0.6, 0.2), (1, 1, 0.05)]
)
def test_power_is_the_sum_over_all_outcomes(difference, discordance, alpha):
    n, chance = 9, [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    whole = 0.0
    for wins, losses in itertools.product(range(n + 1), repeat=2):
        if wins + losses <= n and binomtest(wins, max(1, wins + losses)).pvalue <= alpha and wins + losses:
            ways = math.comb(n, wins) * math.comb(n - wins, losses)
            whole += ways * chance[0] ** wins * chance[1] ** losses * chance[2] ** (n - wins - losses)
    assert mcnemar.power(n, difference, discordance, alpha) == pytest.approx(whole, rel=1e-10)


@pytest.mark.parametrize(("difference", "about"), [(0.03, 0.73), (0.0, 0.04)])
def test_simulated_trials_reject_as_often_as_enumeration_says(difference, about):
    trials, n, discordance = 2000, 1000, 0.13
    generator = np.random.default_rng(11)
    chance = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    wins, losses, _ = generator.multinomial(n, chance, trials).T
    rate = np.mean(mcnemar.p_values(wins, losses) <= 0.05)
    exact = mcnemar.power(n, difference, discordance)
    assert exact == pytest.approx(about, abs=0.01)
    assert rate == pytest.approx(exact, abs=3 * math.sqrt(exact * (1 - exact) / trials))


def test_the_smallest_difference_has_the_power_and_less_has_not():
    least = mcnemar.smallest_difference(1000, 0.13)
    assert mcnemar.power(1000, least, 0.13) == pytest.approx(0.8, abs=1e-7)
    assert mcnemar.power(1000, least - 0.001, 0.13) < 0.8
    stricter = mcnemar.smallest_difference(1000, 0.13, alpha=0.05 / 10)
    assert stricter > least
    few = mcnemar.smallest_difference(40, 0.0)  # nothing discordant was seen: as much as the difference takes
    assert mcnemar.power(40, few, few) == pytest.approx(0.8, abs=1e-7)
    assert mcnemar.smallest_difference(5, 0.5) is None  # five of five is p = 0.06


@pytest.mark.parametrize("wrong", [(0.2, 0.1, 0.05), (0.0, 0.0, 0.05), (0.1, 0.2, 1.0), (-0.1, 0.2, 0.05)])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="difference <= discordance"):
        mcnemar.power(10, *wrong)
