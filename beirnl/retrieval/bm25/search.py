"""Searching an index: candidates from Tantivy, scores from the forward index."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from beirnl.errors import StoreError
from beirnl.retrieval import topk
from beirnl.retrieval.analysis import analyzer
from beirnl.retrieval.bm25 import margin
from beirnl.retrieval.bm25 import stats as statistics
from beirnl.retrieval.bm25.build import read_ids
from beirnl.retrieval.bm25.forward import Forward, file_of, find, hashes, mapped
from beirnl.retrieval.bm25.stats import IndexStats, idf
from beirnl.retrieval.bm25.tantivy_files import TANTIVY
from beirnl.specs import Bm25Spec

if TYPE_CHECKING:
    import tantivy

Hits = tuple[list[str], np.ndarray]
_NONE = np.empty(0, np.int64)


class _Term(NamedTuple):
    """A term of queries in a field.

    Attributes:
        number: its place in the forward index.
        weight: its idf.
        boost: what Tantivy's score of it is multiplied by to be that of Lucene, or more: with the margin.
    """

    number: int
    weight: float
    boost: float


class _Part(NamedTuple):
    """A query in one field: its terms and how often each is in it, in the order of their numbers."""

    field: str
    terms: list[str]
    found: list[_Term]
    repeated: list[int]


class _Field:
    """A field of an open index: exact scores, and what Tantivy needs to know."""

    def __init__(
        self, forward: Forward, name: str, own: IndexStats, whole: IndexStats, spec: Bm25Spec
    ) -> None:
        self.forward, self.name = forward, name
        self._tantivy = sum(segment.documents for segment in own.segments)
        counted = whole.counted(name, spec)
        self.documents = counted.documents
        self._by_norm = margin.saturation(counted.mean, spec.k1, spec.b)
        longest = int(forward.norms.max(initial=0))
        self._margin = margin.margin(name, own.segments, self._by_norm, longest)
        self._spec, self._mean = spec, counted.mean

    def term(self, number: int, frequency: int) -> _Term:
        """What a search needs of a term that is in so many documents of the whole."""
        weight = idf(self.documents, frequency)
        theirs = margin.idf(self._tantivy, int(self.forward.counts[number])) * (1 + margin.K1)
        return _Term(number, weight, weight * self._margin / theirs if theirs else 0.0)

    def scores(self, rows: np.ndarray, part: _Part) -> np.ndarray:
        """Exact scores of documents, float64."""
        numbers = np.array([term.number for term in part.found])
        weights = np.array([n * term.weight for n, term in zip(part.repeated, part.found, strict=True)])
        return self.forward.scores(rows, numbers, weights, self._saturation(rows))

    def _saturation(self, rows: np.ndarray) -> np.ndarray:
        if self._spec.statistics == "lucene":
            return np.asarray(self._by_norm[self.forward.norms[rows]])
        return margin.saturation_of(self.forward.lengths(rows), self._mean, self._spec.k1, self._spec.b)


class _Way(NamedTuple):
    """A query that finds candidates.

    Attributes:
        query: of Tantivy.
        depth: how many documents it finds at first.
        factor, lost: a document after one that it found has at most that one's score times ``factor``, plus
            ``lost``: the weights of terms so frequent that Tantivy's are 0.
    """

    query: "tantivy.Query"
    depth: int
    factor: float
    lost: float


class Bm25Index:
    """A searchable index.

    The answer is exact, ties included, for all parameters: candidates are fetched until no other document can
    belong to the k best. A document's score is the same bits whatever else is in the index, given the same
    statistics.
    """

    def __init__(self, folder: Path, spec: Bm25Spec, stats: IndexStats, whole: Path | None = None) -> None:
        import tantivy

        self.stats = statistics.load(whole, spec) if whole else stats
        self._analyzer, self._tie_breaker = analyzer(spec.analyzer), spec.tie_breaker
        self._ids = read_ids(folder)
        self._fields = {
            name: _Field(Forward.open(folder, name), name, stats, self.stats, spec) for name in stats.fields
        }
        self._whole = {
            name: [mapped(file_of(whole, name, part)) for part in ("terms", "counts")] if whole else None
            for name in stats.fields
        }
        index = tantivy.Index.open(str(folder / TANTIVY))
        self._query, self._should, self._schema = tantivy.Query, tantivy.Occur.Should, index.schema
        self._searcher = index.searcher()
        self._most = self._searcher.num_docs + 1  # Tantivy makes room for as many as are asked for

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
        try:
            return cls(folder, spec, stats, whole)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"the BM25 index is damaged ({error})", where=folder, remedy="rebuild it"
            ) from error

    def search(
        self,
        queries: Sequence[str],
        k: int,
        exclude: Sequence[str | None] | None = None,
        tell: Callable[[int], None] = lambda done: None,
    ) -> list[Hits]:
        """The k best documents for each query, best first in trec_eval's order.

        Args:
            queries: texts; every character of them is text, there is no query syntax.
            k: cutoff; fewer hits come back where fewer documents have a word of the query.
            exclude: per query, the id of a document that must not be found (its own), or None.
            tell: is told how many queries are done.

        Returns:
            Per query the document ids and their scores (float32).
        """
        excluded = exclude or [None] * len(queries)
        counted = [Counter(terms) for terms in self._analyzer.batch(queries)]
        known = self._find({term for terms in counted for term in terms})
        found = []
        for terms, own in zip(counted, excluded, strict=True):
            found.append(self._search(list(_parts(terms, known)), k + (own is not None) if k > 0 else 0))
            tell(len(found))
        ids = iter(self._ids.take(np.concatenate([_NONE, *(rows for rows, _ in found)])).to_pylist())
        hits = []
        for (rows, scores), own in zip(found, excluded, strict=True):
            names = list(islice(ids, len(rows)))
            order = topk.top(scores, names, k, exclude=own)
            hits.append(([names[i] for i in order], scores[order]))
        return hits

    def _find(self, terms: Iterable[str]) -> dict[str, dict[str, _Term]]:
        """By field, the terms that occur there."""
        names = list(terms)
        wanted = hashes(pa.array(names, pa.large_string()))
        known = {}
        for name, field in self._fields.items():
            places, here = find(field.forward.terms, wanted)
            frequencies = field.forward.counts[places[here]]
            if whole := self._whole[name]:
                frequencies = whole[1][np.searchsorted(whole[0], wanted[here])]
            found = zip(
                np.flatnonzero(here).tolist(), places[here].tolist(), frequencies.tolist(), strict=True
            )
            known[name] = {names[at]: field.term(number, frequency) for at, number, frequency in found}
        return known

    def _search(self, parts: list[_Part], wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """The best documents for a query: as many as are wanted, and those that tie with the last of them."""
        rows, scores, limit = _NONE, np.empty(0, np.float32), -np.inf
        seen: set[int] = set()
        for way in self._ways(parts, wanted) if wanted else ():
            depth = way.depth
            while True:
                depth = min(depth, self._most)
                hits = self._searcher.search(way.query, depth, count=False).hits
                bounds = np.array([score for score, _ in hits]) * way.factor + way.lost
                near = [address for _, address in hits[: np.count_nonzero(bounds >= limit)]]
                found: list[Any] = self._searcher.fast_field_values("n", near)
                if new := [row for row in found if row not in seen]:
                    seen.update(new)
                    rows = np.append(rows, new)
                    scores = np.append(scores, self._scores(rows[-len(new) :], parts))
                    limit = np.partition(scores, -wanted)[-wanted] if len(scores) >= wanted else limit
                if len(hits) < depth or bounds[-1] < limit:
                    break
                depth *= 2
        best = scores >= limit
        return rows[best], scores[best]

    def _ways(self, parts: list[_Part], wanted: int) -> Iterator[_Way]:
        """Queries that together find the best documents, each a plain union of terms, Tantivy's fastest.

        With a title T and a text X, the score is ``max(T, X) + tie breaker * min(T, X)``. Where X is not
        less, that is ``X + tie breaker * T``, the first query; else at most ``(1 + tie breaker) * T``.
        """
        if not parts:
            return
        *others, main = parts
        tie = self._tie_breaker
        first = [*self._clauses(main, 1.0), *(c for part in others for c in self._clauses(part, tie) if tie)]
        factor = margin.rounding(len(first))
        terms = ((n, term) for part in parts for n, term in zip(part.repeated, part.found, strict=True))
        lost = sum(n * term.weight for n, term in terms if not term.boost)
        yield _Way(self._query.boolean_query(first), wanted + max(20, wanted // 4), factor, lost)
        for part in others:
            clauses = self._clauses(part, 1.0)
            yield _Way(self._query.boolean_query(clauses), 3 * wanted, (1 + tie) * factor, lost)

    def _clauses(self, part: _Part, boost: float) -> list[tuple["tantivy.Occur", "tantivy.Query"]]:
        query, schema, should = self._query, self._schema, self._should
        return [
            (
                should,
                query.boost_query(query.term_query(schema, part.field, name, "freq"), boost * n * term.boost),
            )
            for name, term, n in zip(part.terms, part.found, part.repeated, strict=True)
        ]

    def _scores(self, rows: np.ndarray, parts: list[_Part]) -> np.ndarray:
        """Exact scores: the best field's, and the others' times the tie breaker (dis_max)."""
        scores = [self._fields[part.field].scores(rows, part) for part in parts]
        best: np.ndarray = np.maximum.reduce(scores)
        others = np.add.reduce(scores) - best
        return np.asarray(best + self._tie_breaker * others, np.float32)


def _parts(terms: Counter[str], known: dict[str, dict[str, _Term]]) -> Iterator[_Part]:
    """A query in each field where it has a term."""
    for field, found in known.items():
        here = sorted((name for name in terms if name in found), key=lambda name: found[name].number)
        if here:
            yield _Part(field, here, [found[name] for name in here], [terms[name] for name in here])
