"""Which embedding model makes the answers right, on documents of one's own (the pipeline of BES4RAG)."""
