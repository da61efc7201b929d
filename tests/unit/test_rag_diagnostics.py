"""Option numbers, confidence, recall of the source document and cost, beside examples by hand."""

from math import inf, log

import numpy as np
import polars as pl
import pytest
from rag_replies import build, question_frame, reply_frame, simulated

from beirnl.evaluation.uncertainty import Resampling
from beirnl.rag.diagnostics import (
    against_cost,
    confidence,
    one_number,
    positions,
    retrieved,
    source_recall,
)
from beirnl.rag.marks import accuracies

SETTINGS = Resampling(bootstrap=100)


def test_an_llm_that_always_says_0_shows_position_bias_under_every_rotation():
    questions = question_frame([f"d{at}" for at in range(8)])
    replies = reply_frame({("always 0", "E5", 1): [0] * 8, ("right", "E5", 1): [4] * 8}, permutations=4)
    shown_first = pl.col("permutation")  # rotation r shows option r at number 0
    always = pl.when(pl.col("llm") == "always 0").then(shown_first).otherwise("answer")
    found = positions(questions, replies.with_columns(answer=always.cast(pl.Int8)))
    rows = {(llm, number): rest for llm, number, *rest in found.rows()}
    assert rows["always 0", 0] == [32, 1.0, 0.25]
    assert [rows["right", at] for at in range(4)] == [[8, 0.25, 0.25]] * 4
    assert one_number(found) == {"always 0": (0, 1.0)}


def test_invalid_answers_are_a_class_of_their_own():
    questions = question_frame(["a", "b", "c", "d"])
    replies = reply_frame({("llm", "E5", 1): [1, 1, 0, 0]})
    invalid = replies.with_columns(answer=pl.Series([0, 1, -1, -1], dtype=pl.Int8))
    found = positions(questions, invalid)
    assert found.filter(number=-1).rows() == [("llm", -1, 2, 0.5, 0.0)]
    assert found["answers"].sum() == 4 and one_number(found) == {}


def test_one_number_is_no_bias_where_it_is_always_right():
    questions = question_frame(["a", "b"]).with_columns(answer=pl.lit(2, pl.Int8))
    replies = reply_frame({("llm", "E5", 1): [1, 1]}).with_columns(answer=pl.lit(2, pl.Int8))
    assert one_number(positions(questions, replies)) == {}


def test_confidence_is_the_probability_over_the_options():
    questions = question_frame(["a", "b"])  # correct: 0 and 1
    told = [[log(0.3), log(0.1), log(0.1), log(0.1)], [log(0.2), log(0.2), log(0.2), log(0.4)]]
    replies = reply_frame({("llm", "E5", 1): [1, 0]}).with_columns(
        answer=pl.Series([0, 3], dtype=pl.Int8), logprobs=pl.Series(told, dtype=pl.List(pl.Float32))
    )
    silent = reply_frame({("llm", "USE", 1): [1, 1]})
    (row,) = confidence(questions, pl.concat([replies, silent])).rows(named=True)
    assert (row["llm"], row["system"], row["k"], row["replies"]) == ("llm", "E5", 1, 2)
    assert row["when_right"] == pytest.approx(0.5, abs=1e-6)  # 0.3 of 0.6
    assert row["when_wrong"] == pytest.approx(0.4, abs=1e-6)
    assert row["chosen"] == pytest.approx(0.45, abs=1e-6)
    assert row["correct"] == pytest.approx((0.5 + 0.2) / 2, abs=1e-6)
    assert confidence(questions, silent).is_empty()


def test_an_option_that_was_told_no_probability_has_none_and_spoils_no_mean():
    """``-inf`` stands for an option that was not among the likeliest tokens."""
    questions = question_frame(["a", "b", "c"])  # correct: 0, 1 and 2
    told = [[log(0.6), -inf, log(0.2), -inf], [log(0.5), -inf, -inf, -inf], [-inf, -inf, log(0.1), -inf]]
    replies = reply_frame({("llm", "E5", 1): [1, 0, 1]}).with_columns(
        answer=pl.Series([0, 3, 2], dtype=pl.Int8), logprobs=pl.Series(told, dtype=pl.List(pl.Float32))
    )
    (row,) = confidence(questions, replies).rows(named=True)
    assert row["replies"] == 3
    assert row["chosen"] == pytest.approx((0.75 + 0 + 1) / 3, abs=1e-6)
    assert row["correct"] == pytest.approx((0.75 + 0 + 1) / 3, abs=1e-6)
    assert (row["when_right"], row["when_wrong"]) == (pytest.approx(0.875, abs=1e-6), 0)


PASSAGES = pl.DataFrame(
    {"id": [f"{d}#{n}" for d in "abc" for n in range(6)], "doc_id": [d for d in "abc" for _ in range(6)]}
)


def contexts(rows):
    """Replies of one LLM: (question, system, k, context, cut)."""
    frame = reply_frame({("llm", "E5", 1): [0]})
    return pl.concat(
        frame.with_columns(
            question_id=pl.lit(question),
            system=pl.lit(system),
            k=pl.lit(k, pl.Int32),
            context=pl.lit(pl.Series([context], dtype=pl.List(pl.String))),
            cut=pl.lit(cut, pl.Int32),
        )
        for question, system, k, context, cut in rows
    )


def test_recall_of_the_source_document_at_each_depth():
    questions = question_frame(["a", "b", ""])
    rows = [
        ("q0", "E5", 1, ["b#0"], 0),
        ("q0", "E5", 5, ["b#0", "a#3", "a#1", "c#0", "c#1"], 0),
        ("q1", "E5", 5, ["b#5", "a#3", "a#1", "c#0", "c#1"], 0),
        ("q2", "E5", 5, ["b#5", "a#3", "a#1", "c#0", "c#1"], 0),
        ("q0", "cut", 5, ["a#0", "b#0"], 3),
        ("q1", "cut", 5, ["a#0", "a#1"], 3),
    ]
    found = source_recall(questions, retrieved(contexts(rows), PASSAGES), SETTINGS, (1, 2, 5, 10))
    values = {key: (one.value, one.of) for key, one in found.items()}
    assert values == {
        ("E5", 1): (0.5, 2),
        ("E5", 2): (1.0, 2),
        ("E5", 5): (1.0, 2),
        ("E5", 10): (1.0, 2),
        ("cut", 1): (0.5, 2),
        ("cut", 2): (0.5, 2),
    }  # nothing is known of E5 beyond 5, but both were found before; of cut nothing beyond 2


def test_recall_from_whole_runs():
    questions = question_frame(["a", "b"])
    runs = pl.DataFrame(
        {
            "question_id": ["q0", "q0", "q1"],
            "system": "BM25",
            "rank": [1, 7, 2],
            "doc_id": ["b", "a", "a"],
        }
    )
    found = source_recall(questions, runs, SETTINGS)
    assert {depth: one.value for (_, depth), one in found.items()} == {1: 0.0, 5: 0.0, 10: 0.5}


def test_accuracy_stands_beside_what_it_takes():
    right = simulated()
    replies = reply_frame(right).with_columns(prompt_tokens=(100 + 50 * pl.col("k")).cast(pl.Int32))
    costs = pl.DataFrame({"system": ["E5"], "passages": [900], "dimension": [384], "seconds": [12.5]})
    found = against_cost(accuracies(build(right), SETTINGS), replies, costs, 5)
    assert found["system"].to_list() == ["MiniLM", "E5", "ColBERT"] and set(found["prompt_tokens"]) == {350.0}
    row = found.row(1, named=True)
    assert (row["passages"], row["dimension"], row["seconds"]) == (900, 384, 12.5)
    assert row["accuracy"] == np.mean(right["llm", "E5", 5]) and found["seconds"].null_count() == 2
