"""What tables say of intervals and tests."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import polars as pl
import pytest

from beirnl.evaluation.formats import json_schema
from beirnl.evaluation.records import Conditions, Record, Report
from beirnl.evaluation.tables import score_tables, tables
from beirnl.evaluation.tables.text import to_markdown
from beirnl.evaluation.tables.uncertainty_tables import pairs_json
from beirnl.evaluation.uncertainty import Resampling, Uncertainty, stated


@pytest.fixture(scope="module")
def report():
    generator = np.random.default_rng(0)
    base = generator.random(80) / 2
    values = {"A": base + 0.3, "B": base + 0.299 + generator.normal(0, 0.05, 80), "C": base}
    scores = pl.concat(
        pl.DataFrame(
            {
                "dataset": "scifact",
                "language": "nl",
                "part": "",
                "system": system,
                "query_id": [str(at) for at in range(80)],
                "measure": "nDCG@10",
                "value": column,
            }
        )
        for system, column in values.items()
    )
    conditions = {"dataset_hash": "h", "search": "bm25", "self_matches": "removed"}
    records = [
        Record(
            dataset="scifact",
            language="nl",
            system=system,
            measure="nDCG@10",
            value=float(column.mean()),
            queries=80,
            conditions=Conditions(**conditions, depth=10 if system == "B" else 100),
        )
        for system, column in values.items()
    ]
    uncertainty = Uncertainty(scores, Resampling(bootstrap=200, randomisation=999))
    return Report("r", stated(records, uncertainty), scores=scores, uncertainty=uncertainty)


def test_a_value_not_below_the_best_is_marked_beside_the_letters_of_conditions(report):
    [table] = score_tables(report.records)
    assert [(row[0].notes, row[1].notes, row[1].best) for row in table.rows] == [
        ("a", "", True),
        ("b", "=", False),
        ("a", "", False),
    ]
    assert table.footnotes[-1][0] == "="
    assert "not significantly below the best" in to_markdown(report)
    without = [record.model_copy(update={"not_below_best": None}) for record in report.records]
    assert "=" not in [letter for letter, _ in score_tables(without)[0].footnotes]


def test_intervals_and_tests_stand_in_a_table_of_their_own(report):
    [table] = [one for one in tables(report) if one.section == "Uncertainty"]
    best, close, below = ([cell.text for cell in row] for row in table.rows)
    a, b, c = report.records
    assert best == ["scifact (nl)", "A", f"{a.value:.4f} [{a.low:.4f}, {a.high:.4f}]", "–", "–"]
    assert close[3:] == [f"{b.p_holm:.4f}", f"{b.wins} / {b.losses} / {b.ties}"]
    assert below[3:] == ["0.0020", "0 / 80 / 0"]  # the least p of 999 assignments, twice
    assert c.p == 0.001
    assert "200 resamples, 999 random assignments, seed 7" in table.caption


def test_all_pairs_are_shown_when_they_are_asked_for(report):
    made = [one for one in tables(replace(report, pairs=True)) if one.title.startswith("All pairs")]
    [table] = made
    assert table.title == "All pairs: nDCG@10 on scifact (nl)"
    assert [[cell.text for cell in row[:2]] for row in table.rows] == [["A", "B"], ["A", "C"], ["B", "C"]]
    assert "over the 3 pairs" in table.caption
    listed = json.loads(pairs_json(report.uncertainty))
    assert [(one["system"], one["other"]) for one in listed] == [("A", "B"), ("A", "C"), ("B", "C")]
    assert {"dataset", "language", "measure", "p", "p_holm", "wins", "losses", "ties"} < listed[0].keys()
    jsonschema.validate(listed, json_schema())
