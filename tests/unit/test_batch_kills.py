"""A process that waits for batch jobs dies at every step; the next one orders, and pays, nothing twice."""

import json
import signal
import subprocess
import sys

import pytest
from fault_server import FaultServer

from beirnl.llm.batch import OpenAiBatchLlm
from beirnl.llm.protocol import Request, Surroundings, in_order
from beirnl.specs import LlmSpec, ModelRef, Server

PROMPTS = [f"t{n}" for n in range(10)]

#: Runs the engine and kills its process when a method of an object is about to return for the nth time.
CHILD = """
import os, signal, sys
from pathlib import Path
from beirnl.llm.batch import OpenAiBatchLlm
from beirnl.llm.batch.book import JobBook
from beirnl.llm.batch.openai import OpenAiProvider
from beirnl.llm.protocol import Request, Surroundings
from beirnl.specs import LlmSpec

spec, folder, point, nth = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
owner, _, method = point.partition(".")
seen = 0

def die_at_nth():
    global seen
    seen += 1
    if seen == nth:
        os.kill(os.getpid(), signal.SIGKILL)

if owner != "answer":
    kind = {"book": JobBook, "provider": OpenAiProvider}[owner]
    original = getattr(kind, method)

    def dying(*args, **kwargs):
        result = original(*args, **kwargs)
        die_at_nth()
        return result

    setattr(kind, method, dying)

engine = OpenAiBatchLlm(LlmSpec.model_validate_json(spec), Surroundings(folder=folder))
requests = [Request(messages=(("user", f"t{n}"),)) for n in range(10)]
for place, answer in engine.generate(requests):
    if owner == "answer":
        die_at_nth()
"""


def spec(server: FaultServer) -> LlmSpec:
    settings = {"api_key_env": "", "poll_seconds": 0.01, "retries": 0, "batch_requests": 4}
    return LlmSpec(
        engine="batch",
        model=ModelRef(name="mock", source="api:mock"),
        server=Server(base_url=f"{server.url}/v1", **settings),
    )


def run_and_die(server: FaultServer, folder, point: str, nth: int) -> None:
    wire = spec(server)
    text = json.dumps(wire.model_dump() | {"server": wire.server.model_dump()})
    child = subprocess.run(
        [sys.executable, "-c", CHILD, text, str(folder), point, str(nth)], capture_output=True, timeout=60
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("book._tidy", 1),  # nothing is entered yet
        ("book.write", 1),  # one of three jobs is entered, nothing is ordered
        ("provider.upload", 1),
        ("book.write", 4),  # the file's id is in the book
        ("provider.create", 1),  # ordered, and the id is not in the book
        ("provider.create", 2),
        ("book.write", 5),  # the job's id is in the book
        ("provider.download", 1),
        ("answer", 2),  # in the middle of the first job's answers
        ("answer", 4),  # the last of the first job, before it is put away
        ("book.release", 1),
    ],
)
def test_a_kill_costs_nothing(tmp_path, point, nth):
    with FaultServer() as server:
        run_and_die(server, tmp_path, point, nth)
        llm = OpenAiBatchLlm(spec(server), Surroundings(folder=tmp_path))
        answers = in_order(llm, [Request(messages=(("user", text),)) for text in PROMPTS])
        assert [answer.text for answer in answers] == [f"NL: {text}" for text in PROMPTS]
        assert server.counts.answered == dict.fromkeys(PROMPTS, 1)
        lines = [
            json.loads(line)["custom_id"]
            for batch in server.store.batches.values()
            for line in server.store.contents[batch["input_file_id"]].splitlines()
        ]
        assert sorted(lines) == sorted(set(lines))
    left = [path.name for path in (tmp_path / "batches").iterdir() if path.is_file()]
    assert left == ["book.lock"]
