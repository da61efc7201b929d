"""Intervals and tests: bootstrap, Wilson, the paired randomisation test, and Holm's correction."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

_CHUNK = 4_000_000  # numbers held at once


class Interval(NamedTuple):
    """Lower and upper end."""

    low: float
    high: float


def resampled_sums(values: np.ndarray, resamples: int, seed: int | Sequence[int]) -> np.ndarray:
    """Sums over bootstrap resamples of rows (Efron and Tibshirani 1993, chapter 6).

    Every resample draws as many rows as there are, with replacement; equal seeds and numbers of rows draw
    the same rows, so that what is compared on the same rows is resampled in pairs.

    Args:
        values: shape (rows,) or (rows, columns); at least one row.
        resamples: number of resamples.
        seed: of the drawing.

    Returns:
        Shape (resamples,) or (resamples, columns), float64.
    """
    rows = len(values)
    generator = np.random.default_rng(seed)
    counts = (
        np.stack([np.bincount(generator.integers(0, rows, rows), minlength=rows) for _ in range(size)])
        for size in _chunks(resamples, rows)
    )
    data = np.asarray(values, np.float64)
    return np.concatenate([chunk.astype(np.float64) @ data for chunk in counts])


def flipped_means(differences: np.ndarray, resamples: int, seed: int | Sequence[int]) -> np.ndarray:
    """Means of paired differences whose signs are random: their distribution if the pairs are exchangeable.

    It is what the randomisation test compares an observed mean with (Smucker et al. 2007, section 2.1). The
    signs of all columns are the same, so the values of several systems may be given in place of differences:
    the difference of two columns of the result is the mean of their differences under the same signs, and one
    matrix product serves all pairs.

    Args:
        differences: shape (pairs,) or (pairs, columns); at least one pair.
        resamples: number of random assignments.
        seed: of the assignments; equal seeds and numbers of pairs give equal signs.

    Returns:
        Shape (resamples,) or (resamples, columns), float64.
    """
    pairs = len(differences)
    generator = np.random.default_rng(seed)
    words = -(-pairs // 64)  # a bit for each pair, from whole words of the generator
    data = np.asarray(differences, np.float64)
    sums = []
    for size in _chunks(resamples, pairs):
        bits = np.frombuffer(generator.bytes(8 * size * words), np.uint8).reshape(size, 8 * words)
        positive = np.unpackbits(bits, axis=1, count=pairs).astype(np.float64)
        sums.append(2 * (positive @ data) - data.sum(axis=0))
    return np.asarray(np.concatenate(sums) / pairs)


def interval(samples: np.ndarray, level: float = 0.95) -> Interval:
    """The percentile interval of resampled values (Efron and Tibshirani 1993, chapter 13)."""
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def wilson(count: int, total: int, level: float = 0.95) -> Interval:
    """The score interval of a share (Wilson 1927), without continuity correction; ``total`` is at least 1."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(level, method="wilson")
    return Interval(float(found.low), float(found.high))


def p_value(observed: float, null: np.ndarray) -> float:
    """Two-sided p of an observed value among values under the null hypothesis, itself counted as one.

    With n values it is at least 1 / (n + 1).
    """
    extreme = np.count_nonzero(np.abs(null) >= abs(observed) - 1e-12)
    return (int(extreme) + 1) / (len(null) + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for their number, in the order given (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, largest = [0.0] * len(order), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def _chunks(resamples: int, rows: int) -> Iterator[int]:
    """Sizes of parts of the resamples, so that a part times ``rows`` is a bounded number of values."""
    size = max(1, _CHUNK // rows)
    for start in range(0, resamples, size):
        yield min(size, resamples - start)
