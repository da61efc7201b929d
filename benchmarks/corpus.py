"""A whole corpus through import, deduplication, prompts, checks and writing, with the mock engine.

python benchmarks/corpus.py CORPUS_FOLDER [--workers 2]

CORPUS_FOLDER is in BEIR form. Prints documents per second of wall time (everything included: imports, Ray's
start, the mock engine), the time of each stage, and the peak memory of all processes together.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from setting import ROOT, Memory

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline

EXPERIMENT = """
name = "corpus"
workspace = "{folder}/workspace"
[[dataset]]
name = "corpus"
path = "{corpus}"
[translation]
to = "nl"
engine = "mock"
repair = []
[runtime]
workers = {workers}
object_store_mb = 80
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "experiment.toml"
        file.write_text(
            EXPERIMENT.format(folder=name, corpus=arguments.corpus.resolve(), workers=arguments.workers)
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
        begin = time.monotonic()
        run = [sys.executable, "-m", "beirnl.cli", "run", str(file), "--only", "check"]
        process = subprocess.Popen(run, env=environment)
        with Memory(process.pid).watched() as memory:
            code = process.wait()
        seconds = time.monotonic() - begin
        if code:
            sys.exit(code)
        pipeline = Pipeline.of(load_experiment(file))
        stages: Counter[str] = Counter()
        for node in pipeline.graph.nodes.values():
            artifact = node.artifact(pipeline.workspace)
            if artifact.find_manifest():
                stages[node.stage] += round(sum(receipt.seconds for receipt in artifact.receipts()))
        (final,) = (t.final for t in pipeline.graph.translations if t.kind == "document")
        rows = final.artifact(pipeline.workspace).rows
    print(f"{rows:,} documents in {seconds:.0f} s: {rows / seconds:,.0f} documents/s")
    print("seconds of work: " + ", ".join(f"{stage} {spent}" for stage, spent in stages.items()))
    print(f"peak memory of all processes {memory.peak / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
