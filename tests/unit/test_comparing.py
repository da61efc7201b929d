"""Runs that are compared: of the same dataset, with numbers as scores, equally deep."""

import math

import polars as pl
import pytest

from beirnl.errors import DataError
from beirnl.evaluation.comparing import check, cut, cut_to_shortest
from beirnl.evaluation.measures import evaluate


def run_of(**hits):
    """A run by query: documents from the first, with falling scores."""
    rows = [(query, doc, 10.0 - at) for query, docs in hits.items() for at, doc in enumerate(docs)]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")


def test_a_run_of_other_queries_is_an_error_with_their_number_and_first_ids():
    run = run_of(q1="a", **{f"x{n}": "a" for n in range(7)})
    with pytest.raises(DataError) as caught:
        check({"other.run": run}, ["q1", "q2"])
    assert str(caught.value).startswith(
        "other.run: 7 of its 8 queries are not in the dataset: x0, x1, x2, x3, x4, ...; name the dataset"
    )


def test_a_query_that_is_not_judged_may_stand_in_a_run():
    assert check({"a": run_of(q1="ab", q2="ab")}, ["q1", "q2"], judged=["q1"]).warnings == ()


def test_missing_queries_are_a_warning_and_count_0():
    found = check({"a.run": run_of(q1="a")}, ["q1", "q2", "q3"], judged=["q1", "q2"])
    assert found.warnings == ("a.run: 1 of 2 judged queries have no hits and score 0: q2",)
    qrels = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "a"], "relevance": [1, 1]})
    assert evaluate(found.runs["a.run"], qrels, ["AP"])["value"].to_list() == [1.0, 0.0]


@pytest.mark.parametrize("score", [math.nan, math.inf, None])
def test_a_score_that_is_no_number_is_an_error(score):
    run = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, score]})
    with pytest.raises(DataError) as caught:
        check({"a.run": run}, ["q"])
    expected = (
        f"a.run: 1 scores are not finite numbers, the first is {score} of document 'b', query 'q'; check"
    )
    assert str(caught.value).startswith(expected)


def test_runs_of_different_depth_are_cut_to_the_shortest_with_a_warning():
    found = check({"deep": run_of(q1="abc", q2="abcde"), "short": run_of(q1="ab", q2="a")}, ["q1", "q2"])
    assert found.warnings == ("deep: cut from 5 to 2 hits a query, the depth of short",)
    assert found.runs["deep"].select("query_id", "doc_id").rows() == [
        ("q1", "a"),
        ("q1", "b"),
        ("q2", "a"),
        ("q2", "b"),
    ]
    assert len(found.runs["short"]) == 3


def test_a_depth_that_is_known_counts_more_than_the_hits_found():
    runs = {"deep": run_of(q="abc"), "few": run_of(q="a")}
    assert cut_to_shortest(runs, {"deep": 100, "few": 100}).warnings == ()
    assert cut_to_shortest({"one": run_of(q="abc"), "none": run_of()}).warnings == ()


def test_a_cut_through_equal_scores_keeps_the_higher_ids():
    run = pl.DataFrame({"query_id": "q", "doc_id": ["a", "c", "b"], "score": [1.0, 1.0, 1.0]})
    assert cut(run, 2)["doc_id"].to_list() == ["c", "b"]
