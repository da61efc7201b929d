"""Questions of real exams (EXAMS, Italian): what the filters say of them, and who can answer them."""

import json
import re
from collections import Counter
from functools import cache

import pyarrow as pa
import pytest
from exam_questions import READER, Setup, differences, exam_questions, recounted, usable, write_exams
from running import run as run_experiment
from running import system
from support import shared

from beirnl import registry
from beirnl.errors import DataError
from beirnl.llm.answer_key import AnswerKeyLlm, write_key
from beirnl.llm.protocol import in_order
from beirnl.rag.answers import answered_table, plan_prompts, replies_table, requests_for
from beirnl.rag.questions import read_questions
from beirnl.rag.questions.filters import Given, Seen, judge
from beirnl.rag.questions.reading import Draft
from beirnl.schema import RUN
from beirnl.specs import AnswerSpec, LlmSpec, ModelRef, QuestionSpec

CROATIAN = re.compile(r"(K[oa]j|Kak|Što |U (kojemu|čemu)|Između|Pozorno)")  # how the questions in it begin


@cache
def exams() -> list[dict]:
    return exam_questions(shared("exams_it"))


@cache
def paragraphs() -> dict[str, str]:
    lines = shared("exams_it", "exams_it.passages.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["_id"]: row["text"] for row in map(json.loads, lines)}


def test_the_filters_catch_what_is_wrong_in_real_exams_and_little_else():
    spec = QuestionSpec(llm=LlmSpec(engine="mock"), prompt="p", template="{text}", count=1, language="it")
    seen, found, croatian = Seen(spec.similarity), Counter(), 0
    for row in exams():
        options = tuple(row["options"])
        draft = Draft(" ".join(row["question"].split()), options, (row["answer"],), ("",) * len(options))
        status = judge(draft, Given(spec, ""), seen)
        if status == "ok":
            seen.add(draft.question)
        found.update(status.split(","))
        assert ("number of options" in status) == (len(options) != 4)
        croatian += bool(CROATIAN.match(draft.question))
        assert "language" not in status or CROATIAN.match(draft.question)
        assert ("equal options" in status) == (len(set(options)) < len(options))
    assert (found["language"], found["equal options"]) == (28, 3)
    assert croatian == 29
    assert found["near-duplicate"] <= 12 and found["answer given away"] + found["refers to the text"] <= 3


def test_the_reader_is_right_on_just_the_questions_whose_answer_it_is_shown(tmp_path):
    """On three sets of passages: those of the question, of them every second, and those of its neighbour."""
    rows = [row for row in exams() if len(row["options"]) == 4 and len(set(row["options"])) == 4][:400]
    own = [
        {name: row[name] for name in ("id", "question", "options")} | {"answer_index": row["answer"]}
        for row in rows
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, own)))
    questions = read_questions(tmp_path / "own.jsonl")
    assert questions["answer"].to_pylist() == [row["answer"] for row in rows]
    shown = {
        "own": {row["id"]: row["passage_ids"] for row in rows},
        "half": {row["id"]: row["passage_ids"][::2] for row in rows},
        "other": {
            row["id"]: other["passage_ids"] for row, other in zip(rows, rows[1:] + rows[:1], strict=True)
        },
    }
    runs = {system: run(ranked) for system, ranked in shown.items()}
    texts = dict.fromkeys(shown, paragraphs())
    llm = LlmSpec(engine="answer-key", model=key(tmp_path, questions), max_model_len=1 << 20)
    spec = AnswerSpec(
        llm=llm, prompt="answer", template=registry.prompt("answer"), ks=(0, 1, 5), permutations=2
    )
    plan = plan_prompts(questions, runs, texts, spec, len)
    answers = in_order(AnswerKeyLlm(llm), list(requests_for(plan.prompts, questions, texts, spec)))
    replies = replies_table(plan.references, answered_table(plan.prompts, questions, answers), "key")
    by_id = {row["id"]: row for row in rows}
    right = Counter()
    for reply in replies.to_pylist():
        row = by_id[reply["question_id"]]
        answer = row["options"][row["answer"]].lower().split()
        passages = shown[reply["system"]][row["id"]][: reply["k"]] if reply["k"] else []
        known = any(" ".join(answer) in " ".join(paragraphs()[name].lower().split()) for name in passages)
        assert (reply["answer"] == row["answer"]) == known
        right[reply["system"], reply["k"]] += known
    assert right["own", 5] > right["own", 1] > 0 and right["own", 5] > right["other", 5] and right["", 0] == 0


def test_accuracies_are_the_recall_of_the_answer_and_an_encoder_never_differs_from_itself(tmp_path):
    """Through the pipeline, on the first questions and their paragraphs; counts and tests are scipy's."""
    twins = ("USE", "USE-again")
    tables = system("bm25", "BM25") + "".join(
        system("dense", name, model="use-multilingual-v3") for name in twins
    )
    pipeline = run_experiment(write_exams(tmp_path, shared("exams_it"), tables, 60, 5))
    assert list(differences(pipeline, tmp_path, twins)) == []
    right = {setup: sum(marks) for setup, marks in recounted(pipeline, tmp_path).items()}
    assert 60 > right[Setup("BM25", 10)] > right[Setup("BM25", 1)] > 9
    assert right[Setup("BM25", 5)] != right[Setup("USE", 5)] and right[Setup("", 0)] == 0
    answering = pipeline.graph.answering
    (receipt,) = answering.plans[READER].artifact(pipeline.workspace).receipts()
    assert receipt.counts["requests, naive"] == 60 * 3 * 7
    assert receipt.counts["requests, distinct"] <= 60 * (1 + 2 * 6)  # twins ask the same


def test_questions_of_the_exams_have_three_to_five_options_and_three_are_refused(tmp_path):
    file, number = tmp_path / "exams.jsonl", Counter()
    for row in exams():
        one = {name: row[name] for name in ("id", "question", "options")} | {"answer_index": row["answer"]}
        file.write_text(json.dumps(one))
        try:
            (read,) = read_questions(file, options=None).to_pylist()
        except DataError as error:
            number[error.what.partition("options")[2][-5:]] += 1
            continue
        assert (read["answer"], len(read["options"])) == (row["answer"], len(row["options"]))
        number[len(read["options"])] += 1
    assert number == {3: 136, 4: 1110, 5: 7, "equal": 3} and len(list(usable(shared("exams_it")))) == 1253
    file.write_text(json.dumps({"question": "?", "options": list("abc"), "answer": "a"}))
    with pytest.raises(DataError, match=r"exams\.jsonl:1: has 3 options, not 4"):
        read_questions(file)


def run(ranked: dict[str, list[str]]) -> pa.Table:
    found = [
        (query, name, -float(place)) for query, names in ranked.items() for place, name in enumerate(names)
    ]
    return pa.table([list(column) for column in zip(*found, strict=True)], schema=RUN)


def key(folder, questions) -> ModelRef:
    return ModelRef(name="key", source=f"path:{write_key(folder / 'key', questions.to_pylist())}")
