"""Intervals and tests of scores, beside scipy, exact enumeration, and what the null hypothesis says."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beirnl.evaluation.records import Conditions, Record
from beirnl.evaluation.uncertainty import Resampling, Uncertainty, stated
from beirnl.evaluation.uncertainty.resampling import holm

HERE = ("scifact", "nl")


def frame_of(values, dataset="scifact", part="", measure="nDCG@10", language="nl"):
    """Scores of systems by name: one value per query."""
    return pl.concat(
        pl.DataFrame(
            {
                "dataset": dataset,
                "language": language,
                "part": part,
                "system": system,
                "query_id": [f"{part}q{at}" for at in range(len(column))],
                "measure": measure,
                "value": np.asarray(column, np.float64),
            }
        )
        for system, column in values.items()
    )


@pytest.fixture(scope="module")
def systems():
    generator = np.random.default_rng(3)
    base = generator.random(60)
    return {
        "best": np.clip(base + 0.08, 0, 1),
        "close": np.clip(base + 0.07 + generator.normal(0, 0.2, 60), 0, 1),
        "worse": np.clip(base - 0.1 + generator.normal(0, 0.1, 60), 0, 1),
    }


def test_values_intervals_and_p_values_are_those_of_scipy(systems):
    found = Uncertainty(frame_of(systems), Resampling(bootstrap=9999)).column("nDCG@10", [HERE])
    assert max(found, key=lambda name: found[name].value) == "best"
    for name, values in systems.items():
        peer = stats.bootstrap(
            (values,), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(0)
        ).confidence_interval
        width = peer.high - peer.low
        assert found[name].value == pytest.approx(values.mean())
        assert (found[name].low, found[name].high) == pytest.approx((peer.low, peer.high), abs=width / 20)
    for name in ("close", "worse"):
        peer = stats.permutation_test(
            (systems[name], systems["best"]),
            lambda a, b, axis: (a - b).mean(axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=20_000,
            rng=np.random.default_rng(0),
        )
        error = 4 * np.sqrt(peer.pvalue * (1 - peer.pvalue) / 20_000) + 1e-4
        assert found[name].against_best.p == pytest.approx(peer.pvalue, abs=2 * error)


def test_p_values_are_those_of_all_assignments_of_signs():
    generator = np.random.default_rng(1)
    columns = {name: generator.choice([0.0, 0.5, 1.0], 10) for name in "abc"}
    for one in Uncertainty(frame_of(columns)).pairs("nDCG@10", [HERE]):
        difference = columns[one.system] - columns[one.other]
        means = np.array([np.dot(signs, difference) for signs in itertools.product((-1, 1), repeat=10)])
        exact = np.mean(np.abs(means) >= abs(difference.sum()) - 1e-9)
        assert one.p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)
        assert one.difference == pytest.approx(difference.mean())


def test_wins_losses_and_ties_are_counted_by_query():
    columns = {"A": [1.0, 0.5, 0.5, 0.0], "B": [0.0, 0.5, 0.4, 0.9]}
    [pair] = Uncertainty(frame_of(columns)).pairs("nDCG@10", [HERE])
    assert (pair.system, pair.other, pair.wins, pair.losses, pair.ties) == ("A", "B", 2, 1, 1)


def test_the_family_is_the_column_or_all_its_pairs(systems):
    found = Uncertainty(frame_of({**systems, "fourth": systems["worse"][::-1]}))
    against = [one.against_best for one in found.column("nDCG@10", [HERE]).values() if one.against_best]
    assert len(against) == 3
    assert [one.p_holm for one in against] == holm([one.p for one in against])
    pairs = found.pairs("nDCG@10", [HERE])
    assert len(pairs) == 6
    assert [one.p_holm for one in pairs] == holm([one.p for one in pairs])
    assert all(one.difference >= 0 for one in pairs)


def test_what_is_not_significantly_below_the_best_says_so(systems):
    found = Uncertainty(frame_of(systems)).column("nDCG@10", [HERE])
    assert {name: one.not_below_best for name, one in found.items()} == {
        "best": None,
        "close": True,
        "worse": False,
    }
    assert found["best"].against_best is None
    strict = Uncertainty(frame_of(systems), Resampling(alpha=0.999)).column("nDCG@10", [HERE])
    assert not strict["close"].not_below_best


def test_false_alarms_are_as_many_as_alpha_allows():
    """400 columns of four systems that are exchangeable: one in twenty has a corrected p of .05 or less."""
    generator = np.random.default_rng(11)
    alarms = 0
    for _ in range(400):
        columns = {name: generator.random(30) for name in "abcd"}
        pairs = Uncertainty(frame_of(columns), Resampling(bootstrap=1, randomisation=999)).pairs(
            "nDCG@10", [HERE]
        )
        alarms += any(one.p_holm <= 0.05 for one in pairs)
    assert stats.binom.cdf(alarms, 400, 0.05) < 0.999
    assert alarms > 0


def test_p_values_of_one_pair_are_uniform_under_the_null_hypothesis():
    generator = np.random.default_rng(5)
    found = []
    for _ in range(300):
        columns = {name: generator.random(25) for name in "ab"}
        [pair] = Uncertainty(frame_of(columns), Resampling(bootstrap=1, randomisation=499)).pairs(
            "nDCG@10", [HERE]
        )
        found.append(pair.p)
    assert stats.kstest(found, "uniform").pvalue > 0.01


def parts(generator, sizes, names="ab"):
    return {part: {name: generator.random(size) for name in names} for part, size in sizes.items()}


def test_parts_and_datasets_weigh_the_same_and_are_resampled_inside():
    generator = np.random.default_rng(2)
    forums = parts(generator, {"android": 4, "physics": 200})
    other = {name: generator.random(50) for name in "ab"}
    scores = pl.concat([frame_of(v, "cqadupstack", part) for part, v in forums.items()] + [frame_of(other)])
    settings = Resampling(bootstrap=4000)
    found = Uncertainty(scores, settings).column("nDCG@10", [("cqadupstack", "nl"), HERE])
    for name in "ab":
        means = [forums["android"][name].mean(), forums["physics"][name].mean()]
        assert found[name].value == pytest.approx((np.mean(means) + other[name].mean()) / 2)
        errors = [v[name].std() / np.sqrt(len(v[name])) for v in (*forums.values(), other)]
        spread = np.sqrt((errors[0] / 4) ** 2 + (errors[1] / 4) ** 2 + (errors[2] / 2) ** 2)
        assert found[name].high - found[name].low == pytest.approx(2 * 1.96 * spread, rel=0.1)
    [test] = [one.against_best for one in found.values() if one.against_best]
    assert test.wins + test.losses + test.ties == 4 + 200 + 50


def test_the_test_over_datasets_is_stratified_too():
    """Signs are flipped query by query, each with its weight in the mean: all assignments, by hand."""
    generator = np.random.default_rng(8)
    one, two = ({name: generator.random(size) for name in "ab"} for size in (3, 7))
    scores = pl.concat([frame_of(one, "small"), frame_of(two, "large")])
    [pair] = Uncertainty(scores).pairs("nDCG@10", [("large", "nl"), ("small", "nl")])
    weighted = np.concatenate([(v[pair.system] - v[pair.other]) / len(v["a"]) / 2 for v in (one, two)])
    sums = np.array([np.dot(signs, weighted) for signs in itertools.product((-1, 1), repeat=10)])
    exact = np.mean(np.abs(sums) >= abs(weighted.sum()) - 1e-12)
    assert pair.p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)


def test_order_changes_no_number_and_seeds_do(systems):
    scores = pl.concat(
        [frame_of(systems), frame_of(systems, "nfcorpus", measure="R@100"), frame_of(systems, "nq")]
    )
    places = [HERE, ("nq", "nl")]
    shuffled = scores.sample(fraction=1, shuffle=True, seed=1)
    first, second = Uncertainty(scores), Uncertainty(shuffled)
    assert first.column("nDCG@10", places) == second.column("nDCG@10", places[::-1])
    assert first.pairs("nDCG@10", places) == second.pairs("nDCG@10", places[::-1])
    other = Uncertainty(scores, Resampling(seed=8)).column("nDCG@10", places)
    assert other["close"].value == first.column("nDCG@10", places)["close"].value
    assert other["close"].low != first.column("nDCG@10", places)["close"].low


def test_a_system_without_a_value_for_every_query_or_dataset_is_left_out(systems):
    scores = frame_of(systems)
    partly = scores.filter((pl.col("system") != "close") | (pl.col("query_id") != "q5"))
    assert Uncertainty(partly).column("nDCG@10", [HERE]).keys() == {"best", "worse"}
    both = pl.concat([scores, frame_of({"best": systems["best"]}, "nq")])
    [alone] = Uncertainty(both).column("nDCG@10", [HERE, ("nq", "nl")]).values()
    assert (alone.against_best, alone.not_below_best) == (None, None)
    assert alone.low < alone.value < alone.high
    assert Uncertainty(scores).column("nDCG@10", [HERE, ("gone", "nl")]) == {}


def test_scores_without_a_column_of_parts_are_whole_datasets(systems):
    scores = frame_of(systems)
    assert Uncertainty(scores.drop("part")).column("nDCG@10", [HERE]) == Uncertainty(scores).column(
        "nDCG@10", [HERE]
    )


def test_records_state_what_was_found_and_stay_as_they_are_where_it_is_not_theirs(systems):
    conditions = Conditions(dataset_hash="h", search="bm25", self_matches="removed")
    values = {name: float(column.mean()) for name, column in systems.items()}
    records = [
        Record(
            dataset=d, language="nl", system=s, measure="nDCG@10", value=v, queries=60, conditions=conditions
        )
        for d, s, v in [
            *(("scifact", name, value) for name, value in values.items()),
            ("scifact", "close", 0.9),
            ("scifact", "worse", None),
            ("unknown", "best", 0.5),
        ]
    ]
    best, close, worse, *others = stated(records, Uncertainty(frame_of(systems)))
    assert best.low < best.value < best.high
    assert (best.p, best.wins, best.not_below_best) == (None, None, None)
    assert close.wins + close.losses + close.ties == 60
    assert (close.not_below_best, worse.not_below_best) == (True, False)
    assert worse.p <= worse.p_holm <= 0.05
    assert others == records[3:]
