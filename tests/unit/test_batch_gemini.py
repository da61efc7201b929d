"""Gemini's batch jobs, through Google's SDK and a server that knows the calls it makes."""

import json

import pytest
from gemini_server import GeminiServer

from beirnl.errors import EngineError, PrerequisiteError
from beirnl.llm.batch import GeminiBatchLlm, GeminiProvider
from beirnl.llm.protocol import Answer, Request, Surroundings, in_order
from beirnl.specs import LlmSpec, ModelRef, Server


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "right")


def spec(server: GeminiServer, **settings) -> LlmSpec:
    values = {"base_url": server.url, "poll_seconds": 0.01, "retries": 0, "timeout": 20, **settings}
    return LlmSpec(
        engine="gemini-batch",
        model=ModelRef(name="gemini-2.0-flash", source="api:gemini-2.0-flash"),
        server=Server(**values),
    )


def engine(server: GeminiServer, folder, **settings) -> GeminiBatchLlm:
    return GeminiBatchLlm(spec(server, **settings), Surroundings(folder=folder))


def chats(*texts: str, **extra) -> list[Request]:
    return [Request(messages=(("user", text),), **extra) for text in texts]


def test_answers_are_matched_by_key_and_counted_with_their_thoughts(tmp_path):
    names = [f"zin {n}" for n in range(9)]
    with GeminiServer(api_key="right") as server:
        answers = in_order(engine(server, tmp_path, batch_requests=4), chats(*names))
        assert len(server.jobs) == 3
        assert server.answered == dict.fromkeys(names, 1)
        assert {job["metadata"]["model"] for job in server.jobs.values()} == {"models/gemini-2.0-flash"}
    assert answers == [Answer(f"NL: {name}", "stop", 2, 8) for name in names]


def test_a_request_is_put_into_geminis_words(tmp_path):
    chat = Request(
        messages=(("system", "Wees kort."), ("user", "a"), ("assistant", "b"), ("user", "c")),
        max_tokens=9,
        temperature=0.5,
        stop=("###",),
        json_fields=("title", "body"),
    )
    with GeminiServer() as server:
        in_order(engine(server, tmp_path), [chat, Request(prompt="d", max_tokens=5)])
        rich, plain = sorted(server.requests, key=lambda body: -len(body))
    assert [(turn["role"], turn["parts"]) for turn in rich["contents"]] == [
        ("user", [{"text": "a"}]),
        ("model", [{"text": "b"}]),
        ("user", [{"text": "c"}]),
    ]
    assert rich["systemInstruction"] == {"parts": [{"text": "Wees kort."}]}
    config = rich["generationConfig"]
    assert (config["maxOutputTokens"], config["temperature"], config["stopSequences"]) == (9, 0.5, ["###"])
    assert config["responseMimeType"] == "application/json"
    assert config["responseSchema"]["required"] == ["title", "body"]
    assert plain == {
        "contents": [{"role": "user", "parts": [{"text": "d"}]}],
        "generationConfig": {"temperature": 0.0, "maxOutputTokens": 5},
    }


@pytest.mark.parametrize(
    "asked", [{"json_fields": ("title",)}, {"json_schema": '{"type": "object"}'}, {"choices": ("0", "1")}]
)
def test_every_request_line_is_one_that_the_sdk_knows(asked):
    from google.genai import types

    with GeminiServer() as server:
        line = GeminiProvider(spec(server)).line("k", chats("a", stop=("x",), **asked)[0])
    request = json.loads(line)["request"]
    assert request["generationConfig"]["responseMimeType"]
    types.GenerationConfig.model_validate(request["generationConfig"])  # an unknown field is an error there
    types.Content.model_validate(request["contents"][0])


def test_finish_reasons(tmp_path):
    lines = {"b": ["MAX_TOKENS"], "c": ["SAFETY"], "d": ["blocked"]}
    with GeminiServer(lines=lines) as server:
        whole, cut, unsafe, blocked = in_order(engine(server, tmp_path), chats(*"abcd"))
        assert len(server.jobs) == 1
    assert (whole.finish_reason, cut.finish_reason) == ("stop", "length")
    assert (unsafe.finish_reason, unsafe.error) == ("error", "the server ended the answer: SAFETY")
    assert (blocked.finish_reason, blocked.error) == ("error", "blocked: PROHIBITED_CONTENT")


def test_missing_repeated_and_failed_lines(tmp_path):
    lines = {"b": ["missing"], "c": ["duplicate"], "d": ["error", "error"], "e": ["error"] * 9}
    with GeminiServer(lines=lines) as server:
        answers = in_order(engine(server, tmp_path), chats(*"abcde"))
        assert server.asked == {"a": 1, "b": 2, "c": 1, "d": 3, "e": 3}
        assert server.answered == dict.fromkeys("abcd", 1)
    assert [answer.text for answer in answers] == ["NL: a", "NL: b", "NL: c", "NL: d", ""]
    assert answers[-1].error == "internal"


@pytest.mark.parametrize(
    "calls",
    [
        {"create": ["cut"]},
        {"create": ["500"]},
        {"create": ["429", "429"]},
        {"create": ["cut"], "list": ["ok", "503", "429"]},
        {"start": ["500"], "get": ["503", "cut"], "download": ["cut", "500"]},
    ],
    ids=str,
)
def test_calls_that_fail_order_nothing_twice(tmp_path, calls):
    with GeminiServer(calls=calls) as server:
        answers = in_order(engine(server, tmp_path), chats("a", "b"))
        assert [answer.text for answer in answers] == ["NL: a", "NL: b"]
        assert len(server.jobs) == 1
        assert server.answered == {"a": 1, "b": 1}


def test_a_lost_job_is_found_on_a_later_page(tmp_path):
    with GeminiServer(calls={"create": ["cut"]}) as server:
        for number in range(230):
            server.jobs[f"batches/x{number}"] = {
                "name": f"batches/x{number}",
                "metadata": {"displayName": "y"},
            }
        assert in_order(engine(server, tmp_path), chats("a"))[0].text == "NL: a"
        assert (server.counts["create"], server.counts["list"]) == (1, 4)


def test_expired_and_failed_jobs(tmp_path):
    with GeminiServer(states=["BATCH_STATE_EXPIRED"]) as server:
        assert in_order(engine(server, tmp_path), chats("a"))[0].text == "NL: a"
        assert len(server.jobs) == 2
    with GeminiServer(states=["BATCH_STATE_FAILED"]) as server:
        with pytest.raises(EngineError, match=r"batches/b0: the provider refuses the whole batch"):
            in_order(engine(server, tmp_path), chats("b"))
        assert in_order(engine(server, tmp_path), chats("b"))[0].text == "NL: b"


def test_keys_come_from_the_environment(tmp_path, monkeypatch):
    with GeminiServer(api_key="right") as server:
        monkeypatch.setenv("MINE", "wrong")
        with pytest.raises(EngineError, match=r"refuses the key.*MINE"):
            engine(server, tmp_path, api_key_env="MINE")
        monkeypatch.delenv("GEMINI_API_KEY")
        monkeypatch.setenv("GOOGLE_API_KEY", "right")  # the SDK's own variable is not what is documented
        with pytest.raises(PrerequisiteError, match="GEMINI_API_KEY"):
            engine(server, tmp_path)


def test_an_unreachable_server_is_one_line(tmp_path):
    with GeminiServer() as server:
        gone = server
    with pytest.raises(EngineError, match=r"no whole answer.*check base_url"):
        engine(gone, tmp_path)
