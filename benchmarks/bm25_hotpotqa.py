"""A corpus of HotpotQA's size through import, BM25 index and search: time, and memory of all processes.

python benchmarks/bm25_hotpotqa.py FOLDER [--documents 5230000] [--queries 7405] [--workers 2] [--shards 1]

Prints the seconds of wall time and those of each stage, and the peak memory of all processes together; pages
of mapped files, which the system can drop at any time, are not counted. FOLDER is made if it is not there.
"""

import argparse
import tempfile
from pathlib import Path

from bm25_peers import make_corpus
from memory import Anonymous
from setting import run_watched

EXPERIMENT = """
name = "hotpotqa-size"
workspace = "{folder}/workspace"
[[dataset]]
name = "corpus"
path = "{corpus}"
language = "nl"
[[system]]
name = "BM25"
kind = "bm25"
depth = 100
{shards}
[runtime]
workers = {workers}
object_store_mb = 80
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=5_230_000)
    parser.add_argument("--queries", type=int, default=7405)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shards", type=int, default=1)
    arguments = parser.parse_args()
    make_corpus(arguments.corpus, arguments.documents, arguments.queries)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "experiment.toml"
        shards = f"shards = {arguments.shards}" if arguments.shards > 1 else ""
        corpus = arguments.corpus.resolve()
        file.write_text(
            EXPERIMENT.format(folder=name, corpus=corpus, workers=arguments.workers, shards=shards)
        )
        run = run_watched(file, memory=Anonymous)
        (imported,) = (node for node in run.pipeline.graph.nodes.values() if node.stage == "import-corpus")
        rows = imported.artifact(run.pipeline.workspace).rows
    workers = f"{arguments.workers} workers"
    print(f"{rows:,} documents, {arguments.queries:,} queries in {run.seconds:,.0f} s, {workers}")
    run.print()


if __name__ == "__main__":
    main()
