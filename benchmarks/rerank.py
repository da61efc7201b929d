"""Reranking through the pipeline's stages against one CrossEncoder.predict over all pairs.

python benchmarks/rerank.py [--queries 300] [--depth 100] [--documents 20000] [--runs 3] [--model FOLDER]

Both score the same pairs in the same batch size and threads, each run in a process of its own. The stages'
time is that of the units of ``gather`` and ``rerank``, receipts included; loading the model is outside on
both sides. Without ``--model`` the cross-encoder has the shape of MiniLM-L6 and random weights.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import setting  # noqa: F401  the module below is the tests' own
from small_models import cross_encoder, write_set

from beirnl.config import load_experiment
from beirnl.executors.local import LocalExecutor
from beirnl.pipeline import Pipeline

EXPERIMENT = """
name = "benchmark"
workspace = "{folder}/workspace"
[[dataset]]
name = "set"
path = "{folder}/set"
[[system]]
name = "first"
kind = "bm25"
depth = {depth}
[[system]]
name = "second"
kind = "rerank"
first = "first"
model = "{model}"
depth = {depth}
[runtime]
threads = {threads}
"""


def stages(file: Path) -> None:
    """Seconds of the units of both stages, and of the gathering."""
    pipeline = Pipeline.of(load_experiment(file))
    pipeline.run(LocalExecutor(), only="rerank")
    print(json.dumps({stage: _seconds(pipeline, stage) for stage in ("gather", "rerank")}))


def _seconds(pipeline: Pipeline, stage: str) -> float:
    nodes = [node for node in pipeline.graph.nodes.values() if node.stage == stage]
    return sum(receipt.seconds for n in nodes for receipt in n.artifact(pipeline.workspace).receipts())


def one_call(file: Path) -> None:
    """Seconds of the peer over the pairs of a finished experiment, and how far its scores are from ours."""
    import torch
    from sentence_transformers import CrossEncoder

    experiment = load_experiment(file)
    pipeline = Pipeline.of(experiment)
    nodes = {node.stage: node for node in pipeline.graph.nodes.values()}
    tables = {name: nodes["rerank"].inputs[name].artifact(pipeline.workspace) for name in ("run", "queries")}
    corpus = nodes["import-corpus"].artifact(pipeline.workspace)
    passages = {row["id"]: row["text"] for shard in corpus.tables() for row in shard.to_pylist()}
    queries = {row["id"]: row["text"] for row in tables["queries"].table().to_pylist()}
    run = tables["run"].table().to_pylist()
    pairs = [(queries[hit["query_id"]], passages[hit["doc_id"]]) for hit in run]
    torch.set_num_threads(experiment.runtime.worker_threads)
    model = CrossEncoder(str(experiment.system[1].model), device="cpu", activation_fn=torch.nn.Identity())
    begin = time.monotonic()
    scores = model.predict(pairs, batch_size=32, show_progress_bar=False)
    seconds = time.monotonic() - begin
    ours = pl.DataFrame(nodes["rerank"].artifact(pipeline.workspace).table())
    peer = pl.DataFrame(run).with_columns(pl.Series("peer", scores))
    both = peer.join(ours, on=["query_id", "doc_id"], suffix="_ours")
    assert both.height == len(pairs)
    apart = float((both["peer"] - both["score_ours"]).abs().max())
    print(json.dumps({"peer": seconds, "pairs": len(pairs), "apart": apart}))


def in_a_process(which: str, file: Path) -> dict:
    done = subprocess.run([sys.executable, __file__, which, str(file)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    result: dict = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    if sys.argv[1:2] in (["stages"], ["one_call"]):
        {"stages": stages, "one_call": one_call}[sys.argv[1]](Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    ours, peers, gathering = [], [], []
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_set(folder / "set", arguments.documents, arguments.queries)
            model = arguments.model or cross_encoder(folder / "model")
            file = folder / "experiment.toml"
            settings = {"depth": arguments.depth, "threads": arguments.threads}
            file.write_text(EXPERIMENT.format(folder=folder, model=model, **settings))
            here = in_a_process("stages", file)
            there = in_a_process("one_call", file)
        ours.append(here["gather"] + here["rerank"])
        gathering.append(here["gather"])
        peers.append(there["peer"])
        rate = there["pairs"] / peers[-1], there["pairs"] / ours[-1]
        apart = f"largest difference of a score {there['apart']:.1e}"
        print(f"one predict {rate[0]:.1f} pairs/s, stages {rate[1]:.1f} pairs/s; {apart}", flush=True)
    print(f"{there['pairs']} pairs, {arguments.documents} documents, {arguments.threads} threads")
    print(f"gathering {statistics.median(gathering):.2f} s of {statistics.median(ours):.1f} s")
    print(f"ratio {statistics.median(peers) / statistics.median(ours):.2f} (median of {arguments.runs} runs)")


if __name__ == "__main__":
    main()
