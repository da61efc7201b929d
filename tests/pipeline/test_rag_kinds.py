"""Question answering with several models, corpora and kinds of systems, with budgets and open answers."""

import json
import re
from collections import Counter

import pytest
from fault_server import FaultServer
from rag_experiments import (
    ANSWERS,
    ASKED,
    BM25,
    MOCK,
    TEXTS,
    corpus,
    journal,
    rag,
    replies,
    write_documents,
)
from running import beirnl, experiment, run, system

from beirnl.config import load_experiment
from beirnl.estimates import answers
from beirnl.executors.local import LocalExecutor
from beirnl.llm.answer_key import write_key
from beirnl.llm.local import estimate_tokens
from beirnl.llm.mock_questions import GAP
from beirnl.pipeline import Pipeline
from beirnl.rag.answers.prompts import passage_block
from beirnl.rag.prompts import read_answer_prompt
from beirnl.reporting import gather
from beirnl.stages.questions import questions_of
from beirnl.store.parquet import read_table


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "documents")


def own_questions(path):
    """Questions about the first four documents, in a file; what is in it."""
    asked = [
        {"question": f"What goes with {ASKED[at]}?", "options": ANSWERS, "answer": at, "doc": name}
        for at, name in enumerate(["a.txt", "old/a.txt", "b.md", "c.html"])
    ]
    path.write_text(json.dumps(asked))
    return asked


def texts_of(pipeline, searched):
    rows = searched.passages.artifact(pipeline.workspace).table().to_pylist()
    return {row["id"]: row["text"] for row in rows}


def test_every_corpus_has_results_of_its_own(tmp_path, documents, tiny_encoder):
    """Two corpora beside each other are answered as each is by itself, and a system is made ready once."""
    second = tmp_path / "second"
    second.mkdir()
    for at in (1, 2, 3):
        (second / f"{at}.txt").write_text(TEXTS[at])
    systems = BM25 + system("dense", "tiny", model=tiny_encoder)
    both = corpus("first", documents) + corpus("second", second, language="nl")
    path = experiment(tmp_path, rag(None, more=both) + systems)
    pipeline = run(path)
    assert list(pipeline.graph.corpora) == ["first", "second"]
    assert sum(node.stage == "reader" for node in pipeline.graph.nodes.values()) == 2
    shown = gather(pipeline)
    titles = [(table.section, table.title) for table in shown.tables]
    assert titles[0] == ("All corpora", "Accuracy by corpus at k = 2, answered by mock")
    assert [section for section, title in titles if title.startswith("Systems at k = 2")] == [
        "first: Which system",
        "second: Which system",
    ]
    ids = [name for plot in shown.plots for name in re.findall(r'\bid="([^"]+)"', plot.svg)]
    assert len(ids) == len(set(ids)) and len(shown.parts) == 1
    assert "mock, first" in shown.parts[0].html and "mock, second" in shown.parts[0].html
    for number, (name, folder) in enumerate([("first", documents), ("second", second)]):
        alone = tmp_path / f"{name}-alone"
        alone.mkdir()
        language = {"language": "nl"} if number else {}
        single = run(experiment(alone, rag(folder, **language) + systems))
        assert replies(single) == replies(pipeline, corpus=name)
        assert [row[1 + number].text for row in shown.tables[0].rows] == [
            next(row[1].text for row in gather(single).tables[0].rows if row[0].text == system)
            for system in ("BM25", "tiny")
        ]


def test_several_models_answer_questions_made_and_brought(tmp_path, documents, tiny_encoder):
    """Pairs of (LLM, system) are one family (BES4RAG, Figure 5); both kinds of questions agree (Table 2)."""
    key = write_key(tmp_path / "key", own_questions(tmp_path / "own.json"))
    reader = f'[[rag.answers]]\nname = "key"\nengine = "answer-key"\nmodel = "{key}"\n'
    questions = f'count = 6\nengine = "mock"\nfile = "{tmp_path / "own.json"}"'
    systems = BM25 + system("dense", "tiny", model=tiny_encoder)
    described = tmp_path / "descriptions.csv"
    described.write_text("file,description\na.txt,Mills of Holland\n")
    text = rag(documents, f"{MOCK}\n{reader}", questions, descriptions=str(described))
    pipeline = run(experiment(tmp_path, text + systems))
    answering = pipeline.graph.answering
    assert list(answering.answers) == ["mock", "key"]
    shown = texts_of(pipeline, answering.searched[0])
    assert shown["a.txt#0"].startswith("Mills of Holland\n") and not shown["b.md#0"].startswith("Mills")
    report = gather(pipeline)
    tables = {table.title: table for table in report.tables}
    pairs = tables["All pairs at k = 2: all LLMs"]
    everyone = {f"{name} ({llm})" for name in ("BM25", "tiny") for llm in ("mock", "key")}
    assert len(pairs.rows) == 6 and {cell.text for row in pairs.rows for cell in row[:2]} == everyone
    held = {llm: accuracy(pipeline, llm, "tiny", 2) for llm in ("mock", "key")}
    row = next(row for row in pairs.rows if {cell.text[:5] for cell in row[:2]} == {"tiny "})
    first, second = (cell.text[6:-1] for cell in row[:2])
    assert row[2].order == pytest.approx(held[first] - held[second])
    assert {"Agreement, answered by mock", "Accuracy by set, answered by mock"} <= set(tables)
    sets = tables["Accuracy by set, answered by mock"]
    assert [column.group for column in sets.columns[1::3]] == ["manual (4 questions)", "generated (6)"]
    costs = tables["Accuracy against cost"]
    assert len(costs.rows) == 4 and all(row[3].order for row in costs.rows)  # tokens of a prompt
    assert [row[5].text for row in costs.rows if row[1].text == "tiny"] == ["32", "32"]
    assert sum(plot.title.startswith("Accuracy against k") for plot in report.plots) == 3


def all_questions(pipeline):
    return questions_of(pipeline.graph.answering.questions.artifact(pipeline.workspace)).to_pylist()


def accuracy(pipeline, llm, name, k):
    right = {question["id"]: question["answer"] for question in all_questions(pipeline)}
    made = [r for r in replies(pipeline, llm) if (r["system"], r["k"]) == (name, k)]
    return sum(reply["answer"] == right[reply["question_id"]] for reply in made) / len(right)


def test_a_late_system_and_an_api_within_a_budget_of_tokens(tmp_path, documents, tiny_encoder):
    """Each prompt holds the passages in order of rank, as many whole ones as the budget does."""
    budget = 45
    with FaultServer() as server:
        systems = BM25 + system("late", "late", model=tiny_encoder)
        systems += system("dense", "api", model="mock", engine="openai", max_tokens=30)
        systems += f'[system.server]\nbase_url = "{server.url}/v1"\napi_key_env = ""\n'
        cut = f"[rag.passages]\nsize = 12\noverlap = 3\nbudget = {budget}\n"
        pipeline = run(experiment(tmp_path, rag(documents, more=cut) + systems))
        assert server.counts.answered
    answering = pipeline.graph.answering
    (plan,) = answering.plans.values()
    template = read_answer_prompt(plan.spec.prompt, plan.spec.template)
    made = replies(pipeline)
    assert len(made) == 6 * (1 + 3 * 2)
    filled = set()
    for searched in answering.searched:
        texts, ranked = texts_of(pipeline, searched), {}
        for row in searched.run.artifact(pipeline.workspace).table().to_pylist():
            ranked.setdefault(row["query_id"], []).append(row["doc_id"])
        for reply in (r for r in made if r["system"] == searched.system.name):
            names, best = reply["context"], ranked[reply["question_id"]]
            sizes = [estimate_tokens(passage_block(template, 1, texts[name])) for name in best]
            assert names == best[: len(names)]
            assert sum(sizes[: len(names)]) <= reply["k"] * budget
            assert len(names) == len(best) or sum(sizes[: len(names) + 1]) > reply["k"] * budget
            filled.add((searched.system.name, len(names)))
    assert any("k stands for k x 45 tokens" in line for line in gather(pipeline).notes)
    assert {name for name, _ in filled} == {"BM25", "late", "api"} and len(filled) > 3


def test_open_answers_are_linked_to_an_option(tmp_path, documents):
    """A question is asked without its options, once for all their orders; what none says is invalid."""
    path = experiment(tmp_path, rag(documents, f"{MOCK}\nopen = true", permutations=2) + BM25)
    pipeline = run(path)
    questions = {q["id"]: q for q in all_questions(pipeline)}
    (searched,) = pipeline.graph.answering.searched
    texts, made = texts_of(pipeline, searched), replies(pipeline)
    assert len(made) == 6 * 2 * (1 + 2)
    for reply in made:
        question = questions[reply["question_id"]]
        sentence = question["question"].rstrip("?").replace(GAP, question["options"][question["answer"]])
        knows = any(sentence in " ".join(texts[name].split()) for name in reply["context"])
        assert reply["answer"] == (question["answer"] if knows else -1), reply
    assert {reply["answer"] >= 0 for reply in made} == {True, False}
    (path,) = pipeline.graph.answering.answers["mock"].artifact(pipeline.workspace).unit_paths()
    said = Counter(read_table(path)["text"].to_pylist())
    asked = Counter(row["text"] for row in journal(pipeline))
    assert said["I cannot tell."] == 2 * asked["I cannot tell."] > 0  # both orders of the options
    assert max(Counter(row["key"] for row in journal(pipeline)).values()) == 1
    report = gather(pipeline)
    assert "Invalid answers" in [table.title for table in report.tables]
    assert any(line.startswith("mock answered without seeing the options") for line in report.notes)


def test_an_estimate_counts_what_a_run_then_asks(tmp_path, documents, tiny_encoder):
    systems = BM25 + system("dense", "tiny", model=tiny_encoder)
    price = "price = { input = 1.0, output = 2.0 }"
    answering = f'[[rag.answers]]\nengine = "mock"\n{price}\n[[rag.answers]]\nname = "open"\n'
    answering += f'engine = "mock"\nopen = true\n{price}'
    questions = f'count = 6\nengine = "mock"\n{price}'
    path = experiment(tmp_path, rag(documents, answering, questions) + systems)
    pipeline = Pipeline.of(load_experiment(path))
    pipeline.run(LocalExecutor(), nodes=answers.sources(pipeline))
    before = answers.forecast(pipeline)
    pipeline.run(LocalExecutor(), only="plan-answers")
    planned = answers.forecast(Pipeline.of(load_experiment(path)))
    done = run(path)
    after = answers.forecast(done)
    for place, name in enumerate(["mock", "open"], 1):
        (receipt,) = done.graph.answering.plans[name].artifact(done.workspace).receipts()
        (usage,) = done.graph.answering.answers[name].artifact(done.workspace).receipts()
        each = 2 if name == "open" else 1
        guess, exact = before.rows[place], planned.rows[place]
        assert guess.requests.low <= each * receipt.counts["requests, distinct"] <= guess.requests.high
        assert exact.requests.is_exact and exact.requests.mid == each * receipt.counts["requests, distinct"]
        assert usage.counts["completion tokens"] <= exact.completion_tokens.high
        assert after.rows[place].requests.high == 0 == after.rows[place].money.high
        assert exact.money.mid > 0
    assert before.rows[0].requests.low == 6 and planned.rows[0].requests.high == 0
    assert before.rows[-1].money.mid > planned.rows[-1].money.low > 0


def test_an_estimate_before_there_are_questions_is_shown(tmp_path, documents):
    path = experiment(tmp_path, rag(documents) + BM25)
    shown = " ".join(beirnl("plan", path, "--estimate", timeout=600).stdout.split())
    assert "questions by mock 6 0 6 – 12" in shown and "answers by mock 18 0 18" in shown
    assert "index" in shown and "search-bm25" not in shown  # which cannot be known yet
    assert not Pipeline.of(load_experiment(path)).workspace.journal.exists()
