"""Measures against the output of trec_eval that its own tests expect (USNIST, version 10)."""

import polars as pl
import pytest
from support import shared

from beirnl.evaluation.measures import evaluate, parse, summarise
from beirnl.evaluation.runs.trec import read_run

CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
NAMES = ["AP", "nDCG", "RR", "Rprec", *(f"{m}@{k}" for m in ("nDCG", "R", "P", "AP") for k in CUTOFFS)]
NAMES += [f"Success@{k}" for k in (1, 5, 10)]


@pytest.fixture(scope="module")
def qrels():
    lines = [line.split() for line in shared("trec_eval", "qrels.test").read_text().splitlines()]
    rows = [(query, doc, int(label)) for query, _, doc, label in lines]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row")


def expected(name):
    """Printed values by query (or ``all``) and trec_eval's name of the measure."""
    lines = [line.split() for line in shared("trec_eval", name).read_text().splitlines()]
    return {(query, measure): value for measure, query, value in lines}


def printed(scores):
    trec = {measure.name: measure.trec for measure in parse(NAMES)}
    return {(query, trec[measure]): f"{value:.4f}" for query, measure, value in scores.iter_rows()}


def mean_rows(scores, qrels):
    means = summarise(scores, qrels).select(pl.lit("all"), "measure", "mean")
    assert len(means) == len(NAMES)
    return means


def test_every_query_and_the_mean_equal_to_all_printed_digits(qrels):
    scores = evaluate(read_run(shared("trec_eval", "results.test")), qrels, NAMES)
    want = expected("out.test.aq")
    found = printed(scores)
    assert len(found) == 3 * len(NAMES)
    assert found == {key: want[key] for key in found}
    means = printed(mean_rows(scores, qrels))
    assert means == {key: want[key] for key in means}
    want_means = expected("out.test.a")
    assert means == {key: want_means[key] for key in means}


def test_columns_after_the_sixth_do_not_move_a_value(qrels):
    run = read_run(shared("trec_eval", "results.trunc"), extra_columns=True)
    assert set(run["query_id"].to_pylist()) == {"301", "303"}  # 301 whole, 303 in part
    found = printed(evaluate(run, qrels, NAMES).filter(query_id="301"))
    want = expected("out.test.aq")
    assert len(found) == len(NAMES)
    assert found == {key: want[key] for key in found}


def test_a_judged_query_without_hits_counts_in_the_mean(qrels):
    run = pl.from_arrow(read_run(shared("trec_eval", "results.test"))).filter(pl.col("query_id") != "303")
    scores = evaluate(run, qrels, NAMES)
    want = expected("out.test.aq")
    assert set(scores.filter(query_id="303")["value"]) == {0.0}
    for _, measure, mean in mean_rows(scores, qrels).iter_rows():
        [trec] = [known.trec for known in parse([measure])]
        others = [float(want[query, trec]) for query in ("301", "302")]
        assert mean == pytest.approx(sum(others) / 3, abs=5e-5)
