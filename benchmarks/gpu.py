"""What the GPU stages do in a second, and how busy the GPUs are meanwhile.

python benchmarks/gpu.py [--llm MODEL] [--encoder MODEL] [--reranker MODEL] [--documents 20000]
    [--queries 500] [--workers 1] [--gpus 1] [--translate 1000]

One experiment goes through Ray stage by stage: `translate` (vLLM), `embed`, `search-exact`, `rerank`. Rows
and tokens are those of the receipts, over the time from the start of a stage's first unit to the end of its
last, the loading of models excluded for the first worker. Utilisation is the mean of what nvidia-smi says
twice a second in that time, of the GPUs that are used at all. Without --encoder and --reranker, random
weights of MiniLM-L6's shape stand for them; without --llm nothing is translated. Fractions share one GPU:
`--workers 4 --gpus 0.25`.
"""

import argparse
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import setting  # noqa: F401  the module below is the tests' own
from small_models import bi_encoder, cross_encoder, write_set

from beirnl.config import load_experiment
from beirnl.executors.cluster import RayExecutor
from beirnl.pipeline import Pipeline
from beirnl.store.artifacts import Receipt

STAGES = ("translate", "embed", "search-exact", "rerank")
EXPERIMENT = """
name = "gpu"
workspace = "{folder}/workspace"
[runtime]
workers = {workers}
gpus = {gpus}
[[dataset]]
name = "large"
path = "{folder}/large"
shard_documents = 2000
[[system]]
name = "dense"
kind = "dense"
model = "{encoder}"
languages = ["en"]
[[system]]
name = "reranked"
kind = "rerank"
first = "dense"
model = "{reranker}"
languages = ["en"]
"""
TRANSLATION = """
[[dataset]]
name = "small"
path = "{folder}/small"
shard_documents = 250
[translation]
to = "nl"
engine = "vllm"
model = "{llm}"
datasets = ["small"]
repair = []
max_tokens = 256
query_prompt = "{prompt}"
document_prompt = "{prompt}"
"""


class Utilisation:
    """Per cent that each GPU was busy, twice a second; nothing where there is no nvidia-smi."""

    COMMAND = ("nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits")

    def __init__(self) -> None:
        self.samples: list[tuple[float, list[tuple[float, float]]]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Utilisation":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.5):
            try:
                said = subprocess.run(self.COMMAND, capture_output=True, text=True, check=True).stdout
            except (OSError, subprocess.CalledProcessError):
                return
            busy = [tuple(map(float, line.split(","))) for line in said.splitlines()]
            self.samples.append((time.time(), [(one[0], one[1]) for one in busy]))

    def between(self, begin: float, end: float) -> str:
        """Mean use, and the most memory, of the GPUs that were used."""
        found = [busy for moment, busy in self.samples if begin <= moment <= end]
        used = [gpu for gpu in range(len(found[0])) if any(s[gpu][0] for s in found)] if found else []
        if not used:
            return "no GPU"
        busy = mean(sample[gpu][0] for sample in found for gpu in used)
        memory = max(sample[gpu][1] for sample in found for gpu in used) / 1024
        return f"{busy:.0f} % of {len(used)} GPU{'s' * (len(used) > 1)}, {memory:.1f} GiB"


def receipts(pipeline: Pipeline, stage: str) -> list[Receipt]:
    nodes = [node for node in pipeline.graph.nodes.values() if node.stage == stage]
    return [one for node in nodes for one in node.artifact(pipeline.workspace).receipts()]


def measured(pipeline: Pipeline, executor: RayExecutor) -> Iterator[str]:
    """A line per stage."""
    there = {node.stage for node in pipeline.graph.nodes.values()}
    for stage in (stage for stage in STAGES if stage in there):
        with Utilisation() as used:
            pipeline.run(executor, only=stage)
        found = receipts(pipeline, stage)
        begin, end = min(r.finished - r.seconds for r in found), max(r.finished for r in found)
        rows, tokens = sum(r.rows_in for r in found), sum(r.counts.get("completion tokens", 0) for r in found)
        rates = f"{rows / (end - begin):,.0f} rows/s" + (
            f", {tokens / (end - begin):,.0f} tokens/s" * bool(tokens)
        )
        yield f"{stage:14} {rows:,} rows in {end - begin:.1f} s: {rates}; {used.between(begin, end)}"


def write(folder: Path, given: argparse.Namespace) -> Path:
    write_set(folder / "large", given.documents, given.queries)
    encoder = given.encoder or bi_encoder(folder / "bi")
    reranker = given.reranker or cross_encoder(folder / "cross")
    text = EXPERIMENT.format(
        folder=folder, workers=given.workers, gpus=given.gpus, encoder=encoder, reranker=reranker
    )
    if given.llm:
        write_set(folder / "small", given.translate, 10)
        text += TRANSLATION.format(folder=folder, llm=given.llm, prompt=given.prompt)
    file = folder / "experiment.toml"
    file.write_text(text)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--llm", help="a model of the registry, a hub path or a folder")
    parser.add_argument("--prompt", default="few-shot-nl", help="of the registry, for the LLM")
    parser.add_argument("--encoder")
    parser.add_argument("--reranker")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--translate", type=int, default=1_000, help="documents that are translated")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gpus", type=float, default=1.0, help="of each worker; 0: on the CPU, to try it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        pipeline = Pipeline.of(load_experiment(write(Path(name), given)))
        stages = {"embed": given.gpus} | ({"translate": given.gpus} if given.llm else {})
        executor = RayExecutor(pipeline.experiment.runtime, None, stages)
        try:
            print(f"{given.workers} workers with {given.gpus:g} GPUs each")
            for line in measured(pipeline, executor):
                print(line, flush=True)
        finally:
            executor.close()


if __name__ == "__main__":
    main()
