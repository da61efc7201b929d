"""Dense retrieval through the whole pipeline, against numbers from elsewhere.

SciFact whole: MTEB's published scores (float32, exact search). The 500 documents are the first of SciFact's
corpus that any split judges, with the test queries that these answer; their numbers come from
sentence-transformers' own encode and a full sort, without this project's code.
"""

import csv
import json
from pathlib import Path

import pytest
from beir_folder import write_beir
from running import dataset, experiment, report, system
from support import shared

PUBLISHED = {  # nDCG@10, R@100
    "all-MiniLM-L6-v2": (0.64508, 0.92500),
    "all-mpnet-base-v2": (0.65570, 0.94167),
}
GOLDEN_500 = {
    "paraphrase-MiniLM-L3-v2": (0.72236, 0.96970),
    "use-multilingual-v3": (0.61048, 0.93074),
    "multilingual-e5-small-q4": (0.82764, 0.99134),
}


def values(found) -> dict[str, tuple[float, float]]:
    result: dict[str, dict[str, float]] = {}
    for record in found.records:
        result.setdefault(record.system, {})[record.measure] = record.value
    return {name: (one["nDCG@10"], one["R@100"]) for name, one in result.items()}


def judged_500(target: Path) -> Path:
    """SciFact's first 500 judged documents, and the test queries that they answer."""
    source = shared("scifact", "corpus.jsonl").parent
    qrels = {
        split: list(csv.reader((source / "qrels" / f"{split}.tsv").open(), delimiter="\t"))[1:]
        for split in ("train", "test")
    }
    judged = {row[1] for rows in qrels.values() for row in rows}
    corpus = [row for line in (source / "corpus.jsonl").open() if (row := json.loads(line))["_id"] in judged][
        :500
    ]
    kept = {row["_id"] for row in corpus}
    answered = [row for row in qrels["test"] if row[1] in kept]
    asked = {row[0] for row in answered}
    queries = [row for line in (source / "queries.jsonl").open() if (row := json.loads(line))["_id"] in asked]
    return write_beir(target, corpus, queries, answered)


def test_encoders_on_500_judged_documents(tmp_path):
    folder = judged_500(tmp_path / "set")
    systems = "".join(system("dense", name, model=name) for name in GOLDEN_500)
    found = values(report(experiment(tmp_path, dataset(folder) + systems)))
    for name, golden in GOLDEN_500.items():
        assert found[name] == pytest.approx(golden, abs=1e-3), name


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "all-MiniLM-L6-v2")) for name in PUBLISHED],
)
def test_scifact_whole_as_mteb_has_it(tmp_path, name):
    folder = shared("scifact", "corpus.jsonl").parent
    found = report(experiment(tmp_path, dataset(folder, "scifact") + system("dense", "it", model=name)))
    assert values(found)["it"] == pytest.approx(PUBLISHED[name], abs=5e-4)
    assert {record.queries for record in found.records} == {300}
