"""A translation through the whole pipeline: repaired, split, shared, compared, and no row lost."""

import random
import re
from collections import Counter

import pytest
from beir_folder import doc
from fault_answers import Answer, prompt_of
from fault_server import FaultServer
from running import BM25, beirnl, dataset, experiment, report, run
from support import shared
from translating import (
    by_id,
    counted,
    documents,
    dutch,
    finals,
    sentences,
    served,
    table,
    translation,
    write_set,
)

from beirnl.config import load_experiment
from beirnl.evaluation.tables import text
from beirnl.llm.local import estimate_tokens
from beirnl.llm.mock import translate
from beirnl.pipeline import Pipeline
from beirnl.reporting import gather

BODY = "The people in the city drink water. They have 12 houses and a book about health."


def marked(number, mark):
    """A document with a fault in its second sentence."""
    return doc(f"m{number}", f"{BODY.rstrip('.')} {mark}.", f"The city {number}")


# The ladder -------------------------------------------------------------------------------------------------

FAULTS = ["empty", "truncated", "repetition", "copied", "language", "refusal", "numbers"]


@pytest.mark.parametrize(("condition", "rung"), [("once", "room"), ("plain", "prompt"), ("whole", "pieces")])
def test_a_rung_mends_every_fault_that_it_can(tmp_path, condition, rung):
    rows = [marked(n, f"[[fault:{fault}:{condition}]]") for n, fault in enumerate(FAULTS)]
    place = write_set(tmp_path / "set", [*documents(20), *rows])
    pipeline = run(experiment(tmp_path, dataset(place) + translation(repair=[rung])))
    found = by_id(pipeline)
    assert [found[row["_id"]]["repair"] for row in rows] == [rung] * len(FAULTS)
    assert {row["status"] for row in found.values()} == {"ok"}
    first, second = (translate(f"{sentence}.") for sentence in BODY.rstrip(".").split(". "))
    for row in rows:
        assert found[row["_id"]]["title"] == translate(row["title"])
        assert found[row["_id"]]["text"] == f"{first} {second}"
    before = Counter(row["status"].split(",")[0] for row in checked(pipeline))
    assert before == Counter(["ok"] * 20 + FAULTS)


def checked(pipeline):
    (node,) = (t.checked for t in pipeline.graph.translations if t.kind == "document")
    return [row for part in node.artifact(pipeline.workspace).tables() for row in part.to_pylist()]


def test_rungs_are_climbed_in_order_and_a_row_leaves_where_it_is_mended(tmp_path):
    marks = ["empty:once", "empty:plain", "empty:whole", "empty"]
    place = write_set(tmp_path / "set", [marked(n, f"[[fault:{mark}]]") for n, mark in enumerate(marks)])
    pipeline = run(experiment(tmp_path, dataset(place) + translation()))
    found = by_id(pipeline)
    assert [row["repair"] for row in found.values()] == ["room", "prompt", "pieces", "pieces"]
    assert [row["status"] for row in found.values()] == [
        "ok",
        "ok",
        "ok",
        "truncated",
    ]  # a sentence is missing
    # room: 4 rows; prompt: 3; pieces: 2 rows of a title and two sentences, of which they share one
    assert counted(pipeline, "repair") == 4 + 3 + 2 * 3 - 1


def test_the_second_engine_has_the_last_word(tmp_path):
    place = write_set(tmp_path / "set", [*documents(5), marked(0, "[[fault:language]]")])
    with FaultServer(answer=lambda prompt: dutch(prompt.replace(" [[fault:language]]", ""))) as server:
        text = dataset(place) + translation(second=served(server))
        pipeline = run(experiment(tmp_path, text))
        row = by_id(pipeline)["m0"]
        assert (row["status"], row["repair"]) == ("ok", "engine") and row["text"] == translate(BODY)
        assert server.counts.prompts.total() == 1  # the other rows did not need it


def test_what_still_fails_keeps_its_best_attempt_or_the_source(tmp_path):
    marks = ["numbers", "error", "title-lost", "truncated"]
    rows = [marked(n, f"[[fault:{mark}]]") for n, mark in enumerate(marks)]
    place = write_set(tmp_path / "set", [rows[0], *documents(8), *rows[1:]])
    pipeline = run(experiment(tmp_path, dataset(place, shard_documents=2) + translation()))
    everything = finals(pipeline)
    assert [row["id"] for row in everything] == ["m0", *(f"d{n}" for n in range(8)), "m1", "m2", "m3"]
    assert [row["row"] for row in everything] == list(range(12))
    found = {row["id"]: row for row in everything}
    statuses = [found[row["_id"]]["status"] for row in rows]
    assert statuses[:2] == ["numbers", "error"] and statuses[3].startswith("truncated")
    assert "13 huisen" in found["m0"]["text"]  # a wrong number is better than English
    assert (found["m1"]["title"], found["m1"]["text"]) == ("The city 1", rows[1]["text"])
    assert found["m2"]["title"] == translate("The city 2")  # asked by itself, on the rung of pieces
    assert found["m2"]["status"] == "ok"
    assert all(row["title"] and row["text"] for row in everything)


def test_a_repair_never_takes_the_answer_that_was_rejected(tmp_path):
    place = write_set(tmp_path / "set", [doc("a", "The people drink water. [[fault:empty:once]]")])
    path = experiment(
        tmp_path, dataset(place) + translation(repair=["prompt"], repair_document_prompt="same.txt")
    )
    prompt = "<title> {title} </title> <body> {text} </body>"
    (tmp_path / "same.txt").write_text(f"Translate to {{target_language}} this:\n ['{prompt}']")
    path.write_text(
        path.read_text().replace("[translation]\n", '[translation]\ndocument_prompt = "same.txt"\n')
    )
    pipeline = run(path)
    assert counted(pipeline, "translate") == 2  # the query too
    assert counted(pipeline, "repair") == 1  # the same words, and asked


def test_without_a_ladder_the_checks_have_the_last_word(tmp_path):
    place = write_set(tmp_path / "set", [*documents(3), marked(0, "[[fault:empty]]")])
    path = experiment(tmp_path, dataset(place) + translation(repair=[]) + BM25)
    pipeline = run(path)
    assert {node.stage for node in pipeline.graph.nodes.values()}.isdisjoint({"repair"})
    assert {t.final.stage for t in pipeline.graph.translations} == {"check"}
    assert by_id(pipeline)["m0"]["status"] == "empty"
    assert all(status.state == "done" for status in pipeline.plan())


def test_a_changed_threshold_asks_again_only_for_what_now_fails(tmp_path):
    place = write_set(tmp_path / "set", documents(12))
    with FaultServer(
        answer=lambda prompt: dutch(prompt) if "Document 3 " not in prompt else twice(prompt)
    ) as server:
        path = experiment(
            tmp_path, dataset(place) + translation(**served(server, checks={"max_length_ratio": 9.0}))
        )
        assert {row["status"] for row in finals(run(path))} == {"ok"}
        before = Counter(server.counts.prompts)
        assert set(before.values()) == {1} and before.total() == 13
        path.write_text(path.read_text().replace("9.0", "1.5"))
        pipeline = run(path)
        row = by_id(pipeline)["d3"]
        assert (row["status"], row["repair"]) == ("ok", "prompt")
        asked = Counter(server.counts.prompts) - before
        assert asked.total() == 2 and all(
            "Document 3 " in prompt for prompt in asked
        )  # with room, then as JSON
        assert counted(pipeline, "translate") == 13  # as it was
        done = server.counts.prompts.total()
        path.write_text(path.read_text().replace("1.5", "1.4"))
        run(path)
        assert server.counts.prompts.total() == done  # the rungs had been climbed before


def twice(prompt):
    """A translation that is much too long, and says nothing twice."""
    return dutch(prompt).replace(" </body>", " " + translate(" ".join(sentences()[:5])) + " </body>")


# The report -------------------------------------------------------------------------------------------------


def test_the_report_shows_statuses_repairs_and_examples(tmp_path):
    marks = ["numbers", "numbers", "empty:once", "empty:plain", "error"]
    rows = [marked(n, f"[[fault:{mark}]]") for n, mark in enumerate(marks)]
    place = write_set(tmp_path / "set", [*documents(15), *rows])
    found = report(experiment(tmp_path, dataset(place) + translation()))
    made = found.translations["own/nl/document"]
    assert made.counts == {"ok": 17, "numbers": 2, "error": 1}
    assert made.first == {"ok": 15, "numbers": 2, "empty": 2, "error": 1}
    assert made.rungs == {"room": 1, "prompt": 1}
    assert sorted(example.status for example in made.examples) == ["error", *["numbers"] * 2, *["ok"] * 3]
    (example,) = (example for example in made.examples if example.status == "error")
    assert example.source == example.kept == f"The city 4 | {rows[4]['text']}"
    shown = text.to_markdown(found)
    assert "| own/nl/document | 20 | 85.00% | 17 | 2 | 1 |" in shown
    assert "| own/nl/document | 5 | 3 | 1 | 1 |" in shown  # not ok at first, in the end, room, prompt


# Long documents ---------------------------------------------------------------------------------------------


def long_text(mark=""):
    """Text of some 30,000 tokens, in paragraphs, with a fault in the middle of it."""
    draw = random.Random(3)
    parts = [draw.choice(sentences()) for _ in range(1700)]
    parts[800] = f"{parts[800].rstrip('.')}{mark}."
    return re.sub(r"(?<=\.) (?=A)", "\n\n", " ".join(parts))


def test_a_document_of_30_000_tokens_among_a_hundred(tmp_path):
    paragraphs = long_text()
    assert len(paragraphs.encode()) > 3 * 30_000
    place = write_set(tmp_path / "set", [*documents(99), doc("long", paragraphs, "The long book")])
    found = report(experiment(tmp_path, dataset(place) + translation()))
    assert found.translations["own/nl/document"].counts == {"ok": 100}
    pipeline = Pipeline.of(load_experiment(tmp_path / "experiment.toml"))
    row = by_id(pipeline)["long"]
    assert (row["title"], row["text"]) == (translate("The long book"), translate(paragraphs))
    assert counted(pipeline, "translate", "split") == 1
    assert counted(pipeline, "translate") > 100 + 20


SEEN = ["empty", "error", "truncated", "markup", "refusal", "language", "repetition"]


@pytest.mark.parametrize("fault", SEEN)
def test_a_fault_in_one_piece_of_a_long_document_is_seen(tmp_path, fault):
    corpus = [*documents(2), doc("long", long_text(f" [[fault:{fault}]]"), "The long book")]
    pipeline = run(
        experiment(tmp_path, dataset(write_set(tmp_path / "set", corpus)) + translation(repair=[]))
    )
    expected = "truncated" if fault == "empty" else fault
    assert expected in by_id(pipeline)["long"]["status"].split(",")


def test_a_piece_without_an_answer_is_asked_again(tmp_path):
    place = write_set(tmp_path / "set", [doc("long", long_text(" [[fault:empty:once]]"), "The long book")])
    pipeline = run(experiment(tmp_path, dataset(place) + translation()))
    (row,) = finals(pipeline)
    assert (row["status"], row["repair"]) == ("ok", "room") and row["text"] == translate(long_text())


def test_no_request_asks_for_more_than_the_window_has_room_for(tmp_path):
    corpus = [doc("long", " ".join(sentences()[:60]), "The long one"), *documents(3)]
    place = write_set(tmp_path / "set", corpus)

    def cut(prompt):
        said = dutch(prompt)
        return Answer(said[: len(said) // 2], "length") if "The long one" in prompt else said

    for window, most in ((4096, 2048), (2048, 2048), (1024, 512)):
        folder = tmp_path / str(window)
        folder.mkdir()
        with FaultServer(answer=cut) as server:
            settings = served(server, max_model_len=window, max_tokens=most)
            run(experiment(folder, dataset(place) + translation(**settings)))
            asked = [(estimate_tokens(prompt_of(body)), body["max_tokens"]) for body in server.bodies]
            assert max(prompt + room for prompt, room in asked) < window
            assert all(prompt < room for prompt, room in asked if prompt > 300)
            warm = [body["max_tokens"] for body in server.bodies if body["temperature"] > 0]
            assert max(warm) > window // 2  # with more room, as far as there is any


# Equal requests ---------------------------------------------------------------------------------------------


@pytest.fixture
def server():
    with FaultServer(answer=dutch, latency=0.01) as made:
        yield made


def two_sets(tmp_path, server, *, domains=("", ""), **settings):
    """Two sets of 60 documents, 40 of them common, each with its own repetitions and size of shards."""
    common = documents(40)
    texts = []
    for number, (name, size) in enumerate((("one", 7), ("two", 23))):
        own = documents(20, seed=number + 1)
        rows = [*common, *own, *common[:10]]
        rows = [row | {"_id": f"{name}{n}"} for n, row in enumerate(rows)]
        place = write_set(tmp_path / name, rows)
        more = {"domain": domains[number]} if domains[number] else {}
        texts.append(dataset(place, name, shard_documents=size, **more))
    return experiment(tmp_path, "".join(texts) + translation(**served(server, **settings)))


DISTINCT = 40 + 20 + 20 + 1  # documents of both, and the query


def test_equal_requests_are_asked_once_within_and_across_datasets_and_runs(tmp_path, server):
    path = two_sets(tmp_path, server)
    pipeline = run(path)
    assert set(server.counts.prompts.values()) == {1}
    assert server.counts.prompts.total() == DISTINCT
    one, two = by_id(pipeline, dataset="one"), by_id(pipeline, dataset="two")
    assert len(one) == len(two) == 70
    assert all(one[f"one{n}"]["text"] == two[f"two{n}"]["text"] for n in range(40))
    # other shards of the same texts, in a run of its own
    path.write_text(path.read_text().replace("shard_documents = 7", "shard_documents = 64"))
    again = by_id(run(path), dataset="one")
    assert {name: row["text"] for name, row in again.items()} == {
        name: row["text"] for name, row in one.items()
    }
    assert server.counts.prompts.total() == DISTINCT


def test_another_domain_asks_anew(tmp_path, server):
    run(two_sets(tmp_path, server, domains=("Finance", "Medical")))
    assert set(server.counts.prompts.values()) == {1}
    assert server.counts.prompts.total() == 2 * 60 + 2


def test_a_domain_that_the_prompt_does_not_name_is_no_difference(tmp_path, server):
    prompt = "Translate to {target_language}:\n ['<title> {title} </title> <body> {text} </body>']"
    (tmp_path / "own.txt").write_text(prompt)
    domains = ("Finance", "Medical")
    path = two_sets(tmp_path, server, domains=domains, document_prompt="own.txt", query_prompt="own.txt")
    text = path.read_text().replace("in_flight = 4", "in_flight = 64")
    path.write_text(re.sub(r"shard_documents = \d+", "shard_documents = 100", text))  # all in flight at once
    run(path)
    assert server.counts.prompts.total() == DISTINCT


def test_a_query_that_equals_a_document_is_asked_once_with_the_same_prompt(tmp_path, server):
    first, *others = documents(5)
    place = write_set(tmp_path / "set", [first | {"title": ""}, *others], [first["text"]])
    prompt = "Translate to {target_language}:\n ['<title> {title} </title> <body> {text} </body>']"
    (tmp_path / "own.txt").write_text(prompt)
    settings = served(server, query_prompt="own.txt", document_prompt="own.txt")
    run(experiment(tmp_path, dataset(place) + translation(**settings)))
    assert server.counts.prompts.total() == 5


def test_equal_requests_are_asked_once_by_two_workers_on_ray(tmp_path, server):
    path = two_sets(tmp_path, server)
    beirnl("run", path, "--workers", "2", "--only", "repair")
    assert set(server.counts.prompts.values()) == {1}
    assert server.counts.prompts.total() == DISTINCT
    pipeline = Pipeline.of(load_experiment(path))
    assert {row["status"] for name in ("one", "two") for row in finals(pipeline, dataset=name)} == {"ok"}


# Other forms ------------------------------------------------------------------------------------------------


def test_bare_texts_ask_title_and_body_apart(tmp_path):
    rows = [
        *documents(6),
        doc("t", "", "Only a title"),
        doc("b", "Only the text of it.\nOn two lines: here.", ""),
    ]
    place = write_set(tmp_path / "set", rows)
    prompts = {"query_prompt": "bare", "document_prompt": "bare"}
    pipeline = run(experiment(tmp_path, dataset(place) + translation(**prompts)))
    for row, made in zip(rows, finals(pipeline), strict=True):
        assert (made["title"], made["text"]) == (translate(row["title"]), translate(row["text"]))
        assert made["status"] == "ok"
    assert counted(pipeline, "translate") == 2 * 6 + 1 + 1 + 1


def test_the_few_shot_and_the_json_prompts(tmp_path):
    place = write_set(tmp_path / "set", documents(6))
    for prompts in (
        {"document_prompt": "few-shot-nl"},
        {"document_prompt": "json-document", "query_prompt": "json-query"},
    ):
        folder = tmp_path / prompts["document_prompt"]
        folder.mkdir()
        pipeline = run(experiment(folder, dataset(place) + translation(**prompts)))
        for row, made in zip(documents(6), finals(pipeline), strict=True):
            assert (made["title"], made["text"], made["status"]) == (
                translate(row["title"]),
                translate(row["text"]),
                "ok",
            )


def test_there_and_back_as_in_table_6(tmp_path):
    rows = documents(30)
    queries = [sentences()[n] for n in range(12)]
    place = write_set(tmp_path / "set", rows, queries)
    found = report(experiment(tmp_path, dataset(place) + translation(back=True) + BM25))
    assert {record.language for record in found.records} == {"en", "nl", "en-nl-en"}
    assert set(found.translations) == {
        f"own/{version}/{kind}" for version in ("nl", "en-nl-en") for kind in ("document", "query")
    }
    assert found.back_translation is not None
    values = {r.language: r.value for r in found.records if r.measure == "nDCG@10"}
    shown = text.to_markdown(found)
    for version, language in (("original", "en"), ("back-translated", "en-nl-en")):
        assert re.search(rf"\| bm25 \| {version} \| {100 * values[language]:.1f} \| ", shown)
    assert "BEIR-NL, Table 6." in shown


# Quality ----------------------------------------------------------------------------------------------------


def test_quality_against_people_on_a_parallel_text_and_a_reference_folder(tmp_path):
    files = {name: shared("ntrex", name) for name in ("newstest2019-src.eng.txt", "newstest2019-ref.nld.txt")}
    source, reference = (path.read_text(encoding="utf-8").splitlines()[:40] for path in files.values())
    place = write_set(tmp_path / "set", [doc(f"n{n}", line) for n, line in enumerate(source)])
    theirs = write_set(tmp_path / "theirs", [doc(f"n{n}", line) for n, line in enumerate(reference)][:30])
    lines = dict(zip(("source", "reference"), files.values(), strict=True))
    parallel = table("[parallel]", name="news", limit=40, **lines)
    path = experiment(tmp_path, dataset(place, reference=theirs) + parallel + translation())
    found = report(path)
    assert set(found.quality) == {"own/nl/document", "news/nl/document"}
    for name, segments in (("own/nl/document", 30), ("news/nl/document", 40)):
        made = found.quality[name]
        assert made.segments == segments
        for value, interval in ((made.chrf, made.chrf_interval), (made.bleu, made.bleu_interval)):
            assert 0 < interval.low <= value <= interval.high < 100
    pipeline = Pipeline.of(load_experiment(path))
    assert len(finals(pipeline, dataset="news")) == 40
    made = found.quality["news/nl/document"]
    assert f"| news/nl/document | {made.chrf:.1f} " in text.to_markdown(gather(pipeline))
