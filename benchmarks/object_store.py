"""The same run on a local path and in an object store that takes 5 ms longer for every request.

The set is the embedded sample's sentences made many, in shards of some documents, through import, the mock
LLM, checks, BM25 and scores, in this process. The object store is moto's S3 server in a process of its own,
which shares the machine's cores with the run. Both run in turn, each in a new workspace and with an empty
cache; printed are seconds, the ratio of medians, and requests per unit.

python benchmarks/object_store.py [--shards 32] [--documents 5000] [--delay 0.005] [--runs 3]
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from setting import sentences, write_set

from s3_server import BUCKET, Server, s3_server  # isort: skip

from beirnl.config import load_experiment
from beirnl.executors.local import LocalExecutor
from beirnl.pipeline import Pipeline

TEXT = """name = "object-store"
workspace = "{workspace}"
[[dataset]]
name = "set"
path = "{source}"
shard_documents = {size}
[translation]
to = "nl"
engine = "mock"
[[system]]
kind = "bm25"
name = "bm25"
"""


def run(folder: Path, source: Path, size: int, workspace: str, number: int) -> tuple[float, int]:
    """Seconds of a run in a new workspace, and how many units it had."""
    os.environ["BEIRNL_CACHE"] = str(folder / f"cache-{number}")
    file = folder / "experiment.toml"
    file.write_text(TEXT.format(workspace=f"{workspace}/{number}", source=source, size=size))
    begin = time.monotonic()
    pipeline, executor = Pipeline.of(load_experiment(file)), LocalExecutor()
    pipeline.run(executor)
    executor.close()
    seconds = time.monotonic() - begin
    artifacts = [node.artifact(pipeline.workspace) for node in pipeline.graph.nodes.values()]
    return seconds, sum(len(artifact.manifest.receipts) for artifact in artifacts)


def compare(folder: Path, options: argparse.Namespace, server: Server) -> None:
    os.environ.update(server.environment)
    draw, texts = random.Random(0), sentences()
    wanted = options.shards * options.documents
    documents = [(f"title {n}", " ".join(draw.choices(texts, k=3))) for n in range(wanted)]
    source = write_set(folder / "set", documents)
    found: dict[str, list[float]] = {"local path": [], "object store": []}
    for number in range(options.runs):
        for place, workspace in zip(found, (folder / "workspace", f"s3://{BUCKET}"), strict=True):
            before = len(server.requests())
            seconds, units = run(folder, source, options.documents, str(workspace), number)
            requests = len(server.requests()) - before
            found[place].append(seconds)
            print(
                f"{place}: {seconds:.1f} s, {units} units, {requests / units:.1f} requests per unit",
                flush=True,
            )
    local, remote = (statistics.median(seconds) for seconds in found.values())
    print(
        f"{wanted:,} documents in {options.shards} shards, {1000 * options.delay:g} ms added per request, "
        f"load {os.getloadavg()[0]:.1f}: {local:.1f} s and {remote:.1f} s, ratio {remote / local:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=32, help="of the corpus, about")
    parser.add_argument("--documents", type=int, default=5000, help="of a shard (a large corpus has 10,000)")
    parser.add_argument("--delay", type=float, default=0.005, help="seconds added to every request")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, s3_server(Path(folder), options.delay) as server:
        compare(Path(folder), options, server)


if __name__ == "__main__":
    main()
