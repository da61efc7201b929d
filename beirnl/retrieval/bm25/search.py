"""Searching an index: candidates from Tantivy, scores from the forward index."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from beirnl.errors import StoreError
from beirnl.retrieval import topk
from beirnl.retrieval.analysis import analyzer
from beirnl.retrieval.bm25 import stats as statistics
from beirnl.retrieval.bm25.build import FORWARD, TANTIVY, read_ids
from beirnl.retrieval.bm25.forward import ForwardIndex, term_hash
from beirnl.retrieval.bm25.stats import IndexStats, idf
from beirnl.specs import Bm25Spec

if TYPE_CHECKING:
    import tantivy

#: The parameters that Tantivy has built in, and by which it multiplies (k1 + 1).
_TANTIVY_K1, _TANTIVY_B = 1.2, 0.75
#: Relative difference allowed for between Tantivy's sums of float32 and ours.
_ROUNDING = 1e-4

Hits = tuple[list[str], np.ndarray]


class _Field(NamedTuple):
    """A query in one field: distinct terms that occur there, by hash, and their weights."""

    terms: np.ndarray
    weights: np.ndarray


class Bm25Index:
    """A searchable index.

    With ``k1`` 1.2 and ``b`` 0.75, which Tantivy has, the answer is exact: candidates are fetched until no
    other document can belong to the k best. With other values the ``max(1000, 10 k)`` candidates are the
    best by Tantivy's, so that the scores are exact and a document may be missing from the list.
    """

    def __init__(self, folder: Path, spec: Bm25Spec, stats: IndexStats) -> None:
        import tantivy

        self.stats, self._spec = stats, spec
        self._analyzer = analyzer(spec.analyzer)
        self._ids = read_ids(folder)
        self._forward = {
            name: ForwardIndex(folder / FORWARD, name, field, spec.k1, spec.b)
            for name, field in stats.fields.items()
        }
        self._exact = (spec.k1, spec.b) == (_TANTIVY_K1, _TANTIVY_B)
        self._tolerance = _ROUNDING + _ballast_error(stats)
        index = tantivy.Index.open(str(folder / TANTIVY))
        self._query, self._should, self._schema = tantivy.Query, tantivy.Occur.Should, index.schema
        self._searcher = index.searcher()
        self._document_frequency = lru_cache(1 << 18)(self._searcher.doc_freq)

    @classmethod
    def open(cls, folder: Path, spec: Bm25Spec) -> "Bm25Index":
        """Opens the index that :func:`combine` made; files are memory-mapped.

        Raises:
            StoreError: it is missing or damaged, or was made for another profile or analyzer.
        """
        stats = statistics.load(folder, spec)
        try:
            return cls(folder, spec, stats)
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
        terms = self._analyzer.batch(queries)
        return [self._search(Counter(t), k, own) for t, own in zip(terms, excluded, strict=True)]

    def _search(self, terms: Counter[str], k: int, exclude: str | None) -> Hits:
        fields, query = self._prepare(terms)
        if query is None or k < 1:
            return [], np.empty(0, np.float32)
        depth = k + max(20, k // 4) if self._exact else max(1000, 10 * k)
        while True:
            rows, last = self._candidates(query, depth)
            scores = self._scores(rows, fields)
            ids = self._ids.take(rows).to_pylist()
            best = topk.top(scores, ids, k, exclude=exclude)
            complete = len(rows) < depth or not self._exact
            if complete or (len(best) == k and last * (1 + self._tolerance) < scores[best[-1]]):
                return [ids[i] for i in best], scores[best]
            depth *= 2

    def _prepare(self, terms: Counter[str]) -> tuple[dict[str, _Field], "tantivy.Query | None"]:
        """The query in each field: for the forward index, and for Tantivy."""
        fields, queries = {}, []
        for name, field in self.stats.fields.items():
            weights, clauses = {}, []
            for term, repeated in terms.items():
                frequency = self._document_frequency(name, term)
                if frequency:
                    weight = repeated * idf(field.documents, frequency)
                    weights[term_hash(term)] = weight
                    clause = self._query.term_query(self._schema, name, term, "freq")
                    boost = weight / idf(self.stats.counted, frequency)
                    clauses.append(
                        (self._should, clause if boost == 1 else self._query.boost_query(clause, boost))
                    )
            if clauses:
                hashes = sorted(weights)
                fields[name] = _Field(np.array(hashes, np.uint64), np.array([weights[h] for h in hashes]))
                queries.append(self._query.boolean_query(clauses))
        if len(queries) < 2:
            return fields, queries[0] if queries else None
        return fields, self._query.disjunction_max_query(queries, self._spec.tie_breaker)

    def _candidates(self, query: "tantivy.Query", depth: int) -> tuple[np.ndarray, float]:
        """Rows of Tantivy's best documents, and the last one's score on Lucene's scale."""
        hits = self._searcher.search(query, depth, count=False).hits
        rows = self._searcher.fast_field_values("n", [address for _, address in hits])
        return np.array(rows, np.int64), hits[-1][0] / (1 + _TANTIVY_K1) if hits else 0.0

    def _scores(self, rows: np.ndarray, fields: dict[str, _Field]) -> np.ndarray:
        """Exact scores: the best field's, and the others' times the tie breaker (dis_max)."""
        scores = [self._forward[name].scores(rows, *field) for name, field in fields.items()]
        best: np.ndarray = np.maximum.reduce(scores)
        others = np.add.reduce(scores) - best
        return np.asarray(best + self._spec.tie_breaker * others, np.float32)


def _ballast_error(stats: IndexStats) -> float:
    """Relative error of Tantivy's mean lengths: the ballast is a whole number of terms."""
    if not any(stats.ballast.values()):
        return 0.0
    return max(
        abs((field.tokens + stats.ballast[name]) / stats.counted / field.mean - 1)
        for name, field in stats.fields.items()
        if field.documents
    )
