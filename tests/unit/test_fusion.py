import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl.errors import ConfigError, DataError
from beirnl.retrieval.fusion import fuse
from beirnl.schema import RUN

METHODS = ["rrf", "min-max", "z-score"]


def table(run):
    """A RUN table of {query: {document: score}}, in no order."""
    rows = [(query, doc, score) for query, hits in run.items() for doc, score in hits.items()]
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[], [], []], schema=RUN)


def counts(hits, method, k=60):
    """What each hit of a query counts, by the definitions, in plain Python."""
    ordered = sorted(hits, key=lambda doc: (hits[doc], doc), reverse=True)
    scores = np.array([hits[doc] for doc in ordered], np.float32).astype(float)
    if method == "rrf":
        values = [1 / (k + rank) for rank in range(1, len(ordered) + 1)]
    elif scores.max() == scores.min():
        values = [1.0 if method == "min-max" else 0.0] * len(ordered)
    elif method == "min-max":
        values = (scores - scores.min()) / (scores.max() - scores.min())
    else:
        values = (scores - scores.mean()) / scores.std()
    return dict(zip(ordered, values, strict=True))


def brute(runs, depth, method, weights, k=60):
    found = {}
    for query in {query for run in runs for query in run}:
        total = {}
        for run, weight in zip(runs, weights, strict=True):
            for doc, value in counts(run.get(query, {}), method, k).items() if run.get(query) else ():
                total[doc] = total.get(doc, 0.0) + weight * value
        scores = {doc: float(np.float32(value)) for doc, value in total.items()}
        best = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)[:depth]
        found[query] = [(doc, scores[doc]) for doc in best]
    return found


def as_lists(run):
    found = {}
    for row in run.to_pylist():
        found.setdefault(row["query_id"], []).append((row["doc_id"], row["score"]))
    return found


def check(runs, depth, method, weights):
    found = as_lists(fuse([table(run) for run in runs], depth, method=method, weights=weights))
    expected = brute(runs, depth, method, weights)
    assert {query: len(hits) for query, hits in found.items()} == {
        query: len(hits) for query, hits in expected.items() if hits
    }
    for query, hits in found.items():
        wanted = dict(brute(runs, 10**6, method, weights)[query])
        np.testing.assert_allclose(
            [score for _, score in hits], [wanted[doc] for doc, _ in hits], rtol=1e-6, atol=1e-6
        )
        np.testing.assert_allclose(
            [score for _, score in hits], [s for _, s in expected[query]], rtol=1e-6, atol=1e-6
        )
        assert hits == sorted(hits, key=lambda hit: (hit[1], hit[0]), reverse=True)


@pytest.mark.parametrize("method", METHODS)
def test_fusion_equals_the_definitions(method):
    draw = np.random.default_rng(7)
    runs = [
        {
            f"q{query}": {f"d{doc}": float(draw.normal(3, 2)) for doc in draw.choice(40, 20, replace=False)}
            for query in range(12)
        }
        for _ in range(3)
    ]
    check(runs, 15, method, (1.0, 1.0, 1.0))
    check(runs, 100, method, (0.2, 1.5, 1.0))


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-3, 3).map(float), max_size=8)


@given(
    st.lists(st.fixed_dictionaries({"q": SCORES, "r": SCORES}), min_size=1, max_size=4),
    st.sampled_from(METHODS),
    st.integers(1, 9),
)
def test_ties_gaps_and_equal_scores(runs, method, depth):
    check(runs, depth, method, (1.0,) * len(runs))


def test_reciprocal_ranks_by_hand_and_ties_by_id_descending():
    first = {"q": {"a": 9.0, "b": 8.0, "c": 7.0}}
    second = {"q": {"b": 0.9, "a": 0.8, "d": 0.7}}
    found = as_lists(fuse([table(first), table(second)], 10))["q"]
    assert [doc for doc, _ in found] == ["b", "a", "d", "c"], "b ties with a, d with c"
    assert found[0][1] == found[1][1] == np.float32(1 / 61 + 1 / 62)
    assert [doc for doc, _ in as_lists(fuse([table(first), table(second)], 3))["q"]] == ["b", "a", "d"]
    other = as_lists(fuse([table(first), table(second)], 1, k=1))["q"]
    assert other == [("b", float(np.float32(1 / 2 + 1 / 3)))]


def test_tied_scores_in_a_run_are_ranked_as_everywhere():
    tied = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    assert [doc for doc, _ in as_lists(fuse([table(tied)], 2))["q"]] == ["c", "b"]


def test_weights_let_a_run_decide():
    first, second = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 2.0, "a": 1.0}}
    for method in METHODS:
        tables = [table(first), table(second)]
        assert as_lists(fuse(tables, 1, method=method, weights=(1, 0.5)))["q"][0][0] == "a"
        assert as_lists(fuse(tables, 1, method=method, weights=(0.5, 1)))["q"][0][0] == "b"


def test_a_single_hit_is_the_maximum_of_its_run():
    assert as_lists(fuse([table({"q": {"a": 0.3}})], 5, method="min-max")) == {"q": [("a", 1.0)]}


def test_self_matches_go_before_ranks_are_counted():
    run = {"a": {"a": 9.0, "b": 8.0}}
    found = as_lists(fuse([table(run)], 5, remove_self=True))
    assert found == {"a": [("b", float(np.float32(1 / 61)))]}


def test_a_query_that_one_run_lacks_and_runs_without_hits():
    found = as_lists(fuse([table({"q": {"a": 1.0}}), table({"r": {"b": 1.0}}), table({})], 5))
    assert set(found) == {"q", "r"}
    assert fuse([table({}), table({})], 5).num_rows == 0


def test_mistakes_are_named():
    with pytest.raises(ConfigError, match="2 runs are fused with the weights 1"):
        fuse([table({}), table({})], 5, weights=(1,))
    with pytest.raises(ConfigError, match="one finite weight"):
        fuse([table({})], 5, weights=(float("nan"),))
    with pytest.raises(ConfigError, match="use one of: rrf"):
        fuse([table({})], 5, method="borda")
    with pytest.raises(DataError, match="NaN"):
        fuse([table({"q": {"a": float("nan")}})], 5)
