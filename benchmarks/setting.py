"""What the benchmarks share: small sets on disk, a server that counts, and the memory of all processes."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from memory import Memory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the server that fails as told is the tests' own

from fault_server import FaultServer  # noqa: E402

from beirnl.config import load_experiment  # noqa: E402
from beirnl.llm import Request, in_order  # noqa: E402
from beirnl.llm.mock import MockLlm  # noqa: E402
from beirnl.pipeline import Pipeline  # noqa: E402
from beirnl.specs import LlmSpec  # noqa: E402

__all__ = ["ROOT", "FaultServer", "answer", "run_watched", "sentences", "write_set"]

_MOCK = MockLlm(LlmSpec(engine="mock"))


def answer(prompt: str) -> str:
    """What the mock engine answers to the prompt of a chat."""
    return in_order(_MOCK, [Request(messages=(("user", prompt),))])[0].text


def sentences() -> list[str]:
    """English sentences of the embedded sample."""
    file = ROOT / "beirnl" / "sample" / "corpus.jsonl"
    return [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]


def write_set(folder: Path, documents: Sequence[tuple[str, str]]) -> Path:
    """A BEIR folder of (title, text) with one query."""
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"d{n}", "title": t, "text": x} for n, (t, x) in enumerate(documents)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "What is a cell?"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n")
    return folder


class Watched(NamedTuple):
    """A run that ended: its pipeline, seconds of wall time and of work by stage, and peak memory in bytes."""

    pipeline: Pipeline
    seconds: float
    stages: Counter[str]
    peak: int

    def print(self) -> None:
        """The seconds of work, and the memory."""
        print("seconds of work: " + ", ".join(f"{stage} {round(s)}" for stage, s in self.stages.items()))
        print(f"peak memory of all processes {self.peak / 2**30:.2f} GiB")


def run_watched(file: Path, *options: str, memory: type[Memory] = Memory) -> Watched:
    """``beirnl run`` in a process of its own; ends this one too if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    begin = time.monotonic()
    command = [sys.executable, "-m", "beirnl.cli", "run", str(file), *options]
    process = subprocess.Popen(command, env=environment, stdout=sys.stderr)
    with memory(process.pid).watched() as watch:
        code = process.wait()
    seconds = time.monotonic() - begin
    if code:
        sys.exit(code)
    pipeline = Pipeline.of(load_experiment(file))
    stages: Counter[str] = Counter()
    for node in pipeline.graph.nodes.values():
        artifact = node.artifact(pipeline.workspace)
        if manifest := artifact.find_manifest():
            reduced = [manifest.reduced] if manifest.reduced else []
            stages[node.stage] += sum(receipt.seconds for receipt in [*artifact.receipts(), *reduced])
    return Watched(pipeline, seconds, stages, watch.peak)


def wait_for(condition: object, seconds: float, every: float = 0.02) -> bool:
    """Wait until a condition holds; whether it does."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(every)
    return bool(condition())
