"""Queries, depths and partitions that break tools of this kind, through every kind of system."""

import math

import numpy as np
import pytest
from beir_folder import doc, query, write_beir
from every_system import BM25_KINDS, EVERYTHING, NAMES, SECOND, runs, systems, write_models
from running import dataset, experiment, run
from tiny_models import WORDS

from beirnl.reporting import gather
from beirnl.retrieval import ann

ODD = ["fish days:", 'tv 55" scherm', "'s ochtends", "A+B-test (2020)", "AND OR NOT", "*", "title:x"]
ODD += ["a\\b~2^3", "[1 TO 2]", "\u0000", "\u200b", "🐟", "{!lucene q=x}", "x" * 3000]
DOCUMENTS = [doc(f"d{n:02}", " ".join(WORDS[(n * j) % len(WORDS)] for j in range(1, 6))) for n in range(40)]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def searched(tmp_path, models, monkeypatch):
    """``searched(documents, queries, ...)``: the pipeline of all systems, and their runs."""
    monkeypatch.setattr(ann, "_EXHAUSTIVE", 0)  # the graph also where all could be scored

    def search(documents, queries, depth=10, batch_size=1, **settings):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        qrels = [(asked["_id"], documents[0]["_id"], 1) for asked in queries]
        data = write_beir(folder / "set", documents, queries, qrels)
        text = dataset(data, **settings) + systems(models, depth, batch_size)
        pipeline = run(experiment(folder, text))
        return pipeline, runs(pipeline)

    return search


def check_sound(found, ids, depth):
    """What holds for every run: hits that exist, each once, with numbers, in order, no more than asked."""
    for name, queries in found.items():
        for hits in queries.values():
            names = [hit for hit, _ in hits]
            assert len(set(names)) == len(names) <= depth, name
            assert set(names) <= ids, name
            assert all(math.isfinite(score) for _, score in hits), name
            assert [(score, hit) for hit, score in hits] == sorted(((s, h) for h, s in hits), reverse=True), (
                name
            )


def test_22_and_23_odd_and_long_queries_are_plain_words_to_every_system(searched):
    texts = [*(text.replace("\u0000", "�") for text in ODD), " ".join(f"word{n}" for n in range(1500))]
    documents = [doc(f"d{n}", f"{text} filler") for n, text in enumerate(texts)]
    queries = [query(f"q{n}", text) for n, text in enumerate(texts)]
    _, found = searched(documents, queries)
    check_sound(found, {document["_id"] for document in documents}, 10)
    assert set(found) == set(NAMES)
    for name in EVERYTHING:
        assert {len(found[name][f"q{n}"]) for n in range(len(texts))} == {10}, name
    for name in BM25_KINDS:
        assert all(found[name][f"q{n}"][0][0] == f"d{n}" for n in (0, 1, 2, 3, 6, 7, 8)), name
        assert found[name][f"q{len(texts) - 1}"][0][0] == f"d{len(texts) - 1}", name


def test_24_queries_without_hits_are_scored_0_and_counted(searched):
    without = {"stop": "the and of", "empty": "", "blank": " \t", "nowhere": "xyzzy"}
    queries = [query(name, text) for name, text in without.items()] + [query("good", "water")]
    pipeline, found = searched([doc("a", "water"), doc("b", "court")], queries)
    check_sound(found, {"a", "b"}, 10)
    report = gather(pipeline)
    values = {r.system: r for r in report.records if r.measure == "R@100"}
    for name in (*BM25_KINDS, *SECOND):
        assert set(found[name]) == {"good"}, name
        assert (values[name].value, values[name].queries) == (0.2, 5), name
    for name in ("exact", "late", "fused"):
        assert set(found[name]) == {*without, "good"} and values[name].queries == 5, name
    told = [line for line in report.warnings if "4 queries have no hits and score 0" in line]
    assert len(told) == len(BM25_KINDS)


def test_24_a_corpus_in_which_nothing_is_found_by_anybody(searched):
    pipeline, found = searched([doc("a", "the"), doc("b", "")], [query("q", "xyzzy"), query("r", "")])
    assert all(not found[name] for name in (*BM25_KINDS, *SECOND))
    check_sound(found, {"a", "b"}, 10)
    assert {r.value for r in gather(pipeline).records if r.system in BM25_KINDS} == {0.0}


@pytest.mark.parametrize("remove", [False, True])
def test_25_a_depth_beyond_the_corpus_gives_every_document_once(searched, remove):
    documents = [doc(word, word) for word in WORDS[:9] if word.isalpha()]
    ids = {document["_id"] for document in documents}
    queries = [query(WORDS[0], f"{WORDS[0]} {WORDS[1]}")]
    _, found = searched(documents, queries, depth=1000, remove_self_matches=remove)
    check_sound(found, ids, 1000)
    left = ids - ({WORDS[0]} if remove else set())
    for name in (*EVERYTHING, "fused"):
        assert {hit for hit, _ in found[name][WORDS[0]]} == left, name
    for name in (*BM25_KINDS, *SECOND):
        assert {hit for hit, _ in found[name][WORDS[0]]} == {WORDS[0], WORDS[1]} & left, name


def test_26_any_number_of_shards_gives_the_same_runs(searched):
    queries = [query(f"q{n}", " ".join(WORDS[n : n + 3])) for n in range(5)]
    texts = [*DOCUMENTS, doc("twin", DOCUMENTS[3]["text"])]  # ties
    whole, parted = (searched(texts, queries, shard_documents=n)[1] for n in (1000, 5))
    check_sound(whole, {document["_id"] for document in texts}, 10)
    for name in NAMES:
        assert parted[name] == whole[name], name
        assert name not in EVERYTHING or {len(hits) for hits in whole[name].values()} == {10}


def test_27_the_batch_size_changes_no_score_but_in_its_last_digits(searched):
    """Documents of 5 and of 500 words in turns: padding reaches no vector and no score."""
    long = [
        (doc(f"d{n}", " ".join(WORDS[(n + i) % len(WORDS)] for i in range(500 if n % 2 else 5))))
        for n in range(12)
    ]
    queries = [query("q", " ".join(WORDS[:4]))]
    four, one = (searched(long, queries, depth=12, batch_size=size)[1] for size in (4, 1))
    for name in NAMES:
        scores = [dict(found[name]["q"]) for found in (four, one)]
        assert scores[0].keys() == scores[1].keys(), name
        np.testing.assert_allclose(
            [scores[0][hit] for hit in sorted(scores[0])],
            [scores[1][hit] for hit in sorted(scores[0])],
            atol=2e-3 if name == "int8" else 1e-4,
            err_msg=name,
        )
