"""The OpenAI-compatible engine against a server that fails as told."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_answers import Answer as Said
from fault_answers import ApiError
from fault_server import FaultServer

from beirnl.errors import BeirnlError, ConfigError, EngineError, PrerequisiteError
from beirnl.llm import Answer, Request, Surroundings, in_order
from beirnl.llm.http import retry
from beirnl.llm.openai_engine import OpenAiLlm
from beirnl.llm.openai_format import endpoint, json_schema, read_answer, request_body
from beirnl.specs import LlmSpec, ModelRef, Server

KEY = "sk-test-4b825dc642cb"
FAULTS = {"429": 0.05, "500": 0.05, "cut": 0.04, "malformed": 0.04, "stall": 0.02}


def spec_of(url: str, model: str = "mock", **server) -> LlmSpec:
    settings = {"base_url": f"{url}/v1", "api_key_env": "", "in_flight": 8, "timeout": 10.0, **server}
    return LlmSpec(
        engine="openai", model=ModelRef(name=model, source=f"api:{model}"), server=Server(**settings)
    )


def chats(*texts: str) -> list[Request]:
    return [Request(messages=(("user", text),), max_tokens=50) for text in texts]


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch):
    monkeypatch.setattr(retry, "BACKOFF_SECONDS", 0.01)


@pytest.fixture
def load():
    """``load(server, **settings)``: an engine that is closed after the test."""
    engines = []

    def make(server: FaultServer | str, model: str = "mock", share: float = 1.0, **settings) -> OpenAiLlm:
        url = server if isinstance(server, str) else server.url
        engines.append(OpenAiLlm(spec_of(url, model, **settings), Surroundings(share=share)))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def key(monkeypatch) -> str:
    monkeypatch.setenv("BEIRNL_TEST_KEY", KEY)
    return KEY


# The format -------------------------------------------------------------------------------------------------


def test_a_chat_and_a_prompt_go_to_their_routes_as_openai_wants_them():
    chat = Request(messages=(("system", "Vertaal."), ("user", "cat")), max_tokens=9, temperature=0.4)
    assert endpoint(chat) == "/v1/chat/completions"
    assert request_body(chat, "m") == {
        "model": "m",
        "messages": [{"role": "system", "content": "Vertaal."}, {"role": "user", "content": "cat"}],
        "max_tokens": 9,
        "temperature": 0.4,
    }
    prompt = Request(prompt="cat =", max_tokens=9, stop=("\n",))
    assert endpoint(prompt) == "/v1/completions"
    assert request_body(prompt, "m") == {
        "model": "m",
        "prompt": "cat =",
        "max_tokens": 9,
        "temperature": 0.0,
        "stop": ["\n"],
    }


def test_structure_is_asked_for_as_a_strict_schema():
    jsonschema = pytest.importorskip("jsonschema")
    body = request_body(Request(prompt="x", json_fields=("title", "body")), "m")
    asked = body["response_format"]["json_schema"]
    assert body["response_format"]["type"] == "json_schema" and asked["strict"] is True
    assert asked["schema"] == json_schema(["title", "body"])
    jsonschema.validate({"title": "a", "body": "b"}, asked["schema"])
    for wrong in ({"title": "a"}, {"title": "a", "body": 1}, {"title": "a", "body": "b", "more": "c"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, asked["schema"])


def test_a_schema_of_its_own_and_logprobs_are_asked_for_in_the_words_of_each_route():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    chat = Request(messages=(("user", "x"),), json_schema=json.dumps(schema), logprobs=5, choices=("0",))
    body = request_body(chat, "m")
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    assert "choices" not in body
    body = request_body(Request(prompt="x", logprobs=5), "m")
    assert body["logprobs"] == 5 and "top_logprobs" not in body and "response_format" not in body


@pytest.mark.parametrize(
    "choice",
    [
        {
            "message": {"content": "2"},
            "logprobs": {
                "content": [
                    {"token": "2", "logprob": -0.1, "top_logprobs": [
                        {"token": "2", "logprob": -0.1, "bytes": [50]}, {"token": " 1", "logprob": -2.5},
                    ]},
                    {"token": ".", "logprob": -9.0, "top_logprobs": []},
                ]
            },
        },
        {"text": "2", "logprobs": {"tokens": ["2"], "top_logprobs": [{"2": -0.1, " 1": -2.5}, None]}},
    ],
)  # fmt: skip
def test_logprobs_of_the_first_token_are_read(choice):
    answer = read_answer(completion(**choice))
    assert (answer.text, answer.logprobs) == ("2", (("2", -0.1), (" 1", -2.5)))


@pytest.mark.parametrize("told", [None, {}, {"content": []}, {"content": None}, {"top_logprobs": []}])
def test_a_server_that_tells_no_logprobs_is_read_all_the_same(told):
    assert read_answer(completion(text="2", logprobs=told)) == Answer("2", "stop")


def completion(**choice) -> dict:
    return {"choices": [{"finish_reason": "stop", **choice}], "usage": None}


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (completion(message={"content": "kat"}), Answer("kat", "stop")),
        (completion(text="kat", finish_reason="length"), Answer("kat", "length")),
        (completion(text="kat", finish_reason="eos_token"), Answer("kat", "stop")),
        (completion(message={"content": None}, finish_reason="length"), Answer("", "length")),
        (completion(message={"content": None, "refusal": "I won't"}), Answer("I won't", "stop")),
        (
            completion(text="kat") | {"usage": {"prompt_tokens": 3, "completion_tokens": None}},
            Answer("kat", "stop", 3, 0),
        ),
        (
            completion(message={"content": "k"}, finish_reason="content_filter"),
            Answer("", "error", error="the server ended the answer: content_filter"),
        ),
    ],
)
def test_responses_are_read(body, answer):
    assert read_answer(body) == answer
    assert read_answer(json.dumps(body).encode()) == answer


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"[]", b"{}", b"\xff", {"choices": []}, {"choices": [{}]}, {"error": {"message": "busy"}}],
)
def test_a_malformed_response_is_a_value_error(payload):
    with pytest.raises(ValueError, match=r"."):
        read_answer(payload)


# Answers ----------------------------------------------------------------------------------------------------


def test_every_place_gets_its_own_answer_and_its_tokens(load):
    with FaultServer() as server:
        texts = [f"document {n}" for n in range(100)]
        got = list(load(server).generate(chats(*texts)))
    assert sorted(place for place, _ in got) == list(range(100))
    assert all(answer == Answer(f"NL: {texts[place]}", "stop", 2, 3) for place, answer in got)


def test_answers_come_when_they_are_there_whatever_their_place(load):
    def answer(text: str) -> str:
        time.sleep(0.5 if text == "slow" else 0)
        return text

    with FaultServer(answer=answer) as server:
        order = [place for place, _ in load(server).generate(chats("slow", "a", "b", "c"))]
    assert order[-1] == 0 and sorted(order) == [0, 1, 2, 3]


def test_a_base_model_is_asked_to_continue(load):
    with FaultServer(answer=lambda prompt: Said("kat", "length")) as server:
        answers = in_order(load(server), [Request(prompt="cat =", stop=("\n",))])
        assert server.bodies[0]["prompt"] == "cat =" and server.bodies[0]["stop"] == ["\n"]
    assert answers == [Answer("kat", "length", 2, 1)]


def test_nothing_asked_is_nothing_answered(load):
    with FaultServer() as server:
        assert in_order(load(server), []) == []


# Failures that pass -----------------------------------------------------------------------------------------


def test_with_a_fifth_of_answers_failing_each_row_is_answered_once(load):
    texts = [f"row {n}" for n in range(300)]
    with FaultServer(rates=FAULTS, seed=7, stall_seconds=5) as server:
        got = list(load(server, in_flight=32, timeout=1.0).generate(chats(*texts)))
        failed = {outcome for outcome in FAULTS if server.counts.outcomes[outcome]}
        charged = server.counts.answered
    assert failed == set(FAULTS)
    assert sorted(place for place, _ in got) == list(range(300))
    assert all(answer.text == f"NL: {texts[place]}" for place, answer in got)
    assert all(charged[text] == 1 for text in texts)


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        ("429", "429 Too Many Requests"),
        ("500", "500 Internal Server Error"),
        ("cut", "the connection broke"),
        ("malformed", "cannot be read"),
        ("stall", "no answer within 0.2 s"),
    ],
)
def test_a_row_that_keeps_failing_says_why_and_the_others_are_answered(load, outcome, cause):
    with FaultServer({"bad": [outcome] * 9}) as server:
        bad, good = in_order(load(server, retries=2, timeout=0.2), chats("bad", "good"))
        assert server.counts.prompts["bad"] == 3
    assert good.text == "NL: good"
    assert bad.finish_reason == "error" and cause in bad.error and "3 tries" in bad.error


@pytest.mark.parametrize("status", ["400", "413", "422"])
def test_a_request_that_the_server_refuses_is_not_repeated(load, status):
    with FaultServer({"long": [status] * 9}) as server:
        long, short = in_order(load(server), chats("long", "short"))
        assert server.counts.prompts["long"] == 1
    assert short.finish_reason == "stop"
    assert long.finish_reason == "error" and long.error.startswith(status)


def test_retry_after_is_honoured(load):
    with FaultServer({"limited": ["429:0.7"]}) as server:
        begin = time.monotonic()
        (answer,) = in_order(load(server), chats("limited"))
    assert answer.finish_reason == "stop"
    assert time.monotonic() - begin >= 0.7


def test_a_rate_limit_holds_all_requests(load):
    times: list[float] = []

    def answer(text: str) -> str:
        times.append(time.monotonic())
        return text

    rows = chats("limited", *(f"row {n}" for n in range(12)))
    with FaultServer({"limited": ["429:1.5"]}, answer=answer, latency=0.3) as server:
        begin = time.monotonic()
        answers = in_order(load(server, in_flight=4), rows)
    assert all(answer.finish_reason == "stop" for answer in answers)
    assert sum(when - begin < 1.5 for when in times) <= 3  # those that were under way


def test_the_rate_limit_is_this_workers_share(load):
    with FaultServer() as server:
        engine = load(server, share=0.5, requests_per_minute=6000)
        begin = time.monotonic()
        in_order(engine, chats(*(f"row {n}" for n in range(100))))
    assert time.monotonic() - begin >= 50 / (3000 / 60)  # 50 at once, the others at 50 a second


# Failures that do not ---------------------------------------------------------------------------------------


def test_a_missing_key_is_said_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("BEIRNL_TEST_KEY", raising=False)
    with FaultServer() as server, pytest.raises(PrerequisiteError, match="BEIRNL_TEST_KEY is not set"):
        OpenAiLlm(spec_of(server.url, api_key_env="BEIRNL_TEST_KEY"), Surroundings())


def test_the_right_key_is_let_in(load, key):
    with FaultServer(api_key=key) as server:
        (answer,) = in_order(load(server, api_key_env="BEIRNL_TEST_KEY"), chats("hello"))
    assert answer.text == "NL: hello"


@pytest.mark.parametrize(("variable", "named"), [("BEIRNL_TEST_KEY", "BEIRNL_TEST_KEY"), ("", "api_key_env")])
def test_a_wrong_key_is_found_when_loading(load, key, variable, named):
    with FaultServer(api_key="another") as server, pytest.raises(EngineError, match=named) as caught:
        load(server, api_key_env=variable)
    assert KEY not in str(caught.value)


def test_a_key_that_is_refused_later_ends_the_call(load, key):
    with FaultServer({"row 5": ["403"]}) as server, pytest.raises(EngineError, match="BEIRNL_TEST_KEY"):
        in_order(load(server, api_key_env="BEIRNL_TEST_KEY"), chats(*(f"row {n}" for n in range(20))))


def test_a_server_that_repeats_the_key_does_not_bring_it_into_an_error(load, key):
    def answer(text: str) -> str:
        raise ApiError(400, f"bad key: {KEY}")

    with FaultServer(answer=answer) as server:
        (answered,) = in_order(load(server, api_key_env="BEIRNL_TEST_KEY"), chats("hello"))
    assert answered.error == "400 Bad Request: bad key: ***"


def test_an_unreachable_server_is_one_line_with_its_address(load):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(EngineError, match="cannot be reached") as caught:
            load(url)
    assert url in str(caught.value) and "base_url" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://"])
def test_an_address_that_is_none(load, url):
    with pytest.raises(ConfigError, match="base_url"):
        load(url)


def test_no_model(load):
    with pytest.raises(ConfigError, match="model"):
        OpenAiLlm(LlmSpec(engine="openai", server=Server(api_key_env="")), Surroundings())


def test_a_wrong_model_is_answered_with_those_there_are(load):
    with (
        FaultServer(models=["alpha", "beta"]) as server,
        pytest.raises(EngineError, match=r"no model 'gamma'.*alpha, beta"),
    ):
        in_order(load(server, model="gamma"), chats("hello"))


def test_an_address_without_the_version_is_told_from_a_wrong_model():
    with FaultServer() as server:
        engine = OpenAiLlm(spec_of(server.url, base_url=server.url), Surroundings())
        with pytest.raises(EngineError, match="/v1"):
            in_order(engine, chats("hello"))
        engine.close()


def test_a_server_that_goes_away_ends_every_call(load):
    with FaultServer(latency=0.05) as server:
        engine = load(server, retries=1)
        with ThreadPoolExecutor(3) as pool:
            work = [chats(*(f"{name} {n}" for n in range(3000))) for name in ("a", "b", "c")]
            calls = [pool.submit(in_order, engine, requests) for requests in work]
            while server.counts.prompts.total() < 100:
                time.sleep(0.01)
            server.close()
            errors = [call.exception(30) for call in calls]
    assert all(isinstance(error, EngineError) and "gone" in str(error) for error in errors)
    assert len({id(error) for error in errors}) == 3
    with pytest.raises(EngineError, match="gone"):
        in_order(engine, chats("afterwards"))


def test_a_server_that_only_fails_is_not_asked_a_million_times(load):
    with FaultServer(rates={"500": 1.0}) as server:
        few = in_order(load(server, retries=0), chats(*(f"row {n}" for n in range(10))))
        with pytest.raises(EngineError, match="20 rows"):
            in_order(load(server, retries=0), chats(*(f"row {n}" for n in range(1000))))
        assert server.counts.prompts.total() < 100
    assert {answer.finish_reason for answer in few} == {"error"}


def test_a_spent_account_ends_the_call(load):
    def answer(text: str) -> str:
        raise ApiError(429, "You exceeded your current quota", "insufficient_quota")

    with FaultServer(answer=answer) as server, pytest.raises(EngineError, match="credit"):
        in_order(load(server), chats("hello"))


def test_a_model_that_names_the_length_otherwise_is_asked_its_way(load):
    def answer(text: str) -> str:
        if "max_tokens" in next(body for body in reversed(server.bodies) if text in str(body)):
            raise ApiError(
                400, "'max_tokens' is not supported, use 'max_completion_tokens'", "unsupported_parameter"
            )
        return text

    with FaultServer(answer=answer) as server:
        answers = in_order(load(server, retries=0), chats(*(f"<{n}>" for n in range(30))))
        refused = sum("max_tokens" in body for body in server.bodies)
        assert all(body.get("max_completion_tokens", 50) == 50 for body in server.bodies)
    assert [answer.text for answer in answers] == [f"<{n}>" for n in range(30)]
    assert 1 <= refused <= 8


# Many at once -----------------------------------------------------------------------------------------------


def test_threads_share_the_limit_and_get_their_own_answers(load):
    with FaultServer(latency=0.02) as server:
        engine = load(server, in_flight=6)

        def work(name: str) -> list[str]:
            return [answer.text for answer in in_order(engine, chats(*(f"{name} {n}" for n in range(40))))]

        with ThreadPoolExecutor(4) as pool:
            got = dict(zip("abcd", pool.map(work, "abcd"), strict=True))
        assert 1 < server.counts.peak <= 6
    assert got == {name: [f"NL: {name} {n}" for n in range(40)] for name in "abcd"}


def test_who_stops_early_leaves_nothing_to_be_sent(load):
    with FaultServer(latency=0.02) as server:
        engine = load(server, in_flight=4)
        with pytest.raises(BeirnlError, match="stop"):
            for count, _ in enumerate(engine.generate(chats(*(f"row {n}" for n in range(500))))):
                if count == 5:
                    raise BeirnlError("stop")
        (answer,) = in_order(engine, chats("afterwards"))
        sent = server.counts.prompts.total()
        time.sleep(0.2)
        assert server.counts.prompts.total() == sent < 100
    assert answer.text == "NL: afterwards"


def test_what_is_paid_for_and_not_put_away_is_never_more_than_in_flight(load):
    with FaultServer() as server:
        engine = load(server, in_flight=4)
        rows = engine.generate(chats(*(f"row {n}" for n in range(60))))
        for taken in range(1, 11):
            next(rows)  # which says that those before it are put away
            time.sleep(0.05)
            assert server.counts.prompts.total() <= taken - 1 + 4
        rows.close()
        assert len(in_order(engine, chats("another", "call"))) == 2


def test_closing_ends_a_call_that_waits(load):
    with FaultServer() as server:
        engine = load(server)
        server.latency = 20
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(in_order, engine, chats("hello"))
            while not server.counts.prompts:
                time.sleep(0.01)
            engine.close()
            assert isinstance(call.exception(10), EngineError)
        with pytest.raises(EngineError, match="closed"):
            in_order(engine, chats("afterwards"))
