"""Tokens per second through the whole translate stage, against vLLM's own LLM.generate on the same prompts.

Both use one engine, already loaded, with an empty prefix cache; every answer has --tokens tokens, since
nothing stops it. The stage reads shards, renders prompts, asks through the journal, writes Parquet and
receipts. A shard has about as many rows as run at once (--slots), so that the batch is full only if the end
of a shard does not drain it; the work is many times that, since both sides run out of requests at its end.

python benchmarks/vllm_throughput.py [--documents 320] [--shard 32] [--slots 16] [--tokens 64] [--runs 3]
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from beirnl import registry
from beirnl.config import load_experiment
from beirnl.executors.local import LocalExecutor
from beirnl.llm.vllm_engine import _set_environment
from beirnl.pipeline import Pipeline
from beirnl.stages import STAGES
from beirnl.stages.base import Task
from beirnl.store.artifacts import Artifact
from beirnl.translation import asks_for, piece_budget

EXPERIMENT = """
name = "benchmark"
workspace = "{workspace}"
[[dataset]]
name = "benchmark"
path = "{folder}/set"
shard_documents = {shard}
[translation]
to = "nl"
engine = "vllm"
model = "gemma-3-270m"
max_tokens = {tokens}
max_model_len = 1024
repair = []
query_prompt = "few-shot-nl"
document_prompt = "{folder}/endless.txt"
"""


class Stage(LocalExecutor):
    """Runs the stage's units as ever, keeps the loaded engine, and times the documents among them."""

    def __init__(self, engines):
        super().__init__()
        self.engines, self.seconds = engines, 0.0
        self.tasks: list[Task] = []

    def run(self, tasks, done, aside):
        documents = [task for task in tasks if getattr(task.spec, "kind", "") == "document"]
        super().run([task for task in tasks if task not in documents], done, aside)
        if documents:
            self._load(STAGES[documents[0].stage], documents[0])
            self.engines[0].generate(["warm up"] * 4, use_tqdm=False)
            self.empty_cache()
            begin = time.perf_counter()
            super().run(documents, done)
            self.seconds, self.tasks = time.perf_counter() - begin, documents

    def empty_cache(self):
        """Nothing is under way: the engine's thread waits for its inbox."""
        assert self.engines[0].reset_prefix_cache()


def engines(slots):
    """Let vllm.LLM run ``slots`` requests at once, and keep what is made of it."""
    _set_environment(len(os.sched_getaffinity(0)))
    import vllm

    made, original = [], vllm.LLM

    def make(*arguments, **settings):
        made.append(original(*arguments, max_num_seqs=slots, **settings))
        return made[-1]

    vllm.LLM = make
    return made


def write_set(folder, corpus, arguments):
    (folder / "set" / "qrels").mkdir(parents=True)
    with corpus.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(arguments.documents), strict=False)]
    for row in rows:
        row |= {"title": "", "text": " ".join(row["text"].split()[: arguments.words])}
    (folder / "set" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "set" / "queries.jsonl").write_text('{"_id": "q", "text": "water"}\n')
    (folder / "set" / "qrels" / "test.tsv").write_text(f"q\t{rows[0]['_id']}\t1\n")
    head, _, template = registry.prompt("few-shot-nl").partition("\n---\n")
    head = "\n".join(line for line in head.splitlines() if not line.startswith("stop"))
    (folder / "endless.txt").write_text(f"{head}\n---\n{template}")
    return len(rows)


def through_stage(stage, folder, workspace, arguments):
    """Tokens and seconds of the stage, from a workspace without answers."""
    file = folder / "experiment.toml"
    file.write_text(
        EXPERIMENT.format(folder=folder, workspace=workspace, shard=arguments.shard, tokens=arguments.tokens)
    )
    Pipeline.of(load_experiment(file)).run(stage, only="translate")
    receipts = [Artifact(task.directory).receipt(task.unit) for task in stage.tasks]
    return sum(receipt.counts["completion tokens"] for receipt in receipts), stage.seconds


def prompts_of(tasks):
    """The prompts that the stage has asked, shard by shard."""
    spec = tasks[0].spec
    rows = [task.inputs["rows"].read(task.unit) for task in tasks]
    asks = [ask for table in rows for row in asks_for(table, spec, piece_budget(spec)) for ask in row]
    return [ask.request.prompt for ask in asks]


def in_one_call(llm, prompts, tokens):
    from vllm import SamplingParams

    begin = time.perf_counter()
    outputs = llm.generate(prompts, SamplingParams(temperature=0, max_tokens=tokens), use_tqdm=False)
    seconds = time.perf_counter() - begin
    return sum(len(output.outputs[0].token_ids) for output in outputs), seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/scifact/corpus.jsonl"))
    for name, value in (
        ("documents", 320), ("words", 20), ("shard", 32), ("slots", 16), ("tokens", 64), ("runs", 3)
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    made = engines(arguments.slots)
    stage = Stage(made)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = write_set(folder, arguments.corpus, arguments)
        pairs = []

        def ours(run):
            return through_stage(stage, folder, folder / f"workspace-{run}", arguments)

        def peer(run):
            stage.empty_cache()
            return in_one_call(made[0], prompts_of(stage.tasks), arguments.tokens)

        for run in range(arguments.runs):
            order = (peer, ours) if run % 2 else (ours, peer)
            rates = {}
            for side in order:
                tokens, seconds = side(run)
                rates[side] = tokens / seconds
                print(
                    f"{side.__name__:5} {tokens} tokens, {seconds:.1f} s, {rates[side]:.1f} tokens/s",
                    flush=True,
                )
            pairs.append((rates[ours], rates[peer]))
        shards, prompts = len(stage.tasks), len(prompts_of(stage.tasks))
        print(f"{rows} documents, {shards} shards, {prompts} prompts, {arguments.slots} at once")
        print(f"LLM.generate {statistics.median(theirs for _, theirs in pairs):.1f} tokens/s")
        print(f"translate stage {statistics.median(own for own, _ in pairs):.1f} tokens/s")
        print(f"median of ratios {statistics.median(own / theirs for own, theirs in pairs):.3f}")
        stage.close()


if __name__ == "__main__":
    main()
