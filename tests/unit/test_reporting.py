"""What a report says of translations: source, what the model answered, and what was kept of it."""

import pytest
from beir_folder import doc
from running import dataset as table_of
from running import experiment, run
from translating import translation, write_set

from beirnl.evaluation.tables import tables
from beirnl.llm.mock import FAULTS
from beirnl.reporting import gather

TEXT = "Coffee keeps people awake for about 5 hours. The effect of tea on sleep is small."
FAULTY = [name for name in FAULTS if name not in ("dots", "markup", "numbers")]


@pytest.fixture(scope="module", params=[[], ["room"]], ids=["as it came", "repaired"])
def report(request, tmp_path_factory):
    """A report on a row for each fault, which stays, one that a repair mends, a good and an empty one."""
    folder = tmp_path_factory.mktemp("faults")
    marks = {name: f"{TEXT} [[fault:{name}]]" for name in FAULTY}
    rows = {**marks, "mended": f"{TEXT} [[fault:refusal:once]]", "good": TEXT, "nothing": "\n"}
    corpus = [doc(name, text, "" if name == "nothing" else "Coffee and sleep") for name, text in rows.items()]
    place = write_set(folder / "set", corpus)
    path = experiment(folder, table_of(place) + translation(repair=request.param, query_prompt="paper-query"))
    return gather(run(path))


def examples(report):
    (found,) = (one for name, one in report.translations.items() if name.endswith("document"))
    return found


def test_a_failed_row_is_shown_with_what_the_model_said_and_what_was_kept(report):
    shown = {
        example.source.partition("[[fault:")[2].rstrip("]"): example for example in examples(report).examples
    }
    refused = shown["refusal"]
    assert refused.answer == "I'm sorry, but I cannot translate this text."
    assert refused.kept == refused.source != refused.answer
    assert shown["language"].answer.count("Questa è una traduzione") == 1
    assert shown["language"].kept == shown["language"].source
    assert shown["empty"].answer == "" and shown["empty"].kept == shown["empty"].source
    assert "the mock was asked to fail" in shown["error"].answer
    assert "<body> <body>" not in shown["truncated"].answer and "<title>" in shown["truncated"].answer
    mended = shown["refusal:once"]
    assert mended.answer == refused.answer and (mended.kept == mended.source) is (mended.status != "ok")
    assert shown["preamble"].answer.startswith("Here is the translation: <title> ")


def test_a_row_without_a_text_has_a_status_of_its_own_and_no_answer(report):
    found = examples(report)
    assert found.counts["no-text"] == 1
    (empty,) = (example for example in found.examples if example.status == "no-text")
    assert (empty.answer, empty.source.strip(), empty.kept.strip()) == ("", "", "")


def test_the_table_has_a_column_for_each(report):
    (table,) = (table for table in tables(report) if table.title == "Examples")
    assert [column.name for column in table.columns] == [
        "dataset",
        "status",
        "source",
        "first answer",
        "kept",
    ]
    row = next(row for row in table.rows if row[1].text.startswith("refusal"))
    assert (
        "[[fault:refusal]]" in row[2].text
        and row[3].text.startswith("I'm sorry")
        and row[4].text == row[2].text
    )
