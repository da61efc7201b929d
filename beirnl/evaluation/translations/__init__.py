"""Of translations: how near they are to references, and what a translation there and back costs retrieval."""
