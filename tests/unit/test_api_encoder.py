"""The encoder behind an API, against a server that fails as told and counts what it has answered."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest
import tiktoken
from beir_folder import doc, query, write_beir
from fault_answers import ApiError, _vector
from fault_server import FaultServer
from running import ENVIRONMENT, dataset, experiment, run, system

from beirnl.errors import EngineError, PrerequisiteError, StageError
from beirnl.llm.http import retry
from beirnl.retrieval.api_encoder import (
    ApiEncoder,
    JournalledEncoder,
    counting,
    cutter,
    journal_name,
)
from beirnl.retrieval.embeddings_api import decode, encode, read_vectors
from beirnl.specs import EncoderSpec, ModelRef, Server
from beirnl.store.artifacts import Artifact
from beirnl.store.journal import Journal, totals

TEXTS = [f"document {n} about vaccines" for n in range(60)]
FAULTS = {"429": 0.05, "500": 0.05, "cut": 0.05, "malformed": 0.05}  # one request in five
KEY = "sk-test-7f31c1"


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch):
    monkeypatch.setattr(retry, "BACKOFF_SECONDS", 0.01)


def spec_of(server: FaultServer, model: str = "mock", batch_size: int = 4, **settings) -> EncoderSpec:
    names = {"api_key_env": "", "in_flight": 4, "timeout": 10.0, "retries": 8}
    reached = {name: settings.pop(name) for name in [*names, "tokens_per_minute"] if name in settings}
    return EncoderSpec(
        model=ModelRef(name=model, source=f"api:{model}"),
        batch_size=batch_size,
        server=Server(base_url=f"{server.url}/v1", **{**names, **reached}),
        **settings,
    )


@pytest.fixture
def open_encoder(tmp_path):
    """``open_encoder(spec)``: an encoder with a journal; closed after the test."""
    opened = []

    def make(spec: EncoderSpec, attempt: str = "one", **hooks) -> JournalledEncoder:
        api = ApiEncoder(spec)
        journal = Journal(tmp_path / journal_name(spec, "document"), 0, 4096, attempt)
        opened.append((api, journal))
        return JournalledEncoder(api, journal, **hooks)

    yield make
    for api, journal in opened:
        api.close()
        journal.__exit__(None, None, None)


def expected(texts: list[str], dimensions: int = 8) -> np.ndarray:
    return np.stack([_vector(text, dimensions) for text in texts])


def answered(server: FaultServer) -> Counter[str]:
    """How often each text has been answered, hence paid for."""
    found = Counter[str]()
    for request, times in server.counts.answered.items():
        for text in request.split("\n"):
            found[text] += times
    return found


# What comes back --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_vectors_come_back_in_the_order_of_the_texts_and_of_length_one(open_encoder, batch_size):
    with FaultServer() as server:
        encoded = open_encoder(spec_of(server, batch_size=batch_size)).encode(TEXTS, "document")
        assert server.counts.outcomes.total() == -(-len(TEXTS) // batch_size)
    np.testing.assert_allclose(encoded.vectors, expected(TEXTS), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(encoded.vectors, axis=1), 1, atol=1e-6)
    assert encoded.vectors.dtype == np.float32
    assert encoded.truncated == 0


def test_every_text_is_answered_once_by_a_server_that_fails_one_request_in_five(open_encoder):
    with FaultServer(rates=FAULTS, seed=3) as server:
        encoder = open_encoder(spec_of(server))
        encoded = encoder.encode(TEXTS, "document")
        assert set(answered(server).values()) == {1}
        assert sum(server.counts.outcomes[fault] for fault in FAULTS) > 0
    np.testing.assert_allclose(encoded.vectors, expected(TEXTS), atol=1e-6)
    assert encoder.counts["asked"] == len(TEXTS)
    assert encoder.counts["prompt tokens"] == sum(len(text.split()) for text in TEXTS)


def test_equal_texts_are_asked_once_and_known_ones_never(open_encoder, tmp_path):
    with FaultServer() as server:
        first = open_encoder(spec_of(server)).encode(TEXTS[:10] * 3, "document").vectors
        assert answered(server) == Counter(TEXTS[:10])
        second = open_encoder(spec_of(server), "two")
        vectors = second.encode(TEXTS[:12], "query").vectors
        assert answered(server) == Counter(TEXTS[:12])
        assert np.array_equal(first[:10], vectors[:10])
        assert second.counts["asked"] == 2
        paid = totals(tmp_path / journal_name(spec_of(server), "document"))
        assert (paid.answers, paid.prompt_tokens) == (12, 48)


def test_a_prompt_is_part_of_what_is_asked(open_encoder):
    with FaultServer() as server:
        encoder = open_encoder(spec_of(server, query_prompt="query: "))
        found = encoder.encode(["one"], "query").vectors, encoder.encode(["one"], "document").vectors
    np.testing.assert_allclose(np.concatenate(found), expected(["query: one", "one"]), atol=1e-6)


def test_dimensions_are_asked_for_and_keep_journals_apart(open_encoder):
    with FaultServer() as server:
        for dimensions in (None, 16):
            spec = spec_of(server, dimensions=dimensions)
            vectors = open_encoder(spec).encode(TEXTS[:3], "document").vectors
            np.testing.assert_allclose(vectors, expected(TEXTS[:3], dimensions or 8), atol=1e-6)
        assert {body.get("dimensions") for body in server.bodies} == {None, 16}
        plain = journal_name(spec_of(server), "query")
        assert plain != journal_name(spec_of(server), "document")
        assert plain != journal_name(spec_of(server, dimensions=16), "query")
        same = spec_of(server, max_tokens=512, tokenizer="bytes", query_prompt="q: ")
        assert plain == journal_name(same, "query")


def test_empty_texts_are_not_sent_and_have_zeros(open_encoder):
    with FaultServer() as server:
        encoder = open_encoder(spec_of(server))
        encoded = encoder.encode(["", "water", " \n"], "document")
        assert answered(server) == Counter({"water": 1})
    assert not encoded.vectors[[0, 2]].any()
    np.testing.assert_allclose(encoded.vectors[1:2], expected(["water"]), atol=1e-6)
    assert encoder.counts["empty"] == 2


def test_a_unit_without_a_text_knows_how_long_a_vector_is(open_encoder):
    with FaultServer() as server:
        assert open_encoder(spec_of(server)).encode([], "document").vectors.shape == (0, 8)
        assert open_encoder(spec_of(server)).encode([""], "document").vectors.shape == (1, 8)


# The limit --------------------------------------------------------------------------------------------------


def limited(limit: int | None, tokenizer: str) -> EncoderSpec:
    model = ModelRef(name="m", source="api:m")
    return EncoderSpec(model=model, max_tokens=limit, tokenizer=tokenizer)


def test_bytes_count_three_to_a_token_and_keep_characters_whole():
    cut = cutter(limited(2, "bytes"))
    assert cut("abcdef") == ("abcdef", False)
    assert cut("abcdefg") == ("abcdef", True)
    assert cut("abcdeé") == ("abcde", True)  # the last character has two bytes, of which one would be left
    assert cutter(limited(None, ""))("x" * 10_000) == ("x" * 10_000, False)


@pytest.fixture
def words_and_bytes(monkeypatch):
    """An encoding of tiktoken's own making whose table is small enough to stand here."""
    ranks = {bytes([n]): n for n in range(256)}
    for word in (b"wa", b"ter", b"water", b" wa", b" water"):
        ranks[word] = len(ranks)
    encoding = tiktoken.Encoding("own", pat_str=r" ?\w+|\s+|.", mergeable_ranks=ranks, special_tokens={})
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: encoding)
    return encoding


@pytest.mark.parametrize(
    "text",
    ["water water water water", "w", "", "<|endoftext|> water", "é" * 9, "x" * 900, " " * 700 + "water"],
)
@pytest.mark.parametrize("limit", [1, 3, 8])
def test_tiktoken_cuts_at_the_limit(words_and_bytes, text, limit):
    kept, was_cut = cutter(limited(limit, "cl100k_base"))(text)
    tokens = words_and_bytes.encode(text, disallowed_special=())
    assert was_cut == (len(tokens) > limit)
    assert kept == (words_and_bytes.decode(tokens[:limit], errors="ignore") if was_cut else text)


def test_what_is_sent_is_cut_with_its_prompt_and_counted(open_encoder):
    with FaultServer() as server:
        spec = spec_of(server, max_tokens=3, tokenizer="bytes", document_prompt="d: ")
        encoded = open_encoder(spec).encode(["abcdef", "abcdefXXX", "abcdefYYY"], "document")
        assert answered(server) == Counter({"d: abcdef": 1})
    assert encoded.truncated == 2
    assert len({vector.tobytes() for vector in encoded.vectors}) == 1


def test_tiktoken_without_its_table_is_a_line(monkeypatch):
    def offline(name):
        raise OSError("no network")

    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    with pytest.raises(PrerequisiteError, match=r'tiktoken has no cl100k_base.*tokenizer = "bytes"'):
        cutter(limited(5, "cl100k_base"))
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(
        PrerequisiteError, match=r"not installed.*; pip install 'beirnl\[api\]', or set tokeni"
    ):
        cutter(limited(5, "cl100k_base"))


def test_bytes_stand_in_where_tiktoken_is_not_installed(monkeypatch):
    assert counting("") == "bytes"
    assert counting("cl100k_base") == "cl100k_base"
    monkeypatch.setattr("beirnl.retrieval.api_encoder.find_spec", lambda name: None)
    assert counting("cl100k_base") == "bytes"


def test_requests_hold_no_more_tokens_than_the_plan_says(open_encoder):
    with FaultServer() as server:
        texts = ["a" * 30, "b" * 30, "c" * 300, "d" * 30]
        open_encoder(spec_of(server, batch_size=9, batch_tokens=25)).encode(texts, "document")
        sizes = sorted(len(body["input"]) for body in server.bodies)
    assert sizes == [1, 1, 2]


# What goes wrong --------------------------------------------------------------------------------------------


class Refused(Mapping):
    """A script: every request with this text in it is refused."""

    def __init__(self, text: str, outcome: str = "400") -> None:
        self.text, self.outcome = text, outcome

    def __getitem__(self, prompt: str) -> list[str]:
        return [self.outcome] * 99 if self.text in prompt else []

    def get(self, prompt: str, default: object = ()) -> list[str]:
        return self[prompt]

    def __iter__(self):
        return iter(())

    def __len__(self) -> int:
        return 0


def test_a_refused_text_is_found_and_named_and_the_others_are_kept(open_encoder):
    texts = [*TEXTS[:20], "far too long", *TEXTS[20:30]]
    with FaultServer(Refused("far too long")) as server:
        spec = spec_of(server, batch_size=8)
        with pytest.raises(EngineError, match=r"400 .*for 1 text, first 'far too long'.*max_tokens"):
            open_encoder(spec).encode(texts, "document")
        assert answered(server) == Counter(TEXTS[:30])
        open_encoder(spec, "two").encode(TEXTS[:30], "document")
        assert answered(server) == Counter(TEXTS[:30])


def test_a_server_that_keeps_failing_is_a_line_and_what_was_answered_stays(open_encoder):
    with FaultServer(Refused(TEXTS[5], "500")) as server:
        spec = spec_of(server, batch_size=1, retries=1)
        with pytest.raises(EngineError, match=r"texts have no vector.*500.*run again"):
            open_encoder(spec).encode(TEXTS[:10], "document")
        assert set(answered(server)) == set(TEXTS[:10]) - {TEXTS[5]}


def payload(*embeddings, **more) -> bytes:
    data = [{"index": n, "embedding": e} for n, e in enumerate(embeddings)]
    return json.dumps({"data": data, **more}).encode()


def test_lists_and_base64_are_read_alike_in_the_order_of_their_index():
    body = json.loads(payload([1.0, 2.0], encode(np.array([3.0, 4.0])), usage={"total_tokens": 5}))
    body["data"].reverse()
    found = read_vectors(json.dumps(body).encode(), TEXTS[:2])
    assert found.vectors.tolist() == [[1, 2], [3, 4]]
    assert found.prompt_tokens == 5


@pytest.mark.parametrize(
    ("body", "number", "dimensions", "message"),
    [
        (payload([1.0, 2.0]), 2, None, "gave 1 vector for 2 texts"),
        (payload([1.0, 2.0], [1.0, 2.0]), 1, None, "gave 2 vectors for 1 text"),
        (payload(), 1, None, "gave 0 vectors for 1 text"),
        (payload([1.0, 2.0]), 1, 3, "a vector of 2 numbers where 3 were expected"),
        (payload([1.0, 2.0], [1.0]), 2, None, "a vector of 1 number where 2 were expected"),
        (payload([]), 1, None, "a vector of 0 numbers"),
        (
            payload([1.0], [float("nan")]),
            2,
            None,
            "NaN or infinity for 1 of 2 texts, first 'document 1 about",
        ),
        (payload([1.0, 1.0], [None, 1.0]), 2, None, "NaN or infinity for 1 of 2 texts, first 'document 1"),
        (payload([-float("inf")], [float("nan")]), 2, None, "for 2 of 2 texts, first 'document 0 about"),
        (payload(encode(np.array([np.nan, 1.0]))), 1, None, "for 1 of 1 text, first 'document 0 about"),
        (payload(encode(np.array([np.inf, 1.0]))), 1, None, "for 1 of 1 text, first 'document 0 about"),
    ],
)
def test_vectors_that_cannot_be_are_a_line(body, number, dimensions, message):
    with pytest.raises(EngineError, match=message):
        read_vectors(body, TEXTS[:number], dimensions)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        payload([1.0])[:20],
        b"NaN",
        payload([float("nan")])[:-2],
        payload("%%%"),
        payload("abc"),
        b"{}",
    ],
)
def test_a_body_that_is_not_whole_may_be_asked_again(body):
    with pytest.raises(ValueError):
        read_vectors(body, TEXTS[:1])


def test_a_server_that_drops_a_vector_ends_the_run_in_a_line(open_encoder):
    with FaultServer() as server:
        honest = server.model.complete
        server.model.complete = lambda path, body: {
            **honest(path, body),
            "data": honest(path, body)["data"][1:],
        }
        with pytest.raises(EngineError, match=rf"{server.url}/v1: the server gave 3 vectors for 4 texts"):
            open_encoder(spec_of(server)).encode(TEXTS, "document")


def test_a_model_that_has_changed_behind_its_name_is_a_line(open_encoder):
    with FaultServer() as server:
        open_encoder(spec_of(server)).encode(TEXTS[:4], "document")
        honest = server.model.complete
        server.model.complete = lambda path, body: honest(path, {**body, "dimensions": 12})
        with pytest.raises(EngineError, match=r"vectors of 8 and of 12 numbers.*has changed"):
            open_encoder(spec_of(server), "two").encode(TEXTS[:8], "document")


def test_a_server_without_base64_is_asked_for_lists(open_encoder):
    with FaultServer() as server:
        honest = server.model.complete

        def plain(path, body):
            if body.get("encoding_format") == "base64":
                raise ApiError(400, "encoding_format: only float is known")
            return honest(path, body)

        server.model.complete = plain
        vectors = open_encoder(spec_of(server)).encode(TEXTS, "document").vectors
    np.testing.assert_allclose(vectors, expected(TEXTS), atol=1e-6)


def test_the_key_comes_from_the_environment_and_is_never_shown(open_encoder, monkeypatch):
    with FaultServer(api_key=KEY) as server:
        spec = spec_of(server, api_key_env="BEIRNL_TEST_KEY")
        monkeypatch.delenv("BEIRNL_TEST_KEY", raising=False)
        with pytest.raises(PrerequisiteError, match="BEIRNL_TEST_KEY is not set"):
            open_encoder(spec)
        monkeypatch.setenv("BEIRNL_TEST_KEY", KEY + "x")
        with pytest.raises(EngineError, match="refuses the key") as refused:
            open_encoder(spec)
        assert KEY not in str(refused.value)
        monkeypatch.setenv("BEIRNL_TEST_KEY", KEY)
        assert len(open_encoder(spec).encode(TEXTS[:3], "document").vectors) == 3
        assert KEY not in spec.model_dump_json()


def test_retry_after_is_honoured(open_encoder):
    with FaultServer(["429:0.6"]) as server:
        begun = time.monotonic()
        open_encoder(spec_of(server)).encode(TEXTS[:3], "document")
        assert time.monotonic() - begun >= 0.6
        assert server.counts.outcomes == {"429": 1, "200": 1}


def test_a_watcher_that_raises_ends_the_unit_and_what_it_was_told_of_is_kept(open_encoder, tmp_path):
    def stop(asked: int) -> None:
        if asked >= 12:
            raise StageError("enough")

    with FaultServer(latency=0.02) as server:
        spec = spec_of(server)
        with pytest.raises(StageError, match="enough"):
            open_encoder(spec, watch=stop).encode(TEXTS, "document")
        answered = sum(server.counts.answered.values())
    (file,) = (tmp_path / journal_name(spec, "document")).glob("*.jsonl")
    assert 12 <= len(_keys(file)) == 4 * answered < len(TEXTS)


# Kills ------------------------------------------------------------------------------------------------------

CHILD = """
import os, signal, sys
from pathlib import Path
from beirnl.llm.http import retry
from beirnl.retrieval.api_encoder import ApiEncoder, JournalledEncoder, journal_name
from beirnl.specs import EncoderSpec, Server
from beirnl.store.journal import Journal

retry.BACKOFF_SECONDS = 0.01
spec = EncoderSpec.model_validate_json(sys.argv[1])
server = Server.model_validate_json(sys.argv[2])
spec = spec.model_copy(update={"server": server})
texts = sys.stdin.read().splitlines()
left = int(sys.argv[5])

def watch(asked):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

with Journal(Path(sys.argv[3]) / journal_name(spec, "document"), 0, 4096, sys.argv[4]) as journal:
    vectors = JournalledEncoder(ApiEncoder(spec), journal, 0, watch).encode(texts, "document").vectors
vectors.tofile(sys.argv[6])
os._exit(0)
"""


def test_a_killed_run_asks_for_nothing_that_it_had_been_told(tmp_path):
    kills, (size, in_flight) = [3, 1, 5], (2, 2)
    with FaultServer(rates=FAULTS, seed=11, latency=0.01) as server:
        spec = spec_of(server, batch_size=size, in_flight=in_flight)
        arguments = [spec.model_dump_json(), spec.server.model_dump_json(), str(tmp_path)]
        for number, left in enumerate([*kills, 0]):
            folder = tmp_path / journal_name(spec, "document")
            known = {e for path in folder.glob("*.jsonl") for e in _keys(path)} if folder.is_dir() else set()
            seen = len(server.bodies)
            done = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    CHILD,
                    *arguments,
                    f"run{number}",
                    str(left),
                    str(tmp_path / "vectors"),
                ],
                input="\n".join(TEXTS),
                text=True,
                env={**os.environ, **ENVIRONMENT},
                check=False,
            )
            assert done.returncode == (-signal.SIGKILL if left else 0)
            asked = {_key(text) for body in server.bodies[seen:] for text in body["input"]}
            assert not asked & known
        twice = sum(answered(server).values()) - len(TEXTS)
        assert twice <= len(kills) * size * in_flight
    vectors = np.fromfile(tmp_path / "vectors", np.float32).reshape(len(TEXTS), 8)
    np.testing.assert_allclose(vectors, expected(TEXTS), atol=1e-6)


def _key(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _keys(path: Path) -> list[str]:
    found = []
    for line in path.read_bytes().splitlines():
        try:
            entry = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        assert len(decode(entry["text"])) == 8
        found.append(entry["key"])
    return found


# Through the stages -----------------------------------------------------------------------------------------


def test_an_experiment_with_an_encoder_behind_an_api(tmp_path):
    rows = [doc(f"d{n}", text) for n, text in enumerate([*TEXTS, ""])]
    folder = write_beir(tmp_path / "set", rows, [query("q", TEXTS[7])], [("q", "d7", 1)])
    with FaultServer(rates=FAULTS, seed=5) as server:
        config = dataset(folder, shard_documents=20) + system(
            "dense", "api", model="mock", engine="openai", batch_size=4, max_tokens=100
        )
        config += f'[system.server]\nbase_url = "{server.url}/v1"\napi_key_env = ""\nin_flight = 4\n'
        pipeline = run(experiment(tmp_path, config))
        assert answered(server) == Counter(TEXTS) + Counter(TEXTS[7:8])  # the query is a document, too
    nodes = {n.spec.kind: n for n in pipeline.graph.nodes.values() if n.stage == "embed"}
    found: Artifact = nodes["document"].artifact(pipeline.workspace)
    table = found.table()
    assert table.num_rows == len(rows)
    by_id = dict(zip(table["id"].to_pylist(), table["vector"].to_pylist(), strict=True))
    np.testing.assert_allclose([by_id[f"d{n}"] for n in range(len(TEXTS))], expected(TEXTS), atol=1e-6)
    assert not any(by_id[f"d{len(TEXTS)}"])
    sums = Counter[str]()
    for receipt in found.receipts():
        sums.update(receipt.counts)
    assert sums["asked"] == len(TEXTS)
    assert sums["empty"] == 1
    assert sums["prompt tokens"] == 4 * len(TEXTS)
