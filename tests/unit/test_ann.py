import hashlib

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from usearch.index import Index

from beirnl.errors import DataError, StoreError
from beirnl.retrieval.ann import AnnIndex, build, recalls, rescored
from beirnl.retrieval.vectors import VectorFiles, vector_columns
from beirnl.schema import RUN

SETTINGS = {"connectivity": 16, "expansion_add": 64}


def unit(count, dimension=32, seed=0):
    """Vectors around a hundred topics: what approximate search is made for."""
    draw = np.random.default_rng(seed)
    topics = np.random.default_rng(99).standard_normal((100, dimension), np.float32)
    vectors = topics[draw.integers(0, 100, count)] + draw.standard_normal((count, dimension), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def files_of(folder, vectors, dtype="float32", shards=3):
    import pyarrow.parquet as pq

    folder.mkdir()
    paths = []
    for number, rows in enumerate(np.array_split(np.arange(len(vectors)), shards)):
        ids = pa.array([f"d{row}" for row in rows], pa.string())
        paths.append(folder / f"{number}.parquet")
        pq.write_table(pa.table({"id": ids, **vector_columns(vectors[rows], dtype)}), paths[-1])
    return VectorFiles(paths)


def index_of(folder, vectors, expansion=128, numbers="bf16", **settings):
    files = files_of(folder / "files", vectors, **settings)
    (folder / "index").mkdir()
    build(files, folder / "index", numbers=numbers, **SETTINGS)
    return AnnIndex(folder / "index", expansion)


def exact(queries, vectors, k, exclude=()):
    """Score and id of the best, from float64."""
    scores = (queries.astype(np.float64) @ vectors.astype(np.float64).T).astype(np.float32)
    return [
        sorted(((s, f"d{n}") for n, s in enumerate(row) if f"d{n}" not in exclude), reverse=True)[:k]
        for row in scores.tolist()
    ]


def found_by(indexes, queries, k, names=None, remove_self=False, threads=1):
    indexes = indexes if isinstance(indexes, list) else [indexes]
    names = pa.array(names or [f"q{n:04}" for n in range(len(queries))], pa.string())
    found = [i.candidates(queries, i.fetched(k + remove_self), threads=threads) for i in indexes]
    run = rescored(indexes, found, queries, names, k, remove_self=remove_self, threads=threads).to_pylist()
    return [[(r["score"], r["doc_id"]) for r in run if r["query_id"] == name] for name in names.to_pylist()]


@pytest.mark.parametrize("numbers", ["bf16", "i8"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_scores_are_exact_and_nearly_all_of_exact_search_is_found(tmp_path, numbers, dtype):
    vectors, queries = unit(4000), unit(50, seed=1)
    index = index_of(tmp_path, vectors, numbers=numbers, dtype=dtype)
    found = found_by(index, queries, 20, threads=2)
    expected = exact(queries, vectors.astype(dtype), 20)
    assert np.mean([len(set(f) & set(e)) / 20 for f, e in zip(found, expected, strict=True)]) > 0.99
    assert all(hits == sorted(hits, reverse=True) and len(set(hits)) == 20 for hits in found)


def test_the_same_vectors_give_the_same_files_whatever_the_shards(tmp_path):
    digests = set()
    for shards in (1, 2, 7):
        folder = tmp_path / str(shards)
        folder.mkdir()
        index_of(folder, unit(1500), shards=shards)
        digests.add(
            tuple(hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted((folder / "index").iterdir()))
        )
    assert len(digests) == 1


def test_the_expansion_is_set_after_opening(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((3060, 96), np.float32)
    vectors, queries = vectors[:3000], vectors[3000:]
    index_of(tmp_path, vectors)
    assert Index.restore(str(tmp_path / "index" / "index.usearch"), view=True).expansion_search == 64
    expected = exact(queries, vectors, 10)
    shares = []
    for expansion in (16, 1024):
        found = found_by(AnnIndex(tmp_path / "index", expansion), queries, 10)
        shares.append(np.mean([len(set(f) & set(e)) / 10 for f, e in zip(found, expected, strict=True)]))
    assert shares[0] < shares[1] - 0.01 and shares[1] > 0.99


def test_vectors_that_are_nearly_alike_are_all_found_when_all_are_asked_for(tmp_path):
    # Some of their nodes cannot be reached in the graph.
    alike = unit(1) + np.float32(1e-3) * unit(63, seed=2)
    assert found_by(index_of(tmp_path, alike), unit(9, seed=1), 100) == exact(unit(9, seed=1), alike, 100)


@pytest.mark.parametrize("queries", [0, 1, 3])
def test_k_larger_than_the_corpus_gives_no_invented_ids(tmp_path, queries):
    vectors = unit(30)
    found = found_by(index_of(tmp_path, vectors), unit(queries, seed=1), 1000)
    assert found == exact(unit(queries, seed=1), vectors, 1000)
    assert all(len(hits) == 30 for hits in found)


def test_self_matches_are_removed_before_the_cut(tmp_path):
    vectors = unit(200)
    index = index_of(tmp_path, vectors)
    found = found_by(index, vectors[[7, 8]], 5, names=["d7", "none"], remove_self=True)
    assert found[0] == exact(vectors[7:8], vectors, 5, exclude=("d7",))[0]
    assert found[1][0][1] == "d8"


def test_an_index_of_nothing_finds_nothing(tmp_path):
    assert found_by(index_of(tmp_path, unit(0), shards=1), unit(2), 5) == [[], []]
    (tmp_path / "none").mkdir()
    build(VectorFiles([]), tmp_path / "none", numbers="bf16", **SETTINGS)
    assert found_by(AnnIndex(tmp_path / "none", 64), unit(2), 5) == [[], []]


def test_many_equal_vectors_are_all_hits_of_their_own(tmp_path):
    vectors = np.concatenate([np.repeat(unit(1), 300, axis=0), unit(2000, seed=1)])
    (hits,) = found_by(index_of(tmp_path, vectors), vectors[:1], 100)
    assert len(set(hits)) == 100 and {score for score, _ in hits} == {exact(vectors[:1], vectors, 1)[0][0][0]}


def test_queries_of_another_dimension_are_an_error(tmp_path):
    with pytest.raises(
        DataError, match="documents have 32 dimensions, queries 12; embed both with one model"
    ):
        index_of(tmp_path, unit(20)).candidates(unit(1, 12), 5)


@pytest.mark.parametrize("content", [b"", b"no index of this library" * 9])
def test_a_file_that_is_no_index_is_named(tmp_path, content):
    index_of(tmp_path, unit(20))
    (tmp_path / "index" / "index.usearch").write_bytes(content)
    with pytest.raises(StoreError, match=r"index.usearch: .*; delete the artifact's folder and run again"):
        AnnIndex(tmp_path / "index", 64)


def run(rows):
    queries, documents, scores = zip(*rows, strict=True)
    return pa.table([pa.array(queries), pa.array(documents), pa.array(scores, pa.float32())], schema=RUN)


def test_recall_counts_equal_scores_as_hits():
    exact_run = run(
        [("a", "x", 3), ("a", "y", 2), ("a", "z", 1), ("b", "x", 1), ("c", "x", 5), ("c", "y", 4)]
    )
    found = run([("a", "x", 3), ("a", "other", 1), ("a", "far", 0.5), ("b", "w", 1), ("d", "x", 9)])
    expected = pl.DataFrame({"query_id": ["a", "b", "c"], "recall": [2 / 3, 1.0, 0.0]})
    assert recalls(found, exact_run).equals(expected)
    assert recalls(found, RUN.empty_table()).height == 0
