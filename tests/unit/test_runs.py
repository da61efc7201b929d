"""Runs that were made elsewhere: every format gives the same run, and what is wrong is said in one line."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beirnl.errors import DataError
from beirnl.evaluation import runs
from beirnl.schema import RUN

HITS = {"q1": {"d1": 1.5, "d2": 2.5, "d10": 2.5}, "q2": {"d1": -3.0}}
ORDERED = [("q1", "d2", 2.5), ("q1", "d10", 2.5), ("q1", "d1", 1.5), ("q2", "d1", -3.0)]


def trec(hits):
    return "".join(
        f"{q} Q0 {d} {rank} {score} x\n"
        for q, found in hits.items()
        for rank, (d, score) in enumerate(found.items())
    ).encode()


def parquet(path, names=("query_id", "doc_id", "score"), hits=HITS, kind="float64"):
    rows = [(q, d, s) for q, found in hits.items() for d, s in found.items()]
    columns = [pa.array([row[at] for row in rows]) for at in range(2)]
    columns.append(pa.array([row[2] for row in rows], kind))
    pq.write_table(pa.table(columns, names=list(names)), path)


def rows_of(table):
    assert table.schema == RUN
    return [tuple(row.values()) for row in table.to_pylist()]


def test_all_formats_read_the_same(tmp_path):
    text = json.dumps(HITS).encode()
    (tmp_path / "a.trec").write_bytes(trec(HITS))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(trec(HITS)))
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + text)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text))
    parquet(tmp_path / "a.parquet")
    parquet(tmp_path / "ranx.parquet", ("q_id", "doc_id", "score"))
    parquet(tmp_path / "single.parquet", kind="float32")
    for file in sorted(tmp_path.iterdir()):
        assert rows_of(runs.read(file)) == ORDERED, file.name
        assert runs.depth(runs.read(file)) == 3


def test_a_run_without_hits_is_empty(tmp_path):
    (tmp_path / "a.json").write_text('{"q1": {}}')
    assert runs.read(tmp_path / "a.json").num_rows == runs.depth(RUN.empty_table()) == 0


@pytest.mark.parametrize(
    "text, said",
    [
        ('{"q1": {"d1": NaN}}', "query 'q1': the score of document 'd1' is not a finite number (nan)"),
        ('{"q1": {"d1": 1e39}}', "query 'q1': the score of document 'd1' is not a finite number (1e+39)"),
        ('{"q1": {"d1": 1, "d1": 2}}', "query 'q1': document 'd1' stands twice under one query"),
        ('{"q1": {"d1": 1}, "q1": {"d1": 2}}', "query 'q1': document 'd1' stands twice under one query"),
        ('{"q1": {"d1": "1"}}', "query 'q1': the score of document 'd1' is not a number"),
        ('{"q1": {"d1": true}}', "query 'q1': the score of document 'd1' is not a number"),
        ('{"q1": {"": 1}}', "query 'q1': a query or document has no id"),
        ('{"ndcg": 0.5}', "query 'ndcg': is not a JSON object"),
        ("[1]", "is not a JSON object"),
        ('{"q1": {"d1": 1}', "is not JSON"),
        ("\xff", "is not JSON"),
    ],
)
def test_what_is_wrong_with_json_is_said(tmp_path, text, said):
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError) as error:
        runs.read(path)
    assert f"{path}" in str(error.value) and said in str(error.value) and "\n" not in str(error.value)


def test_what_is_wrong_with_other_files_is_said(tmp_path):
    (tmp_path / "a.trec").write_bytes(trec({"q": {"d": float("nan")}}))
    (tmp_path / "twice.trec").write_bytes(trec({"q": {"d": 1}}) * 2)
    (tmp_path / "a.json.gz").write_bytes(b"{}")
    (tmp_path / "a.parquet").write_bytes(b"{}")
    parquet(tmp_path / "columns.parquet", ("query", "doc_id", "score"))
    parquet(tmp_path / "nan.parquet", hits={"q": {"d": float("nan")}})
    parquet(tmp_path / "type.parquet", hits={"q": {"d": "high"}}, kind="string")
    for name, said in {
        "a.trec": "a.trec:1: score of 'd' is not a finite number",
        "twice.trec": "twice.trec:2: document 'd' stands twice",
        "a.json.gz": "is not a whole gzip file",
        "a.parquet": "is not a Parquet file",
        "columns.parquet": "has no column query_id",
        "nan.parquet": "the score of document 'd' is not a finite number",
        "type.parquet": "has a column of another type",
        "absent.trec": "there is no such run file",
        "absent.json": "there is no such run file",
        "absent.parquet": "there is no such run file",
    }.items():
        with pytest.raises(DataError, match=said):
            runs.read(tmp_path / name)


@pytest.mark.parametrize(
    "files, expected",
    [
        (["a/x.trec", "b/y.json.gz"], ["x", "y"]),
        (["a/x.trec", "b/x.trec", "b/y"], ["a", "b", "y"]),
        (["a/runs/x.trec", "b/runs/x.json"], ["a", "b"]),
        (["a/1/x.trec", "b/2/x.trec"], ["1", "2"]),
        (["a/1/x.trec", "b/1/x.trec", "b/2/x.trec"], ["x", "x", "x"]),
        (["x.trec", "x.json"], ["x", "x"]),
        (["runs/sparse/x.trec", "x.trec"], ["sparse", Path.cwd().name]),
    ],
)
def test_runs_are_called_by_their_files_or_else_by_the_folders_that_tell_them_apart(files, expected):
    assert runs.names([Path(file) for file in files]) == expected
