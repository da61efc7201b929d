"""Resampling, where statistics is known in closed form."""

import itertools

import numpy as np
import pytest

from beirnl.evaluation.uncertainty import resampling
from beirnl.evaluation.uncertainty.resampling import flipped_means, holm, interval, p_value, resampled_sums


def test_resamples_have_as_many_rows_as_there_are():
    sums = resampled_sums(np.ones((13, 2)), 40, 7)
    assert sums.shape == (40, 2)
    assert (sums == 13).all()


def test_columns_are_resampled_together_and_equal_seeds_draw_equal_rows():
    values = np.random.default_rng(0).random(50)
    both = resampled_sums(np.stack([values, 3 * values], axis=1), 30, 7)
    assert both[:, 1] == pytest.approx(3 * both[:, 0])
    assert resampled_sums(values, 30, 7) == pytest.approx(both[:, 0])
    assert not np.allclose(resampled_sums(values, 30, 8), both[:, 0])


def test_how_many_are_held_at_once_changes_nothing(monkeypatch):
    values = np.random.default_rng(0).random(50)
    sums, means = resampled_sums(values, 33, 7), flipped_means(values, 33, 7)
    monkeypatch.setattr(resampling, "_CHUNK", 200)
    assert resampled_sums(values, 33, 7) == pytest.approx(sums)
    assert len(flipped_means(values, 33, 7)) == len(means)


def test_the_spread_of_resampled_means_is_the_standard_error():
    values = np.random.default_rng(3).normal(0.5, 0.2, 400)
    means = resampled_sums(values, 4000, 7) / 400
    assert means.std() == pytest.approx(values.std() / 20, rel=0.05)
    low, high = interval(means)
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.06)


def test_the_randomisation_test_has_the_p_of_all_assignments():
    differences = np.array([0.3, 0.1, 0.2, -0.05, 0.4, 0.15, 0.0, 0.25])
    exact = [abs(np.dot(signs, differences)) for signs in itertools.product((-1, 1), repeat=8)]
    share = np.mean(np.array(exact) >= differences.sum() - 1e-12)
    found = p_value(differences.mean(), flipped_means(differences, 20_000, 7))
    assert found == pytest.approx(share, abs=0.005)


def test_p_is_never_zero_and_one_without_a_difference():
    assert p_value(5.0, np.zeros(999)) == 1 / 1000
    assert p_value(0.0, flipped_means(np.zeros(5), 99, 7)) == 1


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
