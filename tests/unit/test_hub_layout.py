"""Reading the hub's Parquet layout through the functions that read BEIR folders."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from beir_folder import doc, query, write_beir

from beirnl.datasets import beir
from beirnl.errors import DataError
from beirnl.store.keys import file_sha256

TEXTS = [{"_id": "a", "title": "t", "text": "one"}, {"_id": "b", "title": None, "text": None}]
JUDGED = [{"query-id": "q", "corpus-id": "a", "score": 1}]


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "corpus/corpus-00000-of-00002.parquet", TEXTS)
    write(tmp_path / "corpus/corpus-00001-of-00002.parquet", [{"_id": "c", "title": "", "text": "three"}])
    write(tmp_path / "queries/queries-00000-of-00001.parquet", [{"_id": "q", "text": "what"}])
    write(tmp_path / "qrels/test-00000-of-00001.parquet", JUDGED)
    return tmp_path


def test_files_of_a_table_follow_one_another(folder):
    assert beir.locate(folder) == {"": folder}
    path = beir.corpus_path(folder)
    assert list(beir.read_records(path)) == [(1, "a", "t", "one"), (2, "b", "", ""), (3, "c", "", "three")]
    assert beir.count_rows(path) == 3
    assert list(beir.read_records(beir.queries_path(folder))) == [(1, "q", "", "what")]
    assert list(beir.read_qrels(beir.qrels_path(folder, "test"))) == [(1, "q", "a", 1)]


def test_a_split_in_several_files_is_read_whole(folder):
    for number in range(2):
        rows = [{"query-id": "q", "corpus-id": str(number), "score": 1.0}]
        write(folder / f"data/dev-{number:05d}-of-00002.parquet", rows)
    path = beir.qrels_path(folder, "dev")
    assert [judgement.doc_id for judgement in beir.read_qrels(path)] == ["0", "1"]
    with pytest.raises(DataError, match=r"no split 'train' \(present: test, dev\)"):
        beir.qrels_path(folder, "train")


def test_content_is_that_of_all_files(folder):
    path = beir.corpus_path(folder)
    before = beir.content_sha256(path, file_sha256)
    queries = beir.queries_path(folder)
    assert beir.content_sha256(queries, file_sha256) == file_sha256(next(queries.glob("*.parquet")))
    write(path / "corpus-00001-of-00002.parquet", [{"_id": "c", "title": "", "text": "other"}])
    assert beir.content_sha256(path, file_sha256) != before


def test_other_names_and_types_of_columns(tmp_path):
    write(tmp_path / "corpus/train.parquet", [{"id": 7, "text": "seven"}])
    assert list(beir.read_records(beir.corpus_path(tmp_path))) == [(1, "7", "", "seven")]


def test_a_beir_folder_is_read_as_before(tmp_path):
    write_beir(tmp_path, [doc("1")], [query("q")], [("q", "1", 1)])
    path = beir.corpus_path(tmp_path)
    assert path.name == "corpus.jsonl" and beir.content_sha256(path, file_sha256) == file_sha256(path)


def test_parts_in_this_layout(tmp_path):
    for part in ("android", "english"):
        write(tmp_path / part / "corpus/corpus-00000-of-00001.parquet", TEXTS)
    assert list(beir.locate(tmp_path)) == ["android", "english"]


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("corpus", [{"name": "a", "text": "x"}], "has no column '_id'"),
        ("corpus", [{"_id": "a", "title": "x"}], "has no column 'text'"),
        ("corpus", [{"_id": "a", "text": ["x"]}], "cannot be read as Parquet"),
        ("corpus", [{"_id": None, "text": "x"}], "has an empty _id"),
        ("qrels", [{"query-id": "q", "corpus-id": "a", "score": 0.5}], "label '0.5' is not a whole number"),
        ("qrels", [{"query-id": "q", "corpus-id": "a"}], "has no column 'score'"),
    ],
)
def test_what_cannot_be_read_names_the_file(tmp_path, name, rows, message):
    path = tmp_path / name / "test-00000-of-00001.parquet"
    write(path, rows)
    with pytest.raises(DataError, match=message) as caught:
        list(beir.read_qrels(path) if name == "qrels" else beir.read_records(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_no_parquet(tmp_path):
    path = tmp_path / "corpus" / "corpus.parquet"
    path.parent.mkdir()
    path.write_text("version https://git-lfs.github.com/spec/v1")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(beir.read_records(tmp_path / "corpus"))


@pytest.mark.parametrize(
    ("line", "doc_id"),
    [
        ('q1\t"""Love""_and_Theft"\t1', '"Love"_and_Theft'),
        ('q1\tsay_"hi"\t1', 'say_"hi"'),
        ('q1\t"unfinished\t1', '"unfinished'),
    ],
)
def test_quotation_marks_in_qrels_are_read_as_beir_writes_them(tmp_path, line, doc_id):
    path = tmp_path / "test.tsv"
    path.write_text(f"query-id\tcorpus-id\tscore\n{line}\n")
    assert [judgement.doc_id for judgement in beir.read_qrels(path)] == [doc_id]
