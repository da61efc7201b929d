"""How far annotators agree: Cohen's kappa for two, Krippendorff's alpha for more, and one label per item."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np

from beirnl.audit.labels import LABELS, Label

#: What each annotator said: name -> key of an item -> label.
Votes = Mapping[str, Mapping[str, Label]]


class Agreement(msgspec.Struct, frozen=True):
    """Agreement of two or more annotators.

    Attributes:
        annotators: number of annotators.
        items: number of items that at least two of them labelled.
        equal: share of equal labels among all pairs of labels of one item; None without any.
        kappa: Cohen's kappa, for two annotators.
        alpha_ordinal, alpha_nominal: Krippendorff's alpha, for more than two.

    A coefficient is None where it does not apply, or is undefined because only one label was given.
    """

    annotators: int
    items: int
    equal: float | None = None
    kappa: float | None = None
    alpha_ordinal: float | None = None
    alpha_nominal: float | None = None


def majority(labels: Sequence[Label]) -> Label:
    """The label that most annotators gave; of labels given equally often the worse one."""
    counts = Counter(labels)
    return max(counts, key=lambda label: (counts[label], LABELS.index(label)))


def agreement(votes: Votes) -> Agreement | None:
    """Agreement on the items that at least two annotators labelled; None with fewer than two annotators."""
    if len(votes) < 2:
        return None
    keys = dict.fromkeys(key for labels in votes.values() for key in labels)
    units = [[labels[key] for labels in votes.values() if key in labels] for key in keys]
    units = [unit for unit in units if len(unit) > 1]
    pairs = [pair for unit in units for pair in combinations(unit, 2)]
    if not pairs:
        return Agreement(len(votes), 0)
    equal = sum(first == second for first, second in pairs) / len(pairs)
    if len(votes) == 2:
        return Agreement(2, len(units), equal, kappa=cohen_kappa(pairs))
    numbers = [[LABELS.index(label) for label in unit] for unit in units]
    return Agreement(
        len(votes),
        len(units),
        equal,
        alpha_ordinal=krippendorff_alpha(numbers, "ordinal"),
        alpha_nominal=krippendorff_alpha(numbers, "nominal"),
    )


def cohen_kappa(pairs: Sequence[tuple[Label, Label]]) -> float | None:
    """Unweighted kappa of two annotators (Cohen 1960); None where both gave one and the same label only."""
    from sklearn.metrics import cohen_kappa_score

    if len({label for pair in pairs for label in pair}) < 2:
        return None
    first, second = zip(*pairs, strict=True)
    return float(cohen_kappa_score(first, second))


def krippendorff_alpha(units: Sequence[Sequence[int]], level: Literal["nominal", "ordinal"]) -> float | None:
    """Krippendorff's alpha, from coincidences (Krippendorff 2011, Computing Alpha-Reliability).

    Args:
        units: the values that each unit was given, in any order; missing values are left out, and units with
            fewer than two values do not count.
        level: ``nominal``: values are equal or not; ``ordinal``: values are ranks, and two differ by the
            number of values given between them.

    Returns:
        1 for perfect agreement, 0 for that of chance; None where fewer than two different values were given.
    """
    pairable = [unit for unit in units if len(unit) > 1]
    values = sorted({value for unit in pairable for value in unit})
    if len(values) < 2:
        return None
    coincidences = np.zeros((len(values), len(values)))
    for unit in pairable:
        counts = np.array([unit.count(value) for value in values], dtype=float)
        coincidences += (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    totals = coincidences.sum(axis=0)
    differences = _differences(totals, level)
    observed = (coincidences * differences).sum()
    expected = (np.outer(totals, totals) * differences).sum() / (totals.sum() - 1)
    return float(1 - observed / expected)


def _differences(totals: np.ndarray, level: Literal["nominal", "ordinal"]) -> np.ndarray:
    """Squared difference of each pair of values, of which ``totals`` were given."""
    if level == "nominal":
        return 1 - np.eye(len(totals))
    middle = np.cumsum(totals) - totals / 2
    squared: np.ndarray = np.subtract.outer(middle, middle) ** 2
    return squared
