"""The sample dataset is complete, well formed and consistent."""

import json
from collections import Counter, defaultdict

import pytest
from support import ROOT

SAMPLE = ROOT / "beirnl" / "sample"
HEADER = "query-id\tcorpus-id\tscore"


def read_jsonl(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def corpus() -> dict[str, dict[str, str]]:
    return {doc["_id"]: doc for doc in read_jsonl("corpus.jsonl")}


@pytest.fixture(scope="module")
def queries() -> dict[str, str]:
    return {query["_id"]: query["text"] for query in read_jsonl("queries.jsonl")}


@pytest.fixture(scope="module")
def judgements() -> list[tuple[str, str, int]]:
    header, *lines = (SAMPLE / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    assert header == HEADER
    return [(query, doc, int(grade)) for query, doc, grade in (line.split("\t") for line in lines)]


@pytest.mark.parametrize(
    ("name", "keys", "rows"),
    [("corpus.jsonl", ["_id", "title", "text"], 63), ("queries.jsonl", ["_id", "text"], 25)],
)
def test_rows_have_the_keys_of_beir_and_unique_ids(name, keys, rows):
    table = read_jsonl(name)
    assert len(table) == rows
    assert all(list(row) == keys for row in table)
    assert len({row["_id"] for row in table}) == rows
    assert len({row["text"] for row in table}) == rows


def test_three_domains_have_as_many_documents(corpus):
    assert Counter(doc_id[0] for doc_id in corpus) == {"h": 21, "m": 21, "n": 21}


def test_documents_are_short(corpus):
    lengths = {doc_id: len(doc["text"].split()) for doc_id, doc in corpus.items()}
    assert {doc_id: n for doc_id, n in lengths.items() if not 25 <= n <= 45} == {}


def test_titles_have_two_to_six_words_and_one_is_empty(corpus):
    words = {doc_id: len(doc["title"].split()) for doc_id, doc in corpus.items()}
    assert [doc_id for doc_id, n in words.items() if not 2 <= n <= 6] == ["n15"]
    assert corpus["n15"]["title"] == ""


def test_fields_have_no_stray_whitespace(corpus, queries):
    fields = [doc[key] for doc in corpus.values() for key in ("title", "text")] + list(queries.values())
    assert [field for field in fields if field != " ".join(field.split())] == []


def test_judgements_point_at_queries_and_documents_once(corpus, queries, judgements):
    assert {query for query, _, _ in judgements} == set(queries)
    assert {doc for _, doc, _ in judgements} <= set(corpus)
    assert len({(query, doc) for query, doc, _ in judgements}) == len(judgements)


def test_grades_are_0_1_2_and_every_query_has_an_answer(judgements):
    best: dict[str, int] = defaultdict(int)
    for query, _, grade in judgements:
        best[query] = max(best[query], grade)
    assert {grade for _, _, grade in judgements} == {0, 1, 2}
    assert set(best.values()) == {2}


def test_two_to_five_documents_are_judged_per_query(judgements):
    assert set(Counter(query for query, _, _ in judgements).values()) <= {2, 3, 4, 5}


def test_one_query_is_a_document_and_not_its_own_answer(corpus, queries, judgements):
    assert set(queries) & set(corpus) == {"m01"}
    assert queries["m01"] == corpus["m01"]["text"]
    assert [query for query, doc, _ in judgements if query == doc] == []
