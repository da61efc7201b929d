"""A corpus of HotpotQA's size through import, BM25 index and search: time, and memory of all processes.

python benchmarks/bm25_hotpotqa.py FOLDER [--documents 5230000] [--queries 7405] [--workers 2] [--shards 1]

Prints the seconds of wall time and those of each stage, and the peak memory of all processes together; pages
of mapped files, which the system can drop at any time, are not counted. FOLDER is made if it is not there.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil
from bm25_peers import make_corpus
from setting import ROOT, Memory

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline

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


class Anonymous(Memory):
    """Memory that is in no file: what cannot be dropped."""

    def size_of(self, process: psutil.Process) -> int:
        rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        found = re.findall(r"^Pss_(?:Anon|Shmem): +(\d+) kB", rollup, re.MULTILINE)
        return sum(1024 * int(kilobytes) for kilobytes in found)


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
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
        begin = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "beirnl.cli", "run", str(file)], env=environment, stdout=sys.stderr
        )
        with Anonymous(process.pid).watched() as memory:
            code = process.wait()
        seconds = time.monotonic() - begin
        if code:
            sys.exit(code)
        pipeline = Pipeline.of(load_experiment(file))
        stages: Counter[str] = Counter()
        rows = 0
        for node in pipeline.graph.nodes.values():
            artifact = node.artifact(pipeline.workspace)
            reduced = [artifact.manifest.reduced] if artifact.manifest.reduced else []
            stages[node.stage] += round(sum(receipt.seconds for receipt in [*artifact.receipts(), *reduced]))
            rows = artifact.rows if node.stage == "import-corpus" else rows
    print(
        f"{rows:,} documents, {arguments.queries:,} queries in {seconds:,.0f} s, {arguments.workers} workers"
    )
    print("seconds of work: " + ", ".join(f"{stage} {spent}" for stage, spent in stages.items()))
    print(f"peak memory of all processes {memory.peak / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
