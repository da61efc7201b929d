"""Searching an index: from texts to hits."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from beirnl.errors import StoreError
from beirnl.retrieval import topk
from beirnl.retrieval.analysis import analyzer
from beirnl.retrieval.bm25 import stats as statistics
from beirnl.retrieval.bm25.build import read_ids
from beirnl.retrieval.bm25.combine import COUNTS
from beirnl.retrieval.bm25.lists import Lists, file_of, find, mapped, term_hash
from beirnl.retrieval.bm25.scoring import QueryList, Scorer
from beirnl.retrieval.bm25.stats import IndexStats, idf
from beirnl.specs import Bm25Spec

Hits = tuple[list[str], np.ndarray]


class Bm25Index:
    """A searchable index.

    The answer is exact, ties included, for all parameters; a document's score is the same bits whatever else
    is in the index, given the same statistics.
    """

    def __init__(self, folder: Path, spec: Bm25Spec, stats: IndexStats, whole: Path | None = None) -> None:
        self.stats = stats
        self._analyzer = analyzer(spec.analyzer)
        self._ids = read_ids(folder)
        self._lists = [Lists.open(folder, field) for field in stats.fields]
        gains = [
            lists.gains(field, spec.k1, spec.b)
            for lists, field in zip(self._lists, stats.fields.values(), strict=True)
        ]
        self._scorer = Scorer(self._lists, gains, spec.tie_breaker, len(self._ids))
        self._whole = [
            tuple(mapped(file_of(whole, field, part)) for part in ("terms", COUNTS)) if whole else None
            for field in stats.fields
        ]

    @classmethod
    def open(cls, folder: Path, spec: Bm25Spec, whole: Path | None = None) -> "Bm25Index":
        """Opens the index that :func:`combine` made; files are memory-mapped.

        Args:
            folder: where it is.
            spec: the conditions of the search.
            whole: if the index is one of several document shards, what :func:`count_terms` made of them.

        Raises:
            StoreError: it is missing or damaged, or was made for another profile or analyzer.
        """
        stats = statistics.load(folder, spec)
        if whole:
            stats = statistics.load(whole, spec)
        try:
            return cls(folder, spec, stats, whole)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"the BM25 index is damaged ({error})", where=folder, remedy="rebuild it"
            ) from error

    def search(
        self, queries: Sequence[str], k: int, exclude: Sequence[str | None] | None = None
    ) -> list[Hits]:
        """The k best documents for each query, best first in trec_eval's order.

        Args:
            queries: texts; every character of them is text, there is no query syntax.
            k: cutoff; fewer hits come back where fewer documents have a word of the query.
            exclude: per query, the id of a document that must not be found (its own), or None.

        Returns:
            Per query the document ids and their scores (float32).
        """
        excluded = exclude or [None] * len(queries)
        counted = [Counter(terms) for terms in self._analyzer.batch(queries)]
        lists = self._find({term for terms in counted for term in terms})
        return [
            self._search(_of_query(terms, lists), k, own)
            for terms, own in zip(counted, excluded, strict=True)
        ]

    def _find(self, terms: Iterable[str]) -> dict[str, list[QueryList]]:
        """The lists of terms, weighted as if each stood once in a query."""
        found: dict[str, list[QueryList]] = {term: [] for term in terms}
        names = list(found)
        hashes = np.fromiter(map(term_hash, names), np.uint64, len(names))
        for number, (lists, field) in enumerate(zip(self._lists, self.stats.fields.values(), strict=True)):
            places, here = find(lists.terms, hashes)
            frequencies = self._frequencies(number, hashes)
            for at in np.flatnonzero(here).tolist():
                begin, end = lists.offsets[places[at] : places[at] + 2].tolist()
                frequency = int(frequencies[at]) if frequencies is not None else end - begin
                weight = idf(field.documents, frequency)
                found[names[at]].append(QueryList(frequency, number, int(hashes[at]), begin, end, weight))
        return found

    def _frequencies(self, field: int, hashes: np.ndarray) -> np.ndarray | None:
        """Document frequencies in all shards, where this is one of several."""
        whole = self._whole[field]
        if whole is None:
            return None
        terms, counts = whole
        places, here = find(terms, hashes)
        frequencies = np.zeros(len(hashes), np.int64)
        frequencies[here] = counts[places[here]]
        return frequencies

    def _search(self, query: list[QueryList], k: int, exclude: str | None) -> Hits:
        if not query or k < 1:
            return [], np.empty(0, np.float32)
        wanted = k + (exclude is not None)
        rows, exact = self._scorer.best(query, wanted)
        scores = exact.astype(np.float32)
        if len(rows) > wanted:
            best = scores >= np.partition(scores, -wanted)[-wanted]
            rows, scores = rows[best], scores[best]
        ids = self._ids.take(rows).to_pylist()
        order = topk.top(scores, ids, k, exclude=exclude)
        return [ids[i] for i in order], scores[order]


def _of_query(terms: Counter[str], lists: dict[str, list[QueryList]]) -> list[QueryList]:
    """The lists of a query, the shortest first: the order in which all its scores are added up."""
    return sorted(
        part._replace(weight=repeated * part.weight) if repeated > 1 else part
        for term, repeated in terms.items()
        for part in lists[term]
    )
