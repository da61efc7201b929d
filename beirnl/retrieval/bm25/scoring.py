"""Adding up inverted lists: exact scores of all documents of a query, and the best of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from beirnl.retrieval.bm25.lists import Lists, distinct

#: Documents that are scored at once: their sums stay in a processor's cache.
BLOCK = 1 << 17
#: Documents in which the first lower bound of the k-th best score is found, for each that is wanted.
_PROBED = 10
#: Relative room between a bound and a score: what rounding to float32, by which hits are ranked, may add.
_ROUNDING = 1e-6
#: Less than any score.
_TINY = 1e-300


class QueryList(NamedTuple):
    """A term of a query in a field; ordered by how many documents it is in.

    Attributes:
        frequency: documents of the whole corpus that the term is in.
        field: number of the field.
        term: its hash.
        begin, end: its postings.
        weight: idf times the frequency in the query.
    """

    frequency: int
    field: int
    term: int
    begin: int
    end: int
    weight: float


class Scorer:
    """Scores the documents of an index, block by block; all postings of a query are added up.

    No list is left out: with a hundred hits wanted for a dozen words, to find out which lists cannot matter
    (MaxScore) took as long as adding them.

    Args:
        lists: the inverted lists of each field (one or two).
        gains: by field, what each code adds to a score, before the term's weight.
        tie_breaker: share of the worse field that is added to the better one (dis_max).
        documents: how many there are.
    """

    def __init__(
        self, lists: Sequence[Lists], gains: Sequence[np.ndarray], tie_breaker: float, documents: int
    ) -> None:
        self._lists, self._gains, self._tie_breaker = lists, gains, tie_breaker
        self._starts = np.arange(0, documents, BLOCK, dtype=np.int32)
        # Sums by field and document of a block; all 0 between blocks.
        self._sums = np.zeros((len(lists), min(BLOCK, documents)))

    def best(self, query: Sequence[QueryList], k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k best documents, those that tie with the last of them, and perhaps more, in no order.

        Args:
            query: its lists, ascending: the order in which scores are added up.
            k: at least 1.

        Returns:
            Rows (int64) and scores (float64) of equal number.
        """
        gains = [self._gains[part.field] * part.weight for part in query]
        cuts = [self._cuts(part) for part in query]
        rows, scores, limit = np.empty(0, np.intp), np.empty(0), 0.0
        for number, start in enumerate(self._starts.tolist()):
            added = [
                self._add(part.field, cut[number], cut[number + 1], start, gain)
                for part, cut, gain in zip(query, cuts, gains, strict=True)
                if cut[number] < cut[number + 1]
            ]
            found, reached = self._reaching(limit or self._probe(added, k))
            self._sums.fill(0.0)
            rows, scores = np.concatenate([rows, found + start]), np.concatenate([scores, reached])
            if len(rows) > k:
                limit = _limit(scores, k)
                kept = np.flatnonzero(scores >= limit)
                rows, scores = rows[kept], scores[kept]
        return rows, scores

    def _cuts(self, part: QueryList) -> list[int]:
        """Where the postings of each block begin in a list, and where the last ends."""
        documents = self._lists[part.field].documents[part.begin : part.end]
        cuts: list[int] = (part.begin + np.searchsorted(documents, self._starts)).tolist()
        return [*cuts, part.end]

    def _add(self, field: int, begin: int, end: int, start: int, gains: np.ndarray) -> np.ndarray:
        """Adds postings to the sums of the block that begins at a row; returns their places in it."""
        lists = self._lists[field]
        places: np.ndarray = np.subtract(lists.documents[begin:end], start, dtype=np.intp)
        np.add.at(self._sums[field], places, gains.take(lists.codes[begin:end]))
        return places

    def _probe(self, added: Sequence[np.ndarray], k: int) -> float:
        """What the k best of a block reach at least, judged by documents that its rarest terms are in."""
        found: list[np.ndarray] = []
        missing = _PROBED * k
        for places in added:
            found.append(places[:missing])
            missing -= len(found[-1])
        places = distinct(np.concatenate([np.empty(0, np.intp), *found]))
        return _limit(self._combined(self._sums.take(places, axis=1)), k) if len(places) >= k else 0.0

    def _reaching(self, limit: float) -> tuple[np.ndarray, np.ndarray]:
        """Places in the block whose scores reach a limit, and the scores."""
        # A score of the limit needs a field that reaches this.
        bare = limit / (1 + self._tie_breaker) if len(self._sums) > 1 else limit
        reach = self._sums >= max(bare * (1 - _ROUNDING), _TINY)
        places = np.flatnonzero(reach[0] | reach[1] if len(reach) > 1 else reach[0])
        scores = self._combined(self._sums.take(places, axis=1))
        kept = np.flatnonzero(scores >= limit)
        return places[kept], scores[kept]

    def _combined(self, sums: np.ndarray) -> np.ndarray:
        """Scores: the better field's sum, and the other's times the tie breaker."""
        if len(sums) == 1:
            return np.asarray(sums[0])
        return np.asarray(np.maximum(*sums) + self._tie_breaker * np.minimum(*sums))


def _limit(scores: np.ndarray, k: int) -> float:
    """What the k-th best of scores reaches, less what rounding may hide."""
    return float(np.partition(scores, -k)[-k]) * (1 - _ROUNDING)
