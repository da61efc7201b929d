import json
import os

import docx
import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from beirnl.errors import DataError
from beirnl.rag.documents import Document, Unread, find, read, read_folder, suffixes, table
from beirnl.rag.documents.decoding import decode
from beirnl.rag.documents.kinds import UnreadableError
from beirnl.rag.tables import DOCUMENTS


def pdf(path, *pages, password=None, user_password=""):
    """A PDF with a line of text per page; "" is a page without text, as a scan has."""
    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    for line in pages:
        page = writer.add_blank_page(200, 200)
        fonts = DictionaryObject({NameObject(k): NameObject(v) for k, v in font.items()})
        resources = DictionaryObject({NameObject("/F1"): fonts})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): resources})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({line}) Tj ET".encode() if line else b"0 0 200 200 re f")
        page[NameObject("/Contents")] = writer._add_object(stream)
    writer.add_metadata({"/Title": "A title"})
    if password is not None:
        writer.encrypt(user_password, password, algorithm="AES-256")
    with path.open("wb") as file:
        writer.write(file)


def word(path):
    document = docx.Document()
    document.core_properties.title = "Of Word"
    document.add_paragraph("First para")
    cells = document.add_table(2, 2).rows
    for row, words in zip(cells, (("a", "b"), ("c", "d")), strict=True):
        for cell, text in zip(row.cells, words, strict=True):
            cell.text = text
    document.add_paragraph("Last\tone")
    document.save(path)


def read_all(folder, **options):
    found = list(read_folder(folder, **options))
    documents = {item.id: item for item in found if isinstance(item, Document)}
    return documents, {item.id: item.reason for item in found if isinstance(item, Unread)}


def put(folder, **contents):
    """Files by name (``__`` is a dot)."""
    for name, content in contents.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name.replace("__", ".")).write_bytes(data)
    return folder


HTML = """<!DOCTYPE html><html><head><title> Of the
 web </title><style>p {}</style><script>var x = "<p>no</p>";</script></head>
<body><h1>Head</h1><p>One <b>bo</b>ld,
   two.<br>Three&nbsp;&amp; four.<!-- never --></p><div>Five<p>six</p>seven</div>
<ul><li>a</li><li>b</li></ul><table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>
</body></html>"""
HTML_TEXT = """Head

One bold, two.
Three & four.

Five

six

seven

a
b

1\t2
3\t4"""
SRT = (
    "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Good</i> evening\r\nto all.\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,000\r\n{\\an8}1984\r\n"
)
VTT = """WEBVTT - a title

STYLE
::cue { color: red }

NOTE not said

1
00:01.000 --> 00:04.000 align:start
<v Ann>Well &amp; <c.loud>good</c>.

00:04.000 --> 00:06.000
<v Ann>Go on.
<v Bob>Go on.

00:06.000 --> 00:08.000
Go on.
Yes."""


def test_every_kind_of_file(tmp_path):
    put(
        tmp_path,
        a__txt="Plain.\r\nText.\n",
        b__md="intro\n\n# The *title* #\n\n- item\n",
        c__HTM=HTML,
        f__srt=SRT,
        g__vtt=VTT,
        h__json=json.dumps({"id": 7, "title": "T", "text": "of json"}),
    )
    word(tmp_path / "d.docx")
    pdf(tmp_path / "e.pdf", "Page one", "Page two")
    documents, unread = read_all(tmp_path)
    assert unread == {}
    told = {name: (one.title, one.text) for name, one in documents.items()}
    assert told == {
        "a.txt": ("", "Plain.\nText."),
        "b.md": ("The *title*", "intro\n\n# The *title* #\n\n- item"),
        "c.HTM": ("Of the web", HTML_TEXT),
        "d.docx": ("Of Word", "First para\n\na\tb\nc\td\n\nLast\tone"),
        "e.pdf": ("A title", "Page one\n\nPage two"),
        "f.srt": ("", "Good evening to all. 1984"),
        "g.vtt": ("", "Ann: Well & good. Go on.\nBob: Go on. Yes."),
        "h.json": ("T", "T of json"),
    }
    assert {one.note for one in documents.values()} == {""}


def test_what_cannot_be_read_is_listed_with_the_reason(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    put(
        tmp_path,
        empty__txt="",
        blank__md=" \n\t",
        blank__html="<p> </p>",
        none__html="",
        image__txt=b"\x89PNG\0\0\x01",
        slides__pptx="x",
        noname="x",
        broken__pdf=b"%PDF-1.7\nnothing",
        broken__docx=b"PK\x03\x04 cut",
        old__docx=b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        cut__json='{"text": "a',
        number__json="3",
        words__srt="no cue",
        broken__parquet="PAR1",
        good__txt="good",
    )
    pdf(tmp_path / "locked.pdf", "secret", password="owner", user_password="user")
    pdf(tmp_path / "open.pdf", "owner only", password="owner")
    pdf(tmp_path / "scan.pdf", "", "")
    pdf(tmp_path / "half.pdf", "", "text")
    whole = (tmp_path / "half.pdf").read_bytes()
    (tmp_path / "cut.pdf").write_bytes(whole[: len(whole) // 3])
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.txt")
    documents, unread = read_all(tmp_path)
    assert sorted(documents) == ["good.txt", "half.pdf", "open.pdf"]
    assert documents["half.pdf"].note == "1 of 2 pages has no text (scanned, or pictures only)"
    assert documents["open.pdf"].text == "owner only"
    expected = {
        ".git": "hidden",
        "loop": "a link to a folder",
        "blank.html": "empty",
        "blank.md": "empty",
        "empty.txt": "empty",
        "none.html": "empty",
        "broken.docx": "broken (",
        "broken.parquet": "broken (",
        "broken.pdf": "broken (",
        "cut.json": "broken: no JSON",
        "cut.pdf": "",  # pypdf may repair some of it
        "gone.txt": "no file, or a link to none",
        "image.txt": "binary",
        "locked.pdf": "encrypted: needs a password",
        "noname": "unknown kind of file (no suffix)",
        "number.json": "is neither a JSON object nor a list",
        "old.docx": "encrypted, or of Word before 2007",
        "pipe.txt": "no file",
        "scan.pdf": "scanned: none of its 2 pages has text",
        "slides.pptx": "unknown kind of file (.pptx)",
        "words.srt": "broken: no cue",
    }
    assert unread.keys() == expected.keys()
    for name, reason in expected.items():
        assert unread[name].startswith(reason), (name, unread[name])


def test_a_file_without_a_document_is_told_as_empty(tmp_path):
    for suffix in suffixes():
        (tmp_path / f"none{suffix}").write_bytes(b"")
    put(tmp_path, good__txt="good", list__json="[]", lines__jsonl="\n")
    parquet.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "rows.parquet")
    documents, unread = read_all(tmp_path)
    assert [*documents] == ["good.txt"] and len(unread) == len(suffixes()) + 3
    assert set(unread.values()) == {"empty: holds no text"}


def test_a_file_that_is_gone_when_it_is_read(tmp_path):
    put(tmp_path, a__txt="a")
    (source,) = find(tmp_path)
    source.path.unlink()
    assert list(read(source)) == [Unread("a.txt", "cannot be read (No such file or directory)")]


def test_order_ids_and_groups_do_not_depend_on_the_file_system(tmp_path):
    for place in ("b/inner", "a", "c"):
        (tmp_path / place).mkdir(parents=True)
        put(tmp_path / place, same__txt=place, x__txt="x")
    put(tmp_path, z__txt="top")
    found = list(read_folder(tmp_path))
    names = ["z.txt", "a/same.txt", "a/x.txt", "b/inner/same.txt", "b/inner/x.txt", "c/same.txt", "c/x.txt"]
    assert [one.id for one in found] == names
    assert [one.group for one in found] == ["", "a", "a", "b/inner", "b/inner", "c", "c"]
    made = table(found)
    assert made.schema == DOCUMENTS
    assert made["text"].to_pylist()[1] == "a"
    assert table([]).num_rows == 0


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        ("é ok".encode(), "é ok", ""),
        ("é ok".encode("utf-8-sig"), "é ok", ""),
        ("é ok".encode("utf-16"), "é ok", ""),
        (b"\xfe\xff" + "é ok".encode("utf-16-be"), "é ok", ""),
        ("é ok".encode("utf-32"), "é ok", ""),
        ("é without a mark".encode("utf-16-le"), "é without a mark", ""),
        ("é without a mark".encode("utf-16-be"), "é without a mark", ""),
        ("Zoë – “quoted” €5".encode("cp1252"), "Zoë – “quoted” €5", "not UTF-8; read as Windows-1252"),
        (b"caf\xe9 \x81", "café \x81", "not UTF-8; read as Latin-1"),
        ("ëéè".encode() * 9 + b"\xff", "ëéè" * 9 + "�", "1 bytes are not UTF-8 and were replaced"),
        (b"", "", ""),
    ],
)  # fmt: skip
def test_encodings(data, text, note):
    assert decode(data) == (text, note)


@pytest.mark.parametrize("data", [b"GIF89a\0\1\2\0", "é".encode("utf-16") + b"\x00\xd8", b"\xff\xfea"])
def test_bytes_that_are_no_text(data):
    with pytest.raises(UnreadableError):
        decode(data)


def test_pages_in_declared_encodings(tmp_path):
    page = '<?xml version="1.0" encoding="{0}"?><meta charset="{0}"><p>caffè, жизнь</p>'
    put(
        tmp_path,
        cyrillic__html='<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>жизнь'.encode(
            "koi8-r"
        ),
        latin__html=b'<meta charset="iso-8859-1"><p>caff\xe8 \x80',
        unknown__html=page.format("x-none"),
        utf16__html=page.format("utf-16").encode("utf-16"),
        utf8__xhtml=page.format("utf-8"),
    )
    documents, unread = read_all(tmp_path)
    assert unread == {}
    assert [one.text for one in documents.values()] == ["жизнь", "caffè €", *["caffè, жизнь"] * 3]


def test_beir_corpora_keep_their_identifiers_and_queries_are_no_documents(tmp_path):
    for place in ("", "other"):
        folder = tmp_path / place
        (folder / "qrels").mkdir(parents=True)
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t1\n")
        put(
            folder,
            corpus__jsonl='{"_id": "d1", "title": "T", "text": "one"}\n{"_id": 2, "text": "two"}\n',
            queries__jsonl='{"_id": "q", "text": "never a document"}\n',
        )
    documents, unread = read_all(tmp_path)
    texts = {name: one.text for name, one in documents.items()}
    assert texts == {"d1": "T one", "2": "two", "other/d1": "T one", "other/2": "two"}
    assert [one.group for one in documents.values()] == ["", "", "other", "other"]
    set_aside = "queries or judgements of the retrieval set in this folder"
    names = ["queries.jsonl", "qrels/test.tsv", "other/queries.jsonl", "other/qrels/test.tsv"]
    assert unread == dict.fromkeys(names, set_aside)


def test_faulty_lines_and_repeated_identifiers_are_listed_and_the_others_read(tmp_path):
    lines = [
        b'{"_id": "a", "text": "1"}',
        b"{cut",
        b'{"_id": "b", "text": ""}',
        b'{"_id": "c", "text": "\xff"}',
    ]
    lines += [b'{"_id": "a", "text": "again"}', b"[1]", b'{"text": "nameless"}']
    put(tmp_path, corpus__jsonl=b"\n".join(lines))
    documents, unread = read_all(tmp_path)
    assert {name: one.text for name, one in documents.items()} == {"a": "1", "corpus.jsonl:7": "nameless"}
    assert {name: reason.split(" (")[0] for name, reason in unread.items()} == {
        "corpus.jsonl:2": "broken: no JSON object",
        "b": "empty: holds no text",
        "corpus.jsonl:4": "broken: byte 23 is not UTF-8",
        "a": "a second document of this identifier, in corpus.jsonl",
        "corpus.jsonl:6": "broken: no JSON object",
    }


def test_parquet_corpora(tmp_path):
    rows = {"_id": ["a", "b"], "title": ["T", None], "text": ["one", "two"], "vector": [[0.5], [1.0]]}
    parquet.write_table(pa.table(rows), tmp_path / "corpus.parquet")
    parquet.write_table(pa.table({"plot": ["p"], "year": [1984], "v": [[0.5]]}), tmp_path / "movies.parquet")
    documents, _ = read_all(tmp_path)
    texts = {name: one.text for name, one in documents.items()}
    assert texts == {"a": "T one", "b": "two", "movies.parquet:1": "plot: p\nyear: 1984"}


def test_fields_of_json_that_are_text(tmp_path):
    movie = {
        "title": "Alien",
        "plot": {"short": "A ship.", "cast": ["Weaver", "Holm"]},
        "year": 1979,
        "x": None,
    }
    put(
        tmp_path,
        list__json=json.dumps([movie, {"id": "own", "text": "T"}, "bare"]),
        one__json=json.dumps(movie),
    )
    documents, _ = read_all(tmp_path)
    everything = "title: Alien\nplot.short: A ship.\nplot.cast: Weaver\nplot.cast: Holm\nyear: 1979"
    assert {name: one.text for name, one in documents.items()} == {
        "list.json:1": everything,
        "own": "T",
        "list.json:3": "bare",
        "one.json": everything,
    }
    chosen, unread = read_all(tmp_path, fields=["plot"])
    assert chosen["one.json"].text == "Alien A ship.\nWeaver\nHolm"
    assert unread == dict.fromkeys(["own", "list.json:3"], "empty: holds no text")
    assert read_all(tmp_path, fields=["year", "title"])[0]["one.json"].text == "1979\nAlien"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.csv", "file,description\na.txt,One\nsub/a.txt,\"Two, twice\"\n.\\sub\\b.txt,\nnot.txt,x\nd1,Own"),
        ("d.csv", "\ufeffdescription;file\r\nOne;a.txt\r\nTwo, twice;sub/a.txt\r\nx;not.txt\r\nOwn;d1\r\n"),
        ("d.json", '{"a.txt": "One", "sub/a.txt": "Two,\\n twice", "not.txt": "x", "d1": "Own"}'),
        ("d.json", '[{"file": "a.txt", "description": "One"}, {"file": "not.txt", "description": "x"},'
         '{"file": "./sub/a.txt", "description": "Two, twice"}, {"description": "Own", "file": "d1"}]'),
    ],
)  # fmt: skip
def test_descriptions(tmp_path, name, content):
    (tmp_path / "sub").mkdir()
    put(tmp_path, a__txt="one", c__jsonl='{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": "y"}')
    put(tmp_path / "sub", a__txt="two", b__txt="three")
    (tmp_path / name).write_text(content)
    documents, unread = read_all(tmp_path, descriptions=tmp_path / name)
    told = {key: one.description for key, one in documents.items()}
    assert told == {"a.txt": "One", "sub/a.txt": "Two, twice", "sub/b.txt": "", "d1": "Own", "d2": ""}
    assert unread == {"not.txt": "is described, but no document has this path or identifier"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.csv", "a,b\n1,2\n", "d.csv:1: has no columns file and description"),
        ("d.csv", "file,description\na,1\na,2\n", "d.csv:3: describes a a second time"),
        ("d.json", "[1]", "is no JSON of paths and descriptions"),
        ("d.json", '{"a": 1}', "is no JSON of paths and descriptions"),
        ("d.json", '{"a": ', "is no JSON of paths and descriptions"),
        ("no.csv", None, "cannot be read"),
    ],
)
def test_descriptions_of_another_form(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_folder(tmp_path, tmp_path / name)


def test_a_folder_without_readable_documents(tmp_path):
    with pytest.raises(DataError, match="is no folder; give"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match="holds no files"):
        list(read_folder(tmp_path))
    put(tmp_path, **{f"s{n}__pptx": "x" for n in range(5)}, e__txt="")
    pdf(tmp_path / "scan.pdf", "")
    listed = []
    with pytest.raises(DataError) as caught:
        for item in read_folder(tmp_path):
            listed.append(item)
    assert len(listed) == 7
    assert "s0.pptx, s1.pptx, s2.pptx and 2 more: unknown kind of file (.pptx)" in str(caught.value)
    assert "e.txt: empty: holds no text" in str(caught.value)
    assert "scan.pdf: scanned: none of its 1 page has" in str(caught.value)
    assert str(caught.value).endswith(f"give files of {', '.join(suffixes())}")
    assert "\n" not in str(caught.value)


def test_texts_can_be_written(tmp_path):
    """Halves of surrogate pairs and NUL, which PDFs hold, would not go into a table."""
    from beirnl.rag.documents.folder import clean

    assert clean(" a\0b\ud83d\ude00 \ud800c\r\nd\re ") == "ab😀 �c\nd\ne"
    put(tmp_path, a__json=msgspec.json.encode({"text": "a\0b"}))
    assert table(read_folder(tmp_path))["text"].to_pylist() == ["ab"]


def test_reading_streams(tmp_path):
    """The first document is there before the last file is opened."""
    put(tmp_path, a__txt="a", b__txt="b")
    found = read_folder(tmp_path)
    assert next(found).text == "a"
    (tmp_path / "b.txt").write_text("changed")
    assert next(found).text == "changed"
