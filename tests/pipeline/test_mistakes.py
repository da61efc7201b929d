"""Mistakes that people make: found before the work begins, or said beside the result; never a traceback."""

import os
import re
import subprocess
import sys

import pytest
from beir_folder import doc, query, write_beir
from running import BM25, ENVIRONMENT, beirnl, dataset, experiment, report, run, system
from translating import command

from beirnl.config import load_experiment
from beirnl.errors import BeirnlError, DataError
from beirnl.graph import build_graph
from beirnl.pipeline import Pipeline
from beirnl.store.workspace import Workspace

MOCK = '[translation]\nto = "nl"\nengine = "mock"\n'


@pytest.fixture
def folder(tmp_path):
    return write_beir(tmp_path / "set", [doc("a", "alpha")], [query("q", "alpha")], [("q", "a", 1)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BM25 + '[evaluation]\nmeasures = ["nDGC@10"]\n', "nDCG"),
        (BM25 + MOCK.replace("nl", "en"), "into itself"),
        (BM25 + MOCK.replace("mock", "transformers"), "needs a model"),
        (BM25 + MOCK.replace("mock", "vlm"), "vllm"),
        (BM25 + MOCK + 'query_prompt = "paper-querry"\n', "paper-query"),
        (BM25.replace("\n", '\nlanguages = ["nl"]\n', 1), "runs on no dataset"),
        (system("bm25", "b", analyzer="duch"), "dutch"),
    ],
)
def test_mistakes_are_found_before_the_work(tmp_path, folder, text, expected):
    loaded = load_experiment(experiment(tmp_path, dataset(folder) + text))
    with pytest.raises(BeirnlError, match=expected):
        build_graph(loaded, Workspace(loaded.workspace_path))
    assert not (tmp_path / "workspace" / "artifacts").exists()


def test_an_empty_corpus_and_queries_that_nothing_judges(tmp_path):
    empty = write_beir(tmp_path / "empty", b"", [query("q")], [("q", "a", 1)])
    with pytest.raises(DataError, match=r"corpus\.jsonl: holds no documents"):
        run(experiment(tmp_path, dataset(empty) + BM25))
    other = write_beir(tmp_path / "other", [doc("a")], [query("q")], [("unknown", "a", 1)])
    with pytest.raises(DataError, match=r"queries\.jsonl: holds none of the 1 query that"):
        run(experiment(tmp_path, dataset(other) + BM25))
    unjudged = write_beir(tmp_path / "unjudged", [doc("a")], [query("q")], [])
    with pytest.raises(DataError, match=r"test\.tsv: holds no judgements"):
        run(experiment(tmp_path, dataset(unjudged) + BM25))


def test_a_measure_deeper_than_the_run_is_said(tmp_path, folder):
    text = BM25 + '[evaluation]\nmeasures = ["nDCG@10", "R@1000"]\n'
    found = report(experiment(tmp_path, dataset(folder) + text))
    assert [line for line in found.warnings if "raise depth" in line] == [
        "R@1000 of bm25 sees 100 hits a query; raise depth to 1000"
    ]


def test_a_translation_is_among_the_conditions(tmp_path, folder):
    found = report(experiment(tmp_path, dataset(folder) + BM25 + MOCK))
    conditions = {r.language: r.conditions.model_dump() for r in found.records}
    assert conditions["nl"]["translated_from"] == "en" and conditions["nl"]["translation_engine"] == "mock"
    assert "translated_from" not in conditions["en"]


def test_a_report_of_an_unfinished_run_says_so(tmp_path, folder):
    done = beirnl("report", experiment(tmp_path, dataset(folder) + BM25), "--format", "json")
    assert done.stdout.strip() == "[]" and "not finished" in done.stderr


def test_only_is_checked_also_when_all_is_done(tmp_path, folder):
    path = experiment(tmp_path, dataset(folder) + BM25)
    run(path)
    assert "no stage 'indx'" in beirnl("run", path, "--only", "indx", check=2).stderr


@pytest.mark.parametrize("place", ["/dev/full", "/proc/nowhere/report.md", "/dev/null/report.md"])
def test_a_report_that_cannot_be_written(tmp_path, folder, place):
    path = experiment(tmp_path, dataset(folder) + BM25)
    run(path)
    done = beirnl("report", path, "--format", "markdown", "--output", place, check=2)
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("{}/file", "{}/file: is a file; set workspace to a folder"),
        ("{}/file/workspace", "{}/file: is a file; set workspace to a folder"),
        ("/proc/workspace", "/proc/workspace: cannot be made; choose another place (workspace in"),
        ("{}/" + 300 * "w", "has too long a name; use shorter names, or a workspace nearer to the root"),
    ],
)
def test_a_workspace_that_cannot_be_one(tmp_path, folder, place, expected):
    (tmp_path / "file").write_text("")
    path = experiment(tmp_path, dataset(folder) + BM25)
    path.write_text(path.read_text().replace(f"{tmp_path}/workspace", place.format(tmp_path)))
    line = command("run", path).error
    assert expected.format(tmp_path) in line and not re.search(r"/\.\S+\.[0-9a-f]{8}", line)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run"], "Missing argument 'EXP'; see `beirnl run --help`"),
        (["run", "--foo", "x"], "No such option: --foo; see `beirnl run --help`"),
        (["run", "x", "y"], "Got unexpected extra argument(s) (y); see `beirnl run --help`"),
        (["run", "x", "--workers", "0"], "see `beirnl run --help`"),
        (["report", "x", "--format", "foo"], "see `beirnl report --help`"),
        (["audit", "smaple"], "see `beirnl audit --help`"),
        (["models"], "Missing command; see `beirnl models --help`"),
        (["rnu"], "No such command 'rnu'"),
    ],
)
def test_a_command_that_cannot_be_understood_is_one_line(words, expected):
    said = command(*words)
    assert expected in said.error and said.err.count("\n") == 1 and said.out == ""


def test_no_command_shows_what_there_is():
    said = command()
    assert said.code == 0 and "translate" in said.out and said.err == ""


def test_closed_standard_input(tmp_path, folder):
    path = experiment(tmp_path, dataset(folder) + BM25)
    command = f"{sys.executable} -m beirnl.cli plan {path} <&-"
    done = subprocess.run(
        command, shell=True, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_an_interrupt_says_how_to_go_on(tmp_path, folder):
    program = (
        "import os, signal, sys; from beirnl import cli\n"
        "cli.run.load = lambda path: os.kill(os.getpid(), signal.SIGINT)\n"
        "cli.main(['plan', 'x'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True
    )
    assert done.returncode == 130 and "run the same command again" in done.stderr


def api_system(**settings):
    return system("dense", "api", model="text-embedding-3-large", **settings)


def test_the_key_of_an_encoder_behind_an_api_is_missed_before_anything_is_done(tmp_path, folder):
    path = experiment(tmp_path, dataset(folder) + api_system() + BM25)
    done = beirnl("run", path, check=2, OPENAI_API_KEY="")
    assert "text-embedding-3-large: the environment variable OPENAI_API_KEY is not set; put" in done.stderr
    assert done.stderr.count("\n") == 1 and not (tmp_path / "workspace" / "artifacts").exists()
    beirnl("run", path, "--only", "search-bm25", OPENAI_API_KEY="")  # which asks no API


def spec_of(path, stage):
    loaded = load_experiment(path)
    graph = build_graph(loaded, Workspace(loaded.workspace_path))
    return [node.spec for node in graph.nodes.values() if node.stage == stage]


def test_the_language_adapter_is_that_of_the_texts_or_of_the_system(tmp_path, folder):
    text = dataset(folder, language="nl") + BM25
    late = system("late", "late", model="colbert-xm", first="bm25")
    (spec,) = spec_of(experiment(tmp_path, text + late), "rerank")
    assert spec.reranker.language == "nl"
    (spec,) = spec_of(experiment(tmp_path, text + late + 'language_adapter = "de_DE"\n'), "rerank")
    assert spec.reranker.language == "de_DE"
    specs = spec_of(experiment(tmp_path, text + system("late", "all", model="colbert-xm")), "embed-tokens")
    assert {spec.encoder.language for spec in specs} == {"nl"}


def test_an_index_of_another_version_of_its_analyzer_is_not_read(tmp_path, folder, monkeypatch):
    from beirnl.retrieval import analysis

    path = experiment(tmp_path, dataset(folder) + BM25)
    run(path)
    assert {status.state for status in Pipeline.of(load_experiment(path)).plan()} == {"done"}
    newer = analysis.ANALYZERS["english"]._replace(version=99)
    monkeypatch.setitem(analysis.ANALYZERS, "english", newer)
    analysis.analyzer.cache_clear()
    try:
        pipeline = Pipeline.of(load_experiment(path))
        states = {status.node.stage: status.state for status in pipeline.plan()}
        assert states["import-corpus"] == "done" and states["index"] == "pending"
        assert states["search-bm25"] == states["evaluate"] == "waiting"
    finally:
        analysis.analyzer.cache_clear()


@pytest.mark.parametrize("vectors", ["float32", "float16", "int8"])
def test_how_vectors_are_stored_is_among_the_conditions(tmp_path, folder, tiny_encoder, vectors):
    kinds = {name: {"search": name} for name in ("exact", "ann")}
    systems = "".join(
        system("dense", name, model=tiny_encoder, vectors=vectors, **more) for name, more in kinds.items()
    )
    found = report(experiment(tmp_path, dataset(folder) + systems + BM25))
    conditions = {record.system: record.conditions.model_dump() for record in found.records}
    assert conditions["exact"]["vectors"] == conditions["ann"]["vectors"] == vectors
    assert "vectors" not in conditions["bm25"]
