"""What the benchmarks share: small sets on disk, a server that counts, and the memory of all processes."""

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the server that fails as told is the tests' own

from fault_server import FaultServer  # noqa: E402

from beirnl.llm import Request, in_order  # noqa: E402
from beirnl.llm.mock import MockLlm  # noqa: E402
from beirnl.specs import LlmSpec  # noqa: E402

__all__ = ["ROOT", "FaultServer", "Memory", "answer", "sentences", "write_set"]

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


class Memory:
    """Peak memory of a process and all that it has started: proportional set sizes, summed."""

    EVERY = 0.5  # seconds

    def __init__(self, pid: int) -> None:
        self.peak = 0
        self._pid = pid
        self._end = threading.Event()

    def _watch(self) -> None:
        while not self._end.wait(self.EVERY):
            self.peak = max(self.peak, sum(self._sizes()))

    def _sizes(self) -> Iterator[int]:
        try:
            root = psutil.Process(self._pid)
            processes = [root, *root.children(recursive=True)]
        except psutil.Error:
            return
        for process in processes:
            try:
                yield self.size_of(process)
            except (psutil.Error, OSError):
                continue

    def size_of(self, process: psutil.Process) -> int:
        """Bytes of a process: of what several share, its part."""
        return int(process.memory_full_info().pss)

    @contextmanager
    def watched(self) -> Iterator["Memory"]:
        """Watch until the block ends."""
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            thread.join()


def wait_for(condition: object, seconds: float, every: float = 0.02) -> bool:
    """Wait until a condition holds; whether it does."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(every)
    return bool(condition())
