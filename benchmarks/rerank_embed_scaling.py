"""Encoding and reranking with one worker and with two, one thread each.

python benchmarks/rerank_embed_scaling.py [--documents 2000] [--queries 400] [--runs 3] [--corpus FILE]

Both go through Ray. A stage's time runs from the start of its first unit to the end of its last; a process of
its own for each run. The reranker is the encoder, over the first documents of BM25.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from embed import documents_of, seconds_of_stage, write_experiment
from setting import ROOT

RERANKER = """
[[system]]
name = "bm25"
kind = "bm25"
[[system]]
name = "second"
kind = "rerank"
method = "bi-encoder"
first = "bm25"
model = "{model}"
depth = 20
"""


def measure(arguments: argparse.Namespace, workers: int) -> dict[str, float]:
    """Seconds of each stage."""
    documents = documents_of(arguments.corpus, arguments.documents)
    with tempfile.TemporaryDirectory() as name:
        file = write_experiment(
            Path(name),
            documents,
            model=arguments.model,
            dtype="float32",
            batch_size=32,
            workers=workers,
            threads=1,
        )
        file.write_text(file.read_text() + RERANKER.format(model=arguments.model))
        queries = [{"_id": f"q{n}", "text": text[:80]} for n, (_, text) in enumerate(documents)]
        lines = "".join(json.dumps(query) + "\n" for query in queries[: arguments.queries])
        (Path(name) / "set" / "queries.jsonl").write_text(lines)
        (Path(name) / "set" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\n")
        return {stage: seconds_of_stage(file, stage) for stage in arguments.stages}


def apart(workers: int) -> dict[str, float]:
    command = [sys.executable, __file__, *sys.argv[1:], "--workers", str(workers)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared/data/scifact/corpus.jsonl")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--model", default="paraphrase-MiniLM-L3-v2")
    parser.add_argument("--stages", nargs="+", default=["embed", "rerank"])
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.workers:
        print(json.dumps(measure(arguments, arguments.workers)))
        return
    runs = [(apart(1), apart(2)) for _ in range(arguments.runs)]
    print(f"{arguments.documents} documents, {arguments.queries} queries, one thread per worker")
    for stage in arguments.stages:
        one, two = (statistics.median(run[place][stage] for run in runs) for place in (0, 1))
        ratios = ", ".join(f"{first[stage] / second[stage]:.2f}" for first, second in runs)
        print(f"{stage}: one worker {one:.1f} s, two {two:.1f} s, {one / two:.2f} times ({ratios})")


if __name__ == "__main__":
    main()
