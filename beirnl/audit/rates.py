"""Rates of labels with their intervals: per dataset, pooled over datasets, and those of the paper."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from beirnl.audit.labels import LABELS, Label
from beirnl.evaluation.uncertainty import resampling

LEVEL = 0.95  # of all intervals
RESAMPLES = 10_000


class Rate(msgspec.Struct, frozen=True):
    """A share of items with its 95% interval; ``count`` is None where it is a mean of shares."""

    value: float
    low: float
    high: float
    count: int | None = None


Rates = Mapping[Label, Rate]


class Stratum(msgspec.Struct, frozen=True):
    """The labels of one dataset.

    Attributes:
        name: dataset and language.
        size: number of translated items that the sample was drawn from.
        sampled: number of items on the sheet.
        counts: how many of them have which label; an item without a label is in none.
    """

    name: str
    size: int
    sampled: int
    counts: Mapping[Label, int]

    @property
    def labelled(self) -> int:
        """Number of items with a label."""
        return sum(self.counts.values())


#: What BEIR-NL found (section 3.1). It does not say whether an item can have both, so none is called correct.
PAPER: Mapping[Label, int] = {"minor": 20, "major": 3}
PAPER_ITEMS = 135
PAPER_NOTE = (
    "BEIR-NL (section 3.1) prints 2.2% major and 14.8% minor of 140 samples. Neither is a share of 140; "
    "3 of 135 are 2.22% and 20 of 135 are 14.81%, and no other number of samples from 100 to 140 gives both, "
    "so it must have been 135."
)


def wilson(count: int, total: int) -> Rate:
    """A share with its Wilson score interval."""
    return Rate(count / total, *resampling.wilson(count, total, LEVEL), count)


def rates(stratum: Stratum) -> Rates:
    """Rate of each label among the labelled items of a dataset, at least one."""
    return {label: wilson(stratum.counts.get(label, 0), stratum.labelled) for label in LABELS}


def paper_rates() -> Rates:
    """The paper's rates of minor and major."""
    return {label: wilson(count, PAPER_ITEMS) for label, count in PAPER.items()}


def together(strata: Sequence[Stratum], name: str) -> Stratum:
    """All datasets as one."""
    counts = {label: sum(one.counts.get(label, 0) for one in strata) for label in LABELS}
    return Stratum(name, sum(one.size for one in strata), sum(one.sampled for one in strata), counts)


def pooled(
    strata: Sequence[Stratum], weights: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES
) -> Rates:
    """Weighted means of the datasets' rates, with percentile intervals of a stratified bootstrap.

    Items are resampled inside each dataset, which keeps its number of labelled items (Efron and Tibshirani
    1993, chapters 8 and 13).

    Args:
        strata: datasets with at least one labelled item each.
        weights: of each dataset; scaled to sum to 1.
        seed: of the resampling; equal seeds give equal intervals.
        resamples: how often it is done.
    """
    scaled = np.asarray(weights, dtype=float) / np.sum(weights)
    means, drawn = np.zeros(len(LABELS)), np.zeros((resamples, len(LABELS)))
    for number, (one, weight) in enumerate(zip(strata, scaled, strict=True)):
        given = np.repeat(np.eye(len(LABELS)), [one.counts.get(label, 0) for label in LABELS], axis=0)
        means += weight * given.mean(axis=0)
        drawn += weight / one.labelled * resampling.resampled_sums(given, resamples, [seed, number])
    ends = [resampling.interval(drawn[:, at], LEVEL) for at in range(len(LABELS))]
    return {label: Rate(float(mean), *end) for label, mean, end in zip(LABELS, means, ends, strict=True)}
