"""Rates, intervals and agreement of labels."""

import json

import pytest
from audit_sheets import datasets, item, label, sheet
from rich.console import Console
from scipy.stats import binom

from beirnl.audit import report
from beirnl.audit.agreement import agreement, krippendorff_alpha, majority
from beirnl.audit.rates import PAPER, PAPER_ITEMS, Stratum, paper_rates, pooled, wilson
from beirnl.errors import DataError

# The paper --------------------------------------------------------------------------------------------------


def test_of_100_to_140_samples_only_135_can_give_what_the_paper_prints():
    def printed(total):
        shares = {round(100 * count / total, 1) for count in range(total + 1)}
        return {2.2, 14.8} <= shares

    assert [total for total in range(100, 141) if printed(total)] == [PAPER_ITEMS]
    assert {name: round(100 * count / PAPER_ITEMS, 1) for name, count in PAPER.items()} == {
        "minor": 14.8,
        "major": 2.2,
    }
    assert set(paper_rates()) == {"minor", "major"}


# Rates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count, total", [(3, 135), (20, 135), (0, 10), (10, 10), (1, 1)])
def test_the_ends_of_a_wilson_interval_are_where_the_score_test_turns(count, total):
    found = wilson(count, total)
    z = 1.959963984540054
    for end in (found.low, found.high):
        if 1e-12 < end < 1 - 1e-12:
            assert abs(found.value - end) == pytest.approx(z * (end * (1 - end) / total) ** 0.5)
    assert found.low <= found.value <= found.high
    assert (found.count, found.value) == (count, count / total)


def test_datasets_count_equally_or_by_their_size():
    small = Stratum("small", 100, 10, {"correct": 5, "minor": 4, "major": 1})
    large = Stratum("large", 900, 10, {"correct": 10})
    equal, weighted = pooled([small, large], [1, 1]), pooled([small, large], [100, 900])
    assert {name: rate.value for name, rate in equal.items()} == pytest.approx(
        {"correct": 0.75, "minor": 0.2, "major": 0.05}
    )
    assert weighted["minor"].value == pytest.approx(0.04)
    assert weighted["minor"].high < equal["minor"].high
    assert all(rate.count is None for rate in equal.values())
    assert pooled([small, large], [1, 1]) == equal
    few = {"resamples": 20}
    assert pooled([small, large], [1, 1], seed=1, **few) != pooled([small, large], [1, 1], seed=2, **few)


def test_the_bootstrap_of_one_dataset_has_binomial_quantiles():
    found = pooled([Stratum("one", 50, 10, {"correct": 6, "minor": 4})], [1])["minor"]
    assert (found.low, found.high) == pytest.approx(tuple(binom.ppf([0.025, 0.975], 10, 0.4) / 10))


def test_resampling_stays_inside_each_dataset():
    """Were items drawn across datasets, the share of major would vary; inside them it cannot."""
    strata = [Stratum("a", 10, 10, {"major": 10}), Stratum("b", 10, 10, {"correct": 10})]
    found = pooled(strata, [1, 1])["major"]
    assert (found.low, found.value, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_datasets_are_resampled_apart():
    one = Stratum("one", 10, 10, {"correct": 5, "minor": 5})
    alone, twice = pooled([one], [1])["minor"], pooled([one, one], [1, 1])["minor"]
    assert twice.high - twice.low < 0.85 * (alone.high - alone.low)  # by the root of 2


# Agreement --------------------------------------------------------------------------------------------------


def test_most_votes_win_and_a_tie_goes_to_the_worse():
    assert majority(["minor", "correct", "correct"]) == "correct"
    assert majority(["correct", "minor"]) == "minor"
    assert majority(["major", "correct", "minor"]) == "major"
    assert majority(["correct", "correct", "major", "major", "minor"]) == "major"


def _votes(*annotators):
    names = {"c": "correct", "m": "minor", "j": "major"}
    return {
        f"a{n}": {str(at): names[letter] for at, letter in enumerate(letters) if letter in names}
        for n, letters in enumerate(annotators)
    }


def test_kappa_of_two_is_over_what_both_labelled():
    # table of counts [[20, 5], [10, 15]]: observed 0.7, expected 0.5, kappa 0.4
    first, second = "c" * 25 + "m" * 25, "c" * 20 + "m" * 5 + "c" * 10 + "m" * 15
    found = agreement(_votes(first + "jj", second + "  "))
    assert (found.items, found.annotators, found.equal) == (50, 2, 0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.alpha_ordinal is found.alpha_nominal is None


def test_agreement_where_there_is_none_to_speak_of():
    assert agreement(_votes("cmj")) is None
    assert agreement(_votes("ccc   ", "   ccc")).items == 0
    alike = agreement(_votes("ccc", "ccc"))
    assert (alike.equal, alike.kappa) == (1.0, None)
    assert agreement(_votes("cc", "cc", "cc")).alpha_ordinal is None


def test_ordinal_alpha_punishes_distant_labels_more():
    near, far = agreement(_votes("ccmj", "ccmj", "cmmj")), agreement(_votes("ccmj", "ccmj", "cjmj"))
    assert near.alpha_ordinal > far.alpha_ordinal
    assert agreement(_votes("cmj", "cmj", "cmj")).alpha_ordinal == 1.0


# Reliability data by observer, a point for a missing value, and the alphas published with them: Krippendorff
# 2011 (Computing Krippendorff's Alpha-Reliability, example C) and the example of the encyclopedia's article.
@pytest.mark.parametrize(
    "observers, nominal, ordinal",
    [
        pytest.param(
            ["123321412...", "1233224125.3", ".3332342251.", "12332441251."], 0.743, 0.815, id="2011, C"
        ),
        pytest.param(
            [".....34121133.3", "1.213343.......", "..21344.21133.4"],
            0.691,
            0.807,
            id="encyclopedia",
        ),
    ],
)
def test_alpha_of_published_examples(observers, nominal, ordinal):
    units = [[int(v) for v in unit if v != "."] for unit in zip(*observers, strict=True)]
    assert round(krippendorff_alpha(units, "nominal"), 3) == nominal
    assert round(krippendorff_alpha(units, "ordinal"), 3) == ordinal


# The report -------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(tmp_path):
    """Two datasets and one that nobody has labelled; three items of the second have no label either."""
    items = datasets(small=100, large=9900, later=5)
    path = sheet(tmp_path / "s.jsonl", items)
    label(path, "anna", items[:20], "ccccccccmj" + "ccccccc   ")
    label(path, "ben", items[:20], "cccccccmmm" + "          ")
    return path


def test_the_report_of_two_annotators(labelled):
    found = report.gather(labelled)
    assert (found.items, found.labelled, found.annotators) == (30, 17, {"anna": 17, "ben": 10})
    small, large, later = found.datasets
    assert {name: rate.count for name, rate in small.rates.items()} == {"correct": 7, "minor": 2, "major": 1}
    assert (large.labelled, large.sampled, large.rates["correct"].value) == (7, 10, 1.0)
    assert later.rates == {}
    assert found.dataset_equal["major"].value == pytest.approx(0.05)
    assert found.size_weighted["major"].value == pytest.approx(0.001)
    assert found.all_items.rates["major"].count == 1
    assert found.agreement.items == 10
    assert found.notes[0] == "13 of 30 items have no label and are left out of all rates."
    assert "without later (nl)" in found.notes[1]
    assert any("of a tie, the worse one" in note for note in found.notes)
    assert any("equal, resampling it gives no width" in note for note in found.notes)


def test_labels_of_another_translation_are_said_and_not_counted(labelled):
    label(labelled, "carl", [item("small", "1", text="anders")], "j")
    found = report.gather(labelled)
    assert "carl" not in found.annotators
    assert any(note.startswith("1 label is of items or translations") for note in found.notes)


def test_a_sheet_without_labels_is_one_line(tmp_path):
    path = sheet(tmp_path / "s.jsonl", datasets(a=10))
    with pytest.raises(DataError, match=r"has no labels yet; label it with `beirnl audit serve"):
        report.gather(path)


def test_every_form_shows_the_rates_beside_the_papers(labelled):
    found = report.gather(labelled)
    said = json.loads(report.to_json(found))
    assert said["paper"]["major"]["count"] == 3
    assert said["size_weighted"]["major"]["low"] <= said["size_weighted"]["major"]["value"]
    assert said["seed"] == 0
    console = Console(width=200, record=True)
    report.show(found, console)
    for text in (report.to_markdown(found).replace("\\", ""), console.export_text()):
        for expected in ("small (nl)", "1: 10.0% [1.8%, 40.4%]", "3: 2.2% [", "20: 14.8% [", "Cohen's kappa"):
            assert expected in text, expected
        assert "13 of 30 items have no label" in text
        assert "it must have been 135" in text
    assert "10,000 resamples, seed 0" in report.to_markdown(found)


def test_three_annotators_get_alpha(labelled):
    items = datasets(small=100, large=9900, later=5)
    label(labelled, "carl", items[:10], "ccccccccmj")
    text = report.to_markdown(report.gather(labelled))
    assert "Krippendorff's alpha (ordinal: correct \\< minor \\< major)" in text
    assert "kappa" not in text
