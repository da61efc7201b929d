"""Sets that hold other numbers than the registry states are warned of, with both numbers."""

from beir_folder import doc, query, write_beir
from running import BM25, dataset, experiment, report
from support import shared

from beirnl import registry


def told(found):
    return [line for line in found.warnings if "published figures are of another set" in line]


def small(folder, split="test"):
    judged = [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d2", 2)]
    return write_beir(folder, [doc("d1"), doc("d2", "other")], [query("q1"), query("q2")], judged, split)


def test_a_set_that_is_not_the_published_one(tmp_path):
    folder = small(tmp_path / "set")
    found = told(report(experiment(tmp_path, dataset(folder, "SciFact-NL", language="en") + BM25)))
    assert found == [
        "scifact-nl: holds 2 queries and not 300, 2 documents and not 5,183, 2 relevant and not 339 as "
        "clips/beir-nl-scifact@856d8dfc294b138856bbf3042450e3782321e44e: published figures are of another set"
    ]


def test_every_part_has_counts_of_its_own(tmp_path):
    for part in registry.datasets()["cqadupstack"].parts:
        small(tmp_path / "forums" / part)
    found = told(report(experiment(tmp_path, dataset(tmp_path / "forums", "cqadupstack") + BM25)))
    assert [line.partition(":")[0] for line in found] == [
        f"cqadupstack-{part}" for part in registry.datasets()["cqadupstack"].parts
    ]
    assert "2 queries and not 699, 2 documents and not 22,998, 2 relevant and not 1,696" in found[0]


def test_nothing_is_told_of_another_split_or_a_folder_without_an_entry(tmp_path):
    text = dataset(small(tmp_path / "set", "train"), "scifact", split="train")
    text += dataset(small(tmp_path / "own"), "own") + BM25
    assert told(report(experiment(tmp_path, text))) == []


def test_scifact_is_the_published_one(tmp_path):
    folder = shared("scifact", "corpus.jsonl").parent
    assert told(report(experiment(tmp_path, dataset(folder, "scifact") + BM25))) == []
