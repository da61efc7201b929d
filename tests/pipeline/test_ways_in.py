"""Inputs that break tools of this kind, through every way in: what holds for a BEIR folder holds for all."""

import re

import pytest
from beir_folder import doc, query
from running import BM25, dataset, experiment, ranking, run
from ways_in import Ways, parquet

from beirnl.errors import DataError
from beirnl.reporting import gather


@pytest.fixture
def ways(tmp_path, monkeypatch):
    made = Ways(tmp_path, monkeypatch)
    yield made
    made.close()


def way_in(way):
    if way == "irds":
        pytest.importorskip("ir_datasets")
    return way


def described(path, **settings):
    return dataset(path, **settings) + BM25 + '[evaluation]\nmeasures = ["nDCG@10", "R@100", "AP"]\n'


CORPUS = [
    doc("x", "alpha beta gamma delta"),
    doc("y", "alpha beta gamma"),
    *(doc(name, "tied words") for name in ("t1", "t3", "t2")),
    doc("d1", "graded kappa"),
    doc("d2", "graded graded graded"),
    doc("twice", "once is enough"),
    doc("twice", "once is enough"),
    doc("empty", None, None),
    doc("no title", "lonely"),
    doc("only title", "", "lonely headline"),
    doc("comma,", "punctuated"),
    doc('quo"te', "punctuated words"),
    doc("#coëfficiënt", "de coëfficiënt"),
    doc("日本", "ideographs 日本"),
    doc(45, "numbered document"),
    doc("long", "filler words " * 160_000 + "needle"),
]
QUERIES = [
    query("x", "alpha beta gamma delta"),
    query("tied", "tied"),
    query("graded", "graded"),
    query("without", "lonely"),
    query(44, "numbered"),
    query("c", "coëfficiënt"),
    query("n", "needle"),
    query("unjudged", "alpha"),
]
QRELS = [
    ("x", "y", 1),
    ("tied", "t3", 1),
    ("graded", "d1", 2),
    ("graded", "d2", 1),
    ("without", "no title", 0),
    ("44", "45", 1),
    ("c", "#coëfficiënt", 1),
    ("c", "gone", 1),
    ("n", "long", 1),
    ("lost", "y", 1),
]
RANKED = {
    "x": ["y"],
    "tied": ["t3", "t2", "t1"],
    "graded": ["d2", "d1"],
    "without": ["no title", "only title"],
    "44": ["45"],
    "c": ["#coëfficiënt"],
    "n": ["long"],
}
WARNED = (
    "1 document occurs more than once with one text; kept once: twice",
    "1 document has neither title nor text; kept: empty",
    "qrels name 1 query that FILE lacks; not scored: lost",
    "qrels name 1 document that the corpus lacks; these count in the denominator of recall, "
    "as trec_eval counts them: gone",
    "1 query has no relevant document (all labels 0) and scores 0: without",
)


@pytest.mark.parametrize("way", Ways.NAMES)
def test_the_same_set_gives_the_same_result(ways, tmp_path, way):
    path = ways.write(way_in(way), CORPUS, QUERIES, QRELS)
    pipeline = run(experiment(tmp_path, described(path, remove_self_matches=True, language="nl")))
    found = gather(pipeline)
    assert ranking(pipeline) == RANKED
    warnings = [
        re.sub(r"that \S+ lacks; not", "that FILE lacks; not", line.partition(": ")[2])
        for line in found.warnings
    ]
    assert all(line in warnings for line in WARNED), found.warnings
    values = {record.measure: record for record in found.records}
    ndcg, recall = values["nDCG@10"], values["R@100"]
    assert (ndcg.queries, ndcg.without_relevant) == (7, 1)
    assert recall.value == pytest.approx((1 + 1 + 1 + 0 + 1 + 0.5 + 1) / 7)
    of_c = 1 / (1 + 0.6309297535714575)  # one of two relevant documents, at rank 1
    assert ndcg.value == pytest.approx((1 + 1 + 0.8597186998521972 + 0 + 1 + of_c + 1) / 7)
    imported = next(n for n in pipeline.graph.nodes.values() if n.stage == "import-corpus")
    assert imported.artifact(pipeline.workspace).rows == len(CORPUS) - 1


@pytest.mark.parametrize("way", Ways.NAMES)
@pytest.mark.parametrize("which", ["corpus", "queries"])
def test_one_id_with_two_texts_names_both_lines(ways, tmp_path, way, which):
    texts = {"corpus": [doc("a", "alpha")], "queries": [query("a", "alpha")]}
    texts[which] = [query(name, text) for name, text in (("a", "alpha"), ("b", "beta"), ("a", "other"))]
    path = ways.write(way_in(way), texts["corpus"], texts["queries"], [("a", "a", 1)])
    with pytest.raises(DataError, match="'a' has two texts, in lines 1 and 3"):
        run(experiment(tmp_path, described(path)))


@pytest.mark.parametrize("way", Ways.NAMES)
def test_a_split_that_is_not_there_lists_those_that_are(ways, tmp_path, way):
    path = ways.write(way_in(way), [doc("a")], [query("q")], [("q", "a", 1)])
    with pytest.raises(DataError, match=r"has no split 'validation' \(present: test\)"):
        run(experiment(tmp_path, described(path, split="validation")))
    assert not (tmp_path / "workspace" / "artifacts").exists()


@pytest.mark.parametrize("which", ["corpus", "queries"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [(b"holds \xff", "not UTF-8"), (b"holds \0", "holds a NUL byte"), (None, "cannot be read")],
)
def test_damaged_parquet_of_the_hub_is_named(ways, tmp_path, which, damage, said):
    import pyarrow as pa
    import pyarrow.parquet as pq

    good = {"_id": ["a", "b"], "text": [b"alpha", damage or b"beta"]}
    columns = pa.table(good).set_column(1, "text", pa.array(good["text"], pa.binary()).view(pa.string()))
    pq.write_table(columns, tmp_path / "damaged.parquet")
    data = (tmp_path / "damaged.parquet").read_bytes()
    files = {
        "corpus/corpus-00000-of-00001.parquet": parquet([doc("a", "alpha")]),
        "queries/queries-00000-of-00001.parquet": parquet([query("a", "alpha")]),
        "qrels/test-00000-of-00001.parquet": parquet([{"query-id": "a", "corpus-id": "a", "score": 1.0}]),
    }
    files[f"{which}/{which}-00000-of-00001.parquet"] = data if damage else data[: len(data) // 2]
    with pytest.raises(DataError, match=said) as caught:
        run(experiment(tmp_path, described(ways.hub_of(files))))
    assert (f"/{which}:2" if damage else f"/{which}/00000.parquet") in str(caught.value)


@pytest.mark.parametrize("way", ["trec", "irds"])
@pytest.mark.parametrize("name", ["docs", "topics"])
def test_a_nul_byte_is_named(ways, tmp_path, way, name):
    texts = {"docs": [doc("a", "alpha")], "topics": [query("a", "alpha")]}
    texts[name] = [query("a", "alpha"), query("b", "bad \0 byte")]
    path = ways.write(way_in(way), texts["docs"], texts["topics"], [("a", "a", 1)])
    with pytest.raises(DataError, match=r":2: holds a NUL byte"):
        run(experiment(tmp_path, described(path)))


def test_parts_in_trec_form(ways, tmp_path):
    whole = tmp_path / "forums"
    for part, answered in (("gis", True), ("tex", False)):
        rows = [query(f"q{n}", "alpha" if answered else "beta") for n in range(1 if answered else 3)]
        made = ways.write(
            "trec", [doc("a", "alpha"), doc("b", "beta")], rows, [(r["_id"], "a", 1) for r in rows]
        )
        whole.mkdir(exist_ok=True)
        made.rename(whole / part)
    found = gather(run(experiment(tmp_path, described(whole))))
    assert {r.value for r in found.records if r.measure == "nDCG@10"} == {0.5}
    assert sum(r.queries for r in found.records if r.measure == "nDCG@10") == 4


def test_text_files_with_a_byte_order_mark_crlf_and_blank_lines(ways, tmp_path):
    made = ways.write(
        "trec", [doc("a", "alpha"), doc("b", "beta")], [query("q", "alpha")], [("q", "a", "1.0")]
    )
    for path in made.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    assert ranking(run(experiment(tmp_path, described(made)))) == {"q": ["a"]}
