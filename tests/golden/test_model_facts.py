"""Facts about models against the paper's tables and MTEB's list of tasks."""

import csv

import pytest
from support import shared

from beirnl import registry

#: Columns of Table 3, by our names.
SETS = [
    "msmarco", "trec-covid", "nfcorpus", "nq", "hotpotqa", "fiqa", "arguana", "webis-touche2020",
    "cqadupstack", "quora", "dbpedia-entity", "scidocs", "scifact", "fever", "climate-fever",
]  # fmt: skip
TASKS = {
    "ArguAna": "arguana", "ClimateFEVER": "climate-fever", "DBPedia": "dbpedia-entity", "FEVER": "fever",
    "FiQA2018": "fiqa", "HotpotQA": "hotpotqa", "MSMARCO": "msmarco", "NFCorpus": "nfcorpus", "NQ": "nq",
    "QuoraRetrieval": "quora", "Quora": "quora", "SCIDOCS": "scidocs", "SciFact": "scifact",
    "TRECCOVID": "trec-covid", "Touche2020": "webis-touche2020", "CQADupstackRetrieval": "cqadupstack",
    "CQADupstack": "cqadupstack",
}  # fmt: skip


def rows(first: str, last: str) -> list[list[str]]:
    """Rows of a table of the paper, as their cells; between the line before them and the caption."""
    text = shared("..", "papers", "beir-nl.txt").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.partition(f"\n{first}")[2].partition(last)[0].splitlines()[1:]]


def test_table_2_whole():
    table = [row for row in rows("Model\tBased on", "Table 2:") if len(row) == 6]
    assert len(table) == 15
    for name, base, parameters, dimension, limit, retrieval in table:
        entry = registry.find_model(name)
        assert entry is not None, name
        assert entry.kind == ("reranker" if "reranker" in name else "encoder")
        assert entry.base == base.strip("-")
        whole, _, used = parameters.partition(" (")
        assert (entry.parameters, entry.active_parameters) == (
            float(whole.strip("M")),
            float(used.strip("M†)")) if used else None,
        )
        assert entry.dimension == (int(dimension) if entry.kind == "encoder" else None)
        assert entry.max_tokens == int(limit)
        assert entry.for_retrieval == (retrieval == "Yes")


@pytest.mark.parametrize("measure", ["NDCG@10", "Recall@100"])
def test_table_3_marks_the_same_sets(measure):
    text = rows("Model\t\t\tMSMARCO", "Table 3:")
    start = next(number for number, row in enumerate(text) if row[1:2] == [measure])
    marked = 0
    for name, *cells in (row for row in text[start + 1 :] if len(row) > 1):
        if name == "BM25":
            break
        entry = registry.model(name.removeprefix("BM25 + "))
        expected = {dataset for dataset, cell in zip(SETS, cells[2:], strict=True) if "†" in cell}
        assert set(entry.training) == expected, name
        assert entry.training_source == "BEIR-NL, Table 3"
        marked += 1
    assert marked == {"NDCG@10": 15, "Recall@100": 12}[measure]


@pytest.mark.parametrize("language", ["en", "nl"])
def test_instructions_are_those_of_mteb(language):
    found = {}
    with shared("published", "mteb_tasks_nl.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name, _, ending = row["task"].partition("-NL")
            if name in TASKS and ending == "" and ("-NL" in row["task"]) == (language == "nl"):
                found[TASKS[name]] = row["prompt_query"] or "Retrieve text based on user query."
    assert len(found) >= 14
    for dataset, said in found.items():
        assert registry.instruction(dataset, language) == said, dataset
        assert registry.instruction(f"{dataset}-{language}", language) == said
