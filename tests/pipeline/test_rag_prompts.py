"""What answering models are asked through the whole pipeline: each prompt once, whatever happens to a run."""

import json
import os
import re
import signal
from collections import Counter

import pytest
from fault_server import FaultServer
from killing import Scene, drive, processes
from rag_experiments import Engine, answered_keys, counted, found, rag, replies, write_questions, write_texts
from running import experiment, run, system

from beirnl.api import run_nodes
from beirnl.config import load_experiment
from beirnl.llm.protocol import Answer
from beirnl.pipeline import Pipeline
from beirnl.reporting import gather

KS = (0, 1, 2, 3, 4, 5, 10)
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
NUMBER = 20  # of questions
#: Three systems that rank by words, each in its way, and an encoder under two names.
BY_WORDS = [
    system("bm25", "plain"),
    system("bm25", "flat", k1=0.0, b=0.0),
    system("bm25", "short", k1=3.0, b=1.0),
]


def by_words(at):
    """A word for each of many places."""
    return " ".join(WORDS[int(digit)] for digit in f"{at:03}")


@pytest.fixture
def texts(tmp_path):
    """Documents of a few words, of different lengths, and questions that name some of them."""
    folder = write_texts(
        tmp_path / "documents",
        {
            f"{at}.txt": f"{by_words(at)} some text {by_words(7 * at % 100)} " * (1 + at % 3)
            for at in range(40)
        },
    )
    rows = [
        {"question": f"What of {by_words(at)}?", "options": [f"{n} {WORDS[at % 10]}" for n in range(4)]}
        | {"answer_index": at % 4}
        for at in range(NUMBER)
    ]
    return folder, write_questions(tmp_path / "own.json", rows)


@pytest.fixture
def several_slices(monkeypatch):
    """Prompts are asked in units of a few."""
    monkeypatch.setattr("beirnl.stages.questions.PROMPTS_PER_UNIT", 50)


def write(tmp_path, texts, systems, answers='[[rag.answers]]\nengine = "mock"'):
    return experiment(tmp_path, rag(texts[0], answers, texts[1], k=5, ks=list(KS)) + "".join(systems))


def contexts(pipeline):
    """What prompts may show, counted from the runs: question and passages."""
    seen = {(question, ()) for question in found(pipeline, "plain")}
    for one in pipeline.graph.answering.searched:
        for question, passages in found(pipeline, one.system.name).items():
            seen |= {(question, tuple(passages[:k])) for k in KS}
    return seen


def test_five_systems_and_seven_k_ask_no_prompt_twice(
    tmp_path, monkeypatch, texts, tiny_encoder, several_slices
):
    engine = Engine(monkeypatch, lambda request: "0")
    dense = [system("dense", name, model=tiny_encoder) for name in ("one", "same")]
    pipeline = run(write(tmp_path, texts, [*BY_WORDS, *dense]))
    counts = counted(pipeline, "plans")
    assert counts["requests, naive"] == 5 * 7 * NUMBER
    assert len(engine.prompts) == len(set(engine.prompts)) == counts["requests, distinct"]
    assert len(engine.prompts) == len(contexts(pipeline)) < 0.8 * 5 * 7 * NUMBER
    bare = [prompt for prompt in engine.prompts if "[1]" not in prompt]
    assert len(bare) == NUMBER  # k = 0 is asked once for all systems
    assert len(replies(pipeline)) == NUMBER * (1 + 5 * 6)
    saved = 1 - len(engine.prompts) / (5 * 7 * NUMBER)
    said = f"mock was asked {len(engine.prompts)} distinct prompts in place of 700 ({saved:.0%} saved)."
    assert said in gather(pipeline).notes
    assert len(pipeline.graph.answering.answers["mock"].artifact(pipeline.workspace).receipts()) > 4


def test_a_further_system_asks_only_what_is_new(tmp_path, monkeypatch, texts, several_slices):
    """The prompts are more, and cut into other units: what was answered is found all the same."""
    engine = Engine(monkeypatch, lambda request: "0")
    for number in (1, 2, 3):
        pipeline = run(write(tmp_path, texts, BY_WORDS[:number]))
        assert len(engine.prompts) == len(set(engine.prompts)) == len(contexts(pipeline))


def test_what_looks_alike_in_a_prompt_is_asked_once(tmp_path, monkeypatch, texts):
    """Passages that differ in line ends only are one line in a prompt that a base model continues."""
    folder = write_texts(tmp_path / "two", {"a.txt": "alpha beta\ngamma", "b.txt": "alpha beta gamma"})
    engine = Engine(monkeypatch, lambda request: "0")
    answers = '[[rag.answers]]\nengine = "mock"\nprompt = "few-shot-answer"'
    pipeline = run(write(tmp_path, (folder, texts[1]), BY_WORDS[:1], answers))
    assert len(engine.prompts) == len(set(engine.prompts)) == counted(pipeline, "plans")["requests, distinct"]


def test_the_page_has_the_passages_of_systems_whose_prompts_were_asked_for_others(tmp_path, texts):
    pipeline = run(write(tmp_path, texts, [*BY_WORDS, system("bm25", "twin")]))
    (part,) = gather(pipeline).parts
    view = json.loads(re.search(r'per-question-data">(.*)</script>', part.html)[1])[0]
    assert len(view["systems"]) == 4 and any(name.endswith(" (twin)") for name, _, _ in view["passages"])
    assert all(text for _, _, text in view["passages"])


def test_answers_that_ended_in_an_error_are_counted_and_asked_again_by_the_next_run(
    tmp_path, monkeypatch, texts, several_slices
):
    def say(request):
        fails = failing and hash_of(request.last_text) % 7 == 0
        return (
            Answer("", "error", error="the server is away") if fails else str(hash_of(request.last_text) % 4)
        )

    failing = True
    engine = Engine(monkeypatch, say)
    file = write(tmp_path, texts, BY_WORDS[:2])
    pipeline = run(file)
    failed = [prompt for prompt in engine.prompts if hash_of(prompt) % 7 == 0]
    assert failed and counted(pipeline, "answers")["failed"] == len(failed)
    told = [line for line in gather(pipeline).warnings if "were given no answer and count as invalid" in line]
    assert len(told) == 1 and str(len(failed)) in told[0]
    assert sum(reply["answer"] == -1 for reply in replies(pipeline)) >= len(failed)
    failing, before = False, len(engine.prompts)
    again = Pipeline.of(load_experiment(file), again=True)
    assert sum(status.failed for status in again.plan()) == len(failed)
    run_nodes(again, None, again.wanted(None))
    assert sorted(engine.prompts[before:]) == sorted(failed)
    assert counted(again, "answers")["failed"] == 0
    assert not any("no answer" in line for line in gather(again).warnings)
    run_nodes(again, None, again.wanted(None))
    assert len(engine.prompts) == before + len(failed)
    (tmp_path / "whole").mkdir()
    assert replies(again) == replies(run(write(tmp_path / "whole", texts, BY_WORDS[:2])))


def hash_of(text):
    return sum(text.encode()) // 3


def test_killed_while_answering_only_what_was_in_flight_is_asked_twice(tmp_path, texts):
    """SIGKILL from outside, three times, each in the middle of answers that a server counts."""
    in_flight, kills = 4, 3
    with FaultServer(answer=lambda prompt: str(hash_of(prompt) % 4), latency=0.02) as server:
        answers = '[[rag.answers]]\nengine = "openai"\nmodel = "mock"\nprice = {input = 0, output = 0}\n'
        answers += f'[rag.answers.server]\nbase_url = "{server.url}/v1"\napi_key_env = ""\n'
        answers += f"in_flight = {in_flight}\n"
        (tmp_path / "killed").mkdir()
        (tmp_path / "whole").mkdir()
        killed = Scene(write(tmp_path / "killed", texts, BY_WORDS[:1], answers))
        seen = server.counts.prompts
        for number in range(kills):
            process = processes().Process(target=drive, args=(killed.file, "all", 1, tmp_path / "log", {}))
            process.start()
            target = seen.total() + 10 + number
            while process.is_alive() and seen.total() < target:
                process.join(0.01)
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            assert process.exitcode == -signal.SIGKILL, (tmp_path / "log").read_text()
        pipeline = run(killed.file)
        distinct = counted(pipeline, "plans")["requests, distinct"]
        assert len(seen) == distinct > 10 * kills
        assert distinct <= seen.total() <= distinct + kills * in_flight
        assert max(Counter(answered_keys(pipeline)).values()) == 1
        whole = Scene(write(tmp_path / "whole", texts, BY_WORDS[:1], answers))
        run(whole.file)
    assert parts(killed) == parts(whole) and not killed.left("answer")


def parts(scene):
    """Bytes of all answers; manifests tell how much was asked, too, which a kill makes less."""
    return {name: part for name, part in scene.contents("answer").items() if " " in name}
