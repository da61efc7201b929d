"""Encoding through the actor pool against one SentenceTransformer.encode over the whole list, same threads.

python benchmarks/embed.py [--documents 2000] [--runs 3] [--threads 2] [--dtype float32] [--corpus FILE]

The peer sorts the list by length itself. The pool's time runs from the start of its first unit to the end of
its last, reading, writing and receipts included; loading the model is outside for both. Each run has a
process of its own.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from setting import ROOT, write_set

EXPERIMENT = """
name = "benchmark"
workspace = "{folder}/workspace"
[[dataset]]
name = "benchmark"
path = "{folder}/set"
[[system]]
name = "dense"
kind = "dense"
model = "{model}"
dtype = "{dtype}"
batch_size = {batch_size}
[runtime]
workers = {workers}
threads = {threads}
"""


def documents_of(file: Path, number: int) -> list[tuple[str, str]]:
    with file.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(number), strict=False)]
    return [(row.get("title", ""), row["text"]) for row in rows]


def write_experiment(folder: Path, documents: Sequence[tuple[str, str]], **settings: object) -> Path:
    write_set(folder / "set", documents)
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(folder=folder, **settings))
    return file


def seconds_of_stage(file: Path, stage: str = "embed") -> float:
    """From the start of a stage's first unit to the end of its last; the stage is run on Ray."""
    from beirnl.config import load_experiment
    from beirnl.executors.cluster import RayExecutor
    from beirnl.pipeline import Pipeline

    experiment = load_experiment(file)
    pipeline = Pipeline.of(experiment)
    executor = RayExecutor(experiment.runtime, None)
    try:
        pipeline.run(executor, only=stage)
    finally:
        executor.close()
    nodes = [node for node in pipeline.graph.nodes.values() if node.stage == stage]
    units = [r for node in nodes for r in node.artifact(pipeline.workspace).receipts() if r.rows_in > 1]
    return max(r.finished for r in units) - min(r.finished - r.seconds for r in units)


def through_the_pool(arguments: argparse.Namespace) -> float:
    settings = {"workers": 1, "threads": arguments.threads, "batch_size": arguments.batch_size}
    with tempfile.TemporaryDirectory() as name:
        documents = documents_of(arguments.corpus, arguments.documents)
        file = write_experiment(
            Path(name), documents, model=arguments.model, dtype=arguments.dtype, **settings
        )
        return seconds_of_stage(file)


def in_one_call(arguments: argparse.Namespace) -> float:
    import torch
    from sentence_transformers import SentenceTransformer

    from beirnl.models.cache import model_path
    from beirnl.registry import resolve_model

    torch.set_num_threads(arguments.threads)
    folder = model_path(resolve_model(arguments.model, "encoder"))
    encoder = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": arguments.dtype})
    texts = [f"{title} {text}".strip() for title, text in documents_of(arguments.corpus, arguments.documents)]
    begin = time.monotonic()
    encoder.encode(texts, batch_size=arguments.batch_size, normalize_embeddings=True)
    return time.monotonic() - begin


ROLES = {"peer": in_one_call, "pool": through_the_pool}


def apart(role: str) -> float:
    """Seconds of a role in a process of its own."""
    command = [sys.executable, __file__, *sys.argv[1:], "--role", role]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared/data/scifact/corpus.jsonl")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", default="paraphrase-MiniLM-L3-v2")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--role", choices=ROLES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role:
        print(ROLES[arguments.role](arguments))
        return
    pairs = [(apart("peer"), apart("pool")) for _ in range(arguments.runs)]
    peer, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{arguments.documents} documents, {arguments.model}, {arguments.dtype}, {arguments.threads} threads,"
        f" batches of {arguments.batch_size}, median of {arguments.runs} runs"
    )
    print(f"one encode {arguments.documents / peer:.1f}, pool {arguments.documents / ours:.1f} documents/s")
    print(f"ratio {peer / ours:.3f} (runs: {', '.join(f'{p / o:.3f}' for p, o in pairs)})")


if __name__ == "__main__":
    main()
