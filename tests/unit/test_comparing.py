"""Runs that are compared go equally deep."""

import polars as pl

from beirnl.evaluation.runs.comparing import cut, cut_to_shortest


def run_of(**hits):
    """A run by query: documents from the first, with falling scores."""
    rows = [(query, doc, 10.0 - at) for query, docs in hits.items() for at, doc in enumerate(docs)]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")


def test_runs_of_different_depth_are_cut_to_the_shortest_with_a_warning():
    found = cut_to_shortest({"deep": run_of(q1="abc", q2="abcde"), "short": run_of(q1="ab", q2="a")})
    assert found.warnings == ("deep: cut from 5 to 2 hits a query, the depth of short",)
    assert found.runs["deep"].select("query_id", "doc_id").rows() == [
        ("q1", "a"),
        ("q1", "b"),
        ("q2", "a"),
        ("q2", "b"),
    ]
    assert len(found.runs["short"]) == 3


def test_a_run_without_hits_cuts_no_other():
    assert cut_to_shortest({"one": run_of(q="abc"), "none": run_of()}).warnings == ()


def test_a_cut_through_equal_scores_keeps_the_higher_ids():
    run = pl.DataFrame({"query_id": "q", "doc_id": ["a", "c", "b"], "score": [1.0, 1.0, 1.0]})
    assert cut(run, 2)["doc_id"].to_list() == ["c", "b"]
