"""The tables of the paper: rows and columns of layouts, daggers, best values, means that are whole or not."""

import csv
import io
import json
from pathlib import Path

import jsonschema
import polars as pl
import pytest

from beirnl import registry
from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.evaluation import formats
from beirnl.evaluation.formats import FORMATS
from beirnl.evaluation.paper import compared, identity, tabled
from beirnl.evaluation.paper.fact_tables import dataset_table, model_table
from beirnl.evaluation.paper.layout_tables import chosen, score_table
from beirnl.evaluation.paper.published import Figure, comparison, figures, reasons
from beirnl.evaluation.records import Conditions, DatasetSize, Record, Report
from beirnl.evaluation.translations.back_translation import BackTranslation, compare
from beirnl.registry.layouts import heading, layout, layouts, source, stands_for

BM25 = {"search": "bm25", "profile": "elasticsearch", "self_matches": "removed"}
GTE = {"search": "exact", "model": "gte-multilingual-base"}


def record(system="BM25", dataset="scifact", value=0.5, language="nl", measure="nDCG@10", **stated):
    conditions = Conditions(dataset_hash="x", **{**BM25, **stated})
    return Record(
        dataset=dataset,
        language=language,
        system=system,
        measure=measure,
        value=value,
        queries=3,
        conditions=conditions,
    )


def dense(system, model, **more):
    search = {"search": "exact", "profile": None, "model": model, "dtype": "float32"}
    entry = registry.find_model(model)
    prompts = {f"{kind}_prompt": getattr(entry.prompts, kind) or None for kind in ("query", "document")}
    return record(system, **{**search, **prompts, **more})


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


# ---- layouts


def test_every_name_in_a_layout_is_one_of_the_registry():
    for form in layouts().values():
        for dataset in {*form.datasets, *form.mean, *(row.dataset for row in form.rows)} - {""}:
            assert registry.datasets()[dataset].source == "", dataset
            assert heading(dataset) != dataset, dataset
        for row in form.rows:
            parts = [part for part in row.system.split("+") if part != identity.BM25]
            assert all(part == "" or registry.find_model(part).name == part for part in parts), row
        assert set(form.mean) <= set(form.datasets)
    assert registry.find_model("multilingual-e5-small-q4") and stands_for("bge-m3") == "bge-m3"


@pytest.mark.parametrize("name, rows, columns", [("3", 16, 15), ("4", 3, 10), ("5", 3, 9)])
def test_rows_and_columns_are_those_that_the_paper_printed(name, rows, columns):
    form = layout(name)
    assert (len(form.rows), len(form.datasets)) == (rows, columns)
    printed = {tuple(key) for key in figures([form.published]) if key.dataset != "average"}
    ours = {
        (row.system, dataset, row.language or form.language, measure)
        for row in form.rows
        for dataset in form.datasets
        for measure in form.measures
    }
    rerankers = {key for key in ours if "+" in key[0] and key[3] == "R@100"}  # Table 3 has no recall of them
    assert printed == ours - rerankers


def test_means_of_published_cells_are_those_that_the_paper_prints():
    """Averages of Tables 4 and 5, from the paper's text."""
    printed = {
        "4": {"nDCG@10": [35.9, 35.1, 41.9], "R@100": [50.6, 50.3, 57.7]},
        "5": {"nDCG@10": [42.9, 41.6, 50.0]},
    }
    for name, means in printed.items():
        table = score_table(layout(name), [], [source("paper")], {"paper": figures([layout(name).published])})
        for measure, values in means.items():
            made = [float(row[-1].text) for row in table.rows if row[1].text == measure]
            assert made == values, (name, measure)


# ---- tables of scores


def test_the_form_is_the_papers_with_the_average_and_the_best_in_bold():
    records = [
        record(dataset=dataset, value=0.1 * at, measure=measure, system=system, **how)
        for at, dataset in enumerate(layout("5").datasets, 1)
        for measure in ("nDCG@10", "R@100")
        for system, how in (("BM25", {}), ("gte", GTE))
    ]
    table = score_table(layout("5"), records)
    assert [column.name for column in table.columns][:3] == ["benchmark", "measure", "TREC-COVID"]
    assert texts(table) == [["BEIR-NL", "nDCG@10", *(f"{10 * at:.1f}" for at in range(1, 10)), "50.0"]]
    table = score_table(layout("3"), records)
    assert [row[0] for row in texts(table)] == ["BM25", "gte-multilingual-base"] * 2
    assert [row[1] for row in texts(table)] == ["nDCG@10"] * 2 + ["R@100"] * 2


def test_a_mean_of_fewer_is_incomplete_and_an_unfinished_dataset_has_no_value():
    made = [record(dataset=name, value=0.4) for name in layout("4").datasets]
    whole = score_table(layout("4"), made)
    assert texts(whole)[0][-1] == "40.0"
    broken = [one.model_copy(update={"value": None}) if one.dataset == "cqadupstack" else one for one in made]
    table = score_table(layout("4"), broken)
    assert texts(table)[0][-1] == "incomplete (9/10)"
    assert "CQADupstack" in table.caption and "CQADupstack" not in [column.name for column in table.columns]


def test_daggers_are_the_registrys_and_have_a_footnote():
    made = [
        dense("e5", "multilingual-e5-small", dataset="nq", value=0.9),
        dense("e5", "multilingual-e5-small", dataset="scifact", value=0.8),
        record(dataset="nq", value=0.7),
        record(dataset="scifact", value=0.6),
        dense("again", "bge-reranker-v2-m3", dataset="nq", value=0.2, search="rerank", first="BM25"),
    ]
    table = score_table(layout("3"), made)
    marks = {row[0].text: [cell.notes for cell in row[2:4]] for row in table.rows}
    assert marks == {"BM25": ["", ""], "multilingual-e5-small": ["†", ""], "BM25 + bge-reranker": ["†", ""]}
    assert [mark for mark, _ in table.footnotes] == ["†"]
    assert [cell.best for cell in table.rows[1][2:4]] == [True, True]
    unmarked = score_table(layout("3"), [record(dataset="nq"), record(dataset="scifact")])
    assert unmarked.footnotes == []


def test_a_translation_here_and_a_dataset_of_its_own_are_one_column():
    table = score_table(layout("3"), [record(dataset="scifact", value=0.1), record("other", "nq-nl", 0.2)])
    assert [column.name for column in table.columns] == ["model", "measure", "NQ", "SciFact", "average"]


def test_of_systems_that_fit_a_row_the_best_fitting_has_it_and_the_others_follow():
    flat = record("BM25-flat", profile="flat", value=0.9)
    made = [flat, record("lexical", value=0.2), dense("mine", "all-MiniLM-L6-v2", value=0.3)]
    rows = [(row.label or row.system, name) for row, name in chosen(layout("3"), made) if name]
    assert rows == [("BM25", "lexical"), ("BM25-flat", "BM25-flat"), ("mine", "mine")]
    both = [dense("a", "bge-m3", profile="mteb"), dense("b", "bge-m3", profile="paper")]
    assert [name for row, name in chosen(layout("3"), both) if row.system == "bge-m3"] == ["b", "a"]
    named = [record("BM25", profile="flat"), record("lexical")]
    assert chosen(layout("3"), named)[0][1] == "BM25"


@pytest.mark.parametrize("name", ["3", "4", "5"])
def test_a_table_without_scores_is_refused_with_what_it_needs(name):
    with pytest.raises(
        PrerequisiteError, match=f"no score for table {name} .*with systems of: .*on: .*scifact"
    ) as told:
        score_table(layout(name), [record(language="fr")])
    assert layout(name).rows[0].system in str(told.value)


def test_unknown_tables_and_sources_are_refused_by_name():
    with pytest.raises(ConfigError, match=r"'7'.*1, 2, 3"):
        tabled(Report("r"), "7")
    with pytest.raises(ConfigError, match="did you mean 'mteb'"):
        compared(Report("r"), ["mtebb"])


# ---- published figures


def test_published_rows_stand_below_ours_once_per_system_and_are_never_best():
    made = [record(value=0.1), record("flat", profile="flat", value=0.2)]
    table = score_table(layout("3"), made, [source("paper")], {"paper": figures(["beir-nl-table3"])})
    rows = [row for row in table.rows if row[1].text == "nDCG@10"]
    assert [(row[0].text, row[2].text) for row in rows][:2] == [("BM25", "ours"), ("BM25", "BEIR-NL")]
    assert [row[2].text for row in rows if row[0].text == "flat"] == ["ours"]
    assert {cell.text for row in rows for cell in row if cell.best} == {"20.00"}
    theirs = {row[0].text: row[3].text for row in rows if row[2].text == "BEIR-NL"}
    assert theirs["bge-m3"] == "62.83" and theirs["BM25 + jina-reranker"] == "70.68"


def test_the_comparison_has_differences_and_says_what_differs():
    made = [
        record(value=0.6113),
        record("flat", value=0.7, profile="flat", self_matches="kept"),
        dense("m3", "bge-m3", value=0.6, dtype="bfloat16", revision="abc"),
        record("mine", dataset="own", value=0.5),
    ]
    sources = [source("paper"), source("mteb")]
    published = {one.name: figures(one.files) for one in sources}
    table = comparison(made, identity.systems(made), sources, published)
    assert [row[0] for row in texts(table)] == ["BM25", "flat", "m3"]
    bm25, flat, m3 = texts(table)
    assert bm25[3:6] == ["61.13", "61.13", "+0.00"] and bm25[-1].count("BEIR-NL") == 0
    assert flat[5] == "+8.87"
    assert "BM25 profile flat, not elasticsearch" in flat[-1] and "self-matches kept, not removed" in flat[-1]
    assert m3[4:6] == ["62.83", "-2.83"] and "dtype bfloat16" in m3[-1]
    assert "BEIR-NL: 1 of 3 within 0.35, largest 8.87" in table.caption


def test_a_value_on_another_set_than_the_published_one_says_so():
    made = [record(dataset=name) for name in ("scifact-nl", "nfcorpus-nl")]
    sizes = [
        DatasetSize("scifact-nl", "nl", "", 300, 5183, 339),
        DatasetSize("nfcorpus-nl", "nl", "", 30, 3633, 40),
    ]
    found = compared(Report("r", made, datasets=sizes), ["paper"]).tables[0]
    scifact, nfcorpus = (row[-1] for row in texts(found))
    assert "the set holds" not in scifact
    assert nfcorpus == "BEIR-NL: the set holds 30 queries and not 323, 40 relevant and not 12,334"
    below = tabled(Report("r", made, datasets=sizes), "3", ["paper"]).tables[1]
    assert texts(below)[1][-1] == nfcorpus


def test_a_gap_that_no_condition_explains_is_said_to_be_one():
    made = [dense("m3", "bge-m3", value=0.5)]
    table = comparison(
        made, identity.systems(made), [source("paper")], {"paper": figures(["beir-nl-table3"])}
    )
    assert texts(table)[0][-1] == "BEIR-NL: no stated condition differs"


@pytest.mark.parametrize(
    "stated, said",
    [
        (
            {"model": "multilingual-e5-small-q4"},
            "multilingual-e5-small-q4 is made from multilingual-e5-small",
        ),
        ({"revision": "1" * 40}, "model revision 111111111111, not 222222222222"),
        ({"query_prompt": "vraag: "}, "query prompt 'vraag: ', not 'query: '"),
        ({"search": "ann", "ann_recall": 0.97}, "approximate search, which found 0.97 of exact"),
        ({"dataset": "cqadupstack"}, "mean over queries, not over parts"),
        ({"measure": "R@100", "depth": 20}, "only 20 hits a query"),
        ({"translation_model": "gemma-3-270m"}, "translated by gemma-3-270m, not gemini-1.5-flash"),
        ({"self_matches": "kept"}, "self-matches kept, not removed"),
        ({"search": "bm25", "profile": "elasticsearch", "model": None, "k1": 0.9}, "k1 0.9, not 1.2"),
    ],
)
def test_every_condition_that_differs_is_a_reason(stated, said):
    one = _with(stated)
    [system] = identity.systems([one]).values()
    found = list(reasons(one, system, source("paper"), Figure(0.5, "2" * 40)))
    assert said in found
    assert list(reasons(_with({}), "multilingual-e5-small", source("paper"), Figure(0.5))) == []


def _with(stated):
    own = {"model": "multilingual-e5-small", "query_prompt": "query: ", "document_prompt": "passage: "}
    settings = {"search": "exact", "profile": None, "dtype": "float32", **own, **stated}
    return record("e5", **settings)


def test_mtebs_rule_of_self_matches_is_by_dataset():
    kept = [record(dataset=name, self_matches="kept") for name in ("scifact", "arguana")]
    found = [list(reasons(one, "BM25", source("mteb"), Figure(0.5))) for one in kept]
    assert ["self-matches kept, not removed" in some for some in found] == [False, True]


def test_nothing_in_common_with_a_source_is_said():
    with pytest.raises(PrerequisiteError, match="was published by BEIR-NL or MTEB"):
        compared(Report("r", [record(dataset="own")]), ["paper", "mteb"])


# ---- tables of facts


def test_sizes_of_datasets_are_counted_and_grouped():
    sizes = [
        DatasetSize("own", "nl", "general", 4, 10, 2),
        DatasetSize("scifact", "nl", "Scientific", 300, 5183, 339),
    ]
    table = dataset_table(layout("1"), sizes)
    assert texts(table) == [
        ["Fact Checking", "SciFact", "nl", "Wadden et al. (2020)", "Scientific", "300", "5,183", "1.1"],
        ["–", "own", "nl", "–", "general", "4", "10", "0.5"],
    ]
    beside = dataset_table(layout("1"), sizes, registry.published("beir-nl-table1"))
    assert len(beside.rows) == 17
    assert ["SciFact", "as published"] in [row[1:3] for row in texts(beside)]


def test_models_are_those_of_the_paper_and_those_that_were_used():
    table = model_table(layout("2"), [dense("mine", "all-MiniLM-L6-v2"), record()])
    rows = {row[1]: row for row in texts(table)}
    assert len(rows) == 16 and list(rows)[-1] == "all-MiniLM-L6-v2"
    assert rows["bge-m3"][2:7] == ["XLMRoberta-large", "568M", "1,024", "8,192", "Yes"]
    assert rows["dpr-xm"][3] == "852M (277M used)" and rows["LaBSE"][6] == "No"
    assert {row[1].text: row[3].order for row in table.rows}["dpr-xm"] == 852_000_000


def test_a_table_of_models_has_no_warnings_of_what_was_run():
    found = Report("r", [record()], warnings=["a text was cut"])
    assert not tabled(found, "2").warnings and tabled(found, "3").warnings == ["a text was cut"]


def test_a_table_has_the_warnings_of_its_own_datasets_and_systems():
    concerns = {
        "of its score": {("BM25", "scifact", "nl")},
        "of another language": {("BM25", "scifact", "en")},
        "of another dataset": {("BM25", "own", "nl")},
        "of another system": {("mine", "scifact", "nl")},
        "of nothing that is scored": set(),
    }
    lines = [*concerns, "of all"]
    sizes = [DatasetSize("scifact", "en", "", 3, 4, 5)]
    found = Report("r", [record()], warnings=lines, concerns=concerns, datasets=sizes)
    assert tabled(found, "3").warnings == ["of its score", "of all"]
    others = ["of another dataset", "of nothing that is scored"]
    assert tabled(found, "1").warnings == [line for line in lines if line not in others]


def test_table_6_needs_a_back_translation():
    with pytest.raises(PrerequisiteError, match=r"table 6 yet; .*back = true"):
        tabled(Report("r", [record()]), "6")
    found = tabled(
        Report("r", back_translation=BackTranslation("nDCG@10", ("scifact",), (), 0, 10, ())), "6", ["paper"]
    )
    assert [table.title for table in found.tables] == ["As published"]
    assert "SciFact" in [column.name for column in found.tables[0].columns]


def test_table_6_has_the_papers_names():
    scores = pl.DataFrame(
        [
            ("scifact", version, "BM25", query, "nDCG@10", value)
            for version, value in (("original", 0.5), ("back-translated", 0.25))
            for query in ("q1", "q2")
        ],
        schema=["dataset", "version", "system", "query_id", "measure", "value"],
        orient="row",
    )
    first, by_dataset = tabled(Report("r", back_translation=compare(scores, resamples=10)), "6").tables
    assert first.title.startswith("Table 6. ") and first.title.endswith(": nDCG@10 before and after")
    assert [column.name for column in first.columns][2] == "SciFact"
    assert texts(by_dataset)[0][:2] == ["BM25", "SciFact"]


# ---- formats


@pytest.fixture
def report():
    made = [
        record(value=0.6),
        dense("e5", "multilingual-e5-small", dataset="nq", value=0.5),
        record(dataset="nq"),
    ]
    return tabled(Report("r", made), "3", ["paper"])


def test_csv_is_what_was_asked_for_and_reads_back(report):
    asked = list(csv.DictReader(io.StringIO(FORMATS["csv"](report))))
    assert {row["figures"] for row in asked} == {"ours", "BEIR-NL"} and float(asked[0]["SciFact"]) == 60
    made = [record(value=0.6), dense("e5", "multilingual-e5-small", value=0.5), record("own", dataset="own")]
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](compared(Report("r", made), ["paper"])))))
    assert {row["system"] for row in rows} == {"BM25", "e5"}
    assert all(
        float(row["ours"]) - float(row["BEIR-NL"]) == pytest.approx(float(row["Δ BEIR-NL"])) for row in rows
    )
    alone = tabled(Report("r", [record(value=1 / 3)]), "3")
    [row] = csv.DictReader(io.StringIO(FORMATS["csv"](alone)))
    assert float(row["SciFact"]) == pytest.approx(100 / 3, abs=1e-9) and row["average"] == "incomplete (1/14)"


def test_csv_of_records_has_one_line_each_and_guards_formulas():
    made = Report("r", [record('=cmd|"x"', value=0.25), record("none", value=None)])
    rows = list(csv.reader(io.StringIO(FORMATS["csv"](made))))
    assert rows[0] == ["dataset", "language", "system", "measure", "value", "queries"]
    assert rows[1:] == [
        ["scifact", "nl", '\'=cmd|"x"', "nDCG@10", "0.25", "3"],
        ["scifact", "nl", "none", "nDCG@10", "", "3"],
    ]


def test_json_of_a_table_has_values_marks_and_footnotes(report):
    [first, *_] = json.loads(FORMATS["json"](report))
    cells = {cell["text"]: cell for row in first["rows"] for cell in row}
    assert (
        cells["60.00"]["best"] is True
        and cells["61.13"]["best"] is False
        and cells["60.00"]["value"] == pytest.approx(60)
    )
    assert "†" in first["footnotes"] and first["columns"][0] == "model"


def test_all_that_is_written_as_json_is_valid_under_the_schema(report):
    known = json.loads(Path(formats.__file__).with_name("report.schema.json").read_text())
    asked = [
        report,
        tabled(Report("r"), "2"),
        compared(Report("r", [record()]), ["paper"]),
        Report("r", [record()]),
    ]
    for one in asked:
        jsonschema.validate(json.loads(FORMATS["json"](one)), known)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([{"title": "no table"}], known)


def test_latex_escapes_marks_and_parts_the_measures():
    made = [record(r"50%_\x & y", value=0.5), record("a{b}~^", value=0.4, measure="R@100")]
    latex = FORMATS["latex"](tabled(Report("r", [one.model_copy() for one in made]), "3"))
    assert latex.count(r"\midrule") == 2 and latex.count(r"\\") >= 3
    assert r"50\%\_\textbackslash{}x \& y" in FORMATS["latex"](Report("r", made))
    assert latex.count("{") == latex.count("}")


@pytest.mark.parametrize("name", ["markdown", "html", "latex", "json", "csv"])
def test_every_format_shows_every_table(report, name):
    assert "62.83" in FORMATS[name](report) or name == "csv"
    assert "SciFact" in FORMATS[name](report)
