"""Statistics of sets: numbers by hand, defects that were planted, and figures that others publish."""

import csv
import json

import pytest
from beir_folder import doc, query, write_beir
from support import shared
from typer.testing import CliRunner

from beirnl.cli import app
from beirnl.datasets import stats
from beirnl.datasets.stats_text import said_of, to_json
from beirnl.errors import ConfigError
from beirnl.registry import DatasetEntry


def defects(found):
    return {defect.name: (defect.rows, defect.examples) for defect in found.defects if defect.rows}


def test_numbers_by_hand(tmp_path):
    corpus = [doc("a", "one two  three", "Title"), doc("b", "four", ""), doc("c", " ", "Only title")]
    queries = [
        query("q1", "what is it"),
        query("q2", "how"),
        query("unjudged", "a long query that no one judges"),
    ]
    found = stats.measure(
        write_beir(tmp_path, corpus, queries, [("q1", "a", 2), ("q1", "b", 1), ("q2", "c", 0)]), "test"
    )
    assert (found.queries, found.documents, found.relevant, found.relevant_per_query) == (2, 3, 2, 1.0)
    assert (found.query_words, found.document_words) == (2.0, (4 + 1 + 2) / 3)
    assert found.document_characters == (len("Title one two  three") + len("four") + len("Only title")) / 3
    assert found.longest == (20, "a")
    assert defects(found) == {
        "documents without text": (1, ("c",)),
        "documents without title": (1, ("b",)),
        "queries without a relevant document": (1, ("q2",)),
    }


def test_planted_defects(tmp_path):
    corpus = [
        doc("a", "same"),
        doc("b", "same"),
        doc("b", "same"),
        doc("c", "same", "titled"),
        doc("d", "\u00a0"),
    ]
    queries = [query("q1", "x"), query("q2", "x"), query("q3", "")]
    qrels = [("q1", "a", 1), ("q2", "gone", 1), ("q3", "b", 1), ("lost", "a", 1), ("lost", "d", 1)]
    found = defects(stats.measure(write_beir(tmp_path, corpus, queries, qrels), "test"))
    assert found == {
        "documents whose identifier occurs twice": (1, ("b",)),
        "documents equal to an earlier one": (1, ("b",)),
        "documents without text": (1, ("d",)),
        "documents without title": (4, ("a", "b", "b", "d")),
        "queries without text": (1, ("q3",)),
        "queries equal to an earlier one": (1, ("q2",)),
        "queries that qrels name and the set lacks": (1, ("lost",)),
        "documents that qrels name and the corpus lacks": (1, ("gone",)),
    }


def test_what_only_the_source_shows(tmp_path):
    source = [doc("a", "a fast car", "T"), doc("b", "a quick car", "T"), doc("c", "same"), doc("d", "same"),
              doc("e", "untouched"), doc("f", "lost")]  # fmt: skip
    target = [doc("e", "untouched"), doc("a", "een snelle auto", "T"), doc("b", "een snelle auto", "T"),
              doc("c", "dezelfde"), doc("d", "dezelfde")]  # fmt: skip
    qrels = [(f"q{n}", "a", 1) for n in range(3)]
    english = write_beir(
        tmp_path / "en", source, [query("q0", "tea"), query("q1", "NASA"), query("q2", "")], qrels
    )
    dutch = write_beir(
        tmp_path / "nl", target, [query("q0", "thee"), query("q1", "NASA"), query("q2", "")], qrels
    )
    found = defects(stats.measure(dutch, "test", english))
    assert found["documents equal to an earlier one"] == (2, ("b", "d"))
    assert found["documents equal to an earlier one only in translation"] == (1, ("b",))
    assert found["documents identical to their source"] == (1, ("e",))
    assert found["documents of the source that the translation lacks"] == (1, ("f",))
    assert found["queries identical to their source"] == (1, ("q1",))
    assert defects(stats.measure(english, "test", english))["documents identical to their source"][0] == 6


def test_parts_are_summed_and_means_are_over_rows(tmp_path):
    sizes = {"gis": 1, "tex": 3}
    for part, size in sizes.items():
        corpus = [doc(f"d{n}", "word " * size) for n in range(size)]
        queries = [query(f"q{n}", "x") for n in range(size)]
        write_beir(
            tmp_path / part, corpus, queries, [(f"q{n}", "d0", 1) for n in range(size)] + [("q0", "gone", 1)]
        )
    parts = [stats.measure(tmp_path / part, "test", part=part) for part in sizes]
    whole = stats.total(parts)
    assert (whole.queries, whole.documents, whole.relevant) == (4, 4, 6) and whole.relevant_per_query == 1.5
    assert whole.document_words == (1 + 3 * 3) / 4 and whole.longest == (14, "tex/d0")
    assert defects(whole)["documents that qrels name and the corpus lacks"] == (2, ("gis/gone", "tex/gone"))


def test_scifact_as_mteb_counts_it():
    with (shared("published") / "mteb_tasks_nl.csv").open(encoding="utf-8", newline="") as file:
        (said,) = (row for row in csv.DictReader(file) if row["task"] == "SciFact")
    found = stats.measure(shared("scifact"), "test")
    assert found.documents + found.queries == int(said["num_samples"])
    assert found.documents - defects(found).get("documents equal to an earlier one", (0,))[0] == int(
        said["n_unique_doc_texts"]
    )
    assert found.relevant == int(said["num_relevant_docs"])
    assert found.relevant_per_query == float(said["avg_rel_per_query"])
    assert found.document_characters == pytest.approx(float(said["avg_doc_chars"]), abs=1e-9)
    assert found.query_characters == pytest.approx(float(said["avg_query_chars"]), abs=1e-9)
    assert found.longest[0] == int(said["max_doc_chars"])


def test_what_others_say_is_put_beside(tmp_path, monkeypatch):
    folder = write_beir(
        tmp_path, [doc(str(n), f"text {n}") for n in range(398)], [query("q")], [("q", "1", 1)]
    )
    found = stats.measure(folder, "test")
    table = [{"dataset": "own", "queries": "2", "documents": "400", "relevant_per_query": "1.0"}]
    monkeypatch.setattr("beirnl.registry.published", lambda name: table)
    entry = DatasetEntry(name="own", path=str(folder), language="en", domain="any", licence="MIT")
    assert [(one.what, one.agrees) for one in said_of(entry, found) if one.by == "Table 1"] == [
        ("queries", False),
        ("documents", True),
        ("relevant_per_query", True),
    ]
    assert said_of(None, found) == []
    value = json.loads(to_json("own", [found], said_of(entry, found)))
    assert value["statistics"][0]["longest"] == {"characters": 8, "id": "100"}


def test_the_command(tmp_path):
    folder = write_beir(tmp_path / "own", [doc("a", "x")], [query("q")], [("q", "gone", 1)])
    shown = {
        f: CliRunner().invoke(app, ["datasets", "stats", str(folder), "-f", f])
        for f in ("table", "markdown", "json")
    }
    assert all(done.exit_code == 0 for done in shown.values()), shown["table"].output
    assert "documents that qrels name and the corpus lacks" in shown["table"].output
    assert "| documents that qrels name and the corpus lacks | 1 | gone |" in shown["markdown"].output
    assert json.loads(shown["json"].output)["statistics"][0]["documents"] == 1
    unknown = CliRunner().invoke(app, ["datasets", "stats", "scifct"]).exception
    assert isinstance(unknown, ConfigError) and "did you mean 'scifact'?" in str(unknown)
    assert "scifact" in CliRunner().invoke(app, ["datasets"]).output
