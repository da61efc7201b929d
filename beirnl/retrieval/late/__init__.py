"""Late interaction: a vector per token, and MaxSim between the tokens of a query and those of a document.

The score of a document is the sum, over the vectors of the query, of the largest inner product with a vector
of the document (ColBERT: Khattab and Zaharia, SIGIR 2020, section 3.3). sentence-transformers'
``MultiVectorEncoder`` does the modelling: markers, query expansion, skipped punctuation, projection.
"""

from beirnl.retrieval.late.encoder import LateEncoder, LateReranker
from beirnl.retrieval.late.loading import LateSpec
from beirnl.retrieval.late.search import LateSearch
from beirnl.retrieval.late.vectors import TokenVectors, maxsim

__all__ = ["LateEncoder", "LateReranker", "LateSearch", "LateSpec", "TokenVectors", "maxsim"]
