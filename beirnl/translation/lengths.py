"""How long a translation should be: bounds learned from a dataset's own answers.

The ratio of characters, translation to source, depends on the two languages and on the kind of text; within
a dataset it varies little. A first pass counts the ratios of each shard in fixed bins of their logarithm.
Counts add up to the same sums, and so to the same bounds, however the rows were dealt and in whatever order.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from beirnl.specs import CheckSpec

Texts = Sequence[tuple[str, str]]  # (title, text) per row

LEAST_ROWS = 100  # fewer rows teach nothing
LEAST_CHARACTERS = 60  # of a source: the ratio of shorter ones varies too much

_STEP = 1 / 64  # width of a bin: 1.6 %
_REACH = 3.0  # logarithms beyond this (factor 20) are counted in the outermost bins
BINS = round(2 * _REACH / _STEP)

_SIGMAS = 3.5
_LEAST_WIDTH = np.log(1.5)  # good translators differ by that much on one text
_MAD_TO_SIGMA = 1.4826  # of a normal distribution


class Bounds(NamedTuple):
    """Within which factors of the source's characters a translation's should be.

    Attributes:
        low, high: the least and the largest ratio; their geometric mean is the typical one.
        rows: how many rows they were learned from.
    """

    low: float
    high: float
    rows: int


def ratios(sources: Texts, translations: Texts, finish_reasons: Sequence[str]) -> np.ndarray:
    """log(characters of the translation / characters of the source) of the rows that can teach: float64.

    Left out are sources under :data:`LEAST_CHARACTERS` characters, empty translations, copies, and answers
    that did not end by themselves.

    Args:
        sources, translations: title and text of each row; only the texts are compared.
        finish_reasons: how each answer ended.
    """
    rows = zip(sources, translations, finish_reasons, strict=True)
    pairs = [
        (len(translation), len(source))
        for (_, source), (_, translation), reason in rows
        if reason == "stop" and len(source) >= LEAST_CHARACTERS and translation and translation != source
    ]
    lengths = np.array(pairs, np.float64).reshape(-1, 2)
    ratio: np.ndarray = np.log(lengths[:, 0] / lengths[:, 1])
    return ratio


def histogram(ratios: np.ndarray) -> np.ndarray:
    """Counts of ratios in :data:`BINS` bins of equal width, int64; those of shards add up to a dataset's."""
    bins = np.clip(np.floor((ratios + _REACH) / _STEP), 0, BINS - 1).astype(np.int64)
    return np.bincount(bins, minlength=BINS).astype(np.int64)


def learn(counts: np.ndarray) -> Bounds | None:
    """Bounds out of the histogram of a dataset; None if it has under :data:`LEAST_ROWS` rows.

    With m the median of the log ratios and s = 1.4826 MAD (their median absolute deviation from m, scaled to
    the standard deviation of a normal distribution; Rousseeuw and Croux 1993), the bounds are
    exp(m - w) and exp(m + w) with w = max(3.5 s, log 1.5). They hold until half of the rows are wrong.

    Args:
        counts: as :func:`histogram` gives them, added up.
    """
    rows = int(counts.sum())
    if rows < LEAST_ROWS:
        return None
    centres = (np.arange(BINS) + 0.5) * _STEP - _REACH
    middle = _median(centres, counts)
    sigma = _MAD_TO_SIGMA * _median(np.abs(centres - middle), counts)
    width = max(_SIGMAS * sigma, _LEAST_WIDTH)
    return Bounds(float(np.exp(middle - width)), float(np.exp(middle + width)), rows)


def limits(bounds: Bounds | None, spec: CheckSpec) -> tuple[float, float]:
    """The least and the largest ratio that the check allows.

    Without learned bounds they are the spec's. Learned ones are moved so that the typical ratio lies within
    the spec's (where most answers are wrong, what is typical is wrong), and narrowed to be no wider.
    """
    least, most = spec.min_length_ratio, spec.max_length_ratio
    if bounds is None:
        return least, most
    typical = min(max((bounds.low * bounds.high) ** 0.5, least), most)
    spread = min(bounds.high / bounds.low, most / least) ** 0.5
    return typical / spread, typical * spread


def _median(values: np.ndarray, counts: np.ndarray) -> float:
    """Lower median of ``values``, each taken ``counts`` times."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[order])
    return float(values[order][np.searchsorted(below, (below[-1] + 1) // 2)])
