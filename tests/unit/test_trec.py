"""TREC files: what is written is read back, by this package and by a split at whitespace."""

import gzip

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import pytrec_eval
from hypothesis import example, given, settings
from hypothesis import strategies as st

from beirnl import schema
from beirnl.errors import DataError
from beirnl.evaluation.runs.trec import escape, read_run, unescape, write_qrels, write_run

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12) | st.text(
    " \t\n\r%0123456789ABCDEFabcdef,\"'#\u00a0\u3000é", min_size=1, max_size=12
)


def run_of(*rows):
    return pa.Table.from_pylist(
        [dict(zip(schema.RUN.names, row, strict=True)) for row in rows], schema=schema.RUN
    )


@given(ids)
@example("%20")
@example("% 20")
@example("%%2520 %")
@example("a\u2003b\u0085c")
@example("\ufeffid\0")
def test_the_escape_is_reversible_and_leaves_no_whitespace(text):
    written = escape(text)
    assert unescape(written) == text
    assert written.split() == [written]


@pytest.mark.parametrize(
    "text, written",
    [
        ("MED-10", "MED-10"),
        ("a b", "a%20b"),
        ("a\tb", "a%09b"),
        ("100%", "100%"),
        ("100%25", "100%2525"),
        ("coëfficiënt", "coëfficiënt"),
        ('a,"b"#', 'a,"b"#'),
        ("a\u00a0b", "a%C2%A0b"),
    ],
)
def test_only_what_must_be_is_escaped(text, written):
    assert escape(text) == written


def test_an_escape_that_was_not_written_here_is_left_alone():
    assert unescape("caf%E9") == "caf%E9"
    assert unescape("100%25") == "100%25"


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.sets(st.tuples(ids, ids), min_size=1, max_size=8),
    suffix=st.sampled_from(["", ".gz"]),
    data=st.data(),
)
def test_any_ids_and_scores_survive_and_pytrec_eval_reads_them(tmp_path_factory, pairs, suffix, data):
    path = tmp_path_factory.mktemp("run") / f"a.run{suffix}"
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    rows = [(query, doc, data.draw(finite)) for query, doc in pairs]
    write_run(path, run_of(*rows), "my system")
    assert {tuple(row.values()) for row in read_run(path).to_pylist()} == set(rows)
    text = gzip.decompress(path.read_bytes()) if suffix else path.read_bytes()
    other = pytrec_eval.parse_run(text.decode().splitlines())
    for query, doc, score in rows:
        assert np.float32(other[escape(query)][escape(doc)]) == np.float32(score)


def test_lines_have_six_columns_in_trec_evals_order(tmp_path):
    path = tmp_path / "folder" / "x.run"
    write_run(
        path, run_of(("q2", "a", 1.0), ("q1", "b c", 0.1), ("q2", "b", 1.0), ("q2", "c", 2.0)), "BM25 nl"
    )
    assert path.read_text() == (
        "q2 Q0 c 1 2.0 BM25%20nl\n"
        "q2 Q0 b 2 1.0 BM25%20nl\n"
        "q2 Q0 a 3 1.0 BM25%20nl\n"
        "q1 Q0 b%20c 1 0.1 BM25%20nl\n"
    )
    assert read_run(path).schema == schema.RUN
    assert read_run(path)["doc_id"].to_pylist() == ["c", "b", "a", "b c"]


def test_an_empty_run_is_an_empty_file(tmp_path):
    write_run(tmp_path / "x", run_of(), "none")
    assert (tmp_path / "x").read_bytes() == b""
    assert read_run(tmp_path / "x").equals(schema.RUN.empty_table())


def test_compression_is_repeatable(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_run(tmp_path / name, run_of(("q", "d", 0.5)), "t")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"q Q0 d 1 0.5 t\n"


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None])
def test_a_score_that_is_no_number_is_not_written(tmp_path, score):
    with pytest.raises(DataError, match=r"x\.run: score .* of document 'd', query 'q'"):
        write_run(tmp_path / "x.run", run_of(("q", "a", 1.0), ("q", "d", score)), "t")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_id_is_not_written(tmp_path):
    with pytest.raises(DataError, match="a doc_id is empty"):
        write_run(tmp_path / "x", run_of(("q", "", 1.0)), "t")
    with pytest.raises(DataError, match="a query_id is empty"):
        write_qrels(tmp_path / "x", pl.DataFrame({"query_id": [None], "doc_id": ["d"], "relevance": [1]}))


@pytest.mark.parametrize(
    "line, says",
    [
        (b"q Q0 d 1 0.5", "5 columns instead of 6"),
        (b"q Q0 my doc 1 0.5 tag", "7 columns instead of 6"),
        (b"q d 0.5", "3 columns instead of 6"),
        (b"q Q0 d 1 nan tag", "score of 'd' is not a finite number"),
        (b"q Q0 d 1 1e99 tag", "score of 'd' is not a finite number"),
        (b"q Q0 d 1 high tag", "score 'high' is not a number"),
        (b"q Q0 d\xe9 1 0.5 tag", "is not UTF-8"),
        (b"q0 Q0 first 3 0.1 tag", "document 'first' stands twice under one query"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_malformed_line_is_named(tmp_path, line, says, suffix):
    path = tmp_path / f"x.run{suffix}"
    data = b"q0 Q0 first 1 0.9 tag\n\n" + line + b"\n"
    path.write_bytes(gzip.compress(data) if suffix else data)
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:3: {says}")


def test_a_missing_or_torn_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="there is no such run file"):
        read_run(tmp_path / "x.run")
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"q Q0 d 1 0.5 t\n")[:-6])
    with pytest.raises(DataError, match="is not a whole gzip file"):
        read_run(tmp_path / "x.gz")


def test_columns_may_be_parted_by_tabs_and_lines_end_in_crlf(tmp_path):
    (tmp_path / "x").write_bytes(b"q\tQ0\td\t1\t 0.5\ttag\r\n")
    assert read_run(tmp_path / "x").to_pylist() == [{"query_id": "q", "doc_id": "d", "score": 0.5}]


def test_columns_after_the_sixth_are_ignored_only_when_asked(tmp_path):
    (tmp_path / "x").write_bytes(b"q Q0 d 1 0.5 tag and more\n")
    assert len(read_run(tmp_path / "x", extra_columns=True)) == 1


def test_qrels_have_four_columns(tmp_path):
    qrels = pa.table({"query_id": ["q 1", "q2"], "doc_id": ["d", "e%20"], "relevance": [2, 0]})
    write_qrels(tmp_path / "x.qrels", qrels)
    assert (tmp_path / "x.qrels").read_text() == "q%201 0 d 2\nq2 0 e%2520 0\n"
    assert pytrec_eval.parse_qrel((tmp_path / "x.qrels").read_text().splitlines())["q%201"] == {"d": 2}
