"""One worker and two, one thread each: BM25 indexing, BM25 search, embedding, reranking.

python benchmarks/scaling.py FOLDER [--documents 1000000] [--queries 8000] [--texts 2000] [--runs 3]

Both go through Ray, each run in a process of its own, from one import. A stage's time runs from the start of
its first unit to the end of its last, reading, writing and receipts included; the start of workers and the
loading of models are outside. What is done by one worker alone, the reduction, stands apart. FOLDER holds a
corpus in BEIR form for BM25, and is made if it is not there; the models have MiniLM-L6's shape and random
weights. Beside each ratio stands what it is made of:

- work: the seconds of all units with two workers over those with one: above 1 they slow each other down;
- idle: the share of both workers' time in which no unit ran: a late start, the driver, an uneven end.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import setting  # noqa: F401  the module below is the tests' own
from bm25_peers import make_corpus
from small_models import bi_encoder, cross_encoder, write_set

from beirnl.config import load_experiment
from beirnl.executors.cluster import RayExecutor
from beirnl.pipeline import Pipeline
from beirnl.store.artifacts import Receipt

STAGES = ("index", "search-bm25", "embed", "rerank")
EXPERIMENT = """
name = "scaling"
workspace = "{folder}/workspace"
[[dataset]]
name = "corpus"
path = "{corpus}"
language = "nl"
[[dataset]]
name = "texts"
path = "{place}/texts"
shard_documents = {shard}
[[system]]
name = "bm25"
kind = "bm25"
[[system]]
name = "dense"
kind = "dense"
datasets = ["texts"]
model = "{place}/bi/encoder"
[[system]]
name = "second"
kind = "rerank"
datasets = ["texts"]
first = "bm25"
model = "{place}/cross"
depth = 10
[runtime]
workers = {workers}
threads = 1
"""


class Times(NamedTuple):
    """Seconds of a stage: from its first unit to its last, of all units' work, of the reduction."""

    span: float
    work: float
    reduction: float


def times_of(pipeline: Pipeline, stage: str, dataset: str) -> Times:
    """The times of a stage's units on a dataset, from its receipts; queries to embed are too few to count."""
    receipts: list[Receipt] = []
    reduction = 0.0
    for node in pipeline.graph.nodes.values():
        if node.stage == stage and node.label.startswith(dataset) and not node.purpose.endswith("query"):
            manifest = node.artifact(pipeline.workspace).manifest
            receipts += manifest.receipts
            reduction += manifest.reduced.seconds if manifest.reduced else 0.0
    begin = min(receipt.finished - receipt.seconds for receipt in receipts)
    end = max(receipt.finished for receipt in receipts)
    return Times(end - begin, sum(receipt.seconds for receipt in receipts), reduction)


def run(file: Path, stages: Sequence[str]) -> dict[str, Times]:
    """Run stages on Ray."""
    experiment = load_experiment(file)
    pipeline = Pipeline.of(experiment)
    executor = RayExecutor(experiment.runtime, None)
    try:
        chosen = [node for node in pipeline.graph.nodes.values() if node.stage in stages]
        pipeline.run(executor, nodes=pipeline.needed(chosen))
    finally:
        executor.close()
    dataset = {"index": "corpus", "search-bm25": "corpus"}
    return {s: times_of(pipeline, s, dataset.get(s, "texts")) for s in stages if not s.startswith("import")}


def apart(file: Path, stages: Sequence[str]) -> dict[str, Times]:
    """As :func:`run`, in a process of its own."""
    command = [sys.executable, __file__, "--run", str(file), *stages]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {stage: Times(*times) for stage, times in found.items()}


def write(place: Path, name: str, given: argparse.Namespace, workers: int) -> Path:
    folder = place / name
    folder.mkdir()
    settings: dict[str, Any] = {"folder": folder, "corpus": given.folder.resolve(), "place": place}
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(**settings, shard=max(1, given.texts // 32), workers=workers))
    return file


def measured(place: Path, given: argparse.Namespace) -> list[tuple[dict[str, Times], dict[str, Times]]]:
    """Each run with one worker and with two."""
    imported = write(place, "imported", given, 2)
    apart(imported, ["import-corpus", "import-queries"])
    found = []
    for number in range(given.runs):
        pair = []
        for workers in (1, 2):
            file = write(place, f"run-{number}-{workers}", given, workers)
            shutil.copytree(imported.parent / "workspace", file.parent / "workspace")
            pair.append(apart(file, given.stages))
            shutil.rmtree(file.parent)
        found.append((pair[0], pair[1]))
    return found


def show(stage: str, runs: Sequence[tuple[dict[str, Times], dict[str, Times]]]) -> None:
    ratios = [one[stage].span / two[stage].span for one, two in runs]
    first, second = ([pair[place][stage] for pair in runs] for place in (0, 1))
    one, two = (statistics.median(times.span for times in side) for side in (first, second))
    more = statistics.median(b.work / a.work for a, b in zip(first, second, strict=True))
    idle = statistics.median(1 - times.work / (2 * times.span) for times in second)
    reduction = statistics.median(times.reduction for times in second)
    print(
        f"{stage:12} one worker {one:6.1f} s, two {two:6.1f} s: {statistics.median(ratios):.2f} times "
        f"({', '.join(f'{ratio:.2f}' for ratio in ratios)}); work {more:.2f}, idle {idle:.1%}"
        + (f"; reduction {reduction:.1f} s" if reduction else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=1_000_000, help="of a folder that is made")
    parser.add_argument("--queries", type=int, default=8000, help="of a folder that is made")
    parser.add_argument("--texts", type=int, default=2000, help="to be embedded")
    parser.add_argument("--reranked", type=int, default=400, help="queries, of which 10 hits are reranked")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    given = parser.parse_args()
    make_corpus(given.folder, given.documents, given.queries)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_set(place / "texts", given.texts, given.reranked)
        bi_encoder(place / "bi")
        cross_encoder(place / "cross")
        runs = measured(place, given)
    print(f"median of {given.runs} runs, one thread per worker; {given.folder}, and {given.texts:,} texts")
    for stage in given.stages:
        show(stage, runs)


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        print(json.dumps(run(Path(sys.argv[2]), sys.argv[3:])))
    else:
        main()
