"""Datasets of ir_datasets, with the library itself on a collection that it is told of."""

import json

import pytest
from support import shared

from beirnl.datasets import beir, irds, stats
from beirnl.errors import ConfigError, DataError, PrerequisiteError

library = pytest.importorskip("ir_datasets")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "models"))


@pytest.fixture
def known(monkeypatch):
    """Tells ir_datasets of a collection for the length of a test."""

    def register(name, dataset):
        library.registry.register(name, dataset)
        names.append(name)

    names = []
    yield register
    for name in names:
        del library.registry._registered[name]


@pytest.fixture
def cranfield(tmp_path, known):
    """Cranfield in the forms that ir_datasets has for collections of a user's own."""
    for name in ("corpus", "queries"):
        rows = map(
            json.loads, (shared("cranfield") / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        )
        (tmp_path / f"{name}.tsv").write_text("".join(f"{row['_id']}\t{row['text']}\n" for row in rows))
    judged = beir.read_qrels(shared("cranfield") / "qrels" / "test.tsv")
    lines = (f"{j.query_id} 0 {j.doc_id} {j.relevance}\n" for j in judged)
    (tmp_path / "qrels").write_text("".join(lines))
    made = library.create_dataset(
        docs_tsv=str(tmp_path / "corpus.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels"),
    )
    known("own-cranfield/test", made)
    return "own-cranfield/test"


def test_a_collection_is_that_of_its_folder(cranfield):
    folder, source = irds.fetch(cranfield)
    assert source == f"irds:own-cranfield/test@{library.__version__}"
    there = shared("cranfield")
    for path in (beir.corpus_path, beir.queries_path):
        own = [(r.id, r.text) for r in beir.read_records(path(there))]
        assert [(r.id, r.text) for r in beir.read_records(path(folder))] == own
    judged = [j[1:] for j in beir.read_qrels(beir.qrels_path(there, "test"))]
    assert [j[1:] for j in beir.read_qrels(beir.qrels_path(folder, "test"))] == judged
    assert stats.measure(folder, "test").relevant == stats.measure(there, "test").relevant
    before = beir.corpus_path(folder).stat().st_mtime_ns
    assert irds.fetch(cranfield)[0] == folder and beir.corpus_path(folder).stat().st_mtime_ns == before


def test_an_id_that_does_not_exist():
    with pytest.raises(
        ConfigError, match=r"irds:cranfeld: ir_datasets has no such id; did you mean 'cranfield'\?"
    ):
        irds.fetch("cranfeld")


def test_a_collection_without_judgements(tmp_path, known):
    (tmp_path / "docs.tsv").write_text("1\talpha\n")
    known("own-docs", library.create_dataset(docs_tsv=str(tmp_path / "docs.tsv")))
    with pytest.raises(DataError, match="irds:own-docs: has no queries and no qrels; give the id of a split"):
        irds.fetch("own-docs")


def test_files_that_cannot_be_had_are_one_line_and_nothing_is_left(tmp_path, known):
    paths = {name: str(tmp_path / "none") for name in ("docs_tsv", "queries_tsv", "qrels_trec")}
    known("own-none", library.create_dataset(**paths))
    with pytest.raises(PrerequisiteError, match="irds:own-none: ir_datasets cannot give it") as caught:
        irds.fetch("own-none")
    assert "\n" not in str(caught.value) and not list((tmp_path / "datasets" / "irds").iterdir())


def test_a_collection_that_fetches_as_soon_as_it_is_asked(known, monkeypatch, cranfield):
    def unreached():
        raise ConnectionError("no such host")

    monkeypatch.setattr(library.load(cranfield), "docs_iter", unreached, raising=False)
    with pytest.raises(PrerequisiteError, match=r"no such host.*run where its files can be fetched"):
        irds.fetch(cranfield)


def test_documents_with_several_fields():
    from collections import namedtuple

    kinds = [
        (namedtuple("Titled", "doc_id title text author")("1", "T", "body", "who"), ("1", "T", "body")),
        (namedtuple("Web", "doc_id url title body")("2", "u", "T", "body"), ("2", "T", "body")),
    ]
    assert all(irds._document(doc) == expected for doc, expected in kinds)

    class Fields(namedtuple("Fields", "doc_id fields")):
        def default_text(self):
            return " ".join(self.fields)

    assert irds._document(Fields("3", ["a", "b"])) == ("3", "", "a b")


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ir_datasets", None)
    with pytest.raises(PrerequisiteError, match=r"pip install 'beirnl\[irds\]'"):
        irds.fetch("cranfield")
