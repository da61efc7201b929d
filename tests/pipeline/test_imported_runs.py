"""Runs made elsewhere in an experiment: scored, compared, fused and reranked beside ours."""

import gzip
import json
import math
from pathlib import Path

import pytest
import pytrec_eval
import tiny_models
from beir_folder import doc, query, write_beir
from running import BM25, dataset, experiment, ranking, report, run, system

from beirnl.errors import DataError
from beirnl.reporting import gather

WORDS = tiny_models.WORDS[7:]  # from "water" on


@pytest.fixture
def folder(tmp_path):
    corpus = [doc(f"d{number}", " ".join(WORDS[number : number + 4])) for number in range(8)]
    corpus.append(doc("q1", "boils at"))
    queries = [query("q1", "boils at"), query("q2", "court fine"), query("q3", "immune")]
    judged = [("q1", "d1", 2), ("q1", "d7", 1), ("q2", "d5", 1), ("q3", "d6", 1), ("q3", "d0", 0)]
    return write_beir(tmp_path / "set", corpus, queries, judged)


HITS = {
    "q1": {"d3": 0.5, "d1": 0.9, "q1": 1.0, "d7": 0.5},
    "q2": {"d2": 3.0, "d5": 2.0},
    "elsewhere": {"d1": 1.0},
}


def write(path, hits):
    path.write_text(json.dumps(hits))
    return path


def value(found, system, measure):
    (record,) = (r for r in found.records if (r.system, r.measure) == (system, measure))
    return record


def test_a_run_is_scored_as_trec_eval_scores_its_file(tmp_path, folder):
    file = write(tmp_path / "own.nl.json", HITS)
    text = system("run", "theirs", path=tmp_path / "{dataset}.{language}.json", model="a-model")
    measures = '[evaluation]\nmeasures = ["nDCG@10", "R@2", "AP", "RR"]\n'
    found = report(experiment(tmp_path, dataset(folder, language="nl") + text + measures))
    qrels = {"q1": {"d1": 2, "d7": 1}, "q2": {"d5": 1}, "q3": {"d6": 1, "d0": 0}}
    names = {"nDCG@10": "ndcg_cut_10", "R@2": "recall_2", "AP": "map", "RR": "recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(names.values()))
    theirs = evaluator.evaluate(json.loads(file.read_text()))
    for ours, name in names.items():
        expected = (theirs["q1"][name] + theirs["q2"][name] + 0) / 3
        assert math.isclose(value(found, "theirs", ours).value, expected, abs_tol=1e-9), ours
    told = value(found, "theirs", "AP").conditions.model_dump()
    assert told["search"] == "imported" and told["model"] == "a-model" and told["depth"] == 4
    assert told["file"] == "own.nl.json" and len(told["file_sha256"]) == 64
    warned = "\n".join(found.warnings)
    assert "own.nl.json: 1 of 3 queries is missing and counts 0: q3" in warned
    assert "left out, since 1 query is not judged in the dataset: elsewhere" in warned


def test_self_matches_go_where_the_dataset_says_so(tmp_path, folder):
    text = system("run", "theirs", path=write(tmp_path / "a.json", HITS))
    kept = ranking(run(experiment(tmp_path, dataset(folder) + text)), "theirs")
    assert kept["q1"] == ["q1", "d1", "d7", "d3"]
    own = dataset(folder, remove_self_matches=True).replace('"True"', "true")
    removed = ranking(run(experiment(tmp_path, own + text)), "theirs")
    assert removed["q1"] == ["d1", "d7", "d3"] and removed["q2"] == kept["q2"]


def test_our_own_run_comes_back_with_the_same_numbers_and_serves_second_stages(tmp_path, folder):
    path = experiment(tmp_path, dataset(folder) + BM25)
    first = gather(run(path))
    (written,) = first.runs
    (tmp_path / "back.trec").write_bytes(gzip.decompress(Path(written.path).read_bytes()))
    bi = tiny_models.sentence_transformer(tmp_path / "bi", tiny_models.bert(tmp_path / "bert"))
    again = BM25 + system("run", "back", path=tmp_path / "back.trec")
    again += system("rerank", "second", first="back", model=bi, method="bi-encoder")
    again += system("rerank", "other", first="bm25", model=bi, method="bi-encoder")
    again += '[[system]]\nkind = "fusion"\nname = "fused"\nof = ["bm25", "back"]\n'
    pipeline = run(experiment(tmp_path, dataset(folder) + again))
    assert ranking(pipeline, "back") == ranking(pipeline, "bm25") == ranking(pipeline, "fused")
    assert ranking(pipeline, "second") == ranking(pipeline, "other")
    found = gather(pipeline)
    assert value(found, "back", "nDCG@10").value == value(first, "bm25", "nDCG@10").value


def test_a_changed_file_is_read_again(tmp_path, folder):
    file = write(tmp_path / "a.json", HITS)
    path = experiment(tmp_path, dataset(folder) + system("run", "theirs", path=file))
    before = ranking(run(path), "theirs")
    write(file, {"q2": {"d5": 1.0}})
    assert ranking(run(path), "theirs") == {"q2": ["d5"]} != before


def test_runs_of_different_depth_are_cut_to_the_shorter_and_it_is_said(tmp_path, folder):
    shallow = system(
        "run", "shallow", path=write(tmp_path / "a.json", {"q1": {"d3": 1.0}, "q2": {"d5": 1.0}})
    )
    deep = system("run", "deep", path=write(tmp_path / "b.json", HITS))
    measures = '[evaluation]\nmeasures = ["nDCG@1", "AP"]\n'
    alone = report(experiment(tmp_path, dataset(folder) + deep + measures))
    both = report(experiment(tmp_path, dataset(folder) + deep + shallow + measures))
    assert value(both, "deep", "nDCG@1").value == value(alone, "deep", "nDCG@1").value
    assert value(alone, "deep", "AP").value > value(both, "deep", "AP").value == 0.0
    said = "AP of deep sees 1 of its 4 hits a query on own, as many as the shortest run there has"
    assert said in both.warnings and said not in alone.warnings
    cuts = {(r.system, r.measure): (r.conditions.model_extra or {}).get("cut_at") for r in both.records}
    assert {key: at for key, at in cuts.items() if at} == {("deep", "AP"): 1}
    at_one = report(experiment(tmp_path, dataset(folder) + deep + shallow + measures.replace(', "AP"', "")))
    assert not any("hits a query" in line for line in at_one.warnings)


def test_speed_is_told_only_of_what_was_made_here(tmp_path, folder):
    theirs = system("run", "theirs", path=write(tmp_path / "a.json", HITS))
    fused = system("fusion", "fused", of=["bm25", "theirs"])
    found = report(experiment(tmp_path, dataset(folder) + BM25 + theirs + fused))
    assert {record.system for record in found.records} == {"bm25", "theirs", "fused"}
    assert [speed.system for speed in found.speeds] == ["bm25"]


@pytest.mark.parametrize(
    "hits, said",
    [
        (
            {"Q1": {"d1": 1.0}, "Q2": {}},
            r"none of its 1 query \(Q1\) is one of the 3 of the dataset \(q1, q2",
        ),
        ({}, "a.json: holds no hits; check that the run was written whole"),
        ({"q1": {"d1": math.nan}}, "query 'q1': the score of document 'd1' is not a finite number"),
    ],
)
def test_a_run_that_cannot_be_scored_is_an_error(tmp_path, folder, hits, said):
    path = experiment(
        tmp_path, dataset(folder) + system("run", "theirs", path=write(tmp_path / "a.json", hits))
    )
    with pytest.raises(DataError, match=said):
        run(path)


def test_a_file_that_is_not_there_is_found_before_anything_is_done(tmp_path, folder):
    path = experiment(tmp_path, dataset(folder) + system("run", "theirs", path=tmp_path / "{dataset}.trec"))
    with pytest.raises(DataError, match=r"own\.trec: there is no such run file, which system 'theirs' names"):
        run(path)
    assert not (tmp_path / "workspace" / "artifacts").exists()


def test_documents_that_the_corpus_lacks_keep_their_ranks_and_are_told(tmp_path, folder):
    hits = {"q2": {"nowhere": 2.0, "d5": 1.0}}
    found = report(
        experiment(tmp_path, dataset(folder) + system("run", "theirs", path=write(tmp_path / "a.json", hits)))
    )
    assert any("1 document is not in the corpus; it keeps its rank: nowhere" in w for w in found.warnings)
    assert 0 < value(found, "theirs", "nDCG@10").value < 1 / 3
