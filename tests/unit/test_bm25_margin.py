"""What Tantivy's bounds can hide, found by trying lengths and frequencies one by one."""

import numpy as np
import pytest

from beirnl.retrieval.bm25.margin import K1, B, idf, margin, saturation, saturation_of
from beirnl.retrieval.bm25.stats import LENGTHS, SegmentStats, norms

LONGEST = 1500
FREQUENCIES, REAL = (
    grid.ravel() for grid in np.meshgrid(np.arange(1, LONGEST + 1), np.arange(1, LONGEST + 1))
)
POSSIBLE = FREQUENCIES <= REAL
FREQUENCIES, NORMS = FREQUENCIES[POSSIBLE], norms(REAL[POSSIBLE])
LAST = int(NORMS.max())


def segments(*means):
    return [SegmentStats(documents=1000, tokens={"text": round(1000 * mean)}) for mean in means]


def gains(by_norm):
    return FREQUENCIES / (FREQUENCIES + by_norm[NORMS])


@pytest.mark.parametrize("mean", [1, 2.5, 30, 400])
def test_no_document_gains_more_than_its_list_is_said_to(mean):
    bound = 1 / (1 + K1 * B / mean)
    found = margin("text", segments(mean), saturation(mean), LAST)
    assert gains(saturation(mean)).max() <= bound * found * (1 + 1e-12)
    assert found < 1.06


@pytest.mark.parametrize("means", [(10, 10.2), (5, 50), (100, 3, 40)])
def test_no_document_of_a_block_gains_more_than_the_one_that_bounds_it(means):
    rng = np.random.default_rng(0)
    mean = sum(means) / len(means)
    found = margin("text", segments(*means), saturation(mean), LAST)
    true = gains(saturation(mean))
    blocks = rng.integers(len(true), size=(5000, 128))
    for own in means:
        chosen = blocks[np.arange(len(blocks)), gains(saturation(own))[blocks].argmax(axis=1)]
        assert (true[blocks].max(axis=1) <= found * true[chosen]).all()


@pytest.mark.parametrize(
    ("k1", "b", "mean"), [(0.9, 0.4, 30), (2.0, 0.9, 30), (1.2, 0.75, 25), (1.2, 0.75, 40)]
)
def test_no_exact_score_is_further_above_that_of_tantivy(k1, b, mean):
    exact = saturation(mean, k1, b)
    found = margin("text", segments(30), exact, LAST)
    assert (gains(exact) <= found * gains(saturation(30))).all()


def test_no_exact_length_gains_more_than_its_norm():
    lengths = np.arange(1, LONGEST + 1)
    exact, kept = saturation_of(lengths, 30, 1.5, 0.75), saturation(30, 1.5, 0.75)[norms(lengths)]
    assert (exact >= kept).all() and (exact > kept).any()


def test_a_field_without_terms_has_no_margin():
    empty = [SegmentStats(documents=3, tokens={"text": 0})]
    assert margin("text", empty, saturation(1.0), 0) == 1


def test_only_lengths_that_occur_count():
    assert margin("text", segments(2), saturation(2), int(norms(np.array([30]))[0])) == 1
    assert LENGTHS[norms(np.array([30]))[0]] == 30


def test_the_idf_is_that_of_float32():
    assert idf(1000, 10) == pytest.approx(np.log(1 + 990.5 / 10.5), rel=1e-6)
    assert idf(20_000_000, 20_000_000) == 0
