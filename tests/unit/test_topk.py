import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beirnl.errors import DataError
from beirnl.retrieval.topk import TopHits, id_ranks, merge_each, merge_runs, own_ranks, top
from beirnl.schema import RUN

# Few distinct values, so that ties and repeated pairs are common; ids whose order by code point differs
# from that of UTF-16 and of locales.
IDS = ["1", "10", "2", "B", "a", "é", "\uffee", "\U0001f600", "", "a b"]
SCORES = [-1.5, -0.0, 0.0, 0.5, 0.1, 2.0, float("inf")]
HITS = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS), st.sampled_from(SCORES)), max_size=60)


def run(rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [[], [], []]
    return pa.table([pa.array(c, t) for c, t in zip(columns, RUN.types, strict=True)], schema=RUN)


def reference(rows, k, remove_self):
    """The rule in plain Python."""
    best = {}
    for query_id, doc_id, score in rows:
        if not (remove_self and query_id == doc_id):
            pair = (query_id, doc_id)
            best[pair] = max(score, best.get(pair, score))
    cut = []
    for query_id in sorted({q for q, _ in best}):
        hits = sorted(((s, d) for (q, d), s in best.items() if q == query_id), reverse=True)[:k]
        cut += [(query_id, d, np.float32(s)) for s, d in hits]
    return cut


@settings(deadline=None)
@given(rows=HITS, k=st.integers(1, 8), remove_self=st.booleans(), shards=st.integers(1, 5), seed=st.randoms())
def test_merging_any_partition_equals_the_cut_of_the_whole(rows, k, remove_self, shards, seed):
    parts = [[] for _ in range(shards)]
    for row in rows:
        parts[seed.randrange(shards)].append(row)
    # Each shard keeps its k best, one more where a self match may be among them.
    partial = [merge_runs([run(part)], k + remove_self) for part in parts]
    merged = merge_runs(partial, k, remove_self=remove_self)
    assert merged.schema == RUN
    assert [tuple(row.values()) for row in merged.to_pylist()] == reference(rows, k, remove_self)


@settings(deadline=None)
@given(rows=HITS, k=st.integers(1, 8), exclude=st.sampled_from([None, *IDS]))
def test_top_of_arrays_keeps_the_same_rule(rows, k, exclude):
    ids, scores = [doc_id for _, doc_id, _ in rows], np.array([score for *_, score in rows], np.float32)
    found = [(ids[i], scores[i]) for i in top(scores, ids, k, exclude=exclude)]
    expected = reference([("q", d, s) for d, s in zip(ids, scores, strict=True) if d != exclude], k, False)
    assert found == [(d, s) for _, d, s in expected]


def test_self_match_is_removed_before_the_cut():
    rows = [("x", "x", 9.0), ("x", "y", 1.0), ("x", "z", 0.5)]
    assert merge_runs([run(rows)], 1, remove_self=True).to_pylist() == [
        {"query_id": "x", "doc_id": "y", "score": 1.0}
    ]
    assert merge_runs([run(rows)], 1).column("doc_id").to_pylist() == ["x"]


def test_no_tables_give_an_empty_run():
    assert merge_runs([], 10).equals(RUN.empty_table())


@pytest.mark.parametrize("score", [float("nan"), None])
def test_a_score_that_is_no_number_is_an_error_with_its_place(score):
    with pytest.raises(DataError, match="query q, document d: a score is NaN"):
        merge_runs([run([("q", "c", 1.0), ("q", "d", score)])], 10)


def test_nan_among_candidates_is_an_error_with_the_document():
    with pytest.raises(DataError, match="document b: a score is NaN"):
        top(np.array([1.0, np.nan]), ["a", "b"], 1)


@settings(deadline=None)
@given(rows=HITS, k=st.integers(1, 8), batches=st.integers(1, 4))
def test_hits_as_integers_keep_the_same_rule(rows, k, batches):
    rows = list({(query, document): (query, document, score) for query, document, score in rows}.values())
    ranks, ascending = id_ranks(pa.array(IDS))
    names = sorted(IDS)
    top_hits = TopHits(len(names), k)
    for batch in range(batches):
        part = sorted((names.index(q), ranks[IDS.index(d)], s) for q, d, s in rows[batch::batches])
        columns = np.array(part, np.float64).reshape(-1, 3).T
        top_hits.add(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2].astype(np.float32))
    found = [tuple(row.values()) for row in top_hits.run(pa.array(names), ascending).to_pylist()]
    assert found == reference(rows, k, False)
    lowest = [[s for q, _, s in found if q == name] for name in names]
    assert top_hits.thresholds().tolist() == [s[-1] if len(s) == k else -np.inf for s in lowest]


def test_a_nan_among_hits_is_an_error():
    with pytest.raises(DataError, match="a score is NaN"):
        TopHits(1, 3).add(np.array([0]), np.array([0]), np.array([np.nan], np.float32))


def test_an_id_that_stands_twice_is_an_error_with_its_name():
    with pytest.raises(DataError, match="document b: two vectors have this id"):
        id_ranks(pa.array(["b", "a", "b"]))


def test_the_rank_of_a_query_s_own_document_is_minus_one_where_there_is_none():
    _, ascending = id_ranks(pa.array(["b", "c", "a"]))
    assert own_ranks(pa.array(["c", "z", "a"]), ascending).tolist() == [2, -1, 0]
    assert own_ranks(pa.array(["c"]), pa.array([], pa.string())).tolist() == [-1]


@settings(deadline=None)
@given(rows=HITS, k=st.integers(1, 8), remove_self=st.booleans())
def test_merging_one_after_another_equals_merging_at_once(rows, k, remove_self):
    parts = [run(rows[n::3]) for n in range(3)]
    assert merge_each(parts, k, remove_self=remove_self).equals(merge_runs(parts, k, remove_self=remove_self))
    assert merge_each([], k).equals(RUN.empty_table())
