"""Agreement of two question sets beside an example by hand, numpy, and what algebra says."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from beirnl.evaluation.uncertainty import Resampling
from beirnl.rag.agreement import NORMALISATIONS, agreement, pearson
from beirnl.rag.marks import Marks, Setup

#: Accuracies in tenths, 3 systems by 7 k.
MANUAL = [[2, 4, 5, 6, 6, 7, 8], [2, 5, 6, 7, 8, 8, 9], [2, 3, 3, 4, 5, 5, 6]]
GENERATED = [[3, 5, 6, 6, 7, 8, 9], [3, 6, 8, 8, 9, 9, 10], [3, 3, 4, 5, 5, 7, 6]]


def by_hand(a, b):
    """Pearson's r with exact sums: n Sxy - Sx Sy over the root of the product of n Sxx - Sx² and its like."""
    x, y = [v for row in a for v in row], [v for row in b for v in row]
    n, product = len(x), sum(p * q for p, q in zip(x, y, strict=True))
    top = n * product - sum(x) * sum(y)
    below = [n * sum(v * v for v in s) - sum(s) ** 2 for s in (x, y)]
    return float(top) / sqrt(below[0] * below[1])


def per_row(matrix):
    return [[Fraction(v - min(row), max(row) - min(row)) for v in row] for row in matrix]


def centred(matrix):
    rows = [Fraction(sum(row), len(row)) for row in matrix]
    columns = [Fraction(sum(column), len(matrix)) for column in zip(*matrix, strict=True)]
    whole = sum(rows) / len(rows)
    return [
        [v - r - c + whole for v, c in zip(row, columns, strict=True)]
        for row, r in zip(matrix, rows, strict=True)
    ]


def transposed(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


def test_every_normalisation_is_the_one_by_hand():
    a, b = np.array(MANUAL) / 10, np.array(GENERATED) / 10
    found = {name: float(pearson(scale(a), scale(b))) for name, scale in NORMALISATIONS.items()}
    # Sums by hand: n = 21, Sx = 111, Sy = 130, Sxx = 677, Syy = 904, Sxy = 779.
    raw = (21 * 779 - 111 * 130) / sqrt((21 * 677 - 111**2) * (21 * 904 - 130**2))
    assert raw == pytest.approx(by_hand(MANUAL, GENERATED), abs=1e-15)
    rows, matrix = by_hand(per_row(MANUAL), per_row(GENERATED)), raw
    defined = [
        m[1:] for m in (transposed(MANUAL), transposed(GENERATED))
    ]  # k = 0 is one number for all systems
    columns = by_hand(*map(per_row, defined))
    both = by_hand(centred(MANUAL), centred(GENERATED))
    assert list(found.values()) == pytest.approx([raw, rows, matrix, columns, both], abs=1e-12)


def test_scaling_the_whole_matrix_cannot_change_r():
    generator = np.random.default_rng(5)
    a, b = generator.random((2, 50, 4, 7))
    scale = NORMALISATIONS["min-max of the matrix"]
    assert pearson(scale(a), scale(b)) == pytest.approx(pearson(a, b), abs=1e-12)
    assert pearson(a, b)[0] == pytest.approx(np.corrcoef(a[0].ravel(), b[0].ravel())[0, 1], abs=1e-12)


def test_a_constant_row_is_undefined_and_not_zero():
    a = np.array([[0.5, 0.5, 0.5], [0.1, 0.4, 0.9]])
    b = np.array([[0.2, 0.3, 0.4], [0.2, 0.6, 0.7]])
    scaled = NORMALISATIONS["min-max per row"](a)
    assert np.isnan(scaled[0]).all() and scaled[1] == pytest.approx([0, 0.375, 1])
    assert pearson(scaled, NORMALISATIONS["min-max per row"](b)) == pytest.approx(
        np.corrcoef([0, 0.375, 1], [0, 0.8, 1])[0, 1]
    )
    assert np.isnan(pearson(np.full((2, 3), 0.5), b))
    assert np.isnan(pearson(NORMALISATIONS["min-max of the matrix"](np.full((2, 3), 0.5)), b))
    assert np.isnan(pearson(NORMALISATIONS["double-centred"](np.array([[0.1, 0.2], [0.3, 0.4]])), b[:, :2]))


def simulated(seed, questions, systems=("BM25", "E5", "USE"), ks=(0, 1, 5)):
    """Marks of an LLM whose accuracy depends on system and k; k = 0 is one column."""
    generator = np.random.default_rng(seed)
    setups = [Setup("llm", "", 0)] + [Setup("llm", s, k) for s in systems for k in ks if k]
    chances = [0.3] + [0.4 + 0.1 * at + 0.03 * k for at in range(len(systems)) for k in ks if k]
    values = (generator.random((questions, len(setups))) < chances).astype(float)
    return Marks([f"q{at}" for at in range(questions)], np.arange(questions), setups, values)


def test_sets_are_compared_with_and_without_k_0_and_with_intervals():
    manual, generated = simulated(1, 300), simulated(2, 500)
    found = agreement(manual, generated, "llm", Resampling(bootstrap=200))
    assert found.systems == ["BM25", "E5", "USE"] and found.ks == [0, 1, 5] and found.questions == (300, 500)
    assert found.manual[:, 0] == pytest.approx(manual.values[:, 0].mean())
    assert [c.with_bare for c in found.correlations] == [True] * 5 + [False] * 5
    by_name = {(c.normalisation, c.with_bare): c for c in found.correlations}
    raw = by_name["raw", True]
    assert raw.r == pytest.approx(np.corrcoef(found.manual.ravel(), found.generated.ravel())[0, 1])
    assert raw.low < raw.r <= 1 and raw.high > 0.9 and raw.entries == 9
    column = by_name["min-max per column", True]
    assert (column.undefined, column.entries) == (3, 6)
    assert by_name["min-max per column", False].r == pytest.approx(column.r)
    assert by_name["min-max of the matrix", False].r == pytest.approx(by_name["raw", False].r, abs=1e-12)
    assert agreement(manual, generated, "llm", Resampling(bootstrap=200)).correlations == found.correlations


def test_the_interval_is_as_wide_as_r_varies_between_sets():
    rs = []
    for seed in range(300):
        sets = simulated(2 * seed, 200), simulated(2 * seed + 1, 200)
        a, b = (one.values[:, 1:].mean(axis=0).reshape(3, 2) for one in sets)
        rs.append(float(pearson(a, b)))
    widths = []
    for seed in range(8):
        sets = simulated(1000 + seed, 200), simulated(2000 + seed, 200)
        found = agreement(*sets, "llm", Resampling(bootstrap=200)).correlations[5]
        assert (found.normalisation, found.with_bare) == ("raw", False) and found.low < found.r < found.high
        widths.append(np.arctanh(found.high) - np.arctanh(found.low))
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.arctanh(rs).std(), rel=0.3)


def test_sets_without_two_systems_in_common_do_not_agree_on_anything():
    assert agreement(simulated(1, 9), simulated(2, 9, systems=("E5", "M3")), "llm", Resampling()) is None
    assert agreement(simulated(1, 9), simulated(2, 9), "other", Resampling()) is None
