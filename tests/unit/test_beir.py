"""Reading BEIR folders: what loads, and which errors name file and line."""

import json

import pytest
from beir_folder import doc, query, write_beir

from beirnl.datasets import beir
from beirnl.errors import DataError


@pytest.mark.parametrize(
    "damage",
    [
        b"not json\n",
        b'{"_id": "2", "text": "cut in the mid',
        b'{"_id": "2", "text": "\xff\xfe"}\n',
        b'{"_id": "2", "text": "a\x00b"}\n',
        b'["2", "text"]\n',
        b'{"text": "no id"}\n',
        b'{"_id": "", "text": "empty id"}\n',
        b'{"_id": "2", "text": ["a list"]}\n',
        b'{"_id": "2", "text": "lone \\ud800 surrogate"}\n',
    ],
)
def test_a_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(json.dumps(doc("1")).encode() + b"\n" + damage)
    with pytest.raises(DataError) as caught:
        list(beir.read_records(path))
    assert f"{path}:2" in str(caught.value) and "\n" not in str(caught.value)


def test_byte_order_mark_crlf_and_blank_lines(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"_id": "1", "text": "a"}\r\n\r\n{"_id": "2", "text": "b"}\r\n\n')
    assert [(r.line, r.id, r.text) for r in beir.read_records(path)] == [(1, "1", "a"), (3, "2", "b")]


def test_missing_null_and_empty_texts_are_empty(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text(
        '{"_id": "1"}\n{"_id": "2", "text": null, "title": null}\n{"_id": "3", "title": "", "text": ""}\n'
    )
    assert [(r.id, r.title, r.text) for r in beir.read_records(path)] == [(i, "", "") for i in "123"]


def test_identifiers_that_are_numbers_become_text(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": 44, "text": "a"}\n{"_id": 45.0, "text": "b"}\n{"_id": "46", "text": "c"}\n')
    assert [r.id for r in beir.read_records(path)] == ["44", "45", "46"]


@pytest.mark.parametrize(
    "text",
    [
        "query-id\tcorpus-id\tscore\nq1\td 1\t1\n",
        "q1\td 1\t1\n",
        "q1\t0\td 1\t1\n",
        "q1\td 1\t1.0\n",
        "\ufeffquery-id\tcorpus-id\tscore\r\nq1\td 1\t1\r\n\r\n",
    ],
)
def test_forms_of_qrels(tmp_path, text):
    path = tmp_path / "test.tsv"
    path.write_text(text)
    assert [(j.query_id, j.doc_id, j.relevance) for j in beir.read_qrels(path)] == [("q1", "d 1", 1)]


def test_qrels_separated_by_blanks(tmp_path):
    path = tmp_path / "test.txt"
    path.write_text("301 0 CR93E-10279 0\n301 0 CR93E-1282 1\n")
    assert [(j.doc_id, j.relevance) for j in beir.read_qrels(path)] == [("CR93E-10279", 0), ("CR93E-1282", 1)]


@pytest.mark.parametrize("label", ["0.5", "yes", "1e20", str(2**40)])
def test_a_first_line_with_a_bad_label_is_no_header(tmp_path, label):
    path = tmp_path / "test.tsv"
    path.write_text(f"q1\td1\t{label}\nq2\td2\t1\n")
    with pytest.raises(DataError, match=r"test\.tsv:1"):
        list(beir.read_qrels(path))


@pytest.mark.parametrize("line", ["q1\td1", "q1\t0\td1\t1\textra", "q1\td1\thigh", "q1\td1\t0.5"])
def test_a_malformed_qrels_line_is_named(tmp_path, line):
    path = tmp_path / "test.tsv"
    path.write_text(f"query-id\tcorpus-id\tscore\n{line}\n")
    with pytest.raises(DataError, match=r"test\.tsv:2"):
        list(beir.read_qrels(path))


def test_a_split_that_is_not_there_lists_those_that_are(tmp_path):
    folder = write_beir(tmp_path, [doc("1")], [query("q")], [("q", "1", 1)], split="dev")
    with pytest.raises(DataError, match=r"no split 'validation' \(present: dev\)"):
        beir.qrels_path(folder, "validation")


def test_a_folder_of_folders_is_a_dataset_in_parts(tmp_path):
    for part in ("android", "english"):
        write_beir(tmp_path / part, [doc("1")], [query("q")], [("q", "1", 1)])
    assert list(beir.locate(tmp_path)) == ["android", "english"]


def test_a_folder_that_is_not_there_or_empty(tmp_path):
    with pytest.raises(DataError, match="is not there"):
        beir.locate(tmp_path / "none")
    with pytest.raises(DataError, match=r"holds no corpus\.jsonl"):
        beir.locate(tmp_path)
