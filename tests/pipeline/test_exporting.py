"""What is exported is read by the tools that it is for; what others published stands beside ours, marked."""

import json

import pytest
import pytrec_eval
import tiny_models
from beir_folder import doc, query, write_beir
from running import BM25, beirnl, dataset, experiment, run, system

from beirnl.errors import DataError
from beirnl.evaluation import runs
from beirnl.evaluation.runs import exchange
from beirnl.evaluation.tables import text
from beirnl.reporting import exporting, gather, mteb, others

WORDS = tiny_models.WORDS[7:]  # from "water" on


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """BM25 and an encoder on a set that is called as one of MTEB's."""
    folder = tmp_path_factory.mktemp("exported")
    corpus = [doc(f"d {number}", " ".join(WORDS[number % 9 :][:4]) + f" {number}") for number in range(25)]
    judged = [("q1", "d 1", 2), ("q1", "d 7", 1), ("q2", "d 5", 1), ("q3", "d 6", 1)]
    queries = [query("q1", "boils at"), query("q2", "court fine"), query("q3", "immune")]
    place = write_beir(folder / "set", corpus, queries, judged)
    bi = tiny_models.sentence_transformer(folder / "bi", tiny_models.bert(folder / "bert"))
    dense = system("dense", "tiny", model=bi) + system("dense", "tiny16", model=bi, vectors="float16")
    return run(experiment(folder, dataset(place, "scifact") + BM25 + dense))


def values(pipeline, name):
    return {r.measure: r.value for r in gather(pipeline).records if r.system == name}


def test_runs_and_judgements_for_trec_eval(pipeline, tmp_path):
    written = exporting.export(pipeline, tmp_path, "trec")
    assert {path.relative_to(tmp_path).as_posix() for path in written} == {
        "runs/bm25/scifact.en.trec",
        "runs/tiny/scifact.en.trec",
        "runs/tiny16/scifact.en.trec",
        "qrels/scifact.en.qrels",
    }
    with (tmp_path / "qrels/scifact.en.qrels").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    with (tmp_path / "runs/tiny/scifact.en.trec").open() as file:
        hits = pytrec_eval.parse_run(file)
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(hits)
    mean = sum(query["ndcg_cut_10"] for query in found.values()) / 3
    assert mean == pytest.approx(values(pipeline, "tiny")["nDCG@10"], abs=1e-6)


def test_runs_and_results_as_beir_and_ranx_have_them(pipeline, tmp_path):
    exporting.export(pipeline, tmp_path / "beir", "beir")
    exporting.export(pipeline, tmp_path / "ranx", "ranx")
    hits = json.loads((tmp_path / "ranx/runs/tiny/scifact.en.json").read_text())
    qrels = json.loads((tmp_path / "ranx/qrels/scifact.en.json").read_text())
    assert qrels["q1"] == {"d 1": 2, "d 7": 1} and "d 1" in hits["q1"]
    evaluation = pytest.importorskip("beir.retrieval.evaluation").EvaluateRetrieval
    theirs = evaluation.evaluate(qrels, hits, [1, 10], ignore_identical_ids=False)
    ours = json.loads((tmp_path / "beir/results/tiny/scifact.en.json").read_text())
    for group, table in zip(("ndcg", "map", "recall", "precision"), theirs, strict=True):
        for name, value in table.items():
            assert ours[group][name] == pytest.approx(value, abs=1e-5), name
    ranx = json.loads((tmp_path / "ranx/results/scifact.en.json").read_text())
    assert ranx["model_names"] == ["bm25", "tiny", "tiny16"]
    assert ranx["tiny"]["scores"]["ndcg@10"] == ours["ndcg"]["NDCG@10"]
    back = runs.read(tmp_path / "beir/runs/tiny/scifact.en.json")
    assert back.num_rows == sum(map(len, hits.values()))


def test_mteb_accepts_our_results(pipeline, tmp_path):
    library = pytest.importorskip("mteb")
    from mteb.models import ModelMeta
    from mteb.results import TaskResult

    exporting.export(pipeline, tmp_path, "mteb")
    names = {path.parent.parent.name for path in tmp_path.rglob("model_meta.json")}
    assert names == {"beirnl__bm25", "beirnl__tiny", "beirnl__tiny16"}
    for file in tmp_path.rglob("SciFact.json"):
        result = TaskResult.from_disk(file, load_historic_data=False)
        name = file.parent.parent.name.removeprefix("beirnl__")
        assert result.task_name == "SciFact" and result.languages == ["eng"]
        assert result.get_score() == pytest.approx(values(pipeline, name)["nDCG@10"], abs=1e-6)
        kept = result.validate_and_filter_scores().scores["test"]
        assert [entry["main_score"] for entry in kept] == [result.get_score()]
        meta = ModelMeta.model_validate_json(file.with_name("model_meta.json").read_text())
        assert meta.name == f"beirnl/{name}" and file.parent.name == meta.revision
    loaded = library.ResultCache(tmp_path).load_results(include_remote=False, validate_and_filter=True)
    scores = {one.model_name: one.task_results[0].get_score() for one in loaded.model_results}
    assert scores == pytest.approx(
        {f"beirnl/{name}": values(pipeline, name)["nDCG@10"] for name in ("bm25", "tiny", "tiny16")}, abs=1e-6
    )


def test_a_model_of_the_hub_keeps_its_name_and_revision_only_if_it_is_nothing_else(pipeline):
    record = next(record for record in gather(pipeline).records if record.system == "tiny")
    told = record.conditions.model_copy(
        update={"model": "bge-m3", "source": "hub:BAAI/bge-m3", "revision": "5617a9f"}
    )
    assert mteb.meta_of("x", told)["name"] == "BAAI/bge-m3"
    assert mteb.meta_of("x", told.model_copy(update={"vectors": "int8"}))["name"] == "beirnl/x"
    assert mteb.meta_of("x", told, own_name=True)["name"] == "beirnl/x"
    unpinned = told.model_copy(update={"revision": "unpinned"})
    assert mteb.meta_of("x", unpinned)["revision"] == "no_revision_available"


def test_names_of_tasks_go_both_ways():
    assert mteb.task_of("scifact") == "SciFact" and mteb.dataset_of("SciFact") == ("scifact", "")
    assert mteb.task_of("cqadupstack", "android") == "CQADupstackAndroidRetrieval"
    assert mteb.dataset_of("CQADupstackWordpress-NL") == ("cqadupstack-nl", "wordpress")
    assert mteb.task_of("scifact", "android") is mteb.task_of("own") is mteb.dataset_of("Banking77") is None


def test_published_figures_stand_beside_ours_and_are_marked(pipeline, tmp_path):
    own = exporting.export(pipeline, tmp_path, "mteb")
    place = tmp_path / "results" / "org__model" / "12345678abc"
    place.mkdir(parents=True)
    entry = exchange.mteb_scores({"nDCG@10": 0.99, "R@100": 1.0}, ["eng-Latn"])
    task = {"task_name": "SciFact", "dataset_revision": "d5", "scores": {"test": [entry]}}
    (place / "SciFact.json").write_text(json.dumps(task))
    (place / "Other.json").write_text(json.dumps(task | {"task_name": "NQ"}))
    files = [place / "SciFact.json", place / "Other.json", own[0]]
    found = others.with_results(gather(pipeline), pipeline, files)
    told = {(r.system, r.measure): r for r in found.records}
    theirs = told["org/model@12345678 (published)", "nDCG@10"]
    assert (theirs.value, theirs.conditions.search, theirs.conditions.dataset_hash) == (
        0.99,
        "published",
        "d5",
    )
    assert any("Other.json: NQ is no set of the experiment; left out" in line for line in found.warnings)
    copied = told["beirnl/bm25 (published)", "nDCG@10"]
    assert copied.value == pytest.approx(told["bm25", "nDCG@10"].value, abs=1e-6)
    assert "org/model@12345678 (published)" in text.to_markdown(found).replace("\\", "")
    assert set(found.scores["system"]) == {
        "bm25",
        "tiny",
        "tiny16",
    }  # no test of significance without queries
    with pytest.raises(DataError, match="holds org/model on SciFact, as"):
        others.with_results(gather(pipeline), pipeline, [files[0], files[0]])


def test_results_without_the_name_of_a_set_go_by_the_name_of_the_file(pipeline, tmp_path):
    exporting.export(pipeline, tmp_path, "beir")
    found = others.with_results(gather(pipeline), pipeline, [tmp_path / "results/tiny/scifact.en.json"])
    told = {(r.system, r.measure): r.value for r in found.records}
    assert told["tiny (published)", "R@100"] == pytest.approx(told["tiny", "R@100"], abs=1e-6)


def test_the_command_exports_and_shows(pipeline, tmp_path):
    said = beirnl("report", pipeline.experiment.file, "--export", tmp_path, "--as", "beir")
    assert said.stdout == f"6 files written to {tmp_path}\n"
    file = tmp_path / "results" / "tiny" / "scifact.en.json"
    shown = beirnl("report", pipeline.experiment.file, "--with-results", file, "--format", "json")
    assert "tiny (published)" in {record["system"] for record in json.loads(shown.stdout)}
    bad = beirnl("report", pipeline.experiment.file, "--with-results", tmp_path / "no.json", check=2)
    assert bad.stderr == f"error: {tmp_path / 'no.json'}: is not there; check the path\n"
