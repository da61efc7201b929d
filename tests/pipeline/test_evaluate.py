"""`beirnl evaluate` and `beirnl.evaluate`: one model, one set, no file."""

import json
import subprocess
import sys

import pytest
import pytrec_eval
import tiny_models
from beir_folder import doc, query, write_beir
from running import beirnl
from support import ROOT

from beirnl import evaluate
from beirnl.errors import BeirnlError, ConfigError

WORDS = tiny_models.WORDS[7:]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A set and two models, by folder."""
    folder = tmp_path_factory.mktemp("place")
    corpus = [doc(f"d{number}", " ".join(WORDS[number : number + 4])) for number in range(9)]
    queries = [query("q1", "boils at"), query("q2", "court fine")]
    write_beir(folder / "set", corpus, queries, [("q1", "d1", 1), ("q2", "d5", 1)])
    tiny_models.sentence_transformer(folder / "bi", tiny_models.bert(folder / "bert"))
    tiny_models.cross_encoder(folder / "cross")
    (folder / "mine.trec").write_text("q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.0 x\nq2 Q0 d1 1 1.0 x\n")
    return folder


def test_the_command_says_what_three_lines_of_python_say_and_what_its_file_says(place, tmp_path):
    models = [place / "bi", place / "cross"]
    asked = [part for model in models for part in ("--model", model)]
    asked += ["--dataset", place / "set", "--workspace", tmp_path / "w", "--measures", "nDCG@10,R@2"]
    said = beirnl("evaluate", *asked, "--format", "json", "--save", tmp_path / "new" / "saved.toml")
    records = json.loads(said.stdout)
    assert {record["system"] for record in records} == {"BM25", "bi", "BM25+cross"}
    assert f"report: {tmp_path / 'w' / 'reports'}" in said.stderr
    again = beirnl("evaluate", *asked)
    assert "everything is done already" in again.stderr and "BM25+cross" in again.stdout
    assert "self matches" in again.stdout and "report: " in again.stdout

    results = evaluate(models, place / "set", workspace=tmp_path / "w", measures=["nDCG@10", "R@2"])
    assert results.page.is_file() and "BM25+cross" in str(results)
    frame = results.to_polars()
    assert frame.columns == ["dataset", "language", "system", "measure", "value", "queries", "conditions"]
    ours = [tuple(record[name] for name in frame.columns[:6]) for record in records]
    assert sorted(frame.drop("conditions").rows()) == sorted(ours)

    planned = beirnl("plan", tmp_path / "new" / "saved.toml").stdout
    done, total = planned.splitlines()[-1].split()[0], planned.splitlines()[-1].split()[2]
    assert done == total
    written = tmp_path / "new" / "report" / "r.json"
    beirnl("report", tmp_path / "new" / "saved.toml", "--format", "json", "--output", written)
    reported = json.loads(written.read_text())
    assert reported == records


def test_a_run_is_scored_on_a_dataset(place, tmp_path):
    asked = ["--run", place / "mine.trec", "--dataset", place / "set", "--workspace", tmp_path]
    records = json.loads(beirnl("evaluate", *asked, "--format", "json").stdout)
    values = {record["measure"]: record["value"] for record in records}
    assert values == {"nDCG@10": 0.5, "R@100": 0.5}


def test_a_run_is_scored_on_qrels_as_trec_eval_scores_it(place, tmp_path):
    asked = ["evaluate", "--run", place / "mine.trec", "--qrels", place / "set" / "qrels" / "test.tsv"]
    records = json.loads(
        beirnl(*asked, "--measures", "AP", "--measures", "nDCG@1", "--format", "json").stdout
    )
    with (place / "mine.trec").open() as file:
        run = pytrec_eval.parse_run(file)
    evaluator = pytrec_eval.RelevanceEvaluator({"q1": {"d1": 1}, "q2": {"d5": 1}}, {"map", "ndcg_cut_1"})
    expected = evaluator.evaluate(run)
    means = {
        ours: sum(v[theirs] for v in expected.values()) / 2
        for ours, theirs in (("AP", "map"), ("nDCG@1", "ndcg_cut_1"))
    }
    assert {record["measure"]: record["value"] for record in records} == pytest.approx(means)
    assert records[0]["conditions"]["search"] == "imported"
    (tmp_path / "short.json").write_text('{"q1": {"d1": 1}}')
    both = beirnl(*asked, "--run", tmp_path / "short.json", "--measures", "AP")
    assert "mine: cut from 2 to 1 hit a query, the depth of short" in both.stdout
    assert "short.json: 1 of 2 queries is missing and counts 0: q2" in both.stdout.replace("\n", " ")
    markdown = beirnl(*asked, "--format", "markdown").stdout
    assert markdown.startswith("# test\n")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--dataset", "scifact"], "there is neither a model nor a run; give --model or --run"),
        (
            ["--model", "BM25", "--dataset", "/absent"],
            "error: /absent: there is no such folder; give a folder",
        ),
        (
            ["--model", "BM25", "--dataset", "SET", "--profile", "beir"],
            "evaluation.profile: must be 'paper' or",
        ),
        (
            ["--model", "BM25", "--dataset", "SET", "--measures", "nDCG10"],
            "unknown measure 'nDCG10'; did you mean",
        ),
        (["--model", "BM25", "--qrels", "q.tsv"], "--qrels goes with --run alone"),
        (["--run", "absent.trec", "--dataset", "SET"], "absent.trec: there is no such run file"),
        (["--model", "BM25", "--dataset", "SET", "--split", "dev"], "has no split 'dev' (present: test)"),
        (["--model", "BM25", "--dataset", "SET", "--language", "klingon"], "klingon"),
    ],
)
def test_mistakes_are_one_line_and_name_no_file_that_is_not_there(place, tmp_path, arguments, said):
    arguments = [str(place / "set") if argument == "SET" else argument for argument in arguments]
    done = beirnl("evaluate", *arguments, "--workspace", tmp_path, check=2)
    assert said in done.stderr and done.stderr.count("\n") == 1 and "evaluate.toml" not in done.stderr
    assert not (tmp_path / "artifacts").exists()


def test_from_python_mistakes_are_errors(place):
    with pytest.raises(ConfigError, match="give --dataset"):
        evaluate("BM25")
    with pytest.raises(BeirnlError, match="unknown measure"):
        evaluate("BM25", place / "set", measures=["nDCG10"])


def test_the_package_stays_light():
    code = (
        "import sys, beirnl; assert 'beirnl.api' not in sys.modules; beirnl.evaluate; print(len(sys.modules))"
    )
    heavy = "import sys, beirnl; beirnl.evaluate; print({'torch', 'ray', 'polars'} & set(sys.modules))"
    for program, said in ((code, None), (heavy, "set()")):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
        )
        assert said is None or done.stdout.strip() == said
    with pytest.raises(ImportError):
        from beirnl import evaluat  # noqa: F401


def test_help_teaches_with_examples():
    said = beirnl("evaluate", "--help").stdout
    assert "--model all-MiniLM-L6-v2" in said and "--qrels" in said
