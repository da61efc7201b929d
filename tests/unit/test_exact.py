from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from beirnl.errors import DataError
from beirnl.retrieval.exact import ExactSearch
from beirnl.retrieval.topk import id_ranks, merge_each, own_ranks

PRODUCTS = ["float32", "bfloat16"]


def unit(count, dimension=24, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dimension), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def oracle(query_ids, queries, ids, vectors, k, remove_self=False):
    """Cosine in float64, a full sort: (query, document, score)."""
    scores = (queries.astype(np.float64) @ vectors.astype(np.float64).T).astype(np.float32)
    run = []
    for query, row in zip(query_ids, scores, strict=True):
        hits = [(s, i) for s, i in zip(row.tolist(), ids, strict=True) if not (remove_self and i == query)]
        run += [(query, i, s) for s, i in sorted(hits, reverse=True)[:k]]
    return run


def search(query_ids, queries, ids, vectors, k, *, remove_self=False, cuts=(), **settings):
    """The search shard by shard, cut where told, merged; block sizes are what memory leaves."""
    edges = [0, *cuts, len(ids)]
    partial = []
    for begin, end in pairwise(edges):
        ranks, ascending = id_ranks(pa.array(ids[begin:end], pa.string()))
        own = own_ranks(pa.array(query_ids, pa.string()), ascending) if remove_self else None
        found = ExactSearch(queries, k, own=own, device="cpu", **settings)
        found.add(vectors[begin:end], ranks)
        partial.append(found.top.run(pa.array(query_ids, pa.string()), ascending))
    return [tuple(row.values()) for row in merge_each(partial, k).to_pylist()]


@pytest.mark.parametrize("products", [*PRODUCTS, "auto"])
@pytest.mark.parametrize("memory", [1, 1 << 20, 1 << 30])
def test_hits_and_scores_are_those_of_float64(products, memory):
    ids, vectors = [f"d{n}" for n in range(3000)], unit(3000)
    queries, names = unit(37, seed=1), [f"q{n:02}" for n in range(37)]
    expected = oracle(names, queries, ids, vectors, 10)
    assert search(names, queries, ids, vectors, 10, products=products, memory=memory) == expected


@pytest.mark.parametrize("products", PRODUCTS)
@pytest.mark.parametrize("cuts", [(), (700,), (1, 2, 63, 64, 65, 1500)])
def test_many_equal_vectors_across_shards_and_blocks_are_cut_by_id(products, cuts):
    kinds = unit(5)
    draw = np.random.default_rng(2)
    vectors = kinds[draw.integers(0, 5, 2000)]
    ids = [f"{n}" for n in draw.permutation(2000)]
    queries, names = np.concatenate([kinds, -kinds[:1]]), [f"q{n}" for n in range(6)]
    expected = oracle(names, queries, ids, vectors, 100)
    assert search(names, queries, ids, vectors, 100, cuts=cuts, products=products, memory=1) == expected


@pytest.mark.parametrize("products", PRODUCTS)
def test_scores_closer_than_the_products_can_tell_are_ordered_exactly(products):
    base = unit(1, 384)[0]
    step = np.spacing(np.abs(base).max())
    vectors = np.stack([base + np.float32(n) * step for n in range(400)])
    draw = np.random.default_rng(3).permutation(400)
    ids = [f"{n}" for n in range(400)]
    expected = oracle(["q"], base[None], ids, vectors[draw], 20)
    assert len({score for *_, score in expected}) > 1
    assert search(["q"], base[None], ids, vectors[draw], 20, products=products, memory=1) == expected


@pytest.mark.parametrize("products", PRODUCTS)
def test_vectors_need_not_be_unit_nor_scores_positive(products):
    vectors = -np.abs(unit(900, 6)) * np.geomspace(1e-3, 50, 900, dtype=np.float32)[:, None]
    queries = np.abs(unit(3, 6, seed=1)) * np.float32(7)
    ids = [f"{n}" for n in range(900)]
    expected = oracle(list("abc"), queries, ids, vectors, 25)
    assert max(score for *_, score in expected) < 0
    assert search(list("abc"), queries, ids, vectors, 25, products=products, memory=1) == expected


@pytest.mark.parametrize("products", PRODUCTS)
@pytest.mark.parametrize("k", [1, 5])
def test_a_self_match_is_removed_before_the_cut_in_every_shard(products, k):
    vectors = unit(300)
    ids = [f"{n}" for n in range(300)]
    names, queries = ids[40:60], vectors[40:60]
    expected = oracle(names, queries, ids, vectors, k, remove_self=True)
    found = search(names, queries, ids, vectors, k, remove_self=True, cuts=(50, 170), products=products)
    assert sorted(found) == sorted(expected) and len(found) == 20 * k
    kept = search(names, queries, ids, vectors, 1, products=products)
    assert [query for query, *_ in kept] == [document for _, document, _ in kept]


def test_k_larger_than_the_corpus_gives_every_document_once():
    vectors, ids = unit(70), [f"{n}" for n in range(70)]
    found = search(["q"], unit(1, seed=1), ids, vectors, 1000, cuts=(3,))
    assert found == oracle(["q"], unit(1, seed=1), ids, vectors, 1000) and len(found) == 70


@pytest.mark.parametrize(("queries", "documents"), [(0, 5), (3, 0), (0, 0)])
def test_nothing_to_search_gives_an_empty_run(queries, documents):
    names, ids = [f"q{n}" for n in range(queries)], [f"{n}" for n in range(documents)]
    assert search(names, unit(8)[:queries], ids, unit(8)[:documents], 10) == []


def test_products_are_bounded_by_what_memory_leaves():
    search_small = ExactSearch(unit(500), 10, memory=1 << 20)
    search_large = ExactSearch(unit(500), 10, memory=1 << 26)
    assert search_small.block_rows < search_large.block_rows
    for one, memory in ((search_small, 1 << 20), (search_large, 1 << 26)):
        one.add(unit(20_000), np.arange(20_000))
        products = one._workspace.numel() * one._workspace.element_size()
        assert one.block_rows * 24 * 6 + products <= memory


def test_the_error_bound_holds_for_every_product():
    import torch

    from beirnl.retrieval.exact import _Rounded

    left, right = unit(50, 384), unit(400, 384, seed=1)
    exact = left.astype(np.float64) @ right.astype(np.float64).T
    for dtype in (torch.float32, torch.bfloat16):
        queries, documents = (_Rounded(torch.from_numpy(side), dtype) for side in (left, right))
        products = queries.values.float().numpy() @ documents.values.float().numpy().T
        errors = queries.product_errors(documents).numpy()[:, None]
        assert (np.abs(products - exact) <= errors).all()
    assert errors.max() < 0.01


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_an_error(bad):
    vectors = unit(10)
    vectors[7, 3] = bad
    with pytest.raises(DataError, match="NaN or infinity; embed again"):
        ExactSearch(unit(2), 5).add(vectors, np.arange(10))
    with pytest.raises(DataError, match="NaN or infinity; embed again"):
        ExactSearch(vectors, 5)


def test_another_dimension_is_an_error():
    with pytest.raises(
        DataError, match="documents have 12 dimensions, queries 24; embed both with one model"
    ):
        ExactSearch(unit(2), 5).add(unit(4, 12), np.arange(4))
