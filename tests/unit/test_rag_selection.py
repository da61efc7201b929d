"""Accuracies, tests and choices from simulated replies, beside scipy and what was put into the simulation."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from rag_replies import build, question_frame, reply_frame, simulated
from scipy.stats import binomtest

from beirnl.errors import DataError
from beirnl.evaluation.uncertainty import Resampling
from beirnl.evaluation.uncertainty.mcnemar import power
from beirnl.evaluation.uncertainty.resampling import holm
from beirnl.rag.marks import Setup, accuracies, answerable, marks
from beirnl.rag.selection import best_k, choose, compare, confirm, halves

SETTINGS = Resampling(bootstrap=200, randomisation=2000)


def test_accuracy_is_the_share_of_right_answers_with_wilsons_interval():
    right = simulated()
    found = accuracies(build(right), SETTINGS)
    assert next(iter(found)) == Setup("llm", "", 0) and len(found) == 7
    for setup, estimate in found.items():
        count = int(right[tuple(setup)].sum())
        peer = binomtest(count, 120).proportion_ci(0.95, "wilson")
        assert tuple(estimate) == pytest.approx((count / 120, peer.low, peer.high, 120, 120))


def test_pairs_are_tested_by_mcnemar_and_corrected_over_all_of_them():
    right = simulated()
    made = build(right)
    setups = [Setup("llm", name, 5) for name in ("MiniLM", "E5", "ColBERT")]
    pairs = list(combinations(setups, 2))
    found = compare(made, pairs, SETTINGS)
    raw = []
    for a, b in pairs:
        wins = int(((right[tuple(a)] == 1) & (right[tuple(b)] == 0)).sum())
        losses = int(((right[tuple(a)] == 0) & (right[tuple(b)] == 1)).sum())
        raw.append((wins, losses, binomtest(wins, wins + losses).pvalue))
    assert [(c.wins, c.losses, c.p) for c in found] == [pytest.approx(row, rel=1e-9) for row in raw]
    assert [c.p_holm for c in found] == pytest.approx(holm([p for _, _, p in raw]))
    assert all(c.low <= c.difference <= c.high and c.wins + c.losses + c.ties == 120 for c in found)


@pytest.mark.slow
@pytest.mark.parametrize("difference", [0.03, 0.0])
def test_simulated_answers_are_told_apart_as_often_as_enumeration_says(difference):
    trials, n, discordance = 2000, 1000, 0.13
    generator = np.random.default_rng(17)
    made = build({("llm", name, 5): np.ones(n, int) for name in ("A", "B")})
    chance = [(discordance + difference) / 2, (discordance - difference) / 2, 0.6, 0.27]
    outcomes = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], float)
    told = 0
    for _ in range(trials):
        values = outcomes[generator.choice(4, n, p=chance)]
        choice = choose(made._replace(values=values), made.setups, Resampling(bootstrap=1))
        told += not choice.equals
    exact = power(n, difference, discordance)
    assert told / trials == pytest.approx(exact, abs=3 * np.sqrt(exact * (1 - exact) / trials))


def test_the_best_is_named_with_those_not_shown_to_differ():
    right = simulated(chances=(0.3, 0.86, 0.9))
    choice = choose(build(right), [Setup("llm", name, 5) for name in ("MiniLM", "E5", "ColBERT")], SETTINGS)
    assert choice.best.system in {"E5", "ColBERT"} and len(choice.comparisons) == 3
    assert {choice.best.system, *(setup.system for setup in choice.equals)} == {"E5", "ColBERT"}
    beside = choice.against_best(Setup("llm", "MiniLM", 5))
    assert beside.other == choice.best and beside.difference < 0 and beside.p_holm < 0.001
    assert beside.low <= beside.difference <= beside.high and beside.wins < beside.losses
    assert choice.against_best(choice.best) is None and 0 < beside.smallest < 0.3


@pytest.mark.parametrize("documents", [None, ["d1", "d1", "d2", "d3", "d3", "d3"] * 20])
def test_one_system_under_two_names_is_never_called_different(documents):
    right = simulated()
    right |= {("llm", "E5 again", k): right["llm", "E5", k] for k in (1, 5)}
    made = build(right, documents)
    for k in (1, 5):
        (found,) = compare(made, [(Setup("llm", "E5", k), Setup("llm", "E5 again", k))], SETTINGS)
        assert (found.difference, found.low, found.high, found.p, found.ties) == (0, 0, 0, 1, 120)
        choice = choose(made, [s for s in made.setups if s.k == k], SETTINGS)
        twins = {setup.system for setup in (choice.best, *choice.equals)} & {"E5", "E5 again"}
        assert len(twins) in (0, 2)


def test_rotations_are_averaged_within_the_question_and_documents_resampled():
    generator = np.random.default_rng(1)
    n = 90
    right = {("llm", s, 5): generator.binomial(2, p, n) for s, p in (("E5", 0.7), ("USE", 0.4))}
    documents = [f"d{at // 3}" for at in range(n)]
    made = build(right, documents, permutations=2)
    assert not made.plain and set(np.unique(made.values)) == {0.0, 0.5, 1.0}
    estimate = accuracies(made, Resampling(bootstrap=4000))[Setup("llm", "E5", 5)]
    assert estimate.value == right["llm", "E5", 5].mean() / 2
    error = (right["llm", "E5", 5].reshape(30, 3).mean(axis=1) / 2).std() / np.sqrt(
        30
    )  # of 30 equal clusters
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * error, rel=0.06)
    (found,) = compare(made, [(Setup("llm", "E5", 5), Setup("llm", "USE", 5))], SETTINGS)
    assert found.p == pytest.approx(1 / 2001, rel=1.1) and found.p_holm == found.p and found.smallest < 0.3


def test_documents_in_copies_do_not_add_evidence():
    """Ten questions on each of eight documents with one result each: eight observations, not eighty."""
    right = {
        ("llm", "A", 1): np.repeat([1, 1, 1, 1, 1, 1, 0, 0], 10),
        ("llm", "B", 1): np.repeat([0, 0, 0, 0, 1, 1, 0, 0], 10),
    }
    pair = [(Setup("llm", "A", 1), Setup("llm", "B", 1))]
    (apart,) = compare(build(right), pair, SETTINGS)
    (together,) = compare(build(right, list(np.repeat(list("abcdefgh"), 10))), pair, SETTINGS)
    assert apart.p < 1e-9
    assert together.p == pytest.approx(2 / 16, abs=0.03)  # four documents of one sign: 2 of 16 assignments


def test_llms_and_systems_are_compared_in_pairs():
    right = {
        ("large", "USE", 5): np.repeat([1, 0], [40, 60]),
        ("small", "E5", 5): np.repeat([1, 0], [80, 20]),
    }
    choice = choose(build(right), [Setup("large", "USE", 5), Setup("small", "E5", 5)], SETTINGS)
    assert choice.best == Setup("small", "E5", 5) and not choice.equals
    assert choice.comparisons[0].difference == pytest.approx(0.4)


def test_a_system_that_lacks_answers_is_not_compared():
    right = simulated() | {("llm", "cut short", 5): np.ones(50, int)}
    made = build(right)
    estimate = accuracies(made, SETTINGS)[Setup("llm", "cut short", 5)]
    assert (estimate.value, estimate.questions, estimate.of, estimate.complete) == (1.0, 50, 120, False)
    choice = choose(made, [s for s in made.setups if s.k == 5], SETTINGS)
    assert len(choice.comparisons) == 3 and choice.best.system == "ColBERT"
    assert choose(made, [Setup("llm", "cut short", 5)], SETTINGS) is None


def test_the_best_k_is_the_smallest_of_equal_ones():
    right = {("llm", "", 0): [1, 0, 0, 0], ("llm", "E5", 1): [1, 1, 1, 0], ("llm", "E5", 5): [1, 1, 0, 1]}
    found = best_k(accuracies(build({key: np.array(v) for key, v in right.items()}), SETTINGS), "llm")
    assert found == {"": Setup("llm", "", 0), "E5": Setup("llm", "E5", 1)}


def test_halves_keep_documents_together_and_follow_the_seed():
    made = build(simulated(), [f"d{at // 4}" for at in range(120)])
    first, held = halves(made, 7)
    assert sorted([*first.questions, *held.questions]) == sorted(made.questions)
    assert len({int(q[1:]) // 4 for q in first.questions} & {int(q[1:]) // 4 for q in held.questions}) == 0
    assert len(first.questions) == 60 and first.questions == halves(made, 7)[0].questions
    assert first.questions != halves(made, 8)[0].questions


def test_a_held_out_half_takes_the_flattery_out_of_a_choice():
    """Ten systems that all guess: the best of one half is above chance there, and at chance elsewhere."""
    made = build({("llm", f"s{at}", 1): np.zeros(200, int) for at in range(10)})
    firsts, helds = [], []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        made = made._replace(values=(generator.random((200, 10)) < 0.5).astype(float))
        found = confirm(made, "llm", Resampling(seed=seed, bootstrap=20))
        firsts.append(found.first.value)
        helds.append(found.held.value)
        assert len(found.comparisons) == 9 and found.held.of == 100
    assert np.mean(firsts) > 0.55
    assert np.mean(helds) == pytest.approx(0.5, abs=4 * 0.05 / np.sqrt(12))


def test_no_confirmation_of_one_system_or_one_document():
    right = {("llm", "E5", 1): np.array([1, 0, 1, 1])}
    assert confirm(build(right), "llm", SETTINGS) is None
    right["llm", "USE", 1] = np.array([1, 0, 0, 1])
    assert confirm(build(right, ["d"] * 4), "llm", SETTINGS) is None


def test_questions_that_most_llms_answer_without_passages():
    right = {
        ("a", "", 0): np.array([1, 1, 0, 1]),
        ("b", "", 0): np.array([1, 0, 0, 1]),
        ("c", "", 0): np.array([1, 0, 1, 0]),
        ("c", "E5", 5): np.array([1, 1, 1, 1]),
    }
    made = build(right)
    assert answerable(made).tolist() == [True, False, False, True]
    assert answerable(made, ["a"]).tolist() == [True, True, False, True]
    rest = made.only(~answerable(made))
    assert rest.questions == ["q1", "q2"] and accuracies(rest, SETTINGS)[Setup("a", "", 0)].value == 0.5


def test_most_are_more_than_half_of_the_llms_and_an_llm_is_right_in_more_than_half_of_the_rotations():
    """Of three rotations two are enough, of two one is not; who was not asked has no voice."""
    right = {
        ("a", "", 0): np.array([2, 3, 1, 3, 2]),
        ("b", "", 0): np.array([3, 1, 1, 0, 2]),
        ("c", "", 0): np.array([2, 2, 3, 1, 1]),
        ("c", "E5", 1): np.array([3, 3, 3, 3, 3]),
    }
    asked = question_frame([f"d{at}" for at in range(6)])  # the last one was not asked at all
    replies = reply_frame(right, permutations=3).with_columns(pl.col("answer").replace(3, -1))
    assert answerable(marks(asked, replies)).tolist() == [True, True, False, False, True, False]
    alone = replies.filter((pl.col("llm") != "c") | (pl.col("question_id") != "q1"))
    assert answerable(marks(asked, alone)).tolist() == [True, False, False, False, True, False]
    assert not answerable(marks(asked, replies.filter(pl.col("k") > 0))).any()


def test_questions_of_fewer_options_have_fewer_rotations_and_are_whole():
    asked = question_frame(["a", "b"]).with_columns(
        options=pl.Series([["a", "b"], ["a", "b", "c", "d"]]), answer=pl.lit(0, pl.Int8)
    )
    replies = reply_frame({("llm", "E5", 1): [2, 2]}, permutations=4).with_columns(
        answer=pl.when(pl.col("permutation") % 2 == 0).then(0).otherwise(1).cast(pl.Int8)
    )
    replies = replies.filter((pl.col("question_id") == "q1") | pl.col("permutation").is_in([0, 1]))
    assert marks(asked, replies).values.tolist() == [[0.5], [0.5]]
    missing = replies.filter((pl.col("question_id") == "q1") | (pl.col("permutation") == 0))
    missing = pl.concat(
        [missing, replies.filter(pl.col("question_id") == "q0").with_columns(k=pl.lit(2, pl.Int32))]
    )
    assert np.isnan(marks(asked, missing).values).tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question_id": "q9"}, "a question that is not there"),
        ({"answer": 4}, "an option that the question has not"),
        ({"answer": -2}, "an option that the question has not"),
        ({"system": ""}, "needs a system where k > 0"),
        ({"k": 0}, "needs a system where k > 0"),
        ({"question_id": "q1"}, "two replies"),
    ],
)
def test_replies_that_cannot_be_are_refused(change, said):
    replies = reply_frame({("llm", "E5", 1): [1, 0]})
    wrong = pl.concat(
        [
            replies.head(1).with_columns(**{k: pl.lit(v) for k, v in change.items()}).cast(replies.schema),
            replies.tail(1),
        ]
    )
    with pytest.raises(DataError, match=said):
        marks(question_frame(["a", "b"]), wrong)
