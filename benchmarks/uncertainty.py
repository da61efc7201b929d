"""Time of intervals and tests: 16 systems, all 120 pairs, 1,000 bootstrap samples, 20,000 sign flips.

    python benchmarks/uncertainty.py [--queries 6600] [--systems 16]

On one thread. The peer is scipy: ``stats.bootstrap`` of one system and ``stats.permutation_test`` of one pair
with a twentieth of the sign flips, in turn with the project, whose time is for everything. What scipy takes
is multiplied up to all systems, pairs and flips.
"""

import argparse
import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["POLARS_MAX_THREADS"] = "1"

import statistics
import time
from itertools import combinations

import numpy as np
import polars as pl
from scipy import stats

from beirnl.evaluation.uncertainty import Resampling, Uncertainty

TURNS = 3
SHARE = 20
SETTINGS = Resampling()
PLACE = ("fever", "nl")


def made(queries: int, systems: int) -> pl.DataFrame:
    """Values of systems that differ a little on queries that differ much."""
    generator = np.random.default_rng(7)
    base = generator.beta(0.6, 0.5, queries)
    values = np.clip(
        base[:, None] + generator.normal(0.002 * np.arange(systems), 0.2, (queries, systems)), 0, 1
    )
    return pl.DataFrame(
        {
            "dataset": PLACE[0],
            "language": PLACE[1],
            "system": np.repeat([f"s{number:02}" for number in range(systems)], queries),
            "query_id": [str(number) for number in range(queries)] * systems,
            "measure": "nDCG@10",
            "value": values.T.ravel(),
        }
    )


def project(scores: pl.DataFrame) -> list:
    """Everything: intervals of all systems, tests against the best, and all pairs."""
    found = Uncertainty(scores, SETTINGS)
    return [found.column("nDCG@10", [PLACE]), found.pairs("nDCG@10", [PLACE])]


def difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    """Mean difference of paired values along an axis: the statistic of the test."""
    return np.mean(a - b, axis=axis)


def scipy_interval(values: np.ndarray) -> None:
    """One system's percentile interval by scipy; values [queries]."""
    stats.bootstrap((values,), np.mean, n_resamples=SETTINGS.bootstrap, method="percentile", batch=100)


def scipy_test(a: np.ndarray, b: np.ndarray) -> float:
    """P of one pair by scipy's permutation test, one in ``SHARE`` of the signs drawn; values [queries]."""
    found = stats.permutation_test(
        (a, b),
        difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=SETTINGS.randomisation // SHARE,
        batch=500,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def seconds(work) -> tuple[float, object]:
    """CPU seconds of a piece of work, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main() -> None:
    """Project and scipy in turn; prints medians, their ratio and the conditions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=6600)
    parser.add_argument("--systems", type=int, default=16)
    told = parser.parse_args()
    scores = made(told.queries, told.systems)
    names = sorted(scores["system"].unique())
    values = {name: scores.filter(system=name)["value"].to_numpy() for name in names}
    pairs = list(combinations(names, 2))
    a, b = pairs[0]
    ours, intervals, tests = [], [], []
    for _ in range(TURNS):
        spent, result = seconds(lambda: project(scores))
        ours.append(spent)
        intervals.append(seconds(lambda: scipy_interval(values[names[0]]))[0])
        spent, p = seconds(lambda: scipy_test(values[a], values[b]))
        tests.append(spent * SHARE)
        [own] = [one.p for one in result[1] if {one.system, one.other} == {a, b}]
        assert abs(own - p) < 0.08, (own, p)
    mine = statistics.median(ours)
    peer = statistics.median(intervals) * len(names) + statistics.median(tests) * len(pairs)
    print(
        f"{told.queries:,} queries, {len(names)} systems, {len(pairs)} pairs, {SETTINGS.bootstrap:,} "
        f"resamples, {SETTINGS.randomisation:,} sign flips; medians of {TURNS}, CPU seconds on one thread, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    print(f"beirnl, everything              {mine:8.2f} s  ({', '.join(f'{one:.2f}' for one in ours)})")
    print(f"scipy, multiplied up            {peer:8.0f} s  ({statistics.median(tests):.2f} a pair)")
    print(f"ratio                           {peer / mine:8.0f}")


if __name__ == "__main__":
    main()
