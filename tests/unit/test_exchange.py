"""Results in the shapes of other tools: written as they write, read back as they were."""

import json

import pytest

from beirnl.errors import DataError
from beirnl.evaluation.runs import exchange

VALUES = {"nDCG@10": 0.645081234, "AP@10": 0.6, "R@100": 0.925, "P@1": 0.5, "RR@10": 0.61, "nDCG": 0.7}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def rounded(values):
    return {name: round(value, 6) for name, value in values.items() if "@" in name}


def test_beir_results_are_what_beir_saves(tmp_path):
    util = pytest.importorskip("beir.util")
    ours = exchange.beir_results(VALUES)
    groups = ({"NDCG@10": 0.645081}, {"MAP@10": 0.6}, {"Recall@100": 0.925}, {"P@1": 0.5}, {"MRR@10": 0.61})
    theirs = tmp_path / "system" / "scifact.en.json"
    theirs.parent.mkdir()
    util.save_results(str(theirs), *groups)
    assert json.loads(theirs.read_text()) == ours
    (found,) = exchange.read_results(theirs)
    assert (found.form, found.system, found.task) == ("beir", "system", "scifact.en")
    assert found.values == {"": rounded(VALUES)}


def test_a_report_of_ranx_is_read_back(tmp_path):
    path = write(tmp_path / "scifact.en.json", exchange.ranx_results({"a": VALUES, "b": {"nDCG@10": 0.5}}))
    said = json.loads(path.read_text())
    assert said["metrics"] == ["ndcg@10", "map@10", "recall@100", "precision@1", "mrr@10"]
    first, second = exchange.read_results(path)
    assert (first.form, first.system, first.task, first.values) == (
        "ranx",
        "a",
        "scifact.en",
        {"": rounded(VALUES)},
    )
    assert (second.system, second.values) == ("b", {"": {"nDCG@10": 0.5}})


def test_a_result_of_mteb_is_read_with_its_model(tmp_path):
    entry = exchange.mteb_scores(VALUES, ["eng-Latn"])
    assert entry["main_score"] == entry["ndcg_at_10"] == 0.645081 and "ndcg" not in entry
    task = {
        "task_name": "SciFact",
        "dataset_revision": "d5",
        "scores": {"test": [entry], "train": [entry, entry]},
    }
    path = write(tmp_path / "results" / "org__model" / "abc" / "SciFact.json", task)
    (found,) = exchange.read_results(path)
    assert found[2:6] == ("org/model", "abc", "SciFact", "d5") and found.values == {"test": rounded(VALUES)}
    write(path.with_name("model_meta.json"), {"name": "other/name", "revision": None})
    assert exchange.read_results(path)[0][2:4] == ("other/name", "abc")


def test_measures_go_as_deep_as_the_run():
    assert exchange.measures(10)[:4] == ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10")
    assert not [name for name in exchange.measures(10) if name.endswith(("@20", "@100"))]
    with pytest.raises(DataError, match="set depth to 10 or more"):
        exchange.mteb_scores({"nDCG@5": 0.5}, [])


@pytest.mark.parametrize(
    "content, said",
    [
        ("{", "is not JSON"),
        ("[1]", "holds no results of MTEB, BEIR or ranx"),
        ({"q1": {"d1": 0.5}}, "holds no results"),
        ({"ndcg": {"NDCG@10": 64.5}}, "ndcg NDCG@10 is 64.5, which is no fraction of 1"),
        ('{"recall": {"Recall@10": NaN}}', "recall Recall@10 is nan"),
        ({"task_name": "T", "scores": {"test": {}}}, "scores of split 'test' are no list"),
        ({"metrics": [], "model_names": ["a"]}, "has no scores of 'a'"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path, content, said):
    with pytest.raises(DataError) as error:
        exchange.read_results(write(tmp_path / "x.json", content))
    assert "x.json" in str(error.value) and said in str(error.value)
    with pytest.raises(DataError, match="is not there"):
        exchange.read_results(tmp_path / "absent.json")
