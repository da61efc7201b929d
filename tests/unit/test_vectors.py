import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beirnl.errors import DataError
from beirnl.retrieval.vectors import (
    RowVectors,
    VectorFiles,
    dequantise,
    quantise,
    vector_columns,
    vectors_of,
)

DTYPES = ["float32", "float16", "int8"]


def unit(count, dimension=20, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dimension), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write(folder, shards, dtype="float32"):
    """Shards as embeddings tables; document n of shard s is called ``s-n``."""
    paths = []
    for shard, vectors in enumerate(shards):
        ids = pa.array([f"{shard}-{n}" for n in range(len(vectors))], pa.string())
        paths.append(folder / f"{shard}.parquet")
        rows = pa.array(np.arange(len(vectors)))
        pq.write_table(pa.table({"row": rows, "id": ids, **vector_columns(vectors, dtype)}), paths[-1])
    return paths


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 7, 64, 1000])
def test_blocks_hold_all_vectors_in_order_whatever_the_shards(tmp_path, dtype, rows):
    shards = [unit(n, seed=n) for n in (30, 1, 64, 3)]
    files = VectorFiles(write(tmp_path, shards, dtype))
    blocks = [(begin, vectors.copy()) for begin, vectors in files.blocks(rows)]
    assert [begin for begin, _ in blocks] == list(range(0, 98, rows))
    assert {len(vectors) for _, vectors in blocks[:-1]} <= {rows}
    expected = np.concatenate(shards)
    if dtype == "int8":
        expected = dequantise(*quantise(expected))
    found = np.concatenate([vectors for _, vectors in blocks])
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected.astype(dtype if dtype != "int8" else np.float32))
    assert (files.rows, files.dimension, files.dtype) == (98, 20, np.dtype(dtype))
    assert files.ids().to_pylist() == [f"{s}-{n}" for s, m in enumerate((30, 1, 64, 3)) for n in range(m)]
    for path, shard in zip(files.paths, np.split(found, [30, 31, 95]), strict=True):
        np.testing.assert_array_equal(vectors_of(pq.read_table(path)), shard)


def test_int8_keeps_length_and_comes_near_in_direction():
    vectors = np.concatenate([unit(500, 384) * np.float32(3), np.zeros((1, 384), np.float32)])
    values, scales = quantise(vectors)
    assert (
        values.dtype == np.int8
        and scales.dtype == np.float32
        and np.abs(values[:-1]).max(axis=1).min() == 127
    )
    again = dequantise(values, scales)
    np.testing.assert_allclose(np.linalg.norm(again, axis=1), np.linalg.norm(vectors, axis=1), rtol=1e-6)
    assert ((again * vectors).sum(axis=1)[:-1] / 9).min() > 0.999
    assert not again[-1].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_mapped_vectors_are_those_of_the_files(tmp_path, dtype):
    files = VectorFiles(write(tmp_path, [unit(40), unit(25, seed=1)], dtype))
    handed_on = np.concatenate([stored.vectors() for stored in RowVectors.write(files, tmp_path)])
    expected = np.concatenate([vectors.copy() for _, vectors in files.blocks(9)])
    mapped = RowVectors(tmp_path)
    np.testing.assert_array_equal(handed_on, expected)
    np.testing.assert_array_equal(mapped.take(np.array([64, 0, 41, 41])), expected[[64, 0, 41, 41]])
    np.testing.assert_array_equal(np.concatenate([v for _, v in mapped.blocks(11)]), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_that_is_none_names_file_and_document(tmp_path, dtype, bad):
    spoilt = unit(20_000, 4, seed=1)
    spoilt[17_003, 2] = bad
    with np.errstate(invalid="ignore"):
        paths = write(tmp_path, [unit(5, 4), spoilt], dtype)
    with pytest.raises(
        DataError, match=r"1.parquet: the vector of 1-17003 holds NaN or infinity; embed again"
    ):
        list(VectorFiles(paths).blocks(100))


def test_finite_numbers_whose_sum_overflows_are_no_error(tmp_path):
    huge = np.full((4, 3), 3e38, np.float32)
    (block,) = VectorFiles(write(tmp_path, [huge])).blocks(10)
    np.testing.assert_array_equal(block.vectors, huge)


def test_another_dimension_or_format_in_one_shard_names_it(tmp_path):
    first, _ = write(tmp_path, [unit(3), unit(3)])
    (tmp_path / "x").mkdir()
    other, half = write(tmp_path / "x", [unit(3, 12)])[0], tmp_path / "half.parquet"
    with pytest.raises(
        DataError, match=r"x/0.parquet: vectors are float32 of 12 dimensions, those of 0.parquet"
    ):
        VectorFiles([first, other])
    pq.write_table(pa.table({"id": ["a"], **vector_columns(unit(1), "float16")}), half)
    with pytest.raises(
        DataError, match=r"half.parquet: vectors are float16 of 20 .* embed all shards with one"
    ):
        VectorFiles([first, half])


def test_no_files_and_empty_files(tmp_path):
    assert VectorFiles([]).rows == 0 and list(VectorFiles([]).blocks(5)) == []
    files = VectorFiles(write(tmp_path, [unit(0), unit(2)]))
    assert [len(vectors) for _, vectors in files.blocks(5)] == [2]
    assert len(VectorFiles([]).ids()) == 0
