"""The fault server fails as told, counts what it did, and speaks the dialect that real clients expect."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest
from fault_answers import Answer
from fault_server import FaultServer


def ask(server: FaultServer, prompt: str, timeout: float = 5, **extra) -> httpx.Response:
    body = {"model": "mock", "messages": [{"role": "user", "content": prompt}], **extra}
    return httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=timeout)


def client(server: FaultServer, **options) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", **options)


def chat_line(name: str, prompt: str) -> dict:
    body = {"model": "mock", "messages": [{"role": "user", "content": prompt}]}
    return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}


def run_batch(api: openai.OpenAI, lines: list[dict]) -> tuple[list[str], openai.types.Batch]:
    data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    file = api.files.create(file=("requests.jsonl", data), purpose="batch")
    batch = api.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    states = [batch.status]
    while batch.status in ("validating", "in_progress"):
        batch = api.batches.retrieve(batch.id)
        states.append(batch.status)
    return states, batch


def read(api: openai.OpenAI, file_id: str | None) -> list[dict]:
    return [json.loads(line) for line in api.files.content(file_id).text.split("\n") if line]


def test_an_answer_is_a_function_of_the_prompt_alone():
    with FaultServer() as server:
        answers = {ask(server, "Hello").json()["choices"][0]["message"]["content"] for _ in range(3)}
    assert answers == {"NL: Hello"}


def test_the_model_can_be_replaced_and_can_stop_early():
    with FaultServer(answer=lambda prompt: Answer(prompt.upper(), "length")) as server:
        (choice,) = ask(server, "kort").json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("KORT", "length")


def test_outcomes_listed_by_number_come_in_that_order():
    with FaultServer(script=["429:1.5", "500", "malformed", "cut", "200"]) as server:
        limited = ask(server, "a")
        assert (limited.status_code, limited.headers["Retry-After"]) == (429, "1.5")
        assert ask(server, "b").status_code == 500
        with pytest.raises(json.JSONDecodeError):
            ask(server, "c").json()
        with pytest.raises(httpx.RemoteProtocolError, match="complete message body"):
            ask(server, "d")
        assert ask(server, "e").status_code == 200
        assert server.counts.outcomes == {"429": 1, "500": 1, "malformed": 1, "cut": 1, "200": 1}
        assert server.counts.answered == {"e": 1}


def test_outcomes_listed_by_prompt_follow_its_attempts():
    with FaultServer(script={"a": ["503", "200"]}) as server:
        codes = [ask(server, prompt).status_code for prompt in ("b", "a", "a", "a")]
        assert codes == [200, 503, 200, 200]
        assert server.counts.prompts == {"a": 3, "b": 1}


def test_a_stall_sends_nothing_and_ends_with_the_connection():
    with FaultServer(script=["stall", "stall"], stall_seconds=0.2) as server:
        with pytest.raises(httpx.ReadTimeout):
            ask(server, "a", timeout=0.05)
        with pytest.raises(httpx.RemoteProtocolError):
            ask(server, "a")


def test_closing_ends_a_stall_and_open_connections():
    began = time.monotonic()
    with (
        FaultServer(script={"slow": ["stall"]}, stall_seconds=60) as server,
        ThreadPoolExecutor(1) as threads,
        httpx.Client() as pool,
    ):
        assert pool.get(f"{server.url}/v1/models").status_code == 200
        stalled = threads.submit(ask, server, "slow", timeout=30)
        while not server.counts.prompts["slow"]:
            time.sleep(0.01)
        server.close()
        assert isinstance(stalled.exception(), httpx.TransportError)
        with pytest.raises(httpx.TransportError):
            pool.get(f"{server.url}/v1/models")
    assert time.monotonic() - began < 10


def test_rates_are_drawn_by_seed_prompt_and_attempt_not_by_order():
    def codes(order: range, seed: int) -> dict[int, list[int]]:
        with FaultServer(rates={"429": 0.3, "500": 0.2}, seed=seed) as server, httpx.Client() as pool:
            seen: dict[int, list[int]] = {}
            for i in [*order, *order]:
                body = {"model": "mock", "prompt": f"p{i}"}
                response = pool.post(f"{server.url}/v1/completions", json=body)
                seen.setdefault(i, []).append(response.status_code)
            return seen

    forwards, backwards, other = codes(range(150), 7), codes(range(149, -1, -1), 7), codes(range(150), 8)
    assert forwards == backwards != other
    drawn = [code for pair in forwards.values() for code in pair]
    assert 60 <= drawn.count(429) <= 120  # 90 expected of 300, five standard deviations are 40
    assert 30 <= drawn.count(500) <= 95


def test_requests_at_once_are_each_counted_once():
    together = threading.Barrier(8)

    def answer(prompt: str) -> str:
        together.wait(20)
        return prompt

    with FaultServer(answer=answer) as server, ThreadPoolExecutor(8) as threads:
        codes = list(threads.map(lambda i: ask(server, f"p{i}", timeout=30).status_code, range(8)))
        assert codes == [200] * 8
        assert set(server.counts.prompts.values()) == {1}
        assert server.counts.peak == 8


def test_stats_are_readable_over_http():
    with FaultServer(script=["500"]) as server:
        ask(server, "a")
        ask(server, "a")
        stats = httpx.get(f"{server.url}/_stats").json()
    assert stats["prompts"] == {"a": 2}
    assert stats["outcomes"] == {"500": 1, "200": 1}
    assert stats["answered"] == {"a": 1}
    assert stats["requests"] == 2


def test_refusals_look_like_those_of_the_api():
    with FaultServer(api_key="right") as server:
        assert ask(server, "a").status_code == 401
        api = openai.OpenAI(base_url=f"{server.url}/v1", api_key="right", max_retries=0)
        with pytest.raises(openai.NotFoundError, match="does not exist"):
            api.completions.create(model="other", prompt="a")
        with pytest.raises(openai.NotFoundError):
            api.batches.retrieve("batch_9")
        with pytest.raises(openai.BadRequestError):
            api.post("/chat/completions", body={"model": "mock"}, cast_to=object)
    with FaultServer() as server:
        assert httpx.post(f"{server.url}/v1/completions", content=b"{").status_code == 400


def test_an_unknown_outcome_is_refused_at_once():
    with pytest.raises(ValueError, match="explode"):
        FaultServer(rates={"explode": 0.1})
    with pytest.raises(ValueError, match="explode"):
        FaultServer(script={"a": ["200", "explode"]})


def test_the_openai_client_retries_through_faults():
    with FaultServer(script=["429:0.01", "cut"]) as server:
        api = client(server, max_retries=2)
        messages = [{"role": "system", "content": "Translate."}, {"role": "user", "content": "Hello"}]
        said = api.chat.completions.create(model="mock", messages=messages, n=2)
        assert [choice.message.content for choice in said.choices] == ["NL: Hello", "NL: Hello"]
        assert said.usage.completion_tokens == 4
        assert server.counts.prompts == {"Hello": 3}
        assert server.counts.answered == {"Hello": 1}


def test_models_and_completions_through_the_openai_client():
    with FaultServer(models=["a", "b"]) as server:
        api = client(server)
        assert [model.id for model in api.models.list()] == ["a", "b"]
        said = api.completions.create(model="a", prompt=["x", "y"])
    assert [choice.text for choice in said.choices] == ["NL: x", "NL: y"]


def test_embeddings_agree_between_encodings_and_are_unit_vectors():
    with FaultServer() as server:
        coded = client(server).embeddings.create(model="mock", input=["x", "y"], dimensions=5)
        plain = client(server).embeddings.create(
            model="mock", input=["x", "y"], dimensions=5, encoding_format="float"
        )
    vectors = [row.embedding for row in coded.data]
    assert vectors == [row.embedding for row in plain.data]
    assert vectors[0] != vectors[1]
    assert sum(x * x for x in vectors[0]) == pytest.approx(1, abs=1e-6)


def test_a_batch_moves_through_its_states_and_answers_out_of_order():
    names = [f"r{i}" for i in range(50)]
    with FaultServer() as server:
        api = client(server)
        states, batch = run_batch(api, [chat_line(name, f"tekst\u2028{name}") for name in names])
        lines = read(api, batch.output_file_id)
    assert states == ["validating", "in_progress", "completed"]
    assert (batch.request_counts.total, batch.request_counts.completed) == (50, 50)
    assert [line["custom_id"] for line in lines] != names
    answers = {n["custom_id"]: n["response"]["body"]["choices"][0]["message"]["content"] for n in lines}
    assert answers == {name: f"NL: tekst\u2028{name}" for name in names}


def test_batch_lines_are_missing_repeated_and_refused_as_told():
    script = {"m": ["missing"], "d": ["duplicate"], "e": ["400"]}
    with FaultServer(batch_script=script) as server:
        api = client(server)
        _, batch = run_batch(api, [chat_line(name, name) for name in "mdeg"])
        names = sorted(line["custom_id"] for line in read(api, batch.output_file_id))
        (error,) = read(api, batch.error_file_id)
        assert server.counts.answered == {"d": 1, "g": 1}
    assert names == ["d", "d", "g"]
    assert (error["custom_id"], error["response"]["status_code"]) == ("e", 400)
    assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 1)


def test_errors_can_stand_in_the_output_file():
    with FaultServer(batch_script={"e": ["400"]}, errors_in_output=True) as server:
        api = client(server)
        _, batch = run_batch(api, [chat_line("g", "g"), chat_line("e", "e")])
        codes = {n["custom_id"]: n["response"]["status_code"] for n in read(api, batch.output_file_id)}
    assert codes == {"g": 200, "e": 400}
    assert batch.error_file_id is None


def test_an_expired_batch_keeps_what_was_done():
    with FaultServer(batch_rates={"expired": 0.5}, seed=3) as server:
        api = client(server)
        states, batch = run_batch(api, [chat_line(f"r{i}", f"p{i}") for i in range(40)])
        done, late = read(api, batch.output_file_id), read(api, batch.error_file_id)
    assert states[-1] == "expired"
    assert len(done) + len(late) == 40
    assert {line["error"]["code"] for line in late} == {"batch_expired"}
    assert all(line["response"] is None for line in late)


def test_a_malformed_batch_fails_with_the_line():
    with FaultServer() as server:
        api = client(server)
        states, batch = run_batch(api, [chat_line("a", "x"), chat_line("a", "y")])
    assert states == ["validating", "failed"]
    assert batch.errors.data[0].line == 2


def test_a_batch_can_be_cancelled_until_it_is_done():
    with FaultServer() as server:
        api = client(server)
        file = api.files.create(file=("x.jsonl", json.dumps(chat_line("a", "x")).encode()), purpose="batch")
        batch = api.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        assert api.batches.cancel(batch.id).status == "cancelling"
        assert api.batches.retrieve(batch.id).status == "cancelled"
        with pytest.raises(openai.BadRequestError):
            api.batches.cancel(batch.id)
        assert server.counts.prompts == {}


def test_a_lost_reply_leaves_the_batch_to_be_found_by_its_metadata():
    with FaultServer(script={"POST /v1/batches": ["cut"]}) as server:
        api = client(server, max_retries=0)
        file = api.files.create(file=("x.jsonl", json.dumps(chat_line("a", "x")).encode()), purpose="batch")
        with pytest.raises(openai.APIConnectionError):
            api.batches.create(
                input_file_id=file.id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={"key": "k1"},
            )
        assert [batch.metadata for batch in api.batches.list()] == [{"key": "k1"}]
        assert server.counts.routes["POST /v1/batches"] == 1


def test_uploads_come_back_byte_for_byte():
    data = b"\r\n--x\r\n\x00\xff\r\n"
    with FaultServer() as server:
        api = client(server)
        file = api.files.create(file=("blob.bin", data), purpose="batch")
        assert (file.filename, file.bytes) == ("blob.bin", len(data))
        assert api.files.content(file.id).content == data
        assert api.files.delete(file.id).deleted
        with pytest.raises(openai.NotFoundError):
            api.files.retrieve(file.id)
