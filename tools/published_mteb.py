"""Writes ``beirnl/registry/published/mteb.csv`` from tables of MTEB's published results.

    python tools/published_mteb.py FOLDER

FOLDER holds ``mteb_results_en.csv`` and ``mteb_results_nl.csv``: one row per model, revision, task and split
of the repository embeddings-benchmark/results. Taken are the systems of BEIR-NL and the encoders of the
registry, on the sets of the registry. Of several results the one counts that was made on the pinned revision
of the dataset, then the one of the pinned revision of the model, then that of the newest MTEB. A dataset in
parts has the mean of its parts, if all are there.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from beirnl import registry
from beirnl.registry import DatasetEntry

COLUMNS = ("dataset", "language", "system", "measure", "value", "revision", "dataset_revision", "mteb")
MEASURES = {"nDCG@10": "ndcg_at_10", "R@100": "recall_at_100"}
#: Models by their hub path, and the system that each is; the registry's encoders come to these.
SYSTEMS = {
    "mteb/baseline-bm25s": "BM25",
    "intfloat/multilingual-e5-small": "multilingual-e5-small",
    "intfloat/multilingual-e5-base": "multilingual-e5-base",
    "intfloat/multilingual-e5-large": "multilingual-e5-large",
    "intfloat/multilingual-e5-large-instruct": "multilingual-e5-large-instruct",
    "Alibaba-NLP/gte-multilingual-base": "gte-multilingual-base",
    "jinaai/jina-embeddings-v3": "jina-embeddings-v3",
    "BAAI/bge-m3": "bge-m3",
    "sentence-transformers/LaBSE": "LaBSE",
}

Row = dict[str, str]


def systems() -> dict[str, str]:
    """Systems by the hub path of their model."""
    encoders = (entry for entry in registry.models().values() if entry.kind == "encoder" and entry.hub)
    return SYSTEMS | {entry.hub: entry.name for entry in encoders}


def rank(row: Row, entry: DatasetEntry) -> tuple[bool, bool, list[int]]:
    """How much a result is to be preferred to others of the same system on the same set."""
    model = registry.find_model(row["model"])
    numbers = [int(number) for number in row["mteb_version"].split(".") if number.isdigit()]
    pinned = model is not None and model.revision == row["revision"]
    return row["dataset_revision"] == entry.revision, pinned, numbers


def chosen(folder: Path) -> dict[tuple[str, str], Row]:
    """One result for each dataset and system."""
    found: dict[tuple[str, str], Row] = {}
    names = systems()
    for file in ("mteb_results_en.csv", "mteb_results_nl.csv"):
        with (folder / file).open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                entry, system = registry.dataset(row["task"]), names.get(row["model"])
                if entry is None or system is None or row["split"] != entry.split or entry.parts:
                    continue
                key = (entry.name, system)
                if key not in found or rank(row, entry) > rank(found[key], entry):
                    found[key] = row
    return found


def rows(folder: Path) -> Iterator[tuple[str, ...]]:
    """The lines of the table; sets are called by the name in their original language."""
    parts: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for (name, system), row in chosen(folder).items():
        entry = registry.datasets()[name]
        parts[entry.whole or name, system].append(row)
    for name, entry in registry.datasets().items():
        for system in systems().values():
            results = parts.get((name, system), [])
            if len(results) != max(1, len(entry.parts)):
                continue
            for measure, column in MEASURES.items():
                values = [float(row[column]) for row in results if row[column]]
                if len(values) == len(results):
                    conditions = (_one(results, c) for c in ("revision", "dataset_revision", "mteb_version"))
                    value = f"{fmean(values):.5f}"
                    yield entry.original, entry.language, system, measure, value, *conditions


def _one(results: list[Row], column: str) -> str:
    """What all results say, or that they differ."""
    values = {row[column] for row in results}
    return values.pop() if len(values) == 1 else "several"


def main() -> None:
    """Writes the table."""
    target = Path(registry.__file__).parent / "published" / "mteb.csv"
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
