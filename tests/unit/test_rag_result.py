"""Tables, sentences, plots and the view of questions of a simulated experiment."""

import json
import re

import polars as pl
import pytest
from rag_replies import FINDS, KS, build, experiment, question_frame, reply_frame, simulated

from beirnl.errors import ConfigError
from beirnl.evaluation import formats
from beirnl.evaluation.uncertainty import Resampling
from beirnl.rag import question_views
from beirnl.rag.marks import Setup, accuracies
from beirnl.rag.result import result
from beirnl.rag.result_page import render, report

SETTINGS = Resampling(bootstrap=100, randomisation=500)
LLM = "Llama-3.1-70B"


@pytest.fixture(scope="module")
def made():
    return experiment(n=60)


@pytest.fixture(scope="module")
def found(made):
    failed = {"colbert-xm": "no such file"}
    return result(
        made.questions,
        made.replies,
        5,
        ranked=made.ranked,
        costs=made.costs,
        failed=failed,
        settings=SETTINGS,
    )


@pytest.fixture(scope="module")
def said(found):
    return report("rag", found)


@pytest.fixture(scope="module")
def tables(said):
    return {table.title: table for table in said.tables}


def column(table, at):
    return [row[at].text for row in table.rows]


def test_systems_stand_by_accuracy_with_their_tests_and_the_failed_one_says_why(found, tables):
    table = tables[f"Systems at k = 5, answered by {LLM}"]
    values = [row[1].order for row in table.rows[:-1]]
    assert values == sorted(values, reverse=True) and table.rows[0][1].best
    assert set(column(table, 0)) == {*FINDS, "colbert-xm"}
    assert table.rows[-1][1].text == "failed: no such file"
    for name, *_, smallest in table.rows[1:-1]:
        test = found.choices[LLM].against_best(Setup(LLM, name.text, 5))
        assert smallest.order == test.smallest and test.difference <= 0


def test_accuracies_by_k_mark_the_best_of_a_column_and_of_a_row(made, found, tables):
    table = tables[f"Accuracy by k, answered by {LLM}"]
    assert [head.name for head in table.columns] == ["system", *(f"k = {k}" for k in KS)]
    right = made.replies.join(
        made.questions.select(pl.col("id").alias("question_id"), correct="answer"), on="question_id"
    )
    shares = right.group_by("llm", "system", "k").agg(
        (pl.col("answer") == pl.col("correct")).mean().alias("share")
    )
    known = {row[:3]: row[3] for row in shares.iter_rows()}
    for row in table.rows:
        for k, cell in zip(KS, row[1:], strict=True):
            assert cell.order == pytest.approx(known[LLM, row[0].text if k else "", k])
        marked = [k for k, cell in zip(KS, row[1:], strict=True) if cell.notes]
        assert marked == [min((k for k in KS[1:]), key=lambda k: (-known[LLM, row[0].text, k], k))]
    assert [any(row[1 + at].best for row in table.rows) for at in range(len(KS))] == [False, *[True] * 6]


def test_questions_answerable_without_passages_are_kept_and_left_out(made, found, tables):
    assert 0 < found.answerable < 60
    (title,) = [title for title in tables if title.startswith(f"Accuracy by k, answered by {LLM}, without")]
    assert f"the {found.answerable} of 60 questions" in title
    assert found.rest[Setup(LLM, "", 0)].of == 60 - found.answerable


def test_llms_and_systems_are_compared_across(found, tables):
    table = tables["All pairs at k = 5: all LLMs"]
    assert len(table.rows) == 28 and found.across.best.llm == LLM
    assert len(tables[f"All pairs at k = 5: {LLM}"].rows) == 6


def test_recall_cost_confidence_and_agreement_have_their_tables(tables):
    recall = tables["Recall of the source document"]
    assert column(recall, 0) == list(FINDS) and all(row[3].order >= row[1].order for row in recall.rows)
    assert len(tables["Accuracy against cost"].rows) == 8
    assert tables["Confidence of the LLM"].rows and tables["Invalid answers"].rows
    agreement = tables[f"Agreement, answered by {LLM}"]
    by_name = {(row[0].text, row[2].text): row for row in agreement.rows}
    assert by_name["raw", "with"][3].order == pytest.approx(
        by_name["min-max of the matrix", "with"][3].order, abs=1e-12
    )
    assert by_name["min-max of the matrix", "with"][4] == ("0.90", 0.9, False, "a")
    assert {row[1].text for row in agreement.rows if "column" in row[0].text or "centred" in row[0].text} == {
        "ours"
    }


def test_notes_say_what_is_best_and_what_could_have_been_missed(found, said):
    best = found.choices[LLM]
    note = next(line for line in said.notes if line.startswith(f"At k = 5, answered by {LLM}"))
    assert best.best.system in note and ("could well have been missed" in note) == bool(best.equals)
    assert any("held-out half" in line for line in said.notes)
    assert said.warnings == ["colbert-xm failed and is not compared: no such file"]


def test_every_format_of_text_renders_the_report(said):
    for name in formats.FORMATS.keys() - {"html"}:
        assert "multilingual-e5-small" in formats.FORMATS[name](said), name


def test_figures_4_and_5_and_costs_are_drawn(found, said):
    plots = said.plots
    assert [plot.title for plot in plots] == [
        f"Accuracy against k, answered by {LLM}",
        "Accuracy against k, answered by Llama-3.1-8B",
        "Accuracy against k, all LLMs",
        "Accuracy at k = 5 against prompt tokens",
        "Accuracy at k = 5 against seconds of encoding",
    ]
    shown = found.found[Setup(LLM, "BM25", 10)].value
    assert f"BM25, {LLM}: " in plots[0].alt and f"{shown:.3f} at 10" in plots[0].alt
    ids = [re.findall(r'\bid="([^"]+)"', plot.svg) for plot in plots]
    assert len({name for names in ids for name in names}) == sum(map(len, map(set, ids)))


def data(part):
    return json.loads(re.search(r'per-question-data">(.*)</script>', part.html)[1])


def test_the_view_of_questions_holds_answers_and_contexts(made, found):
    part = question_views.part(found, made.questions, made.replies, made.passages)
    view = data(part)[0]
    assert (view["name"], view["ks"], view["total"], len(view["questions"])) == (LLM, list(KS), 60, 60)
    texts = dict(made.passages.select("id", "text").iter_rows())
    for shown in view["questions"]:
        for at, system in enumerate(view["systems"]):
            for place, k in enumerate(KS):
                row = (
                    made.replies.row(
                        by_predicate=(pl.col("question_id") == shown["id"])
                        & (pl.col("llm") == LLM)
                        & (pl.col("system") == (system if k else ""))
                        & (pl.col("k") == k),
                        named=True,
                    )
                    if shown is view["questions"][0]
                    else None
                )
                answers, context, cut = shown["replies"][at][place]
                if row:
                    assert (answers, cut) == ([row["answer"]], 0)
                    assert [view["passages"][n][0] for n in context] == row["context"]
    name, document, text = view["passages"][0]
    assert text.rstrip("…") == texts[name][: len(text.rstrip("…"))] and name.startswith(document)


def test_what_does_not_fit_the_page_is_left_out_and_counted(made, found):
    whole = question_views.part(found, made.questions, made.replies, made.passages)
    part = question_views.part(found, made.questions, made.replies, made.passages, limit=40_000)
    view = data(part)[0]
    assert 0 < len(view["questions"]) < 60 == view["total"] and len(part.html) < 45_000 < len(whole.html)
    assert view["questions"] == data(whole)[0]["questions"][: len(view["questions"])]


def test_an_llm_that_always_says_0_is_named_as_biased():
    questions = question_frame([f"d{at}" for at in range(40)])
    replies = reply_frame({("zero", name, 1): [0] * 40 for name in ("E5", "USE")})
    found = result(questions, replies.with_columns(answer=pl.lit(0, pl.Int8)), 1, settings=SETTINGS)
    (warning,) = report("rag", found).warnings
    assert warning.startswith("zero says 0 in 100.0% of its valid answers") and "position bias" in warning
    assert found.choices["zero"].equals and found.found[Setup("zero", "E5", 1)].value == 0.25


def test_incomplete_systems_and_cut_prompts_are_warned_of():
    right = simulated()
    right["llm", "E5", 5] = right["llm", "E5", 5][:50]
    replies = reply_frame(right).with_columns(cut=(pl.col("k") == 5).cast(pl.Int32))
    found = result(question_frame([f"d{at}" for at in range(120)]), replies, 5, settings=SETTINGS)
    said = report("rag", found)
    assert said.warnings[0] == "E5 at k = 5 with llm has answers to 50 of 120 questions and is not compared."
    assert said.warnings[1].startswith("290 prompts were too long")
    table = next(table for table in said.tables if table.title.startswith("Systems at k = 5"))
    assert "incomplete (50 of 120 questions)" in column(table, 1)


@pytest.mark.parametrize("k", [0, 3])
def test_a_k_that_was_not_asked_is_refused(k):
    with pytest.raises(ConfigError, match=f"no question was asked with {k} passages; compare at one of 1, 5"):
        result(
            question_frame([f"d{at}" for at in range(120)]), reply_frame(simulated()), k, settings=SETTINGS
        )


def test_one_llm_one_system_and_no_extras_make_a_page():
    questions, replies = question_frame(["a", "b"]), reply_frame({("llm", "E5", 1): [1, 0]})
    found = result(questions, replies, 1, settings=SETTINGS)
    assert found.across is None and not found.agreements and not found.confirmations
    passages = pl.DataFrame(schema={"id": pl.String, "doc_id": pl.String, "text": pl.String})
    page = render("small", found, questions, replies, passages)
    assert "only E5 has answers to every question" in page and page.count("<figure>") == 1
    assert accuracies(build({("llm", "E5", 1): [1, 0]}), SETTINGS) == found.found
