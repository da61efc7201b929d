"""BM25 with the statistics of Lucene, over any number of documents.

An index is built in *units* by parallel processes (:func:`build_unit`), which :func:`combine` places
together as one index with the statistics of all documents; :class:`Bm25Index` searches it. Where one index
is too large for a node's disk, each *document shard* is an index of its own, and :func:`count_terms` gives
all of them the statistics of the whole.

Tantivy finds candidates. Their scores come from a *forward index* (per document its terms and how often
they occur), in float64, by Lucene's formula and Lucene's statistics, so that they do not depend on how the
documents were divided into units.
"""

from beirnl.retrieval.bm25.build import UnitWriter, build_unit
from beirnl.retrieval.bm25.combine import combine, count_terms
from beirnl.retrieval.bm25.search import Bm25Index
from beirnl.retrieval.bm25.stats import FieldStats, IndexStats

__all__ = ["Bm25Index", "FieldStats", "IndexStats", "UnitWriter", "build_unit", "combine", "count_terms"]
