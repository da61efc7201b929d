"""The datasets of the registry against MTEB's task files, and the names by which they are found."""

import ast
import csv

import pytest
from support import shared

from beirnl.errors import ConfigError
from beirnl.registry import dataset, datasets, find_dataset, instruction, languages, published
from beirnl.registry.datasets import Counts

FORUMS = 12
SETS = 15  # BEIR's fourteen, and MS MARCO


def tasks():
    """MTEB's tasks that are entries here, each with its entry."""
    with shared("published", "mteb_tasks_nl.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [(row, entry) for row in rows if (entry := dataset(row["task"]))]


def test_every_set_is_there_in_english_and_dutch():
    wholes = [entry for entry in datasets().values() if not entry.whole and entry.name != "libreoffice-nl"]
    dutch = {entry.source for entry in wholes if entry.language == "nl"}
    assert len(dutch) == SETS
    assert dutch == {row["dataset"] for row in published("beir-nl-table1")}
    assert all(datasets()[name].language == "en" and datasets()[name].original == name for name in dutch)
    assert {entry.source for entry in wholes if entry.language == "pl"} == dutch - {"fever", "climate-fever"}
    for whole in ("cqadupstack", "cqadupstack-nl", "cqadupstack-pl"):
        parts = [entry for entry in datasets().values() if entry.whole == whole]
        assert len(parts) == len(datasets()[whole].parts) == FORUMS
        assert [part.path.rpartition("/")[2] for part in parts] == list(datasets()[whole].parts)


def test_facts_are_those_of_mteb():
    found = tasks()
    assert len(found) == 2 * (SETS + FORUMS) - 1  # DBPedia in English is not among them
    for row, entry in found:
        if row["hub_path"]:
            assert (entry.hub, entry.revision) == (row["hub_path"], row["hub_revision"]), entry.name
            queries = round(float(row["total_query_chars"]) / float(row["avg_query_chars"]))
            assert entry.counts == Counts(
                queries=queries,
                documents=int(row["num_samples"]) - queries,
                relevant=int(row["num_relevant_docs"]),
            )
            assert entry.counts.relevant_per_query == pytest.approx(float(row["avg_rel_per_query"]))
        assert entry.remove_self_matches == (row["ignore_identical_ids"] == "True"), entry.name
        assert entry.split in row["eval_splits"]
        said = instruction(entry.original, entry.language)
        assert said == (row["prompt_query"] or "Retrieve text based on user query."), entry.name


def test_counts_are_those_of_the_qrels():
    with shared("published", "stats.csv").open(encoding="utf-8") as file:
        rows = {row["dataset"]: row for row in csv.DictReader(file)}
    known = [rows[name] for name in rows if name in datasets()]
    assert len(known) == SETS - 2 + FORUMS  # without MS MARCO and CQADupStack as a whole
    for row in known:
        counts = datasets()[row["dataset"]].counts
        assert counts.queries == int(row["qrel_queries"])
        if row["dataset"] != "trec-covid":  # one of its labels there is -1
            labels = ast.literal_eval(row["grades"])
            assert counts.relevant == sum(n for label, n in labels.items() if int(label) > 0)


def test_counts_round_to_those_of_the_paper():
    for row in published("beir-nl-table1"):
        counts = datasets()[row["dataset"]].counts
        assert counts.queries == int(row["queries"])
        # Three digits are printed, of some sets those of an older copy.
        assert counts.documents == pytest.approx(int(row["documents"]), rel=0.005)
        if row["dataset"] != "cqadupstack":  # the paper says 1.4, the qrels have 1.8
            assert counts.relevant_per_query == pytest.approx(float(row["relevant_per_query"]), abs=0.0501)
        assert datasets()[row["dataset"]].domain == row["domain"]


@pytest.mark.parametrize(
    ("name", "found"),
    {
        "SciFact": "scifact",
        "SciFact-NL": "scifact-nl",
        "clips/beir-nl-scifact": "scifact-nl",
        "CQADupstackAndroid-NL": "cqadupstack-android-nl",
        "CQADupstack-NL": "cqadupstack-nl",
        "clips/beir-nl-cqadupstack": "cqadupstack-nl",
        "CQADupstackGisRetrieval": "cqadupstack-gis",
        "webis-touche2020": "webis-touche2020",
        "touche2020": "webis-touche2020",
        "dbpedia": "dbpedia-entity",
        "DBPedia-NL": "dbpedia-entity-nl",
        "FiQA2018": "fiqa",
        "mMARCO-NL": "mmarco-nl",
        "QuoraRetrieval": "quora",
        "TRECCOVID-PL": "trec-covid-pl",
    }.items(),
)
def test_names_of_mteb_and_beir_are_found(name, found):
    assert find_dataset(name) is find_dataset(name.upper()) is datasets()[found]


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown dataset 'CQADupstakAndroid-NL'; did you mean 'CQADup"):
        find_dataset("CQADupstakAndroid-NL")
    with pytest.raises(ConfigError, match=r"use one of: sample.*scifact-nl") as caught:
        find_dataset("zzz")
    assert "cqadupstack-gis" not in str(caught.value)


def test_what_is_inherited_and_what_is_not():
    nl = datasets()["quora-nl"]
    assert (nl.domain, nl.licence, nl.remove_self_matches) == ("Quora", "CC-BY-SA-4.0", True)
    assert nl.counts == datasets()["quora"].counts
    forum = datasets()["cqadupstack-gis-nl"]
    assert (forum.hub, forum.hub_split, forum.language) == ("clips/beir-nl-cqadupstack", "gis", "nl")
    assert forum.path == "{data}/cqadupstack-nl/gis"
    assert datasets()["cqadupstack-nl"].counts.relevant == datasets()["cqadupstack"].counts.queries
    assert all(entry.language in languages() for entry in datasets().values())
