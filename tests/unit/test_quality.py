"""chrF and BLEU: equal to sacrebleu's own, with intervals that hold them."""

import numpy as np
import pytest
import sacrebleu
from support import shared

from beirnl.errors import DataError
from beirnl.evaluation.translations.quality import compare, score, table


@pytest.fixture(scope="module")
def parallel():
    source, reference = (
        shared("ntrex", name).read_text(encoding="utf-8").splitlines()[:300]
        for name in ("newstest2019-src.eng.txt", "newstest2019-ref.nld.txt")
    )
    return source, reference


def degraded(references, share, seed=1):
    """Translations of which a share lacks its last third."""
    cut = np.random.default_rng(seed).random(len(references)) < share
    return [text[: len(text) * 2 // 3] if bad else text for text, bad in zip(references, cut, strict=True)]


def test_scores_are_those_of_sacrebleu(parallel):
    source, reference = parallel
    for hypotheses in (source, degraded(reference, 0.5), reference):
        quality = score(hypotheses, reference, resamples=20)
        assert quality.bleu == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [reference]).score, abs=1e-9)
        assert quality.chrf == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [reference]).score, abs=1e-9)
    assert quality.bleu == pytest.approx(100)
    assert quality.segments == 300


def test_intervals_hold_the_scores_and_are_repeatable(parallel):
    _, reference = parallel
    quality = score(degraded(reference, 0.5), reference)
    for value, interval in ((quality.chrf, quality.chrf_interval), (quality.bleu, quality.bleu_interval)):
        assert interval.low < value < interval.high < interval.low + 15
    assert score(degraded(reference, 0.5), reference) == quality
    assert score(degraded(reference, 0.5), reference, seed=8).chrf_interval != quality.chrf_interval


def test_an_interval_is_as_wide_as_sacrebleus_own(parallel):
    _, reference = parallel
    hypotheses = degraded(reference, 0.5)
    ours = score(hypotheses, reference, resamples=2000).bleu_interval
    theirs = sacrebleu.metrics.BLEU().corpus_score(hypotheses, [reference], n_bootstrap=2000)
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, rel=0.1)


def test_signatures_say_how_sacrebleu_was_set(parallel):
    _, reference = parallel
    signatures = score(reference, reference, resamples=2).signatures
    assert signatures["BLEU"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert signatures["chrF"].startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_a_known_difference_is_found_and_an_absent_one_is_not(parallel):
    _, reference = parallel
    worse, better = degraded(reference, 0.5), degraded(reference, 0.2)
    found = compare(worse, better, reference)
    for change in (found.chrf, found.bleu):
        assert change.difference == pytest.approx(change.b - change.a)
        assert 0 < change.interval.low < change.difference < change.interval.high
        assert change.p < 0.01
    back = compare(better, worse, reference)
    assert back.bleu.difference == pytest.approx(-found.bleu.difference)
    assert back.bleu.p == found.bleu.p
    alike = compare(degraded(reference, 0.5, seed=2), degraded(reference, 0.5, seed=3), reference)
    assert alike.chrf.interval.low < 0 < alike.chrf.interval.high
    assert alike.chrf.p > 0.05


def test_a_system_does_not_differ_from_itself(parallel):
    source, reference = parallel
    same = compare(source, source, reference, resamples=50)
    assert same.chrf.difference == 0
    assert same.chrf.p == 1


def test_rows_that_fell_back_to_nothing_count(parallel):
    _, reference = parallel
    halved = ["" if place % 2 else text for place, text in enumerate(reference)]
    assert score(halved, reference, resamples=2).chrf < 80
    assert score([""] * 300, reference, resamples=2)[:2] == (0, 0)


def test_numbers_of_segments_must_agree():
    with pytest.raises(DataError, match=r"2 translations stand against 1 reference"):
        score(["a", "b"], ["a"])
    with pytest.raises(DataError, match=r"0 translations stand against 1 reference"):
        compare(["a"], [], ["a"])
    with pytest.raises(DataError, match="no references"):
        score([], [])


def test_table_has_a_row_per_translation(parallel):
    source, reference = parallel
    made = table({"copy": score(source, reference), "human": score(reference, reference)})
    assert [column.name for column in made.columns] == ["translation", "chrF", "BLEU", "segments"]
    assert [row[0].text for row in made.rows] == ["copy", "human"]
    assert made.rows[1][2].text == "100.0 [100.0, 100.0]"
    assert made.rows[0][1].order < made.rows[1][1].order
    assert made.caption.count("nrefs:1") == 2
