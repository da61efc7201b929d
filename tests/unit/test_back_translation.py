"""The back-translation report: pairs, averages and corrections by hand; the paper's own figures."""

import json

import numpy as np
import polars as pl
import pytest

from beirnl import registry
from beirnl.errors import DataError
from beirnl.evaluation.translations.back_translation import compare, tables, to_json

SETS = {"nfcorpus": 323, "scifact": 300}
COLUMNS = ("dataset", "version", "system", "query_id", "measure", "value")


def scores(system="BM25", drop=0.05, sets=SETS, measure="nDCG@10", seed=1):
    """Scores of a system that loses ``drop`` by back translation in the mean, with noise per query."""
    generator = np.random.default_rng(seed)
    rows = []
    for dataset, queries in sets.items():
        values = generator.uniform(0.3, 0.7, queries)
        noise = generator.normal(0, 0.1, queries)
        lost = values - drop + noise - noise.mean()
        for place, pair in enumerate(zip(values, lost, strict=True)):
            for version, value in zip(("original", "back-translated"), pair, strict=True):
                rows.append((dataset, version, system, f"q{place}", measure, value))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_means_are_of_each_version_and_the_average_is_over_datasets():
    frame = scores()
    [system] = compare(frame, resamples=200).systems
    means = frame.group_by("dataset", "version").agg(pl.col("value").mean())
    by_place = {(dataset, version): value for dataset, version, value in means.rows()}
    for dataset in SETS:
        found = system.datasets[dataset]
        assert found.original == pytest.approx(by_place[dataset, "original"])
        assert found.back_translated == pytest.approx(by_place[dataset, "back-translated"])
        assert found.queries == SETS[dataset]
    deltas = [system.datasets[dataset].delta for dataset in SETS]
    assert system.average.delta == pytest.approx(sum(deltas) / 2)
    assert system.average.queries == 623


def test_intervals_have_the_width_that_statistics_says():
    frame = scores()
    [system] = compare(frame).systems
    wide = frame.pivot("version", index=["dataset", "query_id"], values="value")
    errors = []
    for dataset, found in system.datasets.items():
        rows = wide.filter(pl.col("dataset") == dataset)
        spread = (rows["back-translated"] - rows["original"]).to_numpy().std()
        errors.append(spread / len(rows) ** 0.5)
        assert found.interval.high - found.interval.low == pytest.approx(2 * 1.96 * errors[-1], rel=0.06)
        assert found.interval.low < found.delta < found.interval.high
    pooled = (errors[0] ** 2 + errors[1] ** 2) ** 0.5 / 2
    width = system.average.interval.high - system.average.interval.low
    assert width == pytest.approx(2 * 1.96 * pooled, rel=0.06)


def test_a_loss_is_found_and_its_absence_is_not():
    result = compare(pl.concat([scores("lossy", 0.05), scores("lossless", 0.0, seed=7)]), resamples=2000)
    lossy, lossless = result.systems
    assert lossy.average.delta == pytest.approx(-0.05)
    assert lossy.average.interval.high < 0
    assert lossy.average.p < 0.01
    assert lossless.average.interval.low < 0 < lossless.average.interval.high
    assert lossless.average.p > 0.05


def test_p_values_are_corrected_over_all_differences_of_the_report():
    result = compare(pl.concat([scores("a", 0.01, seed=2), scores("b", 0.02, seed=3)]), resamples=999)
    found = [one for system in result.systems for one in (*system.datasets.values(), system.average)]
    assert result.tests == len(found) == 6
    smallest = min(found, key=lambda one: one.p_uncorrected)
    assert smallest.p == pytest.approx(min(1, 6 * smallest.p_uncorrected))
    assert all(one.p >= one.p_uncorrected >= 1 / 1000 for one in found)


def test_equal_seeds_give_equal_reports_whatever_the_order_of_rows():
    frame = scores()
    shuffled = frame.sample(fraction=1, shuffle=True, seed=3)
    assert compare(frame, resamples=100).systems == compare(shuffled, resamples=100).systems
    assert compare(frame, resamples=100) != compare(frame, resamples=100, seed=8)


def test_only_queries_of_both_versions_count_and_the_others_are_mentioned():
    frame = scores()
    gone = (pl.col("dataset") == "scifact") & pl.col("query_id").is_in(["q1", "q2"])
    result = compare(frame.filter(~(gone & (pl.col("version") == "original"))), resamples=50)
    assert result.systems[0].datasets["scifact"].queries == 298
    assert result.warnings == (
        "BM25 on scifact: 2 of 300 queries are scored in one version only and left out",
    )
    whole = compare(frame.filter(~gone), resamples=50)
    assert whole.systems == result.systems
    assert whole.warnings == ()


def test_a_dataset_without_one_version_makes_the_average_incomplete():
    frame = pl.concat([scores("a"), scores("b")])
    half = frame.filter(
        ~((pl.col("system") == "b") & (pl.col("dataset") == "scifact") & (pl.col("version") == "original"))
    )
    result = compare(half, resamples=50)
    assert result.warnings == ("b on scifact: only the back-translated version is scored, so it is left out",)
    assert result.systems[0].average is not None
    assert result.systems[1].average is None
    form = texts(tables(result)[0])
    assert form[2][3:] == ["–", "incomplete", "-"]
    assert json.loads(to_json(result))["systems"][1]["average"] is None


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda frame: frame.filter(pl.col("version") == "original"), "no query is scored on both versions"),
        (lambda frame: frame.with_columns(measure=pl.lit("R@100")), "no scores of nDCG@10.*R@100"),
        (lambda frame: frame.with_columns(version=pl.lit("translated")), "unknown version 'translated'"),
        (
            lambda frame: pl.concat([frame, frame.head(1)]),
            r"BM25 on nfcorpus \(original\).*'q0' is scored twice",
        ),
        (lambda frame: frame.with_columns(value=pl.lit(float("nan"))), "no score that is a number"),
        (lambda frame: frame.with_columns(value=pl.lit(None, pl.Float64)), "no score that is a number"),
    ],
)
def test_scores_that_cannot_be_compared_are_refused_in_one_line(spoil, message):
    with pytest.raises(DataError, match=message) as raised:
        compare(spoil(scores()), resamples=10)
    assert "\n" not in str(raised.value)


def test_the_table_has_the_form_of_the_papers():
    result = compare(pl.concat([scores("BM25"), scores("gte-multilingual-base")]), resamples=100)
    form, differences, printed = tables(result)
    assert [column.name for column in form.columns] == [
        "system", "version", "nfcorpus", "scifact", "average", "Δtr",
    ]  # fmt: skip
    assert [row[:2] for row in texts(form)] == [
        ["BM25", "original"],
        ["BM25", "back-translated"],
        ["gte-multilingual-base", "original"],
        ["gte-multilingual-base", "back-translated"],
    ]
    average = result.systems[0].average
    low, high = (f"{100 * end:.1f}" for end in average.interval)
    assert form.rows[1][-1].text == f"{100 * average.delta:.1f} [{low}, {high}]"
    assert [row[-1] for row in texts(differences)] == ["323", "300", "623"] * 2
    assert "over the 6 differences" in differences.caption
    assert printed.title == "As published"


def test_one_dataset_has_no_average_that_only_repeats_it():
    result = compare(scores(sets={"scifact": 300}), resamples=500)
    [system] = result.systems
    assert system.average is None and result.tests == 1
    assert system.datasets["scifact"].p == system.datasets["scifact"].p_uncorrected
    form, differences, _ = tables(result)
    assert [column.name for column in form.columns] == ["system", "version", "scifact", "Δtr"]
    assert all(len(row) == 4 for row in form.rows) and "average" not in form.caption
    assert form.rows[1][-1] == differences.rows[0][2] and form.rows[0][-1].text == "-"
    assert [row[:2] for row in texts(differences)] == [["BM25", "scifact"]]


def test_the_papers_averages_and_changes_follow_from_its_cells():
    printed = texts(tables(compare(scores(), resamples=10))[2])
    assert [row[-2:] for row in printed] == [["38.5", "-"], ["36.6", "-1.9"], ["46.3", "-"], ["43.7", "-2.6"]]
    assert printed[1][2:7] == ["32.4", "22.0", "45.2", "15.1", "68.2"]


def test_other_measures_have_no_published_table():
    assert len(tables(compare(scores(measure="R@100"), "R@100", resamples=10))) == 2
    assert {row["measure"] for row in registry.published("beir-nl-table6")} == {"nDCG@10"}


def test_json_holds_everything_at_full_precision():
    result = compare(scores(), resamples=100)
    read = json.loads(to_json(result))
    [system] = read["systems"]
    found = result.systems[0].datasets["scifact"]
    assert system["datasets"]["scifact"]["delta"] == found.delta
    assert tuple(system["average"]["interval"]) == result.systems[0].average.interval
    assert read["measure"] == "nDCG@10"
    assert read["tests"] == 3
