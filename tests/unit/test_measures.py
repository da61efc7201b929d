"""Measures: rules that are easy to get wrong, one test each, and agreement with another implementation."""

import math
import random

import ir_measures
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beirnl import schema
from beirnl.errors import ConfigError, DataError, PrerequisiteError
from beirnl.evaluation.measures import (
    evaluate,
    mean_of_parts,
    parse,
    providers,
    qrels_stats,
    summarise,
    without_relevant,
)
from beirnl.evaluation.names import reported


def run_of(*rows):
    return pa.Table.from_pylist(
        [dict(zip(schema.RUN.names, row, strict=True)) for row in rows], schema=schema.RUN
    )


def qrels_of(*rows):
    return pa.Table.from_pylist(
        [dict(zip(schema.QRELS.names, row, strict=True)) for row in rows], schema=schema.QRELS
    )


def value(run, qrels, measure):
    [(only,)] = evaluate(run, qrels, [measure]).select("value").rows()
    return only


@pytest.mark.parametrize(
    "name, canonical, trec",
    [
        ("nDCG@10", "nDCG@10", "ndcg_cut_10"),
        ("NDCG@10", "nDCG@10", "ndcg_cut_10"),
        ("nDCG", "nDCG", "ndcg"),
        ("R@100", "R@100", "recall_100"),
        ("Recall@100", "R@100", "recall_100"),
        ("AP", "AP", "map"),
        ("MAP@10", "AP@10", "map_cut_10"),
        ("P@5", "P@5", "P_5"),
        ("MRR@10", "RR@10", "recip_rank"),
        ("Success@5", "Success@5", "success_5"),
        ("Rprec", "Rprec", "Rprec"),
    ],
)
def test_names_are_those_of_ir_measures(name, canonical, trec):
    [measure] = parse([name])
    assert (measure.name, measure.trec) == (canonical, trec)
    assert str(ir_measures.parse_measure(name)) == canonical


@pytest.mark.parametrize(
    "name, says",
    [
        ("ndcg@10", "did you mean nDCG@10?"),
        ("nDGC@10", "did you mean nDCG@10?"),
        ("ndcg_cut_10", "did you mean nDCG@10?"),
        ("recall@100", "did you mean R@100?"),
        ("R@0", "did you mean R@10?"),
        ("map@7", "did you mean AP@7?"),
        ("P", "measure 'P' needs a cutoff; write P@10"),
        ("Rprec@5", "measure 'Rprec@5' takes no cutoff; write Rprec"),
        ("map_cut_100", "did you mean AP@100?"),
        ("", "use a name of ir_measures, as nDCG@10, R@100 or AP"),
        ("quality@10", "use a name of ir_measures, as nDCG@10, R@100 or AP"),
        ("r_cap@10", "did you mean R_cap@10?"),
        ("holes@10", "did you mean hole@10?"),
        ("judged@10", "did you mean Judged@10?"),
        ("ERRR@10", "did you mean ERR@10?"),
        ("R_cap", "measure 'R_cap' needs a cutoff; write R_cap@10"),
        ("AP(rell=2)", "unsupported params found: ['rell']; its parameters are cutoff, judged_only, rel"),
        ("AP(rel='x')", "invalid param rel='x'"),
        ("AP(rel=2)@0", "has a cutoff below 1"),
        (
            "RBP",
            "nothing computes measure 'RBP' in this form; its parameters are cutoff, p, rel; it needs rel",
        ),
        ("ERR", "it needs cutoff"),
        ("alpha_nDCG@10", "needs judgements by subtopic"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, says):
    with pytest.raises(ConfigError, match="measure") as caught:
        parse([name])
    assert says in str(caught.value)


def test_repeated_names_are_measured_once():
    assert [measure.name for measure in parse(["AP", "MAP", "P@5"])] == ["AP", "P@5"]


def test_a_report_holds_no_numbers_of_documents():
    assert [measure.name for measure in reported(["AP", "SetP"])] == ["AP", "SetP"]
    with pytest.raises(ConfigError, match="'NumRet' is a number of queries or documents"):
        reported(["nDCG@10", "NumRet"])


def test_a_provider_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(ir_measures.gdeval, "_is_available", False)
    with pytest.raises(PrerequisiteError, match="'ERR@5' needs gdeval, which is not installed; Install perl"):
        parse(["ERR@5"])


def test_a_judged_document_that_was_not_found_counts_in_the_denominator_of_recall():
    run = run_of(("q", "d1", 1.0))
    assert value(run, qrels_of(("q", "d1", 1), ("q", "not-in-corpus", 1)), "R@10") == 0.5


def test_a_query_that_does_not_exist_is_not_scored():
    run, qrels = run_of(("q1", "d1", 1.0)), qrels_of(("q1", "d1", 1), ("gone", "d1", 1))
    assert evaluate(run, qrels, ["AP"], queries=["q1"])["query_id"].to_list() == ["q1"]
    assert evaluate(run, qrels, ["AP"])["query_id"].to_list() == ["q1", "gone"]


def test_a_judged_query_without_hits_counts_zero():
    run = run_of(("q1", "d1", 1.0))
    scores = evaluate(run, qrels_of(("q1", "d1", 1), ("q2", "d1", 1)), ["nDCG@10", "R@100"])
    assert scores.filter(query_id="q2")["value"].to_list() == [0.0, 0.0]
    assert summarise(scores, qrels_of(("q1", "d1", 1), ("q2", "d1", 1)))["mean"].to_list() == [0.5, 0.5]


def test_an_empty_run_scores_zero():
    assert value(run_of(), qrels_of(("q", "d", 1)), "AP") == 0.0


def test_a_query_without_relevant_documents_counts_zero_and_the_mean_without_it_is_given():
    run = run_of(("q1", "d1", 1.0), ("q2", "d1", 1.0), ("unjudged", "d1", 1.0))
    qrels = qrels_of(("q1", "d1", 1), ("q2", "d1", 0), ("q2", "d2", 0))
    scores = evaluate(run, qrels, ["nDCG@10"])
    assert scores.rows() == [("q1", "nDCG@10", 1.0), ("q2", "nDCG@10", 0.0)]
    assert summarise(scores, qrels).rows() == [("nDCG@10", 0.5, 2, 1, 1.0)]
    assert without_relevant(qrels).to_list() == ["q2"]


def test_where_no_query_has_a_relevant_document_the_mean_without_them_is_missing():
    qrels = qrels_of(("q", "d", 0))
    summary = summarise(evaluate(run_of(("q", "d", 1.0)), qrels, ["AP"]), qrels)
    assert summary.rows() == [("AP", 0.0, 1, 1, None)]


def test_statistics_count_only_labels_above_zero():
    stats = qrels_stats(
        qrels_of(("q1", "a", 2), ("q1", "b", 0), ("q1", "c", 1), ("q2", "a", 0), ("q3", "a", -1))
    )
    assert stats._asdict() == {
        "judgements": 5,
        "queries": 3,
        "without_relevant": 2,
        "relevant": 2,
        "mean": pytest.approx(2 / 3),
        "least": 0,
        "most": 2,
    }
    assert qrels_stats(qrels_of(("q1", "a", 1), ("q1", "b", 1), ("q2", "a", 3))).least == 1
    assert qrels_stats(qrels_of()).mean is None


def test_parts_weigh_the_same_whatever_their_numbers_of_queries():
    assert mean_of_parts({"one": 1.0, "three": 0.0}, ["one", "three"]) == 0.5


def test_a_missing_part_makes_the_mean_incomplete():
    forums = [f"forum{n}" for n in range(12)]
    values = dict.fromkeys(forums, 0.25)
    assert mean_of_parts(values, forums) == 0.25
    assert mean_of_parts({**values, "forum3": None}, forums) is None
    assert mean_of_parts({**values, "forum3": math.nan}, forums) is None
    del values["forum3"]
    assert mean_of_parts(values, forums) is None
    assert mean_of_parts({}, []) is None


def test_gain_is_linear():
    run, qrels = run_of(("q", "d2", 2.0), ("q", "d1", 1.0)), qrels_of(("q", "d1", 2), ("q", "d2", 1))
    expected = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    assert value(run, qrels, "nDCG@10") == pytest.approx(expected, abs=1e-12)
    assert round(expected, 4) == 0.8597


def test_ties_are_ordered_by_id_descending():
    run = run_of(("q", "d1", 1.0), ("q", "d2", 1.0), ("q", "d3", 1.0))
    assert value(run, qrels_of(("q", "d3", 1)), "AP") == 1.0
    assert value(run, qrels_of(("q", "d1", 1)), "AP") == pytest.approx(1 / 3)


def test_ids_are_ordered_as_bytes_in_ties():
    run = run_of(("q", "9", 1.0), ("q", "10", 1.0), ("q", "é", 1.0))
    assert [value(run, qrels_of(("q", doc, 1)), "RR") for doc in ("é", "9", "10")] == [
        1.0,
        0.5,
        pytest.approx(1 / 3),
    ]


def test_scores_tie_as_float32():
    run = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0 + 1e-12, 1.0]})
    assert value(run, qrels_of(("q", "b", 1)), "RR") == 1.0


def test_reciprocal_rank_with_a_cutoff():
    run = run_of(*(("q", f"d{n}", 10.0 - n) for n in range(5)))
    qrels = qrels_of(("q", "d2", 1))
    assert value(run, qrels, "RR@3") == pytest.approx(1 / 3)
    assert value(run, qrels, "RR@2") == 0.0


def test_rows_follow_the_qrels_and_the_measures():
    run = run_of(("b", "d", 1.0), ("a", "d", 1.0))
    scores = evaluate(
        run, qrels_of(("z", "d", 1), ("a", "d", 1), ("b", "d", 1), ("a", "e", 1)), ["P@1", "AP"]
    )
    assert scores.select("query_id", "measure").rows() == [
        (query, measure) for query in ("z", "a", "b") for measure in ("P@1", "AP")
    ]
    assert scores.to_arrow().cast(schema.SCORES).schema == schema.SCORES


def test_a_document_twice_is_an_error_not_a_silent_choice():
    with pytest.raises(DataError, match="'d' stands twice under query 'q'"):
        evaluate(run_of(("q", "d", 1.0), ("q", "d", 2.0)), qrels_of(("q", "d", 1)), ["AP"])
    with pytest.raises(DataError, match="qrels"):
        evaluate(run_of(("q", "d", 1.0)), qrels_of(("q", "d", 1), ("q", "d", 0)), ["AP"])


def test_a_score_that_is_not_a_number_is_an_error():
    with pytest.raises(DataError, match="has no score"):
        evaluate(run_of(("q", "d", math.nan)), qrels_of(("q", "d", 1)), ["AP"])


_labels = st.dictionaries(st.integers(0, 12), st.integers(0, 3), min_size=1, max_size=8)
_scores = st.dictionaries(st.integers(0, 12), st.sampled_from([0.0, 0.5, 0.25, 1.0, -3.0]), max_size=10)


def _ranking(scores):
    return sorted(scores, key=lambda doc: (scores[doc], f"d{doc}"), reverse=True)


@settings(max_examples=150, deadline=None)
@given(_labels, _scores, st.integers(1, 12))
def test_values_equal_the_definitions(labels, scores, cutoff):
    run = run_of(*(("q", f"d{doc}", score) for doc, score in scores.items()))
    qrels = qrels_of(*(("q", f"d{doc}", label) for doc, label in labels.items()))
    gains = [labels.get(doc, 0) for doc in _ranking(scores)]
    relevant = sum(label > 0 for label in labels.values())
    discount = [1 / math.log2(rank + 2) for rank in range(20)]
    ideal = math.fsum(
        g * d for g, d in zip(sorted(labels.values(), reverse=True)[:cutoff], discount, strict=False)
    )
    dcg = math.fsum(g * d for g, d in zip(gains[:cutoff], discount, strict=False))
    hits = sum(gain > 0 for gain in gains[:cutoff])
    first = next((rank for rank, gain in enumerate(gains, 1) if gain > 0), None)
    precisions = [sum(g > 0 for g in gains[:at]) / at for at in range(1, len(gains) + 1) if gains[at - 1] > 0]
    expected = {
        f"nDCG@{cutoff}": dcg / ideal if ideal else 0.0,
        f"R@{cutoff}": hits / relevant if relevant else 0.0,
        f"P@{cutoff}": hits / cutoff,
        "AP": math.fsum(precisions) / relevant if relevant else 0.0,
        "RR": 1 / first if first else 0.0,
        f"RR@{cutoff}": 1 / first if first and first <= cutoff else 0.0,
        f"Success@{cutoff}": float(hits > 0),
    }
    found = evaluate(run, qrels, list(expected))
    assert dict(found.select("measure", "value").rows()) == pytest.approx(expected, abs=1e-9)


# ---- measures beyond trec_eval's own

#: Labels of five documents, and the gains of a ranking of two of them and two without a label.
GRADED = [("q", "a", 3), ("q", "b", 0), ("q", "c", 1), ("q", "d", 0), ("q", "e", 1)]
RANKING = [("q", doc, 10.0 - rank) for rank, doc in enumerate(["c", "x", "a", "other"])]


@pytest.mark.parametrize(
    "name, expected",
    [
        ("R_cap@2", 1 / 2),
        ("R_cap@10", 2 / 3),
        ("R_cap@1", 1.0),
        ("hole@2", 1 / 2),  # x; other has a label under another query
        ("hole@10", 1 / 10),
        ("Judged@2", 1 / 2),
        ("Judged@10", 2 / 4),
        ("Judged", 2 / 4),
        ("SetP", 2 / 4),
        ("SetR", 2 / 3),
        ("SetF", 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)),
        ("AP(rel=3)", 1 / 3),
        ("R(rel=3)@2", 0.0),
        ("ERR@10", 1 / 16 + (1 - 1 / 16) * (7 / 16) / 3),
        ("nDCG(dcg='exp-log2')@10", (1 + 7 / 2) / (7 + 1 / math.log2(3) + 1 / 2)),
        ("Accuracy", 1 - (0 + 1) / 2 / 2),
        ("Success(rel=3)@2", 0.0),
        ("IPrec@0.5", 2 / 3),
    ],
)
def test_values_by_hand(name, expected):
    scores = evaluate(run_of(*RANKING), qrels_of(*GRADED, ("p", "other", 1)), [name])
    assert scores["measure"].to_list() == [name, name]
    digits = 5e-6 if name.startswith(("ERR", "nDCG")) else 1e-12  # gdeval prints five
    assert scores["value"].to_list() == [pytest.approx(expected, abs=digits), 0.0]  # p has no hits


def test_rank_biased_precision_by_hand():
    pytest.importorskip("cwl")
    assert value(run_of(*RANKING), qrels_of(*GRADED), "RBP(rel=1)") == pytest.approx(0.2 * (1 + 0.8**2))
    assert value(run_of(*RANKING), qrels_of(*GRADED), "RBP(p=0.5,rel=1)") == pytest.approx(0.5 * (1 + 0.5**2))


def test_a_document_pooled_and_not_judged_is_left_out_by_inferred_precision_only():
    run = run_of(*(("q", doc, 9.0 - rank) for rank, doc in enumerate(["pooled", "a", "b", "d", "other"])))
    qrels = qrels_of(("q", "pooled", -1), ("q", "a", 1), ("q", "b", 0), ("q", "d", 1))
    found = dict(evaluate(run, qrels, ["infAP", "AP"]).select("measure", "value").rows())
    assert found["AP"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    # Yilmaz and Aslam 2006: 1/k + (k-1)/k x pooled above x relevant among the judged above, smoothed
    assert found["infAP"] == pytest.approx((1 / 2 + 1 / 2 * 1 / 2 + 1 / 4 + 3 / 4 * 1 / 2) / 2, abs=1e-4)


@pytest.mark.parametrize("name", ["Judged@1", "R_cap@1", "ERR@1", "SetP(rel=2)", "RR(rel=2)@1"])
def test_ties_are_trec_evals_for_every_provider(name):
    """The relevant document has the highest id among equals: it is first."""
    run = run_of(("a b", "d 1", -1.0), ("a b", "d 2", -1.0), ("a b", "d 3", -1.0))
    run = run.slice(0, 1) if name.startswith("SetP") else run
    qrels = qrels_of(("a b", "d 3", 2), *([("a b", "d 1", 2)] if name.startswith("SetP") else []))
    assert value(run, qrels, name) == pytest.approx(3 / 16 if name == "ERR@1" else 1.0)


def test_accuracy_of_a_query_with_nothing_but_relevant_hits_is_an_error_in_words():
    with pytest.raises(DataError, match="all hits of a query are relevant"):
        value(run_of(("q", "a", 1.0)), qrels_of(*GRADED), "Accuracy")


def test_a_cut_before_trec_eval_moves_no_value():
    """Measures with a cutoff are computed from the top of a run, those without one from all of it."""
    generator = random.Random(7)
    rows = [(f"q{q}", f"d{d}", generator.choice([0.0, 0.5, 1.0])) for q in range(5) for d in range(40)]
    qrels = qrels_of(
        *((f"q{q}", f"d{d}", generator.choice([0, 1, 2])) for q in range(6) for d in range(0, 50, 3))
    )
    names = ["nDCG@10", "R@20", "P@5", "RR@10", "AP@10", "Success@1"]
    generator.shuffle(rows)
    cut = evaluate(run_of(*rows), qrels, names)
    whole = evaluate(run_of(*rows), qrels, [*names, "AP"]).filter(pl.col("measure") != "AP")
    assert cut.equals(whole)
    assert cut["value"].n_unique() > 15


def test_batches_of_hits_change_nothing(monkeypatch):
    rows = [(f"q{q}", f"d{d}", float(d * q % 7)) for q in range(9) for d in range(q)]
    qrels = qrels_of(*((f"q{q}", f"d{d}", d % 2) for q in range(9) for d in range(4)))
    whole = evaluate(run_of(*rows), qrels, ["AP", "nDCG@3"])
    monkeypatch.setattr(providers, "_BATCH", 5)
    assert evaluate(run_of(*rows), qrels, ["AP", "nDCG@3"]).equals(whole)
