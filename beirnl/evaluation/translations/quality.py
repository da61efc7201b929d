"""Quality of translations against references: chrF and BLEU as sacrebleu computes them, with intervals.

Scores run from 0 to 100. A row whose translation failed, so that it holds the source or nothing, counts as it
is: leaving it out would flatter the system that fails most.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from beirnl.errors import DataError
from beirnl.evaluation.tables import Cell, Column, Table
from beirnl.evaluation.uncertainty.resampling import Interval, interval, p_value, resampled_sums
from beirnl.wording import counted

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

#: Scores in the order of their columns.
SCORES = ("chrF", "BLEU")


class Quality(NamedTuple):
    """How near translations are to references.

    Attributes:
        chrf: corpus chrF2 (Popović 2015).
        bleu: corpus BLEU (Papineni et al. 2002; Post 2018).
        chrf_interval, bleu_interval: 95 % percentile bootstrap intervals over segments.
        segments: number of segments.
        signatures: sacrebleu's signature by score, ``chrF`` and ``BLEU``.
    """

    chrf: float
    bleu: float
    chrf_interval: Interval
    bleu_interval: Interval
    segments: int
    signatures: Mapping[str, str]


class Change(NamedTuple):
    """One score of two systems.

    Attributes:
        a, b: corpus scores.
        difference: ``b`` minus ``a``.
        interval: 95 % paired bootstrap interval of the difference.
        p: two-sided, of the paired bootstrap test (Koehn 2004; shifted, Riezler and Maxwell 2005).
    """

    a: float
    b: float
    difference: float
    interval: Interval
    p: float


class Comparison(NamedTuple):
    """Two systems on the same segments."""

    chrf: Change
    bleu: Change
    segments: int
    signatures: Mapping[str, str]


class _Scored(NamedTuple):
    """A corpus score, the scores of its resamples (shape (resamples,)), and its signature."""

    value: float
    resampled: np.ndarray
    signature: str


def score(
    hypotheses: Sequence[str], references: Sequence[str], *, seed: int = 7, resamples: int = 1000
) -> Quality:
    """Corpus scores of translations, one reference each.

    Args:
        hypotheses: translations, one per segment.
        references: as many.
        seed: of the resampling.
        resamples: of segments.

    Raises:
        DataError: there are no segments, or not as many references.
    """
    _check(references, hypotheses)
    chrf, bleu = (_scored(metric, hypotheses, references, seed, resamples) for metric in _metrics())
    return Quality(
        chrf=chrf.value,
        bleu=bleu.value,
        chrf_interval=interval(chrf.resampled),
        bleu_interval=interval(bleu.resampled),
        segments=len(references),
        signatures=dict(zip(SCORES, (chrf.signature, bleu.signature), strict=True)),
    )


def compare(
    a: Sequence[str], b: Sequence[str], references: Sequence[str], *, seed: int = 7, resamples: int = 1000
) -> Comparison:
    """Two systems on the same segments, resampled in pairs.

    Args:
        a: translations of one system.
        b: translations of the other.
        references: as many.
        seed: of the resampling.
        resamples: of segments.

    Raises:
        DataError: there are no segments, or their numbers differ.
    """
    _check(references, a, b)
    changes, signatures = [], []
    for metric in _metrics():
        first, second = (_scored(metric, texts, references, seed, resamples) for texts in (a, b))
        difference = second.value - first.value
        resampled = second.resampled - first.resampled
        p = p_value(difference, resampled - resampled.mean())
        changes.append(Change(first.value, second.value, difference, interval(resampled), p))
        signatures.append(first.signature)
    chrf, bleu = changes
    return Comparison(chrf, bleu, len(references), dict(zip(SCORES, signatures, strict=True)))


def table(qualities: Mapping[str, Quality], section: str = "Translation") -> Table:
    """Scores with intervals, one row per name (a dataset, or a system), sacrebleu's signatures below."""
    rows = [
        [
            Cell(name),
            _cell(quality.chrf, quality.chrf_interval),
            _cell(quality.bleu, quality.bleu_interval),
            Cell(f"{quality.segments:,}", quality.segments),
        ]
        for name, quality in qualities.items()
    ]
    signatures = dict.fromkeys(
        f"{name}: {signature}"
        for quality in qualities.values()
        for name, signature in quality.signatures.items()
    )
    caption = "0 to 100, higher is better; in brackets 95 % bootstrap intervals over segments."
    caption = " ".join([caption, *(f"{text}." for text in signatures)])
    columns = [Column("translation"), *map(Column, SCORES), Column("segments")]
    return Table(section, "Against references", caption, columns, rows)


def to_rows(quality: Quality) -> list[dict[str, Any]]:
    """Rows of schema ``QUALITY``, one per score."""
    values = zip(
        SCORES,
        (quality.chrf, quality.bleu),
        (quality.chrf_interval, quality.bleu_interval),
        strict=True,
    )
    return [
        {
            "score": name,
            "value": value,
            "low": bounds.low,
            "high": bounds.high,
            "segments": quality.segments,
            "signature": quality.signatures[name],
        }
        for name, value, bounds in values
    ]


def of_rows(rows: Sequence[Mapping[str, Any]]) -> Quality:
    """The scores out of their rows, as :func:`to_rows` gives them."""
    chrf, bleu = (next(row for row in rows if row["score"] == name) for name in SCORES)
    return Quality(
        chrf["value"],
        bleu["value"],
        Interval(chrf["low"], chrf["high"]),
        Interval(bleu["low"], bleu["high"]),
        chrf["segments"],
        {row["score"]: row["signature"] for row in rows},
    )


def _cell(value: float, bounds: Interval) -> Cell:
    return Cell(f"{value:.1f} [{bounds.low:.1f}, {bounds.high:.1f}]", value)


def _metrics() -> "tuple[Metric, Metric]":
    """The metrics, in the order of :data:`SCORES`; ``force``: no warning about tokenized input."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(), BLEU(force=True)


def _scored(
    metric: "Metric", hypotheses: Sequence[str], references: Sequence[str], seed: int, resamples: int
) -> _Scored:
    """A corpus score and those of resamples: sums of the segments' counts, scored by sacrebleu itself."""
    counts = np.asarray(metric._extract_corpus_statistics(hypotheses, [references]), np.float64)
    value, *resampled = (
        metric._compute_score_from_stats(sums).score
        for sums in [counts.sum(0).tolist(), *resampled_sums(counts, resamples, seed).tolist()]
    )
    return _Scored(value, np.array(resampled), str(metric.get_signature()))


def _check(references: Sequence[str], *systems: Sequence[str]) -> None:
    if not references:
        raise DataError("there are no references", remedy="give at least one segment with its reference")
    for texts in systems:
        if len(texts) != len(references):
            raise DataError(
                f"{counted(len(texts), 'translation stands', 'translations stand')} against "
                f"{counted(len(references), 'reference')}",
                remedy="give one reference for each translation, in the same order",
            )
