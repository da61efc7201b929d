"""How far a document that Tantivy did not return can score above the last one that it did.

Tantivy computes in float32, with mean lengths of its own and with k1 1.2 and b 0.75 only, and it can skip
blocks of documents by bounds (block-max WAND; Ding & Suel, SIGIR 2011) that it made when each segment was
written. (From Python it does not, up to 0.27: the binding's collector visits all that match.) What all of
that can hide is a factor, which is bounded here; a search fetches on while a document might be missing, so
that its result is exact whatever the factor is.
"""

from collections.abc import Sequence

import numpy as np

from beirnl.retrieval.bm25.stats import LENGTHS, SegmentStats

#: The parameters that Tantivy has built in; it also multiplies scores by (k1 + 1).
K1, B = 1.2, 0.75
#: Relative rounding errors of a float32 sum beside one per summand, in units of the last place.
_ULPS = 16


def saturation(mean: float, k1: float = K1, b: float = B) -> np.ndarray:
    """What is added to a term's frequency under the fraction of BM25, by norm, float64 [256]."""
    return saturation_of(LENGTHS, mean, k1, b)


def saturation_of(lengths: np.ndarray, mean: float, k1: float, b: float) -> np.ndarray:
    """What is added to a term's frequency under the fraction of BM25, by a document's length, float64 [n]."""
    return np.asarray(k1 * (1 - b + b * lengths / mean))


def idf(documents: int, frequency: int) -> float:
    """Inverse document frequency as Tantivy computes it, in float32; may be 0 where that rounds."""
    one, half = np.float32(1), np.float32(0.5)
    ratio = (np.float32(documents - frequency) + half) / (np.float32(frequency) + half)
    return float(np.log(one + ratio))


def margin(field: str, segments: Sequence[SegmentStats], exact: np.ndarray, longest: int) -> float:
    """The factor for one field, at least 1, rounding left aside.

    - A block's bound is the pair of frequency and length that was best by the mean length of its segment.
      By another mean, another pair may be better, by the ratio of the means at most.
    - A list's bound is the gain of an endless document of that one word. A norm's length is rounded down, so
      that a long document of one word can gain more.
    - Other parameters, or another mean, change a term's gain by ``(tf + a) / (tf + c)``, monotone in tf.
    - Exact lengths are not less than those of norms, so that they only lower a score.

    Args:
        field: its name.
        segments: what Tantivy counted in each.
        exact: :func:`saturation` of the search, shape ``(256,)``.
        longest: the greatest norm that occurs.
    """
    means = [segment.mean(field) for segment in segments if segment.tokens[field]]
    documents = sum(segment.documents for segment in segments)
    if not means:
        return 1.0
    mean = sum(segment.tokens[field] for segment in segments) / documents
    blocks = max(max(own / mean, mean / own) for own in means)
    here = slice(1, longest + 1)
    theirs, longest_of = saturation(mean)[here], LENGTHS[2 : longest + 2] - 1
    lists = (1 + K1 * B / mean) / (1 + theirs / longest_of)
    scores = (1 + theirs) / (1 + exact[here])
    return float(max(blocks, lists.max(initial=1.0)) * scores.max(initial=1.0))


def rounding(clauses: int) -> float:
    """The factor that float32 sums of so many clauses need."""
    return float(1 + (clauses + _ULPS) * np.finfo(np.float32).eps)
