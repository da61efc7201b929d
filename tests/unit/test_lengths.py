import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl.specs import CheckSpec
from beirnl.translation.lengths import BINS, LEAST_ROWS, Bounds, histogram, learn, limits, ratios


def normal(mean, deviation, rows=5000):
    return np.random.default_rng(7).normal(mean, deviation, rows)


def test_ratios_are_of_rows_that_can_teach():
    sources = [("t", "a" * 100)] * 5 + [("", "short")]
    translations = [
        ("a long title", "b" * 120),
        ("", "b" * 50),
        ("", ""),
        ("", "a" * 100),
        ("", "b"),
        ("", "b"),
    ]
    reasons = ["stop", "length", "stop", "stop", "error", "stop"]
    assert ratios(sources, translations, reasons) == pytest.approx([np.log(1.2)])
    assert ratios([], [], []).tolist() == []


def test_bounds_are_the_median_and_so_many_deviations():
    low, high, rows = learn(histogram(normal(0.1, 0.2)))
    assert rows == 5000
    assert np.log(low) == pytest.approx(0.1 - 3.5 * 0.2, abs=0.04)
    assert np.log(high) == pytest.approx(0.1 + 3.5 * 0.2, abs=0.04)


def test_bounds_are_never_narrower_than_what_good_translators_differ_by():
    low, high, _ = learn(histogram(np.full(500, 0.1)))
    assert high / low == pytest.approx(1.5**2)
    assert (low * high) ** 0.5 == pytest.approx(np.exp(0.1), rel=0.01)


def test_wrong_answers_do_not_move_the_bounds_far():
    right = learn(histogram(normal(0.1, 0.15)))
    spoilt = learn(histogram(np.append(normal(0.1, 0.15), np.full(1000, -2.5))))
    assert spoilt.low == pytest.approx(right.low, rel=0.25)
    assert spoilt.high == pytest.approx(right.high, rel=0.25)


def test_few_rows_teach_nothing():
    assert learn(histogram(normal(0, 0.1, LEAST_ROWS - 1))) is None
    assert learn(histogram(normal(0, 0.1, LEAST_ROWS))) is not None
    assert learn(np.zeros(BINS, np.int64)) is None


@given(st.lists(st.floats(-9, 9), min_size=LEAST_ROWS, max_size=300), st.randoms(), st.integers(1, 7))
def test_bounds_depend_neither_on_order_nor_on_partition(values, random, parts):
    whole = histogram(np.array(values))
    random.shuffle(values)
    pieces = [histogram(np.array(values[part::parts])) for part in range(parts)]
    assert whole.dtype == np.int64
    assert (sum(pieces) == whole).all()
    assert learn(sum(pieces)) == learn(whole)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (None, (0.4, 2.5)),
        (Bounds(0.8, 1.5, 500), (0.8, 1.5)),
        (Bounds(0.1, 10.0, 500), (0.4, 2.5)),  # no wider than the spec's
        (Bounds(0.24, 0.375, 500), (0.32, 0.5)),  # English to Chinese: 0.3 is below 0.4
        (Bounds(0.01, 0.0225, 500), (0.4 / 1.5, 0.6)),  # most answers were a few words
    ],
)
def test_learned_bounds_within_those_of_the_spec(bounds, expected):
    assert limits(bounds, CheckSpec()) == pytest.approx(expected)
