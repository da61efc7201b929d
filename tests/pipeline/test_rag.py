"""Question answering from a folder of documents to a report; what fails, and what is killed."""

import json
import shutil
import signal
from collections import Counter

import pytest
from rag_experiments import (
    ANSWERS,
    ASKED,
    BM25,
    answered_keys,
    corpus,
    found,
    rag,
    replies,
    write_documents,
)
from running import beirnl, experiment, run, system
from running import report as reported
from support import ROOT

from beirnl.config import load_experiment
from beirnl.errors import BeirnlError
from beirnl.executors.local import LocalExecutor
from beirnl.llm.answer_key import write_key
from beirnl.pipeline import Pipeline
from beirnl.reporting import gather
from beirnl.stages.questions import questions_of


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "documents")


def test_from_documents_to_a_report(tmp_path, documents, tiny_encoder):
    systems = "".join(system("dense", name, model=tiny_encoder) for name in ("one", "same"))
    path = experiment(tmp_path, rag(documents, permutations=2) + BM25 + systems)
    pipeline = run(path)
    made = replies(pipeline)
    assert len(made) == 6 * 2 * (1 + 3 * 2)  # k = 0 is asked once for all systems
    by_system = {
        name: [(r["question_id"], r["k"], r["permutation"], r["answer"]) for r in made if r["system"] == name]
        for name in ("one", "same")
    }
    assert by_system["one"] == by_system["same"]
    keys = answered_keys(pipeline)
    assert max(Counter(keys).values()) == 1
    (receipt,) = pipeline.graph.answering.plans["mock"].artifact(pipeline.workspace).receipts()
    assert receipt.counts["requests, naive"] == 6 * 2 * 3 * 3
    assert len(keys) == 6 + receipt.counts["requests, distinct"]  # one of them for each question
    shown = gather(pipeline)
    assert any("broken.pdf" in line for line in shown.warnings)
    titles = [table.title for table in shown.tables]
    assert "Systems at k = 2, answered by mock" in titles and len(shown.parts) == 1
    (pairs,) = (table for table in shown.tables if table.title.startswith("All pairs"))
    same = next(row for row in pairs.rows if {row[0].text, row[1].text} == {"one", "same"})
    assert same[3].text == "1.0000" and same[5].text == "0 / 0 / 6"


def test_accuracy_is_the_recall_of_the_answer(tmp_path, documents, tiny_encoder):
    """A reader that is right exactly when a passage in its prompt holds the answer."""
    asked = [
        {"question": f"What goes with {ASKED[at]}?", "options": ANSWERS, "answer": at, "doc": name}
        for at, name in enumerate(["a.txt", "old/a.txt", "b.md", "c.html"])
    ]
    (tmp_path / "own.json").write_text(json.dumps(asked))
    key = write_key(tmp_path / "key", asked)
    reader = f'[[rag.answers]]\nname = "key"\nengine = "answer-key"\nmodel = "{key}"\n'
    own = rag(documents, reader, f'file = "{tmp_path / "own.json"}"')
    path = experiment(tmp_path, own + BM25 + system("dense", "tiny", model=tiny_encoder))
    pipeline = run(path)
    questions = questions_of(pipeline.graph.answering.questions.artifact(pipeline.workspace)).to_pylist()
    right = {q["id"]: q["options"][q["answer"]] for q in questions}
    correct = {q["id"]: q["answer"] for q in questions}
    ranked = {name: found(pipeline, name) for name in ("BM25", "tiny")}
    made = replies(pipeline, "key")
    assert len(made) == 4 * (1 + 2 * 2)
    for reply in made:
        question, k = reply["question_id"], reply["k"]
        shown = ranked[reply["system"]][question][:k] if k else []
        assert (reply["answer"] == correct[question]) == any(right[question] in text for text in shown), reply
    assert {r["answer"] == correct[r["question_id"]] for r in made if r["system"] == "tiny"} == {True, False}


@pytest.mark.parametrize("mode", ["own", "common"])
def test_a_model_that_cannot_be_loaded_does_not_end_the_others(tmp_path, documents, tiny_encoder, mode):
    whole = shutil.copytree(tiny_encoder, tmp_path / "whole")
    (weights,) = whole.rglob("model.safetensors")
    kept = weights.rename(tmp_path / "kept.safetensors")
    systems = BM25 + system("dense", "tiny", model=tiny_encoder) + system("dense", "other", model=whole)
    systems += system("dense", "absent", model=tmp_path / "absent")
    path = experiment(tmp_path, rag(documents) + f'[rag.passages]\nmode = "{mode}"\n' + systems)
    pipeline = run(path)
    assert {r["system"] for r in replies(pipeline)} == {"", "BM25", "tiny"}
    assert set(pipeline.graph.failed) == {"other", "absent"}
    rows = [
        row for table in gather(pipeline).tables for row in table.rows if row[0].text in ("other", "absent")
    ]
    assert len(rows) == 2 and all("failed: " in row[1].text for row in rows)
    assert set(Pipeline.of(load_experiment(path)).graph.failed) == {"other", "absent"}  # as reports see it
    before = len(answered_keys(pipeline))
    shutil.copy(kept, weights)
    again = Pipeline.of(load_experiment(path), again=True)
    again.run(LocalExecutor())
    assert {r["system"] for r in replies(again)} == {"", "BM25", "tiny", "other"}
    assert max(Counter(answered_keys(again)).values()) == 1 and len(answered_keys(again)) >= before


def test_a_killed_run_asks_nothing_twice(tmp_path, documents):
    path = experiment(tmp_path, rag(documents) + BM25)
    kill = {"BEIRNL_FAILPOINT": "after-answer:0:kill"}
    for begun in ("questions", "answer"):
        killed = beirnl("rag", "run", path, "--only", begun, check=None, **kill)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        if begun == "questions":
            beirnl("run", path, "--only", begun)
    pipeline = Pipeline.of(load_experiment(path))
    assert len(answered_keys(pipeline)) == 6 + 1
    done = beirnl("run", path)
    assert "Systems at k = 2" in done.stdout
    keys = answered_keys(pipeline)
    (receipt,) = pipeline.graph.answering.plans["mock"].artifact(pipeline.workspace).receipts()
    assert len(keys) == len(set(keys)) == 6 + receipt.counts["requests, distinct"]
    assert "everything is done already" in beirnl("run", path).stderr


def test_fewer_questions_than_asked_for_and_those_without_passages(tmp_path, documents):
    questions = 'count = 9\nengine = "mock"\nanswerable = "remove"'
    shown = reported(experiment(tmp_path, rag(documents, questions=questions) + BM25))
    assert any("6 of 9 questions: of 6 documents 0 are too short" in line for line in shown.warnings)
    removed = [note for note in shown.notes if note.startswith("Removed: ")]
    assert len(removed) == 1 and any(note.startswith("no passages, k = 0, mock: ") for note in shown.notes)


def test_questions_that_nobody_can_make_end_the_run(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.txt").write_text("Too short.")
    done = beirnl("run", experiment(tmp_path, rag(folder) + BM25), check=2)
    assert "there are no questions (0 of 6 questions: of 1 document 1 is too short" in done.stderr
    (folder / "a.txt").unlink()
    done = beirnl("run", experiment(tmp_path, rag(folder) + BM25), check=2)
    assert "holds no files" in done.stderr and "Traceback" not in done.stderr


def test_what_the_file_names_must_be_there_and_apart(tmp_path, documents):
    wrong = {
        "is no folder": rag(tmp_path / "none") + BM25,
        "the workspace lies within the documents": rag(tmp_path) + BM25,
        "q.csv: is not there": rag(documents, questions='file = "q.csv"') + BM25,
        "unknown prompt 'anser'": rag(documents, '[[rag.answers]]\nengine = "mock"\nprompt = "anser"') + BM25,
        "the corpora 'a' and 'b' have the same documents and questions": rag(
            None, more=corpus("a", documents) + corpus("b", documents)
        )
        + BM25,
        "set model under [[rag.answers]]": rag(documents, '[[rag.answers]]\nengine = "openai"') + BM25,
    }
    for expected, text in wrong.items():
        with pytest.raises(BeirnlError) as caught:
            Pipeline.of(load_experiment(experiment(tmp_path, text)))
        assert expected in str(caught.value)


@pytest.mark.slow
def test_the_sample_with_a_small_language_model(tmp_path):
    """The shipped experiment: the model's questions pass the filters, and its answers can be read."""
    shipped = (ROOT / "experiments" / "rag-sample.toml").read_text("utf-8")
    path = tmp_path / "rag-sample.toml"
    text = shipped.replace("../workspace/rag-sample", str(tmp_path / "workspace"))
    path.write_text(text.replace("../beirnl/sample", str(ROOT / "beirnl" / "sample")))
    pipeline = run(path)
    made = replies(pipeline, "gemma-3-270m")
    questions = {reply["question_id"] for reply in made}
    assert len(questions) >= 4
    assert {(r["system"], r["k"]) for r in made} == {
        ("", 0),
        *((name, k) for name in ("BM25", "all-MiniLM-L6-v2", "multilingual-e5-small-q4") for k in (1, 3)),
    }
    assert len(made) == 7 * len(questions)
    assert sum(reply["answer"] >= 0 for reply in made) > 0.9 * len(made)
    assert all(len(reply["logprobs"]) in (0, 4) for reply in made)
    assert max(Counter(answered_keys(pipeline)).values()) == 1
