"""Stages of dense search over stored vectors, unit by unit, against a full sort in float64."""

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from beirnl.config import Runtime
from beirnl.errors import DataError, StageError, StoreError
from beirnl.retrieval.vectors import vector_columns
from beirnl.specs import Spec
from beirnl.stages import ann, dense
from beirnl.stages.base import Stage, Task, execute
from beirnl.stages.searching import SearchSpec, group
from beirnl.store.artifacts import REDUCE, Artifact, Manifest, close_artifact, content_digest
from beirnl.store.keys import artifact_key
from beirnl.store.writing import PartWriter

EXACT = Stage("search-exact", 1, dense.search_exact, dense.search_units, reduce=dense.merge_search)
INDEX = Stage("ann-index", 1, ann.build_ann, ann.ann_units)
ANN = Stage("search-ann", 2, ann.search_ann, ann.ann_search_units, reduce=ann.merge_ann)


def unit(count, dimension=24, seed=0):
    draw = np.random.default_rng(seed)
    topics = np.random.default_rng(99).standard_normal((60, dimension), np.float32)
    vectors = topics[draw.integers(0, 60, count)] + draw.standard_normal((count, dimension), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def close(folder: Path) -> Artifact:
    artifact = Artifact(folder)
    receipts, reduced = artifact.receipts(), artifact.receipt(REDUCE)
    content = content_digest(receipts, reduced)
    close_artifact(
        folder,
        Manifest(
            stage="s", label="l", key="k", spec={}, inputs={}, versions={}, content=content,
            receipts=tuple(receipts), reduced=reduced,
        ),
    )  # fmt: skip
    return Artifact(folder)


def stored(folder: Path, name: str, ids, vectors, shards=1, dtype="float32") -> Artifact:
    """An artifact of embeddings."""
    folder = folder / name
    for number, rows in enumerate(np.array_split(np.arange(len(ids)), shards)):
        out = PartWriter(folder, number, "test")
        columns = {"row": pa.array(rows), "id": pa.array([ids[row] for row in rows], pa.string())}
        table = pa.table(columns | vector_columns(vectors[rows], dtype))
        out.write(table, table.schema)
        out.commit()
    return close(folder)


def made(folder: Path, name: str, stage: Stage, spec: Spec, **inputs: Artifact) -> Artifact:
    """What a stage makes, as an executor would run it."""

    def task(number: int) -> Task:
        directories = {key: artifact.directory for key, artifact in inputs.items()}
        runtime = Runtime(threads=1, device="cpu")
        return Task(stage.name, "set/nl", spec, folder / name, directories, number, "test", folder, runtime)

    for number in range(stage.units(spec, inputs)):
        execute(stage, task(number), None)
    if stage.reduce:
        execute(stage, task(REDUCE), None)
    return close(folder / name)


def rows_of(artifact: Artifact):
    return [tuple(row.values()) for row in artifact.table().to_pylist()]


def oracle(query_ids, queries, ids, vectors, k, remove_self=False):
    scores = (queries.astype(np.float64) @ vectors.astype(np.float64).T).astype(np.float32)
    result = []
    for query, row in sorted(zip(query_ids, scores.tolist(), strict=True)):
        hits = [(s, i) for s, i in zip(row, ids, strict=True) if not (remove_self and i == query)]
        result += [(query, i, s) for s, i in sorted(hits, reverse=True)[:k]]
    return result


@pytest.fixture
def few_per_unit(monkeypatch):
    monkeypatch.setattr(dense, "SHARDS_PER_SEARCH", 2)
    monkeypatch.setattr(ann, "VECTORS_PER_INDEX", 400)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("remove_self", [False, True])
def test_exact_search_by_units_is_the_search_in_one_piece(tmp_path, few_per_unit, dtype, remove_self):
    vectors = np.concatenate([unit(900), np.repeat(unit(1), 100, axis=0)])
    ids = [f"{n}" for n in np.random.default_rng(1).permutation(1000)]
    names, queries = ids[20:40], vectors[20:40]
    corpus = stored(tmp_path, "corpus", ids, vectors, shards=5, dtype=dtype)
    asked = stored(tmp_path, "queries", names, queries, dtype=dtype)
    spec = SearchSpec(depth=30, remove_self_matches=remove_self)
    run = made(tmp_path, "run", EXACT, spec, rows=corpus, queries=asked)
    assert len(run.parts) == 3
    expected = oracle(names, queries.astype(dtype), ids, vectors.astype(dtype), 30, remove_self)
    assert rows_of(run) == expected


def test_a_search_over_int8_vectors_scores_what_they_stand_for(tmp_path, few_per_unit):
    from beirnl.retrieval.vectors import dequantise, quantise

    ids, vectors = [f"{n}" for n in range(500)], unit(500)
    corpus = stored(tmp_path, "corpus", ids, vectors, shards=3, dtype="int8")
    asked = stored(tmp_path, "queries", ["q"], unit(1, seed=5))
    run = made(tmp_path, "run", EXACT, SearchSpec(depth=10), rows=corpus, queries=asked)
    assert rows_of(run) == oracle(["q"], unit(1, seed=5), ids, dequantise(*quantise(vectors)), 10)


def test_a_shard_that_is_missing_or_differs_is_named(tmp_path):
    ids, asked = [f"{n}" for n in range(90)], stored(tmp_path, "queries", ["q"], unit(1))
    corpus = stored(tmp_path, "corpus", ids, unit(90), shards=3)
    path = corpus.directory / corpus.parts[1].file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match=f"{path.name}: has another checksum than its receipt; delete"):
        made(tmp_path, "run", EXACT, SearchSpec(depth=5), rows=corpus, queries=asked)
    path.unlink()
    with pytest.raises(StoreError, match=f"{path.name}: is missing; delete"):
        made(tmp_path, "again", EXACT, SearchSpec(depth=5), rows=corpus, queries=asked)


@pytest.mark.parametrize("search", ["exact", "ann"])
def test_stored_vectors_of_another_dimension_are_refused_with_both(tmp_path, few_per_unit, search):
    corpus = stored(tmp_path, "corpus", [f"{n}" for n in range(90)], unit(90, dimension=24), shards=3)
    asked = stored(tmp_path, "queries", ["q"], unit(1, dimension=12))
    with pytest.raises(
        DataError, match=r"^search-\w+ set/nl: documents have 24 dimensions, queries 12; embed both with one"
    ):
        if search == "exact":
            made(tmp_path, "run", EXACT, SearchSpec(depth=5), rows=corpus, queries=asked)
        index = made(tmp_path, "index", INDEX, ann.AnnIndexSpec(), rows=corpus)
        made(tmp_path, "run", ANN, ann.AnnSearchSpec(depth=5), index=index, queries=asked)


@pytest.mark.parametrize("search", ["exact", "ann"])
@pytest.mark.parametrize("spoilt", ["corpus", "queries"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_stored_vectors_that_hold_no_numbers_are_refused(tmp_path, few_per_unit, search, spoilt, bad):
    vectors = {"corpus": unit(90), "queries": unit(3, seed=1)}
    vectors[spoilt][2, 5] = bad
    corpus = stored(tmp_path, "corpus", [f"d{n}" for n in range(90)], vectors["corpus"], shards=3)
    asked = stored(tmp_path, "queries", ["q0", "q1", "q2"], vectors["queries"])
    where = r"part-00000-000-\w+.parquet: the vector of d2" if spoilt == "corpus" else "^search-.* vectors"
    with pytest.raises(DataError, match=where + r" (holds|hold) NaN or infinity; embed again"):
        if search == "exact":
            made(tmp_path, "run", EXACT, SearchSpec(depth=5), rows=corpus, queries=asked)
        index = made(tmp_path, "index", INDEX, ann.AnnIndexSpec(), rows=corpus)
        made(tmp_path, "run", ANN, ann.AnnSearchSpec(depth=5), index=index, queries=asked)


@pytest.fixture
def searched(tmp_path, few_per_unit):
    """An index of 1,000 vectors in three units, and 40 queries, half of them documents."""
    vectors = unit(1000)
    ids = [f"{n}" for n in np.random.default_rng(1).permutation(1000)]
    names = [*ids[:20], *(f"q{n}" for n in range(20))]
    queries = np.concatenate([vectors[:20], unit(20, seed=5)])
    corpus = stored(tmp_path, "corpus", ids, vectors, shards=6)
    asked = stored(tmp_path, "queries", names, queries)
    index = made(tmp_path, "index", INDEX, ann.AnnIndexSpec(), rows=corpus)
    assert len(index.parts) == 3 and index.rows == 1000
    return tmp_path, {"index": index, "queries": asked}, (names, queries, ids, vectors)


def test_approximate_search_with_room_is_exact_search(searched):
    folder, inputs, data = searched
    for remove_self in (False, True):
        spec = ann.AnnSearchSpec(depth=25, remove_self_matches=remove_self)
        run = made(folder, f"run-{remove_self}", ANN, spec, **inputs)
        assert rows_of(run) == oracle(*data, 25, remove_self)
        assert ann.recall_of(ann.recalls_of(run)) == ann.Recall(1.0, 1.0, 1.0, 40)


def test_recall_is_measured_on_a_sample_that_is_the_same_in_every_unit(searched):
    folder, inputs, _ = searched
    spec = ann.AnnSearchSpec(depth=25, recall_queries=10)
    run = made(folder, "run", ANN, spec, **inputs)
    again = made(folder, "again", ANN, spec, **inputs)
    assert ann.recall_of(ann.recalls_of(run)).queries == 10 and run.manifest.content == again.manifest.content
    assert len({row[0] for row in rows_of(run)}) == 40


def test_recall_under_the_threshold_fails_and_says_what_to_raise(searched, monkeypatch):
    folder, inputs, data = searched
    true = oracle(*data, 20)
    monkeypatch.setattr(ann.AnnIndex, "candidates", _forgetful(ann.AnnIndex.candidates))
    spec = ann.AnnSearchSpec(depth=20, expansion_search=30)
    with pytest.raises(StageError) as error:
        made(folder, "run", ANN, spec, **inputs)
    line = str(error.value)
    assert line.startswith("set/nl: approximate search finds 0.") and "40 queries" in line
    assert "min_recall = 0.95; raise expansion_search above 30" in line and "\n" not in line
    # The threshold judges and is no part of the key: units that are done are used again.
    lenient = ann.AnnSearchSpec(depth=20, expansion_search=30, min_recall=0.1)
    key = artifact_key("search-ann", 2, spec, {})
    assert key == artifact_key("search-ann", 2, lenient, {})
    assert key != artifact_key("search-ann", 2, ann.AnnSearchSpec(depth=20, expansion_search=31), {})
    monkeypatch.setattr(ann, "search_ann", None)
    run = made(folder, "run", ANN, lenient, **inputs)
    recall = ann.recall_of(ann.recalls_of(run))
    found = {row[:2] for row in rows_of(run)}
    assert recall.mean == pytest.approx(sum(row[:2] in found for row in true) / len(true))
    assert 0.1 < recall.low < recall.mean < recall.high < 0.95


def _forgetful(search):
    """A search that leaves every third document out."""

    def forgetful(self, queries, depth, **settings):
        found = search(self, queries, depth, **settings)
        kept = found[1] % 3 > 0
        return tuple(column[kept] for column in found)

    return forgetful


def test_interval_of_the_recall_is_over_queries():
    values = np.repeat([1.0, 0.9], [90, 10])
    recall = ann.recall_of(pl.DataFrame({"recall": values}))
    half = 1.96 * values.std() / 10
    assert recall.mean == pytest.approx(0.99)
    assert (recall.low, recall.high) == pytest.approx((0.99 - half, 0.99 + half), abs=1.5e-3)
    assert ann.recall_of(pl.DataFrame({"recall": []}, schema={"recall": pl.Float64})) is None


def test_shards_of_units_are_consecutive_and_complete():
    assert [list(group(n, 3, 7)) for n in range(3)] == [[0, 1], [2, 3], [4, 5, 6]]
    assert [list(group(n, 2, 1)) for n in range(2)] == [[], [0]]
