"""Records, their JSON, and the tables made of them."""

import json
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError
from rich.console import Console

from beirnl.errors import DataError
from beirnl.evaluation import records as contract
from beirnl.evaluation.formats import FORMATS, json_schema
from beirnl.evaluation.page.plots import main_measure, plots
from beirnl.evaluation.records import (
    Conditions,
    Example,
    Record,
    Report,
    RunFile,
    Timing,
    Translations,
    to_json,
)
from beirnl.evaluation.tables import condition_tables, score_tables, tables
from beirnl.evaluation.tables.text import show, to_markdown

SCHEMA = Path(contract.__file__).with_name("report.schema.json")


def record(
    system="BM25", dataset="scifact", measure="nDCG@10", value=0.5, language="nl", queries=300, **more
):
    stated_beside = Record.model_fields.keys() - {"conditions"}
    counts = {key: more.pop(key) for key in stated_beside & more.keys()}
    stated = {"dataset_hash": f"hash-{dataset}", "search": "bm25", "self_matches": "removed", **more}
    return Record(
        dataset=dataset,
        language=language,
        system=system,
        measure=measure,
        value=value,
        queries=queries,
        conditions=Conditions(**stated),
        **counts,
    )


def printed(report, width=120):
    console = Console(width=width, record=True, file=StringIO(), color_system=None)
    show(report, console)
    return console.export_text()


# ---- records and JSON


def test_the_committed_schema_is_that_of_the_types():
    assert json.loads(SCHEMA.read_text()) == json_schema(), "write json_schema() to report.schema.json"
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_json_is_valid_under_the_schema_and_keeps_everything():
    made = [
        record(versions={"torch": "2.13"}, ann_recall=0.97, query_prompt="zoek: ", depth=100),
        record("E5", value=None, model="intfloat/e5", revision="unpinned", dtype="float32", search="exact"),
    ]
    said = json.loads(to_json(made))
    jsonschema.validate(said, json.loads(SCHEMA.read_text()), jsonschema.Draft202012Validator)
    assert [Record.model_validate(one) for one in said] == made
    assert said[1]["value"] is None


@pytest.mark.parametrize("field, bad", [("value", 1.5), ("value", "high"), ("queries", -1), ("rank", 1)])
def test_the_schema_refuses_what_is_no_record(field, bad):
    said = json.loads(to_json([record()]))
    said[0][field] = bad
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(said, json.loads(SCHEMA.read_text()), jsonschema.Draft202012Validator)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 1.1])
def test_a_value_is_a_fraction_or_missing(value):
    with pytest.raises(ValidationError):
        record(value=value)


def test_a_record_and_its_conditions_are_frozen():
    with pytest.raises(ValidationError):
        record().value = 0.9
    with pytest.raises(ValidationError):
        record().conditions.dtype = "float16"


# ---- tables of scores


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_systems_are_rows_and_the_best_of_a_column_is_marked_also_when_shared():
    [table] = score_tables(
        [
            record("BM25", value=0.61234),
            record("E5", value=0.70001),
            record("M3", value=0.70004),
            record("BM25", "nfcorpus", value=0.3),
            record("E5", "nfcorpus", value=0.2),
        ]
    )
    assert [(column.group, column.name) for column in table.columns] == [
        ("", "system"),
        ("scifact (nl)", "nDCG@10"),
        ("nfcorpus (nl)", "nDCG@10"),
    ]
    assert texts(table) == [["BM25", "0.6123", "0.3000"], ["E5", "0.7000", "0.2000"], ["M3", "0.7000", "–"]]
    assert [[cell.best for cell in row] for row in table.rows] == [
        [False, False, True],
        [False, True, False],
        [False, True, False],
    ]
    assert table.footnotes == []


def test_a_missing_part_is_shown_as_incomplete_and_never_best():
    report = Report("r", [record("BM25", "cqadupstack", value=None), record("E5", "cqadupstack", value=0.1)])
    [table] = score_tables(report.records)
    assert texts(table) == [["BM25", "incomplete"], ["E5", "0.1000"]]
    assert [row[1].best for row in table.rows] == [False, True]
    for text in (to_markdown(report), printed(report)):
        assert "incomplete" in text
        assert "nan" not in text.lower()


def test_datasets_with_other_measures_stand_in_a_table_of_their_own():
    made = score_tables([record(), record(measure="R@100"), record(dataset="other", measure="AP")])
    assert [table.title for table in made] == ["nDCG@10, R@100", "AP"]


def test_differing_conditions_in_a_column_are_footnotes():
    [table] = score_tables(
        [
            record("E5", dtype="float32", search="exact", model="e5"),
            record("M3", dtype="float16", search="exact", model="m3"),
            record("E5", "other", dtype="float32", search="exact", model="e5"),
            record("M3", "other", dtype="float32", search="ann", model="m3", ann_recall=0.9),
        ]
    )
    notes = dict(table.footnotes)
    assert [notes[cell.notes] for cell in table.rows[0][1:]] == ["dtype float32", "search exact"]
    assert [notes[cell.notes] for cell in table.rows[1][1:]] == [
        "dtype float16",
        "search ann; ann recall 0.9",
    ]


def test_systems_that_differ_in_the_model_alone_need_no_footnote():
    [table] = score_tables([record("A", model="a", revision="1"), record("B", model="b", revision="2")])
    assert table.footnotes == []


@pytest.mark.parametrize(
    "differing", [{"dataset_hash": "x"}, {"self_matches": "kept"}, {"versions": {"torch": "1"}}]
)
def test_every_condition_that_differs_is_stated(differing):
    [table] = score_tables(
        [record("A", versions={"torch": "2"}), record("B", **{"versions": {"torch": "2"}, **differing})]
    )
    assert [letter for letter, _ in table.footnotes] == ["a", "b"]
    assert [row[0].notes for row in table.rows] == ["a", "b"]


def test_queries_without_relevant_documents_are_counted_and_the_mean_without_them_is_beside():
    [table] = score_tables([record(value=0.5, queries=4, without_relevant=1, value_with_relevant=0.6667)])
    assert table.rows[0][1].text == "0.5000 (0.6667)"
    assert "1 of 4 in scifact (nl)" in table.caption


def test_two_values_for_one_place_are_an_error():
    with pytest.raises(DataError, match=r"system BM25: two values of nDCG@10 on scifact \(nl\)"):
        score_tables([record(), record(value=0.4)])


def test_thirty_kinds_of_conditions_have_thirty_letters():
    [table] = score_tables([record(f"S{n}", profile=f"p{n}") for n in range(30)])
    assert [letter for letter, _ in table.footnotes][24:] == ["y", "z", "aa", "ab", "ac", "ad"]


def test_a_condition_stands_where_it_is_decided():
    made = condition_tables(
        [
            record(system, dataset, model=model, dtype="float32", **more)
            for system, model in (("A", "a"), ("B", "b"))
            for dataset in ("x", "y")
            for more in ([{"ann_recall": 0.9}] if (system, dataset) == ("B", "y") else [{}])
        ]
    )
    found = {
        table.title: [[column.name for column in table.columns], *texts(table)]
        for table in made
        if table.rows
    }
    assert ["dtype", "float32"] in found["Equal everywhere"]
    assert found["By system"] == [["system", "model"], ["A", "a"], ["B", "b"]]
    assert found["By dataset"] == [
        ["dataset", "language", "dataset hash"],
        ["x", "nl", "hash-x"],
        ["y", "nl", "hash-y"],
    ]
    assert found["By system and dataset"] == [
        ["system", "dataset", "language", "ann recall"],
        ["B", "y", "nl", "0.9"],
    ]


# ---- the whole report as text


@pytest.fixture
def report():
    return Report(
        name="Dutch | *test*",
        records=[record("BM25", value=0.5), record("E5", value=0.6, model="e5")],
        translations={
            "scifact": Translations(
                {"ok": 98, "copied": 2},
                [Example("ok", f"s{n}", "said", "[red]a|b\x1b[31m\nc") for n in range(5)],
            )
        },
        warnings=["qrels name 2 documents that the corpus lacks"],
        runs=[RunFile("scifact", "nl", "BM25", "runs/scifact.run.gz")],
        notes=["a small model"],
        timings=[Timing("translate", "scifact", 12.34, 3)],
    )


def test_markdown_says_everything_and_untrusted_text_stays_in_its_cell(report):
    text = to_markdown(report)
    for said in (
        "# Dutch \\| \\*test\\*",
        "| E5 | **0.6000** |",
        "- qrels name 2 documents that the corpus lacks",
        "- a small model",
        "| scifact | 100 | 98.00% | 98 | 2 |",
        "runs/scifact.run.gz",
        "| translate | scifact | 12.3 | 3 |",
        "fractions of 1, four decimals",
    ):
        assert said in text
    rows = [line for line in text.splitlines() if line.startswith("| scifact | ok | ")]
    assert len(rows) == 3
    assert all(row.replace("\\|", "").count("|") == 6 for row in rows)


def test_the_terminal_shows_everything_and_no_control_characters(report):
    text = printed(report)
    for said in (
        "Warning: qrels name 2",
        "Note: a small model",
        "0.6000",
        "98.00%",
        "[red]a|b",
        "12.3",
        "runs/",
    ):
        assert said in text
    assert "\x1b" not in text


@pytest.mark.parametrize("styled", [True, False])
def test_the_best_of_a_column_is_bold_or_has_a_star_in_every_format(styled):
    values = {"a": (0.5, 0.25), "b": (0.75, 0.125), "c": (0.25, 0.25)}
    records = [
        record(system=system, measure=measure, value=value)
        for system, both in values.items()
        for measure, value in zip(("nDCG@10", "R@100"), both, strict=True)
    ]
    report = Report("r", records)
    best, others = {"0.7500": 1, "0.2500": 2}, ("0.5000", "0.1250")
    out = StringIO()
    show(
        report,
        Console(file=out, width=100, force_terminal=styled, color_system="standard" if styled else None),
    )
    shown = {
        "text": (out.getvalue(), "\x1b[1m{}\x1b[0m" if styled else "{}*"),
        "markdown": (to_markdown(report), "**{}**"),
        "latex": (FORMATS["latex"](report), "\\textbf{{{}}}"),
        "html": (FORMATS["html"](report), "<strong>{}</strong>"),
    }
    for name, (whole, mark) in shown.items():
        for value, number in best.items():
            assert whole.count(mark.format(value)) == number, (name, value)
        assert not any(mark.format(value) in whole for value in others), name
    assert ("* best of its column" in out.getvalue()) == (not styled)


def test_a_wide_table_is_printed_in_parts_that_lose_no_value():
    values = {
        (f"set{n}", m): (n + 1) / 100 + (0.5 if m == "R@100" else 0)
        for n in range(14)
        for m in ("AP", "R@100")
    }
    report = Report("wide", [record("a system", d, m, v) for (d, m), v in values.items()])
    text = printed(report, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"{value:.4f}" in text for value in values.values())


def test_an_empty_report_is_still_a_report():
    assert tables(Report("empty")) == []
    assert to_markdown(Report("empty")) == "# empty\n"
    assert plots(Report("empty")) == []


# ---- plots


def test_plots_are_there_for_what_is_known_and_say_it_in_words(report):
    assert [plot.title for plot in plots(report)] == [
        "nDCG@10 on scifact",
        "Translated rows by status",
        "Time by stage",
    ]
    assert "E5, nl: 0.6000" in plots(report)[0].alt
    assert "copied 2.00%" in plots(report)[1].alt


def test_intervals_are_drawn_where_a_record_states_them():
    [plot] = plots(Report("r", [record("BM25", value=0.5, low=0.4, high=0.6), record("E5", value=0.7)]))
    assert "BM25, nl: 0.5000 (95% interval 0.4000 to 0.6000)" in plot.alt
    assert plot.alt.endswith("E5, nl: 0.7000")


def test_plots_are_repeatable_and_names_are_text_not_markup():
    report = Report("r", [record("<b>$x_1$ & co</b>", "a<i>"), record("none", "a<i>", value=None)])
    [plot] = plots(report)
    assert "&lt;b&gt;$x_1$ &amp; co&lt;/b&gt;" in plot.svg
    assert "<b>" not in plot.svg
    assert ">incomplete<" in plot.svg
    assert plots(report) == [plot]


def test_beyond_the_colours_small_statuses_are_one():
    counts = {"ok": 100, **{f"failed{n}": n + 1 for n in range(9)}}
    [plot] = plots(Report("r", translations={"scifact": Translations(counts)}))
    drawn = [name for name in (*counts, "others") if f">{name}<" in plot.svg]
    assert drawn == ["ok", "failed4", "failed5", "failed6", "failed7", "failed8", "others"]
    assert all(name in plot.alt for name in counts)


def test_long_names_lose_their_middle():
    [plot] = plots(Report("r", [record(f"organisation/a-long-model-name-{n}-instruct") for n in (1, 2)]))
    assert ">organisa…l-name-1-instruct<" in plot.svg
    assert ">organisa…l-name-2-instruct<" in plot.svg


def test_the_main_measure_is_that_of_the_papers():
    assert main_measure([record(measure="AP"), record()]) == "nDCG@10"
    assert main_measure([record(measure="AP"), record(measure="R@100")]) == "AP"
