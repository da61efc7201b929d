"""How work grows: what a stage takes for its real input, by what it took for a small one.

Every stage of retrieval has a law: in proportion to what it takes time (its *effort*) and disk (its
*volume*), and how many bytes of a worker's memory its input decides (*held*). What grows at a rate that
depends on the data has a range, whose assumptions stand here:

- BM25 search visits all matches, in proportion to the n documents of a corpus, and each query has a part that
  does not grow, which weighs most in small samples: between the square root of n and a little more than n
  (from 1 to 5.23 million documents a query took 5.8 times as long: caches).
- An index of n documents has in proportion to n**0.65 terms (Heaps' law); what they take beside the postings
  is measured on a small and a larger one.
- Adding a vector to a graph of n, or searching it, takes more than log n (Malkov and Yashunin 2018, section
  4.2), as less and less of the graph is in the processor's caches. From 16,000 to 131,000 vectors of 384
  numbers, building took a vector 2.7 times as long, as the fifth power of log n has it; it is taken to be
  between the third and the sixth, and for searching between the second and the fifth.
- Encoders, rerankers and indexing take what the text is long. So many tokens as ``_FRAME`` bytes of text
  have are added for special tokens and what a text takes however short it is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from beirnl.cost import Range

_FRAME = 32
_READING = 400  # reading a vector takes as long as its products with so many queries
_FILE = 100  # what a file of a run takes beside its hits, in hits
_HITS = 64  # bytes of a hit while runs are merged
_TERMS: float = 0.65 - 1  # how the terms of a document become fewer with the number of documents
_ANALYSED = 5, 128 << 20  # bytes held for each byte of a unit's text, of so many at most


class Size(NamedTuple):
    """What decides how much work a stage is.

    Attributes:
        documents: that it reads: documents, texts to be embedded, or their vectors.
        queries, hits: of a run that goes in or comes out, the latter of all queries together.
        units: units of work; of sharded and approximate indexes also how many there are.
        largest: documents of the largest unit.
        text, query_text: bytes of a document and of a query, on average.
        name: bytes of an identifier, on average.
        dimension: of vectors.
        number: bytes of a number of a graph's vectors.
        links: neighbours of a node of a graph.
        memory: bytes that blocks of exact search may take.
        terms: bytes that the terms of an index of one document take, for each that its postings do.
        recalled: queries for which approximate search is compared with exact search.
        once: whether a unit of a second stage reads each text once, however many pairs it stands in.
    """

    documents: int = 0
    queries: int = 0
    hits: int = 0
    units: int = 1
    largest: int = 0
    text: float = 0.0
    query_text: float = 0.0
    name: float = 8.0
    dimension: int = 0
    number: int = 2
    links: int = 16
    memory: int = 0
    terms: float = 0.0
    recalled: int = 0
    once: bool = False


Counted = Literal["documents", "queries", "hits"]


@dataclass(frozen=True)
class Law:
    """How the work of a stage grows with its size.

    Attributes:
        counts: what its receipts count as rows.
        noun: what people call these.
        effort: what seconds are in proportion to, with a range.
        volume: what bytes on the disk are in proportion to.
        held: bytes of memory per worker that the size decides.
        torch: whether its workers load torch, and use the device that the runtime names.
        partial: whether a unit is a part of the corpus, which all queries search.
    """

    counts: Counted
    noun: str
    effort: Callable[[Size], Range]
    volume: Callable[[Size], float]
    held: Callable[[Size], float] = lambda size: 0.0
    torch: bool = False
    partial: bool = False

    def rows(self, size: Size) -> int:
        """Rows that the receipts of all units will count."""
        rows: int = getattr(size, self.counts)
        return rows * size.units if self.partial and self.counts == "queries" else rows

    def part(self, size: Size, rows: int) -> Size:
        """The size of a part of the work, in which so many rows were counted."""
        share = rows / max(1, self.rows(size))
        if self.partial:
            units = max(1, round(size.units * share))
            return size._replace(documents=round(size.documents * share), units=units)
        counted = round(getattr(size, self.counts) * share)
        units = max(1, round(size.units * share))
        scaled = {"hits": round(size.hits * share), self.counts: counted}
        if self.counts == "hits":
            scaled["queries"] = round(size.queries * share)
        return size._replace(units=units, **scaled)


def _texts(size: Size) -> Range:
    return Range.exactly(size.documents * (size.text + _FRAME))


def _pairs(size: Size) -> Range:
    """Cross-encoders read every pair. Others read a query once, and once per unit each document that its hits
    name: as many as hits drawn at random do, at most one for each hit."""
    if not size.once:
        return Range.exactly(size.hits * (size.text + size.query_text + _FRAME))
    hits, queries = size.hits / size.units, size.queries * (size.query_text + _FRAME)
    drawn, most = _distinct(hits, size.documents), min(hits, size.documents)
    return Range(*(n * size.units * (size.text + _FRAME) + queries for n in (drawn, drawn, most)))


def _matches(queries: float, documents: float) -> Range:
    return Range(*(queries * max(1, documents) ** power for power in (0.5, 0.75, 1.06)))


def _products(size: Size) -> Range:
    return Range.exactly(size.documents * (size.queries + _READING))


def _graph(size: Size, nodes: float, powers: tuple[int, int, int]) -> Range:
    depth = math.log2(max(2, size.largest))
    return Range(*(nodes * depth**power for power in powers))


def named(size: Size) -> float:
    """How many documents a run names, each once, if its hits were drawn at random."""
    return _distinct(size.hits, size.documents)


def _distinct(hits: float, documents: int) -> float:
    return documents * -math.expm1(-hits / max(1, documents))


def _hits(size: Size) -> float:
    return size.hits + _FILE * size.units


def _partial_runs(size: Size) -> float:
    return (size.hits + _FILE) * (size.units + 1)


def _search_memory(size: Size) -> float:
    """Of exact search: its blocks, the queries, their best hits, and the identifiers of a unit in order."""
    best = 24 * size.hits + 6 * size.queries * size.dimension
    return size.memory + best + size.largest * (2 * size.name + 32)


def _graph_memory(size: Size) -> float:
    """Of a graph that is built: vectors, twice as many links as above on the lowest level, identifiers."""
    node = size.dimension * size.number + 2 * size.links * 4 + 40
    return size.largest * (node + 2 * size.name + 32)


def _embedded(size: Size) -> float:
    """Of a shard: its texts with their tokens, and its vectors, as they were made and as they are written."""
    return size.largest * (3 * size.text + 12 * size.dimension)


def _tokens(size: Size) -> float:
    """Of what is encoded together: vectors of about four bytes of text each, three times."""
    from beirnl.stages.late import PASSAGES_AT_ONCE

    return min(size.largest, PASSAGES_AT_ONCE) * (size.text / 4) * 12 * size.dimension


def terms_of(small: tuple[int, int], large: tuple[int, int]) -> float:
    """What terms take, from documents and bytes of a small index and of a larger one; see ``Size.terms``."""
    (few, less), (many, more) = small, large
    terms = (less / few - more / many) / max(1e-9, few**_TERMS - many**_TERMS)
    postings = more / many - terms * many**_TERMS
    return max(0.0, terms / postings) if postings > 0 else 0.0


def _index(size: Size) -> float:
    """Postings, and terms: of all units and of the whole, or of document shards alone."""
    parts = (max(1.0, size.documents / size.units), max(1, size.documents))
    return _bytes(size) * sum(1 + size.terms * float(documents**_TERMS) for documents in parts)


def _shards(size: Size) -> float:
    return _bytes(size) * (1 + size.terms * float(max(1.0, size.documents / size.units) ** _TERMS))


def _analysed(size: Size) -> float:
    each, most = _ANALYSED
    return each * min(size.largest * size.text, most)


def _recalled_runs(size: Size) -> float:
    """Of a search of graphs: its own runs, and those of exact search for some of the queries."""
    return _partial_runs(size) + size.hits * size.units * size.recalled / max(1, size.queries)


def _documents(size: Size) -> float:
    return size.documents


def _bytes(size: Size) -> float:
    return size.documents * size.text


LAWS: dict[str, Law] = {
    "index": Law("documents", "documents", _texts, _index, _analysed),
    "index-shards": Law("documents", "documents", _texts, _shards, _analysed),
    "search-bm25": Law("queries", "queries", lambda s: _matches(s.queries, s.documents), _hits),
    "search-shards": Law(
        "queries",
        "queries",
        lambda s: _matches(s.queries * s.units, s.documents / s.units),
        _partial_runs,
        partial=True,
    ),
    "embed": Law("documents", "texts", _texts, _documents, _embedded, torch=True),
    "search-exact": Law(
        "documents", "vectors", _products, _partial_runs, _search_memory, torch=True, partial=True
    ),
    "ann-index": Law(
        "documents", "vectors", lambda s: _graph(s, s.documents, (3, 5, 6)), _documents, _graph_memory
    ),
    "search-ann": Law(
        "documents",
        "vectors",
        lambda s: _graph(s, s.units * s.queries, (2, 3, 5)),
        _recalled_runs,
        _search_memory,
        torch=True,
        partial=True,
    ),
    "embed-tokens": Law("documents", "texts", _texts, _bytes, _tokens, torch=True),
    "search-late": Law(
        "documents",
        "passages",
        lambda s: Range.exactly(s.queries * _bytes(s)),
        _partial_runs,
        torch=True,
        partial=True,
    ),
    "gather": Law("documents", "documents", _texts, lambda s: named(s) * s.text, lambda s: _HITS * s.hits),
    "rerank": Law("hits", "pairs", _pairs, _hits, torch=True),
    "fuse": Law("hits", "hits", lambda s: Range.exactly(s.hits), _hits, lambda s: 3 * _HITS * s.hits),
    "evaluate": Law("hits", "hits", lambda s: Range.exactly(s.hits), _hits, lambda s: 3 * _HITS * s.hits),
}
