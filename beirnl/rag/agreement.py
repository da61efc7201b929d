"""Agreement of two sets of questions about systems and k: Pearson's r of their accuracies.

BES4RAG (section 5, Table 2) compares manual and generated questions by r of the entries of two matrices,
embedding models by k: raw, after min-max scaling of each row, and after min-max scaling of the whole matrix.
The last is one affine map of all entries of a matrix and cannot change r.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from beirnl.evaluation.uncertainty import Resampling, resampling
from beirnl.rag.marks import Marks, Setup, resampled

_CONSTANT = 1e-12  # a range or a deviation of less is none
_LARGEST = 1 - 1e-12  # r of which Fisher's scale is finite


class Correlation(NamedTuple):
    """Pearson's r of two matrices of accuracies under a normalisation.

    Attributes:
        normalisation: a name of :data:`NORMALISATIONS`.
        with_bare: whether the column k = 0, which all systems share, is among the entries.
        r: None where it is undefined.
        low, high: 95 % interval over questions, see :func:`interval`; None where r is.
        entries: number of pairs of entries that r is of.
        undefined: entries that the normalisation does not define, in one of the matrices or both.
    """

    normalisation: str
    with_bare: bool
    r: float | None
    low: float | None
    high: float | None
    entries: int
    undefined: int


class Agreement(NamedTuple):
    """Two sets of questions beside each other.

    Attributes:
        llm: which answered.
        systems, ks: rows and columns of the matrices: what both sets have answers of.
        manual, generated: accuracies, shape (systems, ks).
        questions: number of questions of each set.
        correlations: by normalisation, with and without k = 0.
    """

    llm: str
    systems: Sequence[str]
    ks: Sequence[int]
    manual: np.ndarray
    generated: np.ndarray
    questions: tuple[int, int]
    correlations: Sequence[Correlation]


def pearson(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pearson's r over the entries of matrices, of which NaN ones are left out in pairs.

    Args:
        a: shape (..., rows, columns).
        b: of the same shape.

    Returns:
        Shape (...); NaN where fewer than two entries are left, or those of a matrix are all equal.
    """
    left = ~(np.isnan(a) | np.isnan(b))
    count = left.sum(axis=(-2, -1), keepdims=True)
    deviations = []
    for one in (a, b):
        mean = np.where(left, one, 0.0).sum(axis=(-2, -1), keepdims=True) / np.maximum(count, 1)
        deviations.append(np.where(left, one - mean, 0.0))
    x, y = deviations
    lengths = [np.sqrt((one * one).sum(axis=(-2, -1))) for one in deviations]
    known = np.minimum(*lengths) > _CONSTANT
    product = np.asarray((x * y).sum(axis=(-2, -1)))
    r = np.divide(product, lengths[0] * lengths[1], out=np.full_like(product, np.nan), where=known)
    return np.asarray(r)


def interval(r: float, drawn: np.ndarray) -> resampling.Interval:
    """The 95 % interval of r that its bootstrap standard error gives on Fisher's scale.

    Resampling adds noise of its own to both matrices, so that resampled r lie below r (attenuation), and so
    would their percentiles, often wholly; their spread is what is wanted.

    Args:
        r: as observed.
        drawn: r under resamples; NaN ones are left out.
    """
    from scipy.stats import norm

    scale = np.arctanh(np.clip([r, *drawn[~np.isnan(drawn)]], -_LARGEST, _LARGEST))
    reach = float(norm.ppf(0.975)) * float(scale[1:].std()) if len(scale) > 1 else np.inf
    return resampling.Interval(float(np.tanh(scale[0] - reach)), float(np.tanh(scale[0] + reach)))


def _scaled(axes: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Min-max scaling along axes to 0 to 1; what is constant along them is undefined (NaN), and not 0."""

    def scale(values: np.ndarray) -> np.ndarray:
        low, high = values.min(axis=axes, keepdims=True), values.max(axis=axes, keepdims=True)
        shape = np.broadcast_shapes(values.shape, low.shape)
        out = np.full(shape, np.nan)
        return np.asarray(np.divide(values - low, high - low, out=out, where=high - low > _CONSTANT))

    return scale


def _centred(values: np.ndarray) -> np.ndarray:
    """Entries less the means of their row and column, plus that of all: what neither explains."""
    rows, columns = values.mean(axis=-1, keepdims=True), values.mean(axis=-2, keepdims=True)
    left = values - rows - columns + values.mean(axis=(-2, -1), keepdims=True)
    return np.where(np.abs(left) < _CONSTANT, 0.0, left)


#: Name -> map of matrices of shape (..., systems, ks); entries that it does not define are NaN.
NORMALISATIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "raw": lambda values: values,
    "min-max per row": _scaled((-1,)),
    "min-max of the matrix": _scaled((-2, -1)),
    "min-max per column": _scaled((-2,)),
    "double-centred": _centred,
}
#: What BES4RAG prints in Table 2; the others are ours.
PAPER: Mapping[str, float] = {"raw": 0.78, "min-max per row": 0.80, "min-max of the matrix": 0.90}


def correlations(
    manual: np.ndarray, generated: np.ndarray, with_bare: bool, drawn: tuple[np.ndarray, np.ndarray]
) -> list[Correlation]:
    """Pearson's r under every normalisation.

    Args:
        manual: accuracies on one set, shape (systems, ks).
        generated: on the other, of the same shape.
        with_bare: as in :class:`Correlation`; said, not done.
        drawn: both under resamples, shape (resamples, systems, ks).
    """
    made = []
    for name, normalise in NORMALISATIONS.items():
        a, b = normalise(manual), normalise(generated)
        undefined = int((np.isnan(a) | np.isnan(b)).sum())
        r = float(pearson(a, b))
        known = not np.isnan(r)
        low, high = interval(r, pearson(*(normalise(one) for one in drawn))) if known else (None, None)
        own = r if known else None
        made.append(Correlation(name, with_bare, own, low, high, a.size - undefined, undefined))
    return made


def agreement(manual: Marks, generated: Marks, llm: str, settings: Resampling) -> Agreement | None:
    """How two sets of questions agree on the accuracies of an LLM by system and k.

    Args:
        manual: marks of one set.
        generated: marks of the other.
        llm: which answered.
        settings: of resampling.

    Returns:
        None where the sets do not share two systems and two k with a value for every question. A system that
        lacks a k in one of the sets is left out.
    """
    shared = [setup for setup in manual.complete if setup in generated.complete and setup.llm == llm]
    ks = sorted({setup.k for setup in shared})
    named = dict.fromkeys(setup.system for setup in shared if setup.k)
    systems = [name for name in named if all(_at(llm, name, k) in shared for k in ks)]
    if len(systems) < 2 or len(ks) < 2:
        return None
    setups = [_at(llm, system, k) for system in systems for k in ks]
    shape = (len(systems), len(ks))
    own = [one.of(setups).mean(axis=0).reshape(shape) for one in (manual, generated)]
    drawn = []
    for number, one in enumerate((manual, generated)):  # other draws for each set
        apart = settings._replace(seed=2 * settings.seed + number)
        drawn.append(resampled(one, setups, apart).reshape(-1, *shape))
    found = []
    for with_bare in (True, False) if 0 in ks else (False,):
        kept = np.array([with_bare or k > 0 for k in ks])
        parts = [matrix[..., kept] for matrix in (*own, *drawn)]
        found += correlations(parts[0], parts[1], with_bare, (parts[2], parts[3]))
    sizes = len(manual.questions), len(generated.questions)
    return Agreement(llm, systems, ks, own[0], own[1], sizes, found)


def _at(llm: str, system: str, k: int) -> Setup:
    return Setup(llm, system if k else "", k)
