"""Partition by content, duplicates, agreement of corpus, queries and qrels."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl.datasets.importing import (
    Partitioner,
    empty_ids,
    is_empty,
    read_queries,
    shard_count,
    shards_of,
    text_digest,
    text_digests,
)
from beirnl.datasets.rows import Record, batches
from beirnl.errors import DataError


@given(
    st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=40), st.sampled_from([1, 2, 8, 64])
)
def test_every_row_lands_once_and_equal_texts_meet(texts, shards):
    written: dict[int, list[dict]] = {}
    partitioner = Partitioner(
        shards, lambda shard, table: written.setdefault(shard, []).extend(table.to_pylist())
    )
    for batch in batches(Record(n + 1, f"d{n}", *text) for n, text in enumerate(texts)):
        partitioner.add(batch)
    partitioner.flush()
    rows = [row for part in written.values() for row in part]
    assert sorted(row["row"] for row in rows) == list(range(len(texts)))
    places: dict[tuple, set[int]] = {}
    for shard, part in written.items():
        assert [row["row"] for row in part] == sorted(row["row"] for row in part)
        for row in part:
            places.setdefault((row["title"], row["text"]), set()).add(shard)
    assert all(len(found) == 1 for found in places.values())


def one_batch(*records):
    (batch,) = batches(records)
    return batch


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), min_size=1, max_size=9))
def test_digests_of_a_batch_are_those_of_its_documents(texts):
    batch = one_batch(*(Record(1, "x", *text) for text in texts))
    assert text_digests(batch["title"], batch["text"]).tolist() == [text_digest(*text) for text in texts]


@given(
    st.lists(
        st.text(st.sampled_from(" \t\n\u00a0\u2003\x1c\x85a\u00e9\u65e5"), max_size=3), min_size=1, max_size=9
    )
)
def test_empty_documents_of_a_batch(texts):
    found = [Record(n, str(n), "", text) for n, text in enumerate(texts)]
    assert empty_ids(one_batch(*found)) == [record.id for record in found if not record.text.strip()]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=9))
def test_a_shard_of_more_shards_lies_inside_a_shard_of_fewer(digests):
    contents = np.array(digests, np.uint64)
    assert shards_of(contents, 64).tolist() == [digest * 64 // 2**64 for digest in digests]
    assert (shards_of(contents, 64) // 8).tolist() == shards_of(contents, 8).tolist()
    assert not shards_of(contents, 1).any()


@pytest.mark.parametrize(
    ("documents", "shards"),
    [(0, 1), (500, 1), (501, 2), (5_183, 8), (80_000, 8), (80_001, 16), (5_420_000, 1024)],
)
def test_the_number_of_shards_is_a_power_of_two(documents, shards):
    assert shard_count(documents) == shards
    assert shard_count(documents, 10**9) == 1


def test_one_id_with_two_texts_names_both_lines(tmp_path):
    partitioner = Partitioner(4, lambda shard, table: None)
    lines = ((1, "x", "a"), (2, "y", "b"), (5, "x", "c"))
    for line, name, text in lines:
        partitioner.add(one_batch(Record(line, name, "", text)))
    partitioner.flush()
    with pytest.raises(DataError, match="'x' has two texts, in lines 1 and 5"):
        partitioner.duplicates(tmp_path)


def test_one_id_with_one_text_is_reported():
    partitioner = Partitioner(4, lambda shard, table: None)
    for line in (1, 2):
        partitioner.add(one_batch(Record(line, "x", "t", "a")))
    partitioner.flush()
    assert partitioner.duplicates(Path("corpus.jsonl")) == ["x"]


@pytest.mark.parametrize(
    ("title", "text", "empty"),
    [("", "", True), (" ", "\n\t", True), ("", "\u00a0", True), ("T", "", False), ("", "?", False)],
)
def test_a_record_of_white_space_is_empty(title, text, empty):
    assert is_empty(Record(1, "x", title, text)) is empty


def test_judged_queries_without_a_text_are_kept_and_warned_of(tmp_path):
    texts = {"q1": "what are owls", "q2": "", "q3": " \\n", "q4": "", "q5": "tea"}
    path = tmp_path / "queries.jsonl"
    path.write_text("".join(f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in texts.items()))
    table, warnings = read_queries(path, {"q1", "q2", "q3"})
    assert table["id"].to_pylist() == ["q1", "q2", "q3"]
    assert warnings == ["2 queries have no text; kept: q2, q3"]
    assert read_queries(path, {"q1", "q5"})[1] == []
