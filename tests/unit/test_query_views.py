"""Systems query by query: what the page is told, within a bound."""

import json

import pytest
from beir_folder import doc
from running import dataset, experiment, run, system
from translating import write_set

from beirnl.evaluation.page.query_views import Document, QueryView, View, embedded
from beirnl.reporting import gather, per_query, sizes


def view(queries, systems=("a", "b"), size=10):
    hits = [[f"d{n}"] for n in range(len(systems))]
    made = [
        QueryView(f"q{n}", "t" * size, [[0.123456, 0]], hits, {"d0": 1}, {"d0": [1, 0]}, 0)
        for n in range(queries)
    ]
    documents = {f"d{n}": Document(f"d{n}", "", "x" * size) for n in range(len(systems))}
    return View("set", "nl", ["P@1"], systems, [10] * len(systems), queries, [], made, documents)


def test_queries_that_do_not_fit_are_left_out_from_the_end_and_documents_stand_once():
    whole = json.loads(embedded([view(50)]))
    assert [query["id"] for query in whole[0]["queries"]] == [f"q{n}" for n in range(50)]
    assert whole[0]["documents"] == [["d0", "", "x" * 10], ["d1", "", "x" * 10]]
    assert whole[0]["queries"][0]["hits"] == [[0], [1]] and whole[0]["queries"][0]["values"] == [[0.1235, 0]]
    limit = 6000
    text = embedded([view(50), view(50)], limit)
    shown = [len(place["queries"]) for place in json.loads(text)]
    assert shown[0] == shown[1] and 0 < shown[0] < 50
    assert len(text) < limit + 600  # the names of each place are not counted


def test_one_system_alone_is_compared_with_nobody():
    assert embedded([view(3, systems=("a",)), view(0)]) == "[]"


def test_nothing_can_end_the_script_element():
    text = embedded([view(1)._replace(dataset="</script><!--&\u2028")])
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text)[0]["name"] == "</script><!--&\u2028 (nl)"


CORPUS = [
    doc("1", "coffee keeps people awake", "coffee"),
    doc("2", "tea " * 200, "tea"),
    doc("3", "milk and coffee", ""),
]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    place = write_set(folder / "set", CORPUS, ("coffee", "tea", "milk"))
    text = dataset(place) + system("bm25", "bm25") + system("bm25", "flat", profile="flat", depth=1)
    return run(experiment(folder, text))


def test_views_hold_values_hits_and_judgements_of_the_artifacts(pipeline):
    report = gather(pipeline)
    [found] = per_query.views(pipeline, report.scores)
    assert {query.text: query.hits for query in found.queries}["tea"] == [["2"], ["2"]]
    assert found.systems == ["bm25", "flat"] and found.depths == [100, 1]
    assert found.total == len(found.queries) == report.records[0].queries
    own = report.scores.filter(measure=found.measures[0], system="bm25")
    by_key = dict(own.select("query_id", "value").iter_rows())
    for query in found.queries:
        assert query.values[0][0] == pytest.approx(by_key[query.id])
        assert len(query.hits[1]) <= 1 and set(query.hits[0]) <= set(found.documents)
        for key, ranks in query.relevant.items():
            hits = query.hits[0]
            assert ranks[0] == (hits.index(key) + 1 if key in hits else 0)
            assert query.labels[key] > 0
    assert {len(found.documents[key].text) <= 320 for key in found.documents} == {True}
    for measure, duels in enumerate(found.pairs):
        values = [query.values[measure] for query in found.queries]
        wins = sum(a > b for a, b in values)
        losses = sum(a < b for a, b in values)
        assert duels[1] == (wins, losses, len(values) - wins - losses)
        assert duels[2] == (losses, wins, len(values) - wins - losses)


def test_sizes_and_speeds_are_those_of_manifests_and_receipts(pipeline):
    report = gather(pipeline)
    [size] = report.datasets
    assert (size.documents, size.queries) == (len(CORPUS), report.records[0].queries)
    assert size.relevant >= 1
    evaluation = pipeline.graph.evaluations[0]
    index = evaluation.node.inputs["run"].inputs["index"].artifact(pipeline.workspace).manifest
    spent = sum(one.seconds for one in [*index.receipts, *filter(None, [index.reduced])])
    [speed, _] = sizes.speeds(pipeline, pipeline.graph.evaluations)
    assert speed.documents == (pytest.approx(len(CORPUS) / spent) if spent else None)
    assert speed.system == "bm25"
