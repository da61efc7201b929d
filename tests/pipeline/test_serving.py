"""The service over what a run has made: hits, judgements, translations, limits, bad requests."""

import asyncio
import string

import polars as pl
import pytest
from beir_folder import doc, query, write_beir
from every_system import NAMES, runs, systems, write_models
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import BM25, dataset, experiment, run, system
from serving import SAMPLE, client, service, translated
from translating import command

from beirnl.config import load_experiment
from beirnl.errors import ConfigError, StoreError
from beirnl.pipeline import Pipeline
from beirnl.serve.collections import check_built
from beirnl.serve.http import create_app
from beirnl.serve.searching import models_of
from beirnl.serve.settings import LONGEST_QUERY, Limits
from beirnl.serve.texts import Texts

QUESTION = {"dataset": "sample/nl", "system": "bm25", "q": "water"}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    return translated(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def asked(pipeline):
    with client(service(pipeline)) as opened:
        yield opened


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    folder = tmp_path_factory.mktemp("every")
    text = dataset(SAMPLE, "sample", language="en", shard_documents=20)
    return run(experiment(folder, text + systems(write_models(folder))))


def found(client, **parameters):
    answer = client.get("/search", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def hits(answer):
    return [(hit["id"], hit["score"]) for hit in answer["hits"]]


# the hits of the runs ---------------------------------------------------------------------------------------


def test_every_kind_of_system_finds_what_its_run_has(everything):
    asked, expected = client(service(everything)), runs(everything)
    for name in NAMES:
        for number, (query_id, of_run) in enumerate(sorted(expected[name].items())[:6]):
            k = (10, 3)[number % 2]
            answer = found(asked, dataset="sample", system=name, id=query_id, k=k)
            assert hits(answer) == of_run[:k], (name, query_id)


def test_models_are_named_once_each(everything):
    names = [model.name for model in models_of(everything)]
    assert len(names) == len(set(names))
    # three number formats of one model are three specs; the approximate system shares the first
    assert sorted(name.split("-")[0] for name in names) == ["encoder"] * 3 + ["reranker"] * 3 + ["token"]


def test_a_new_question_is_searched_as_the_analysis_says(asked, pipeline):
    expected = runs(pipeline)["bm25"]
    texts = {
        row["id"]: row["text"]
        for row in asked.get("/queries", params={"dataset": "sample/en", "limit": 200}).json()["queries"]
    }
    for name, text in list(texts.items())[:5]:
        new = found(asked, dataset="sample/en", system="bm25", q=text.upper(), k=10)
        known = found(asked, dataset="sample/en", system="bm25", q=text, k=10)
        assert new["query"]["id"] is None and known["query"]["id"] == name
        assert hits(new) == hits(known) and hits(known)[0] in expected[name]
        assert {hit["relevance"] for hit in new["hits"]} == {None}


def test_self_matches_are_removed_of_queries_of_the_dataset_alone(tmp_path):
    rows = [("a", "red fox"), ("b", "red fox den"), ("c", "blue fox")]
    folder = write_beir(
        tmp_path / "set", [doc(*row) for row in rows], [query("a", "red fox")], [("a", "b", 1)]
    )
    text = dataset(folder, remove_self_matches=True) + BM25
    asked = client(service(run(experiment(tmp_path, text))))
    names = {}
    for asked_for in ({"id": "a"}, {"q": "red fox"}, {"q": "red  fox"}):
        answer = found(asked, dataset="own", system="bm25", **asked_for)
        names[str(asked_for.get("q"))] = [hit["id"] for hit in answer["hits"]]
    assert names == {"None": ["b", "c"], "red fox": ["b", "c"], "red  fox": ["a", "b", "c"]}


# judgements, scores, texts ----------------------------------------------------------------------------------


def test_judged_documents_are_marked(asked, pipeline):
    (qrels,) = {e.qrels.key: e.qrels for e in pipeline.graph.evaluations}.values()
    labels = {
        (r["query_id"], r["doc_id"]): r["relevance"]
        for r in qrels.artifact(pipeline.workspace).table().to_pylist()
    }
    queries = {query_id for query_id, _ in labels}
    marked = 0
    for query_id in queries:
        answer = found(asked, dataset="sample/en", system="bm25", id=query_id, k=100)
        assert answer["query"]["relevant"] == sum(v > 0 for (q, _), v in labels.items() if q == query_id)
        for hit in answer["hits"]:
            assert hit["relevance"] == labels.get((query_id, hit["id"]))
            marked += hit["relevance"] is not None
    assert marked


def test_queries_have_the_values_of_the_evaluation_and_are_ordered(asked, pipeline):
    of_system = {
        e.system.name: dict(
            pl.from_arrow(e.node.artifact(pipeline.workspace).read(0))
            .filter(pl.col("measure") == "nDCG@10")
            .select("query_id", "value")
            .iter_rows()
        )
        for e in pipeline.graph.evaluations
        if e.language == "en"
    }
    first = asked.get("/queries", params={"dataset": "sample/en", "limit": 9}).json()
    rest = asked.get("/queries", params={"dataset": "sample/en", "offset": 9, "limit": 200}).json()
    listed = first["queries"] + rest["queries"]
    assert first["systems"] == list(of_system) and len(listed) == first["total"] == 25
    for row in listed:
        assert row["values"] == [values[row["id"]] for values in of_system.values()]
    spread = [max(row["values"]) - min(row["values"]) for row in listed]
    assert spread == sorted(spread, reverse=True) and spread[0] > 0
    by_id = asked.get("/queries", params={"dataset": "sample/en", "order": "id", "limit": 200}).json()
    assert [row["id"] for row in by_id["queries"]] == sorted(row["id"] for row in listed)


def test_documents_stand_beside_what_they_were_translated_from(asked, pipeline):
    (translation,) = (t for t in pipeline.graph.translations if t.kind == "document")
    sources, made = (
        {row["id"]: row for row in node.artifact(pipeline.workspace).table().to_pylist()}
        for node in (translation.source, translation.final)
    )
    ids = list(sources)[:7]
    answer = asked.get("/documents", params={"dataset": "sample/nl", "id": ids}).json()
    assert [one["id"] for one in answer["documents"]] == ids
    for one in answer["documents"]:
        source, row = sources[one["id"]], made[one["id"]]
        assert one["source"] == {"language": "en", "title": source["title"], "text": source["text"]}
        assert (one["language"], one["text"], one["status"]) == ("nl", row["text"], row["status"])
    original = asked.get("/documents", params={"dataset": "sample/en", "id": ids[0]}).json()["documents"][0]
    assert original["source"] is None and original["text"] == sources[ids[0]]["text"]


def test_texts_are_found_whatever_their_shard(pipeline, everything):
    corpus = everything.graph.evaluations[0].corpus.artifact(everything.workspace)
    assert len(corpus.parts) > 1
    rows = {row["id"]: row for row in corpus.table().to_pylist()}
    texts = Texts(corpus).find([*rows, "none", ""])
    assert {name: (row.title, row.text) for name, row in texts.items()} == {
        name: (row["title"], row["text"]) for name, row in rows.items()
    }


def test_what_can_be_asked_is_listed(asked):
    listed = asked.get("/systems").json()["datasets"]
    assert [(one["name"], one["translated_from"], one["documents"]) for one in listed] == [
        ("sample/en", None, 63),
        ("sample/nl", "en", 63),
    ]
    assert [one["name"] for one in listed[0]["systems"]] == ["bm25", "flat"]


def test_an_imported_run_is_listed_and_not_asked(tmp_path):
    folder = write_beir(tmp_path / "set", [doc("a", "red fox")], [query("q", "fox")], [("q", "a", 1)])
    (tmp_path / "theirs.trec").write_text("q Q0 a 1 2.5 theirs\n")
    text = dataset(folder) + BM25 + system("run", "theirs", path=tmp_path / "theirs.trec")
    fused = '[[system]]\nkind = "fusion"\nname = "both"\nof = ["bm25", "theirs"]\n'
    asked = client(service(run(experiment(tmp_path, text + fused))))
    systems = asked.get("/systems").json()["datasets"][0]["systems"]
    assert {one["name"]: one["searchable"] for one in systems} == {
        "bm25": True,
        "theirs": False,
        "both": False,
    }
    refused = asked.get("/search", params={"dataset": "own", "system": "both", "q": "fox"})
    assert refused.status_code == 404 and "made elsewhere" in refused.json()["detail"]
    assert asked.get("/queries", params={"dataset": "own"}).json()["queries"][0]["values"] == [1.0, 1.0, 1.0]


# bad requests -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"q": ""}, 422, "q: string should have at least 1 character"),
        ({"q": " \t\u00a0"}, 422, "q: must hold something visible and no control characters"),
        ({"q": "a\x00b"}, 422, "no control characters"),
        ({"q": "a\x1b[31m"}, 422, "no control characters"),
        ({"q": "a" * (LONGEST_QUERY + 1)}, 422, f"q: string should have at most {LONGEST_QUERY}"),
        ({"q": None}, 422, "give either q, a question, or id"),
        ({"id": "1"}, 422, "give either q, a question, or id"),
        ({"q": None, "id": "none"}, 404, "sample/nl has no query 'none'; /queries lists them"),
        ({"k": 0}, 422, "k: input should be greater than or equal to 1"),
        ({"k": -3}, 422, "k: input should be greater"),
        ({"k": 101}, 422, "k: input should be less than or equal to 100"),
        ({"k": "ten"}, 422, "k: input should be a valid integer"),
        ({"k": "1e1"}, 422, "k: input should be a valid integer"),
        ({"k": "9" * 5000}, 422, "k: "),
        ({"dataset": None}, 422, "dataset: field required"),
        ({"dataset": "samlpe/nl"}, 404, "there is no dataset 'samlpe/nl'; did you mean 'sample/nl'?"),
        ({"dataset": "sample"}, 404, "it has several: sample/en, sample/nl"),
        ({"dataset": "../../etc/passwd"}, 404, "use one of: sample/en, sample/nl"),
        (
            {"system": "bm52"},
            404,
            "sample/nl has no system 'bm52'; did you mean 'bm25'? (there are: bm25, flat)",
        ),
        ({"limit": 3}, 422, "limit: extra inputs are not permitted"),
    ],
)
def test_a_bad_question_is_told_what_is_wrong(asked, changes, status, said):
    parameters = {name: value for name, value in {**QUESTION, **changes}.items() if value is not None}
    answer = asked.get("/search", params=parameters)
    assert answer.status_code == status and said in answer.json()["detail"], answer.text
    assert answer.json()["status"] == status and "Traceback" not in answer.text


def test_odd_requests_are_told_what_is_wrong(asked):
    for method, path, status in (
        ("POST", "/search", 405),
        ("GET", "/nowhere", 404),
        ("GET", "/documents?dataset=sample/nl&id=none", 404),
        ("GET", "/documents?dataset=sample/nl", 422),
        ("GET", "/documents?dataset=sample/nl&" + "&".join(f"id={n}" for n in range(101)), 422),
        ("GET", "/queries?dataset=sample/nl&order=best", 422),
        ("GET", "/queries?dataset=sample/nl&offset=-1", 422),
        ("GET", "/page/../page.js/../../settings.py", 404),
        ("GET", "/search?q=%ff%fe&dataset=sample/nl&system=%00", 422),
    ):
        answer = asked.request(method, path)
        assert answer.status_code == status and answer.json()["detail"], (path, answer.text)


_ODD = st.text(max_size=40) | st.integers().map(str) | st.floats().map(str) | st.binary(max_size=20)
_CONTROL = st.sampled_from([*map(chr, range(0x20)), "\x7f", "\x85"]).filter(lambda c: c not in "\t\n\r")
#: For each parameter, values that are wrong whatever the others are.
_WRONG = {
    "q": st.sampled_from(["", " ", "\t", "\u00a0"])
    | st.tuples(st.text(max_size=9), _CONTROL, st.text(max_size=9)).map("".join)
    | st.text(string.ascii_letters, min_size=1, max_size=9)
    .map(lambda text: (text * LONGEST_QUERY)[:3000])
    .filter(lambda text: len(text) > LONGEST_QUERY),
    "k": st.integers(max_value=0).map(str)
    | st.integers(min_value=101).map(str)
    | st.floats().map(str).filter(lambda text: not text.removesuffix(".0").isdecimal())
    | st.text(min_size=1, max_size=9).filter(lambda text: not _is_number(text)),
    "dataset": st.text(max_size=40).filter(lambda text: text not in ("sample/en", "sample/nl")),
    "system": st.text(max_size=40).filter(lambda text: text not in ("bm25", "flat")),
    "id": st.just("1"),  # beside a question
    "other": _ODD,
}


def _is_number(text):
    try:
        return 1 <= float(text) <= 100
    except ValueError:
        return False


HOW_MANY = pytest.mark.parametrize("number", [100, pytest.param(500, marks=pytest.mark.slow)])


@HOW_MANY
def test_malformed_questions_are_refused(asked, number):
    @settings(max_examples=number)
    @given(st.lists(st.sampled_from(sorted(_WRONG)), min_size=1, unique=True), st.data())
    def ask(names, data):
        wrong = {name: data.draw(_WRONG[name], label=name) for name in names}
        answer = asked.get("/search", params={**QUESTION, **wrong})
        assert 400 <= answer.status_code < 500, (wrong, answer.text)
        assert answer.json()["detail"]

    ask()


@settings(max_examples=100)
@given(
    st.sampled_from(["/search", "/documents", "/queries", "/systems", "/ready", "/", "/docs", "/%2e%2e/x"]),
    st.lists(st.tuples(st.sampled_from(["q", "k", "id", "dataset", "system", "limit"]), _ODD), max_size=6),
)
def test_whatever_is_asked_the_service_does_not_fail(asked, path, parameters):
    answer = asked.get(path, params=[(name, value) for name, value in parameters])
    assert answer.status_code in {200, 404, 422}, (path, parameters, answer.text)


@HOW_MANY
def test_requests_from_the_openapi_document_are_answered_as_it_says(asked, number):
    schemathesis = pytest.importorskip("schemathesis", reason="in requirements/dev-py311.lock")
    scheme = schemathesis.openapi.from_asgi("/openapi.json", asked.app)
    checks = [
        schemathesis.checks.not_a_server_error,
        schemathesis.checks.CHECKS.get_one("response_schema_conformance"),
        schemathesis.checks.CHECKS.get_one("status_code_conformance"),
        schemathesis.checks.CHECKS.get_one("content_type_conformance"),
        schemathesis.checks.CHECKS.get_one("negative_data_rejection"),
    ]
    operations = [operation.ok() for operation in scheme.get_all_operations()]
    modes = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
    strategy = st.one_of(one.as_strategy(generation_mode=mode) for one in operations for mode in modes)
    count = 0

    @settings(max_examples=number, suppress_health_check=list(HealthCheck), database=None)
    @given(strategy)
    def ask(case):
        nonlocal count
        count += 1
        case.call_and_validate(checks=checks)

    ask()
    assert len(operations) == 6 and count >= number


# load and failures ------------------------------------------------------------------------------------------


class Slow:
    """A service whose search waits until it is told to go on, or fails."""

    def __init__(self, answer):
        self.go, self.answer, self.inside = asyncio.Event(), answer, 0

    async def search(self, *arguments):
        self.inside += 1
        await self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def _get(app, path="/search", **parameters):
    import httpx

    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as one:
        return await one.get(path, params=parameters)


def test_more_requests_than_it_takes_are_sent_away_until_there_is_room(asked):
    from beirnl.serve.answers import SearchAnswer

    async def scene():
        slow = Slow(SearchAnswer(**found(asked, **QUESTION)))
        app = create_app(slow, Limits(concurrency=3, retry_after=7))
        inside = [asyncio.create_task(_get(app, **QUESTION)) for _ in range(3)]
        while slow.inside < 3:
            await asyncio.sleep(0)
        refused = await asyncio.gather(*(_get(app, **QUESTION) for _ in range(30)))
        health = await _get(app, "/health")
        slow.go.set()
        return refused, health, await asyncio.gather(*inside), await _get(app, **QUESTION)

    refused, health, admitted, after = asyncio.run(scene())
    assert {(one.status_code, one.headers["Retry-After"]) for one in refused} == {(503, "7")}
    assert health.status_code == 200
    assert {one.status_code for one in (*admitted, after)} == {200}


def test_a_search_that_takes_too_long_is_given_up():
    async def scene():
        app = create_app(Slow(None), Limits(concurrency=1, timeout=0.05))
        return [await _get(app, **QUESTION) for _ in range(2)]  # the first leaves room for the second

    assert [(one.status_code, one.json()["detail"]) for one in asyncio.run(scene())] == [
        (504, "no answer within 0.05 s")
    ] * 2


def test_an_error_of_the_service_tells_the_client_nothing_of_its_inside(caplog):
    async def scene():
        slow = Slow(RuntimeError("secret of /etc"))
        slow.go.set()
        return await _get(create_app(slow), **QUESTION)

    answer = asyncio.run(scene())
    assert answer.status_code == 500 and "secret" not in answer.text and "Traceback" not in answer.text
    assert "secret of /etc" in caplog.text


# before it starts -------------------------------------------------------------------------------------------


def test_what_was_not_run_is_named_with_the_command(tmp_path, pipeline):
    check_built(pipeline)
    path = experiment(tmp_path, dataset(SAMPLE, "sample", language="en") + BM25)
    with pytest.raises(
        StoreError, match=r"6 of 6 artifacts are not made \(import-corpus sample/en.*beirnl run"
    ):
        check_built(Pipeline.of(load_experiment(path)))
    said = command("serve", path, "--port", 1 << 15)
    assert "artifacts are not made" in said.error


def test_an_experiment_without_systems_has_nothing_to_serve(tmp_path):
    text = dataset(SAMPLE, "sample", language="en") + '[translation]\nto = "nl"\nengine = "mock"\n'
    with pytest.raises(ConfigError, match="evaluates no system"):
        check_built(Pipeline.of(load_experiment(experiment(tmp_path, text))))


def test_a_port_that_is_taken_is_told(tmp_path, pipeline):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = command("serve", pipeline.experiment.file, "--port", port)
    assert (
        said.error
        == f"error: cannot listen on 127.0.0.1:{port} (Address already in use); give another --port"
    )
