"""Measures of real runs, each computed by two providers that share no code."""

import ir_measures
import numpy as np
import polars as pl
import pytest
from sklearn.metrics import ndcg_score
from support import shared

from beirnl.evaluation.measures import evaluate
from beirnl.evaluation.runs.trec import read_run

RUNS = ["scifact", "trec"]


def _qrels(lines):
    rows = [(query, doc, int(label)) for query, doc, label in lines]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row")


@pytest.fixture(scope="module", params=RUNS)
def collection(request):
    """A run in trec_eval's order, and its judgements: 300 queries with few labels, 3 with many."""
    if request.param == "trec":
        run, path = read_run(shared("trec_eval", "results.test")), shared("trec_eval", "qrels.test")
        qrels = _qrels([(q, d, label) for q, _, d, label in map(str.split, path.read_text().splitlines())])
    else:
        run = read_run(shared("lucene", "scifact.elasticsearch_bm25.run.gz"))
        lines = shared("scifact", "qrels", "test.tsv").read_text().splitlines()[1:]
        qrels = _qrels(line.split("\t") for line in lines)
    frame = pl.from_arrow(run)
    return frame.filter(pl.col("query_id").is_in(qrels["query_id"].implode())), qrels


def nested(frame, value):
    groups = frame.group_by("query_id", maintain_order=True).agg("doc_id", value)
    return {query: dict(zip(docs, values, strict=True)) for query, docs, values in groups.rows()}


def by_rank(run):
    """The run with scores that have no ties, so that every provider has the same order."""
    return {
        query: {doc: 1000.0 - rank for rank, doc in enumerate(docs)}
        for query, docs in nested(run, "score").items()
    }


def ours(run, qrels, name):
    return dict(evaluate(run, qrels, [name]).select("query_id", "value").rows())


@pytest.mark.parametrize("cutoff", [10, 100])
def test_gains_are_those_of_scikit_learn(collection, cutoff):
    run, qrels = collection
    scores, labels = by_rank(run), nested(qrels, "relevance")
    expected = {}
    for query, judged in labels.items():
        docs = [*scores[query], *(doc for doc in judged if doc not in scores[query])]
        truth = [[max(0, judged.get(doc, 0)) for doc in docs]]
        expected[query] = ndcg_score(
            truth, [[scores[query].get(doc, -1.0 * at) for at, doc in enumerate(docs)]], k=cutoff
        )
    assert ours(run, qrels, f"nDCG@{cutoff}") == pytest.approx(expected, abs=1e-9)
    assert 0.3 < np.mean(list(expected.values())) < 0.9


@pytest.mark.parametrize("name, provider", [("RR@10", "msmarco"), ("P@10", "cwl_eval"), ("RR", "cwl_eval")])
def test_another_provider_of_ir_measures_agrees(collection, name, provider):
    run, qrels = collection
    other = getattr(ir_measures, provider)
    if not other.is_available():
        pytest.skip(f"{provider} is not installed")
    measure = ir_measures.parse_measure(name)
    found = other.iter_calc([measure], nested(qrels, "relevance"), by_rank(run))
    expected = {metric.query_id: float(metric.value) for metric in found}
    assert ours(run, qrels, name) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("cutoff", [1, 10, 100])
def test_means_are_those_of_beir(collection, cutoff):
    from beir.retrieval.custom_metrics import hole, mrr, recall_cap, top_k_accuracy

    run, qrels = collection
    arguments = nested(qrels, "relevance"), by_rank(run), [cutoff]
    expected = recall_cap(*arguments) | hole(*arguments) | mrr(*arguments) | top_k_accuracy(*arguments)
    names = {"R_cap": "R_cap", "hole": "Hole", "RR": "MRR", "Success": "Accuracy"}
    for name, beirs in names.items():
        values = list(ours(run, qrels, f"{name}@{cutoff}").values())
        assert np.mean(values) == pytest.approx(
            expected[f"{beirs}@{cutoff}"], abs=6e-6
        )  # it prints five digits


def test_the_share_of_judged_hits_is_that_of_ir_measures(collection):
    run, qrels = collection
    found = ir_measures.judged.iter_calc(
        [ir_measures.parse_measure("Judged@10")], nested(qrels, "relevance"), by_rank(run)
    )
    assert ours(run, qrels, "Judged@10") == pytest.approx({metric.query_id: metric.value for metric in found})
