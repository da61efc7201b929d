"""Bad inputs of question answering, through the whole pipeline: each is refused, counted or told."""

import contextlib
import json
import re

import pytest
from rag_experiments import Engine, counted, rag, replies, write_questions, write_texts
from running import experiment, run, system

from beirnl.api import run_nodes
from beirnl.config import load_experiment
from beirnl.errors import DataError
from beirnl.llm.protocol import Answer
from beirnl.pipeline import Pipeline
from beirnl.reporting import gather
from beirnl.stages.questions import questions_of

BM25 = system("bm25", "BM25")
TEXTS = {
    "a.txt": "Windmills near Kinderdijk pumped water from the polders into the river for three centuries.",
    "old/a.txt": "The violin maker Stradivari varnished spruce with a recipe which nobody could ever repeat.",
    "c.txt": "Beekeepers move their hives at night, because every worker is then back inside the colony.",
    "d.txt": "Glaciers carry boulders over long distances and leave moraines behind when climates warm.",
    "e.txt": "Lighthouses were identified by the rhythm of flashes, which captains looked up in lists.",
    "f.txt": "Porcelain was fired twice, first without glaze and afterwards with feldspar at more heat.",
    "g.txt": "Printers in Antwerp set almanacs from lead type, which apprentices sorted back every night.",
}


def own(number=4, of=4, **change):
    """Own questions of so many options; the first one is changed."""
    rows = [
        {"question": f"Which of these is number {n}?", "answer_index": n % of}
        | {"options": [f"{n} of {place}" for place in range(of)]}
        for n in range(number)
    ]
    return [rows[0] | change, *rows[1:]]


def options_of(*texts, right=(0,), flag=True):
    return [
        {"text": text, "is_correct": flag if place in right else not flag if flag is True else "False"}
        | {"explanation": f"{text} is what it is."}
        for place, text in enumerate(texts)
    ]


ASKED = "Which thing comes first of all in this place"
#: What a model writes, by the document that it is shown, and under which name it is refused.
WRITTEN = {
    "Windmills": (options_of("one", "one", "three", "four"), "equal options"),
    "Stradivari": (options_of("one", "two", "three", "four", right=()), "not exactly one correct"),
    "Beekeepers": (options_of("one", "two", "three", "four", right=(1, 2)), "not exactly one correct"),
    "Glaciers": (options_of("one", "two", "three", "four", flag="True"), ""),
    "Lighthouses": (options_of("five", "six", "seven", "eight"), ""),  # in a fence of Markdown
    "Porcelain": (options_of("one", "two", "three", "four"), "malformed"),  # cut short
    "Printers": (options_of("one", "two", "three"), "number of options"),
}


def test_faulty_options_are_refused_and_counted_by_reason_and_asked_again(tmp_path, monkeypatch):
    def say(request):
        if request.choices:
            return "0"
        (name,) = [name for name in WRITTEN if name in request.last_text]
        options, _ = WRITTEN[name]
        written = json.dumps({"question": f"{ASKED} of {name}?", "options": options})
        return {"Lighthouses": f"Sure:\n```json\n{written}\n```", "Porcelain": written[:-30]}.get(
            name, written
        )

    engine = Engine(monkeypatch, say)
    folder = write_texts(tmp_path / "documents", TEXTS)
    questions = 'count = 7\nengine = "mock"\nmin_words = 5\nattempts = 2\nlanguage = "en"'
    pipeline = run(experiment(tmp_path, rag(folder, questions=questions) + BM25))
    answering = pipeline.graph.answering
    made = questions_of(answering.questions.artifact(pipeline.workspace)).to_pylist()
    assert {row["doc_id"] for row in made} == {"d.txt", "e.txt"}
    assert all(row["options"][row["answer"]] in ("one", "five") for row in made)
    (receipt,) = answering.generated.artifact(pipeline.workspace).receipts()
    refused = {name: number for name, number in receipt.counts.items() if name.startswith("refused: ")}
    wanted = [f"refused: {why}" for _, why in WRITTEN.values() if why]
    assert refused == {why: 2 * wanted.count(why) for why in wanted}  # each is asked twice
    assert len([prompt for prompt in engine.prompts if ASKED not in prompt]) == 2 + 2 * 5
    told = gather(pipeline)
    assert any("2 questions were made; refused attempts: " in note for note in told.notes)
    assert any("2 of 7 questions" in line for line in told.warnings)


@pytest.mark.parametrize("away", [("Windmills", "Printers"), tuple(WRITTEN)])
def test_documents_of_which_the_engine_made_no_question_are_asked_by_the_next_run(
    tmp_path, monkeypatch, away
):
    def say(request):
        if request.choices:
            return "0"
        (name,) = [name for name in WRITTEN if name in request.last_text]
        if name in gone:
            return Answer("", "error", error="the server is away")
        return json.dumps({"question": f"{ASKED} of {name}?", "options": options_of(*"abcd")})

    gone, engine = away, Engine(monkeypatch, say)
    folder = write_texts(tmp_path / "documents", TEXTS)
    questions = 'count = 7\nengine = "mock"\nmin_words = 5\nattempts = 1\nlanguage = "en"'
    file = experiment(tmp_path, rag(folder, questions=questions) + BM25)
    none_made = pytest.raises(DataError, match=r"there are no questions .*error 7")
    with none_made if len(away) == len(TEXTS) else contextlib.nullcontext():
        run(file)
    pipeline = Pipeline.of(load_experiment(file))
    (failed,) = [status for status in pipeline.plan() if status.node.stage == "generate-questions"]
    assert failed.failed == len(away)
    gone = ()
    run_nodes(pipeline, None, pipeline.wanted(None))
    made = questions_of(pipeline.graph.answering.questions.artifact(pipeline.workspace))
    assert made.num_rows == len(TEXTS) == len({reply["question_id"] for reply in replies(pipeline)})
    assert len(engine.prompts) == len(set(engine.prompts)) + len(away)  # nothing else is asked twice
    assert not any(status.failed for status in pipeline.plan())


def test_answers_are_read_where_they_are_unambiguous_and_else_counted_as_invalid(tmp_path, monkeypatch):
    said = ["2", " 2.", "Answer: 2", "two", "7", ""]
    folder = write_texts(tmp_path / "documents", TEXTS)
    questions = write_questions(tmp_path / "own.json", own(6))
    Engine(monkeypatch, lambda request: said[int(re.search(r"number (\d)", request.last_text)[1])])
    pipeline = run(experiment(tmp_path, rag(folder, questions=questions) + BM25))
    given = {(row["question_id"], row["k"]): row["answer"] for row in replies(pipeline)}
    for k in (0, 1, 2):
        assert [given[f"own-{n + 1}", k] for n in range(6)] == [2, 2, 2, 2, -1, -1]
    assert counted(pipeline, "answers")["invalid"] == 2 * 3
    (table,) = [table for table in gather(pipeline).tables if table.title == "Invalid answers"]
    assert [cell.text for cell in table.rows[0]][2:] == ["0.333"] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": ["a", "b", "c"]}, "own.json:1: has 3 options, not 4"),
        ({"options": list("abcde")}, "own.json:1: has 5 options, not 4"),
        ({"answer_index": 4}, "own.json:1: the correct answer 4 is not among the options"),
        ({"doc": "a/old.txt"}, "own.json:1: there is no document 'a/old.txt'"),
    ],
)
def test_a_question_that_is_wrong_ends_the_run_with_its_line(tmp_path, change, message):
    folder = write_texts(tmp_path / "documents", TEXTS)
    questions = write_questions(tmp_path / "own.json", own(**change))
    with pytest.raises(DataError) as caught:
        run(experiment(tmp_path, rag(folder, questions=questions) + BM25))
    assert message in str(caught.value)
    asked = (tmp_path / "workspace" / "artifacts").exists()
    assert asked == ("doc" in change), "all but the document is known before anything is made or asked"


def test_questions_of_any_number_of_options_are_compared_and_one_number_is_told_as_bias(tmp_path):
    """Under all orders of the options, a reader that always says 0 is right as often as each is first."""
    folder = write_texts(tmp_path / "documents", TEXTS)
    rows = [row for number in (2, 3, 4, 5) for row in own(3, number)]
    rows = [row | {"question": f"{row['question'][:-1]}, at {n}?"} for n, row in enumerate(rows)]
    questions = write_questions(tmp_path / "own.json", rows) + "\noptions = 0"
    (tmp_path / "key").mkdir()
    (tmp_path / "key" / "config.json").write_text('{"always": 0}')
    reader = f'[[rag.answers]]\nname = "zero"\nengine = "answer-key"\nmodel = "{tmp_path / "key"}"'
    pipeline = run(experiment(tmp_path, rag(folder, reader, questions, permutations=4) + BM25))
    made = replies(pipeline, "zero")
    assert len(made) == 3 * 3 * (2 + 3 + 4 + 4)
    told = gather(pipeline)
    assert any("zero says 0 in 100.0% of its valid answers" in line for line in told.warnings)
    (table,) = [table for table in told.tables if table.title.startswith("Accuracy by k")]
    rate = (1 / 2 + 1 / 3 + 1 / 4 + 1 / 4) / 4  # of five options four orders are asked
    assert [cell.text.split()[0] for cell in table.rows[0][1:]] == [f"{rate:.3f}"] * 3


def test_a_folder_in_which_nothing_can_be_read_says_why(tmp_path):
    folder = write_texts(tmp_path / "documents", {"x.xyz": "text", "empty.txt": " \n", "sub/y.json": "{"})
    (folder / "z.pdf").write_bytes(b"%PDF-1.7\nnothing more")
    with pytest.raises(DataError) as caught:
        run(experiment(tmp_path, rag(folder) + BM25))
    said = str(caught.value)
    assert "holds no document that can be read" in said and "\n" not in said
    for name, why in {
        "x.xyz": "unknown kind",
        "empty.txt": "holds no text",
        "y.json": "broken",
        "z.pdf": "",
    }.items():
        assert name in said and why in said


def test_two_documents_of_one_name_stay_apart(tmp_path):
    """A question names one of them, and only passages of that one count as its source."""
    folder = write_texts(tmp_path / "documents", TEXTS)
    rows = own(2)
    rows[0] |= {"question": "What did the violin maker varnish?", "doc": "old/a.txt"}
    rows[1] |= {"question": "What did the windmills pump?", "doc": "a.txt"}
    questions = write_questions(tmp_path / "own.json", rows)
    pipeline = run(experiment(tmp_path, rag(folder, questions=questions) + BM25))
    (one,) = pipeline.graph.answering.searched
    passages = one.passages.artifact(pipeline.workspace).table().to_pylist()
    assert {row["doc_id"] for row in passages} == set(TEXTS)
    assert len({row["id"] for row in passages}) == len(passages)
    (table,) = [table for table in gather(pipeline).tables if table.title.startswith("Recall of the source")]
    assert table.rows[0][1].text.startswith("1.000")
