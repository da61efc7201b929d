"""TREC's documents and topics, and the forms of files beside BEIR's."""

import gzip

import pytest

from beirnl.datasets import beir, sgml
from beirnl.errors import DataError

DOCUMENTS = """<DOC>
<DOCNO> AP-1 </DOCNO>
<HEAD>Cats &amp; dogs</HEAD>
<DATELINE>PARIS</DATELINE>
<TEXT>
   <P>First  line,
second line.</P>
</TEXT>
<TEXT>More.</TEXT>
</DOC>
<DOC><DOCNO>AP-2</DOCNO><TITLE></TITLE><TEXT></TEXT></DOC>

<doc>
<docno>AP-3</docno>
<title>Only a body</title>
<author>A. Writer</author> a &lt; b and c > d
</doc>
"""
TOPICS = """<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.

<narr> Narrative: Long.
</top>
<top><num>302</num><title></title><desc>Description: The text of a topic without a title.</desc></top>
<topics><topic number="303">
<query>coronavirus origin</query><question>where from</question>
</topic></topics>
"""


def test_documents(tmp_path):
    path = tmp_path / "docs.trec"
    path.write_text(DOCUMENTS)
    assert list(sgml.read(path)) == [
        (1, "AP-1", "Cats & dogs", "First line, second line. More."),
        (11, "AP-2", "", ""),
        (13, "AP-3", "Only a body", "A. Writer a < b and c > d"),
    ]
    assert beir.count_rows(path) == 3


def test_topics(tmp_path):
    path = tmp_path / "topics.txt"
    path.write_text(TOPICS)
    assert [(record.id, record.text) for record in sgml.read(path)] == [
        ("301", "International Organized Crime"),
        ("302", "The text of a topic without a title."),
        ("303", "coronavirus origin"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>cut", 1, "does not end"),
        ("<DOC>\n<DOCNO>1</DOCNO>\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\n<DOC>\n</DOC>", 4, "does not end"),
        ("<DOC><DOCNO>1</DOCNO></DOC><DOC><DOCNO>2</DOCNO></DOC>", 1, "on a line of its own"),
        ("<DOC>\n<TEXT>no number</TEXT>\n</DOC>", 1, "has an empty _id"),
        ("<DOC>\n<DOCNO>1</DOCNO>\n\0</DOC>", 3, "holds a NUL byte"),
    ],
)
def test_damage_is_named(tmp_path, text, line, said):
    path = tmp_path / "docs.trec"
    path.write_text(text)
    with pytest.raises(DataError, match=said) as caught:
        list(sgml.read(path))
    assert str(caught.value).startswith(f"{path}:{line}:")


def test_a_folder_in_trec_form(tmp_path):
    (tmp_path / "docs").mkdir()
    with gzip.open(tmp_path / "docs" / "a.trec.gz", "wt") as file:
        file.write(DOCUMENTS)
    (tmp_path / "docs" / "b.txt").write_text("<DOC><DOCNO>b</DOCNO><TEXT>x</TEXT></DOC>\n")
    (tmp_path / "topics.xml").write_text(TOPICS)
    (tmp_path / "qrels.txt").write_text("301 0 AP-1 1\n")
    (tmp_path / "qrels.2005.txt").write_text("302 0 AP-2 2\n")
    assert beir.locate(tmp_path) == {"": tmp_path}
    assert [r.id for r in beir.read_records(beir.corpus_path(tmp_path))] == ["AP-1", "AP-2", "AP-3", "b"]
    assert [r.id for r in beir.read_records(beir.queries_path(tmp_path))] == ["301", "302", "303"]
    assert beir.splits(tmp_path) == ("2005", "test")
    assert [j[1:] for j in beir.read_qrels(beir.qrels_path(tmp_path, "2005"))] == [("302", "AP-2", 2)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("collection.tsv", "1\talpha\n2\tTitle\tbeta\n"),
        ("corpus.jsonl", '{"id": 1, "contents": "alpha"}\n{"_id": "2", "title": "Title", "text": "beta"}\n'),
    ],
)
def test_other_forms_of_texts(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    records = list(beir.read_records(beir.corpus_path(tmp_path)))
    assert [record[1:] for record in records] == [("1", "", "alpha"), ("2", "Title", "beta")]


def test_a_line_without_columns_is_named(tmp_path):
    (tmp_path / "queries.tsv").write_text("1\talpha\nno columns\n")
    with pytest.raises(DataError, match=r"queries\.tsv:2: has 1 column;"):
        list(beir.read_records(beir.queries_path(tmp_path)))


def test_a_compressed_file_that_is_cut(tmp_path):
    path = tmp_path / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"_id": "1", "text": "alpha"}\n' * 9)[:-9])
    with pytest.raises(DataError, match="cannot be decompressed"):
        list(beir.read_records(path))
