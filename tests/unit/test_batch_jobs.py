"""Batch jobs against a server that fails as told: every request is answered, and paid at most once."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_server import FaultServer

from beirnl.errors import ConfigError, EngineError, PrerequisiteError
from beirnl.llm import load_llm
from beirnl.llm.batch import OpenAiBatchLlm
from beirnl.llm.protocol import Answer, Request, Surroundings, in_order
from beirnl.specs import LlmSpec, ModelRef, Server

QUEUE_FULL = {
    "code": "token_limit_exceeded",
    "message": "Enqueued token limit reached for mock. Please try again later.",
    "line": None,
    "param": None,
}


def spec(server: FaultServer, **settings) -> LlmSpec:
    values = {
        "base_url": f"{server.url}/v1",
        "api_key_env": "",
        "poll_seconds": 0.01,
        "retries": 0,
        **settings,
    }
    return LlmSpec(
        engine="batch",
        model=ModelRef(name="mock", source="api:mock"),
        server=Server(**values),
    )


def engine(server: FaultServer, folder, **settings) -> OpenAiBatchLlm:
    return OpenAiBatchLlm(spec(server, **settings), Surroundings(folder=folder))


def chats(*texts: str) -> list[Request]:
    return [Request(messages=(("user", text),)) for text in texts]


def texts(answers: list[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def open_jobs(folder) -> list[dict]:
    return [json.loads(path.read_text()) for path in (folder / "batches").glob("*.json")]


def closed_jobs(folder) -> list[dict]:
    return [json.loads(path.read_text()) for path in (folder / "batches" / "closed").glob("*.json")]


def batch_lines(server: FaultServer) -> list[list[dict]]:
    """The lines of every batch's input file."""
    inputs = [server.store.contents[batch["input_file_id"]] for batch in server.store.batches.values()]
    return [[json.loads(line) for line in data.splitlines()] for data in inputs]


def test_answers_are_matched_by_id(tmp_path):
    names = [f"zin {n}" for n in range(20)]
    with FaultServer() as server:
        answers = in_order(engine(server, tmp_path), chats(*names))
        assert [line["custom_id"] for line in batch_lines(server)[0]] == [
            request.key(spec(server).model) for request in chats(*names)
        ]
        assert server.counts.answered == dict.fromkeys(names, 1)
    assert texts(answers) == [f"NL: {name}" for name in names]
    assert answers[0] == Answer("NL: zin 0", "stop", 2, 3)
    (job,) = closed_jobs(tmp_path)
    assert (job["state"], len(job["consumed"]), open_jobs(tmp_path)) == ("collected", 20, [])
    assert sorted(path.suffix for path in (tmp_path / "batches").iterdir() if path.is_file()) == [".lock"]


def test_equal_requests_are_ordered_once(tmp_path):
    with FaultServer() as server:
        assert texts(in_order(engine(server, tmp_path), chats("a", "b", "a"))) == ["NL: a", "NL: b", "NL: a"]
        assert server.counts.answered == {"a": 1, "b": 1}


@pytest.mark.parametrize("errors_in_output", [False, True])
def test_missing_repeated_and_failed_lines(tmp_path, errors_in_output):
    script = {"b": ["missing"], "c": ["duplicate"], "d": ["400"], "e": ["missing", "500"]}
    with FaultServer(batch_script=script, errors_in_output=errors_in_output) as server:
        places = [place for place, _ in engine(server, tmp_path).generate(chats(*"abcde"))]
        assert sorted(places) == [0, 1, 2, 3, 4]
        assert server.counts.prompts == {"a": 1, "b": 2, "c": 1, "d": 2, "e": 3}
        assert set(server.counts.answered.values()) == {1}


def test_what_expired_is_ordered_again(tmp_path):
    with FaultServer(batch_script={"b": ["expired"], "c": ["expired"]}) as server:
        answers = in_order(engine(server, tmp_path), chats(*"abc"))
        assert texts(answers) == ["NL: a", "NL: b", "NL: c"]
        assert server.counts.answered == {"a": 1, "b": 1, "c": 1}
        assert [len(lines) for lines in batch_lines(server)] == [3, 2]


def test_a_request_that_keeps_failing_ends_with_its_reason(tmp_path):
    script = {"b": ["400"] * 9, "c": ["missing"] * 9}
    with FaultServer(batch_script=script) as server:
        good, failed, missing = in_order(engine(server, tmp_path), chats(*"abc"))
        assert server.counts.prompts == {"a": 1, "b": 3, "c": 3}
    assert good.finish_reason == "stop"
    assert (failed.finish_reason, failed.error) == ("error", "batch line answered with 400")
    assert missing.error == "batch job batch_3 (done) gave no answer"


def test_jobs_are_split_by_the_limits(tmp_path):
    names = [f"{'é' * 300} {n}" for n in range(10)]
    with FaultServer() as server:
        answers = in_order(engine(server, tmp_path, batch_requests=3), chats(*names))
        assert [len(lines) for lines in batch_lines(server)] == [3, 3, 3, 1]
        answers += in_order(engine(server, tmp_path / "b", batch_megabytes=0.002), chats(*names))
        uploads = [file["bytes"] for file in server.store.files.values() if file["purpose"] == "batch"]
        assert all(size <= 2000 for size in uploads[4:]) and len(uploads) > 8
    assert texts(answers) == [f"NL: {name}" for name in names] * 2


def test_prompts_and_chats_are_different_jobs(tmp_path):
    with FaultServer() as server:
        answers = in_order(engine(server, tmp_path), [*chats("a"), Request(prompt="b")])
        routes = {batch["endpoint"] for batch in server.store.batches.values()}
    assert texts(answers) == ["NL: a", "NL: b"]
    assert routes == {"/v1/chat/completions", "/v1/completions"}


def test_a_refused_file_is_one_line_and_can_be_ordered_again(tmp_path):
    with FaultServer() as server:
        llm = engine(server, tmp_path)
        server.store.refusals = [{"code": "invalid_url", "message": "wrong url", "line": 2, "param": None}]
        with pytest.raises(EngineError, match=r"refuses the whole batch \(line 2: wrong url\)") as caught:
            in_order(llm, chats("a", "b"))
        assert "\n" not in str(caught.value)
        assert [job["state"] for job in closed_jobs(tmp_path)] == ["failed"]
        assert texts(in_order(llm, chats("a", "b"))) == ["NL: a", "NL: b"]
        assert server.counts.answered == {"a": 1, "b": 1}


def test_a_create_call_that_is_refused_holds_nothing(tmp_path):
    with FaultServer(script={"POST /v1/batches": ["400"]}) as server:
        with pytest.raises(EngineError, match=r"refuses the whole batch.*Bad Request"):
            in_order(engine(server, tmp_path), chats("a"))
        assert texts(in_order(engine(server, tmp_path), chats("a"))) == ["NL: a"]


def test_a_full_queue_is_waited_for(tmp_path, caplog):
    with FaultServer() as server:
        server.store.refusals = [QUEUE_FULL, QUEUE_FULL]
        assert texts(in_order(engine(server, tmp_path), chats("a"))) == ["NL: a"]
        assert len(server.store.batches) == 3
        assert len({batch["metadata"]["beirnl"] for batch in server.store.batches.values()}) == 3
        assert server.counts.answered == {"a": 1}
    assert "Enqueued token limit reached" in caplog.text


def test_a_full_queue_with_nothing_of_ours_in_it_ends_with_advice(tmp_path):
    with FaultServer() as server:
        server.store.refusals = [QUEUE_FULL] * 20
        with pytest.raises(EngineError, match=r"does not take a batch of 1 request .*lower batch_requests"):
            in_order(engine(server, tmp_path, poll_seconds=0.001), chats("a"))
        assert open_jobs(tmp_path) == []


@pytest.mark.parametrize(
    "outcomes", [["429"], ["500"], ["cut"], ["malformed"], ["cut", "cut"], ["503", "cut"]]
)
def test_a_create_call_whose_fate_is_unknown_is_looked_up(tmp_path, outcomes):
    with FaultServer(script={"POST /v1/batches": outcomes}) as server:
        assert texts(in_order(engine(server, tmp_path, retries=3), chats("a", "b"))) == ["NL: a", "NL: b"]
        assert len(server.store.batches) == 1
        assert server.counts.answered == {"a": 1, "b": 1}


def test_a_lost_job_is_found_on_a_later_page_though_listing_fails_at_first(tmp_path):
    script = {"POST /v1/batches": ["cut"], "GET /v1/batches": ["200", "429", "500"]}
    with FaultServer(script=script) as server:
        file = server.store.add_file(b"", "batch", "other.jsonl")["id"]
        for _ in range(230):
            server.store.create_batch(file, "/v1/completions", "24h")
        assert texts(in_order(engine(server, tmp_path), chats("a"))) == ["NL: a"]
        assert server.counts.routes["POST /v1/batches"] == 1
        assert server.counts.answered == {"a": 1}


def test_a_server_that_drops_metadata_is_looked_up_by_file(tmp_path):
    with FaultServer(script={"POST /v1/batches": ["cut"]}) as server:
        create = server.store.create_batch
        server.store.create_batch = lambda metadata=None, **call: create(**call)
        assert texts(in_order(engine(server, tmp_path), chats("a"))) == ["NL: a"]
        assert len(server.store.batches) == 1


def test_failing_looks_and_cut_downloads_are_repeated(tmp_path):
    script = {
        "POST /v1/files": ["500"],
        "GET /v1/batches/batch_1": ["500", "429", "malformed", "200", "cut"],
        "GET /v1/files/file-2/content": ["cut", "503"],
    }
    with FaultServer(script=script) as server:
        assert texts(in_order(engine(server, tmp_path), chats("a", "b"))) == ["NL: a", "NL: b"]
        assert server.counts.routes["GET /v1/files/file-2/content"] == 3
        assert server.counts.answered == {"a": 1, "b": 1}


def test_a_server_that_is_gone_for_long_is_one_line_and_its_job_is_kept(tmp_path):
    script = {"GET /v1/batches/batch_1": ["500"] * 9}
    with FaultServer(script=script) as server:
        with pytest.raises(EngineError, match=r"Internal Server Error.*run the same command again"):
            in_order(engine(server, tmp_path, poll_seconds=0.001), chats("a"))
        assert [job["id"] for job in open_jobs(tmp_path)] == ["batch_1"]
        assert texts(in_order(engine(server, tmp_path), chats("a"))) == ["NL: a"]
        assert server.counts.answered == {"a": 1}


def test_a_cancelled_job_gives_what_it_has_and_the_rest_is_for_the_next_run(tmp_path):
    with FaultServer() as server, ThreadPoolExecutor(1) as threads:
        llm = engine(server, tmp_path, poll_seconds=0.05)
        run = threads.submit(in_order, llm, chats("a", "b"))
        while not server.store.batches:
            time.sleep(0.01)
        with server.store.lock:
            server.store.cancel(server.store.batches["batch_1"])
        assert "batch_1 was cancelled with 2 requests unanswered" in str(run.exception(30))
        assert texts(in_order(llm, chats("a", "b"))) == ["NL: a", "NL: b"]
        assert server.counts.answered == {"a": 1, "b": 1}


def test_a_job_stays_in_the_book_until_its_answers_are_consumed(tmp_path):
    with FaultServer() as server:
        run = engine(server, tmp_path).generate(chats(*"abc"))
        for _ in range(3):
            next(run)
        run.close()  # the last answer has come, and was not put away
        assert [len(job["waiting"]) for job in open_jobs(tmp_path)] == [3]
        assert texts(in_order(engine(server, tmp_path), chats(*"abc"))) == ["NL: a", "NL: b", "NL: c"]
        assert (open_jobs(tmp_path), len(server.store.batches)) == ([], 1)
        assert server.counts.answered == {"a": 1, "b": 1, "c": 1}


def test_who_takes_a_part_of_a_job_leaves_the_rest_in_the_book(tmp_path):
    with FaultServer() as server:
        engine(server, tmp_path).generate(chats(*"abc")).__next__()
        assert texts(in_order(engine(server, tmp_path), chats("b", "x"))) == ["NL: b", "NL: x"]
        (job,) = open_jobs(tmp_path)
        assert (len(job["waiting"]), len(job["consumed"])) == (2, 1)
        assert texts(in_order(engine(server, tmp_path), chats("c", "a"))) == ["NL: c", "NL: a"]
        assert open_jobs(tmp_path) == []
        assert set(server.counts.answered.values()) == {1}


def test_what_was_collected_a_moment_ago_is_not_ordered_again(tmp_path):
    """A unit may have looked into the journal just before another one wrote the same answers there."""
    with FaultServer() as server:
        for _ in range(2):
            assert texts(in_order(engine(server, tmp_path), chats("a", "b"))) == ["NL: a", "NL: b"]
        assert server.counts.answered == {"a": 1, "b": 1}
        for path in (tmp_path / "batches" / "closed").iterdir():
            os.utime(path, (0, 0))
        assert texts(in_order(engine(server, tmp_path), chats("a"))) == ["NL: a"]
        assert server.counts.answered == {"a": 2, "b": 1}


def test_units_that_wait_at_once_share_what_they_have_in_common(tmp_path):
    with FaultServer(latency=0.03) as server, ThreadPoolExecutor(8) as threads:
        engines = [engine(server, tmp_path), engine(server, tmp_path)]
        together = threading.Barrier(8)

        def unit(number: int) -> list[str]:
            together.wait(20)
            asked = chats(*(f"t{n}" for n in range(number, number + 5)))
            return texts(in_order(engines[number % 2], asked))

        given = list(threads.map(unit, range(8)))
        assert given == [[f"NL: t{n}" for n in range(number, number + 5)] for number in range(8)]
        assert server.counts.answered == {f"t{n}": 1 for n in range(12)}
        ordered = [line["custom_id"] for lines in batch_lines(server) for line in lines]
        assert sorted(ordered) == sorted(set(ordered))
        assert open_jobs(tmp_path) == []


def test_random_failures_lose_nothing(tmp_path):
    rates = {"400": 0.1, "missing": 0.1, "duplicate": 0.1, "expired": 0.1}
    names = [f"t{n}" for n in range(200)]
    with FaultServer(batch_rates=rates, seed=3) as server:
        answers = in_order(engine(server, tmp_path, batch_requests=60), chats(*names))
        assert set(server.counts.answered.values()) == {1}
        for name, answer in zip(names, answers, strict=True):
            assert (answer.text == f"NL: {name}") == (server.counts.answered[name] == 1)
    assert sum(answer.finish_reason == "error" for answer in answers) < 20  # 2.7 % expected


def test_a_job_of_another_account_is_never_ordered_again_by_itself(tmp_path):
    with FaultServer() as server:
        engine(server, tmp_path).generate(chats("a")).__next__()
        server.store.batches.clear()
        with pytest.raises(
            EngineError, match=r"batch job batch_1 cannot be read.*remove \S+\.json"
        ) as caught:
            in_order(engine(server, tmp_path), chats("a"))
        (record,) = (tmp_path / "batches").glob("*.json")
        assert str(record) in str(caught.value)
        record.unlink()
        assert texts(in_order(engine(server, tmp_path), chats("a"))) == ["NL: a"]


def test_jobs_of_another_server_are_left_alone(tmp_path):
    with FaultServer() as one, FaultServer() as other:
        one_engine = engine(one, tmp_path)
        one_engine.generate(chats("a")).__next__()
        assert texts(in_order(engine(other, tmp_path), chats("a"))) == ["NL: a"]
        assert texts(in_order(one_engine, chats("a"))) == ["NL: a"]
        assert (one.counts.answered, other.counts.answered) == ({"a": 1}, {"a": 1})


def test_closing_wakes_who_waits(tmp_path):
    with FaultServer() as server, ThreadPoolExecutor(1) as threads:
        llm = engine(server, tmp_path, poll_seconds=300)
        run = threads.submit(in_order, llm, chats("a"))
        while not server.store.batches:
            time.sleep(0.01)
        llm.close()
        assert "run the same command again" in str(run.exception(30))


def test_what_is_wrong_at_the_start_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    monkeypatch.setenv("WRONG_KEY", "wrong")
    with FaultServer(api_key="right") as server:
        with pytest.raises(PrerequisiteError, match="NO_SUCH_KEY is not set"):
            engine(server, tmp_path, api_key_env="NO_SUCH_KEY")
        with pytest.raises(EngineError, match=r"refuses the key.*WRONG_KEY"):
            engine(server, tmp_path, api_key_env="WRONG_KEY")
    with FaultServer() as server:
        with pytest.raises(PrerequisiteError, match="folder to remember"):
            load_llm(spec(server))
        with pytest.raises(ConfigError, match="needs a model"):
            OpenAiBatchLlm(spec(server).model_copy(update={"model": None}), Surroundings(folder=tmp_path))
        with pytest.raises(EngineError, match="batches endpoint"):
            engine(server, tmp_path, base_url=f"{server.url}/v7")
    with pytest.raises(EngineError, match=r"refused.*check base_url"):
        engine(server, tmp_path)
