"""First stages and second stages: text analysis, BM25, encoders, exact and approximate search, rerankers."""
