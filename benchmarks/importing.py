"""A set of FEVER's size from local Parquet into the workspace: documents per second, memory of all processes.

python benchmarks/importing.py FOLDER [--documents 5400000] [--workers 1] [--times 3]

FOLDER is a BEIR folder with the statistics of Dutch text, and is made if it is not there; its corpus is read
from Parquet files, as the hub has them. Each run (the median of three counts) is one `beirnl run` from
nothing to the receipts of corpus, queries and judgements: digests of the files, import, Python's start.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
from bm25_peers import make_corpus, shards_of
from setting import ROOT, Memory

EXPERIMENT = """
name = "importing"
workspace = "{folder}/workspace"
[[dataset]]
name = "corpus"
path = "{folder}/set"
language = "nl"
[[system]]
name = "BM25"
kind = "bm25"
[runtime]
workers = {workers}
object_store_mb = 80
"""


def linked(source: Path, folder: Path) -> Path:
    """The set with its corpus in Parquet, without a copy."""
    made = folder / "set"
    (made / "corpus").mkdir(parents=True)
    for shard in shards_of(source):
        (made / "corpus" / shard.name).symlink_to(shard.resolve())
    for name in ("queries.jsonl", "qrels"):
        (made / name).symlink_to((source / name).resolve())
    return made


def run_once(source: Path, workers: int) -> tuple[float, int]:
    """Seconds of a whole import, and the peak of memory in bytes."""
    with tempfile.TemporaryDirectory(prefix="importing-", dir=source) as name:
        folder = Path(name)
        linked(source, folder)
        file = folder / "experiment.toml"
        file.write_text(EXPERIMENT.format(folder=folder.resolve(), workers=workers))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
        command = [sys.executable, "-m", "beirnl.cli", "run", str(file), "--only", "import-qrels"]
        begin = time.monotonic()
        process = subprocess.Popen(command, env=environment)
        with Memory(process.pid).watched() as memory:
            code = process.wait()
        if code:
            sys.exit(code)
        return time.monotonic() - begin, memory.peak


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=5_400_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    make_corpus(arguments.corpus, arguments.documents, queries=7405)
    rows = sum(pq.read_metadata(shard).num_rows for shard in shards_of(arguments.corpus))
    done = [run_once(arguments.corpus, arguments.workers) for _ in range(arguments.times)]
    seconds = statistics.median(spent for spent, _ in done)
    listed = ", ".join(f"{spent:.1f}" for spent, _ in done)
    print(f"{rows:,} documents in {seconds:.1f} s (runs: {listed}): {rows / seconds:,.0f} documents/s")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (used.ru_utime + used.ru_stime) / arguments.times
    print(f"{spent:.1f} s of CPU a run: {rows / spent:,.0f} documents per second of CPU")
    print(f"peak memory of all processes {max(peak for _, peak in done) / 1e9:.2f} GB")
    print(f"{arguments.workers} workers, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
