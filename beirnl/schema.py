"""The tables that stages exchange, as Arrow schemas, and the one place where title and text are joined."""

import pyarrow as pa

_TEXT = [("row", pa.int64()), ("id", pa.string()), ("title", pa.string()), ("text", pa.string())]

#: Documents. ``row`` is the document's place in the source file (from 0), which publishing restores.
CORPUS = pa.schema(_TEXT)
#: Queries have the columns of documents (``title`` stays empty), so that one stage can serve both.
QUERIES = CORPUS
#: Relevance judgements; ``relevance`` > 0 is relevant.
QRELS = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("relevance", pa.int32())])
#: Ranked results; within a query ordered by score descending, then ``doc_id`` descending (trec_eval's order).
RUN = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float32())])
#: What an LLM answered for a row, before any check: one answer per piece of the row, the white space before
#: each piece, the pieces (empty where the row was asked whole), and how the worst of them ended (``stop``,
#: ``length`` or ``error``).
ANSWERS = pa.schema(
    [
        ("row", pa.int64()),
        ("id", pa.string()),
        ("answers", pa.list_(pa.string())),
        ("gaps", pa.list_(pa.string())),
        ("pieces", pa.list_(pa.string())),
        ("finish_reason", pa.string()),
        ("error", pa.string()),
    ]
)
#: Translated rows: CORPUS with the verdict of the checks (``ok``, or names of failed ones joined by ``,``)
#: and the rung of the repair ladder that gave the text (empty: the first answer stands).
TRANSLATED = pa.schema([*_TEXT, ("status", pa.string()), ("repair", pa.string())])
#: How many translations of a dataset have which length ratio: ``count`` per bin of the log ratio.
RATIOS = pa.schema([("count", pa.int64())])
#: Bounds of the length ratio, learned from all rows of a dataset.
BOUNDS = pa.schema([("low", pa.float64()), ("high", pa.float64()), ("rows", pa.int64())])
#: chrF and BLEU of translations against references: one row per score.
QUALITY = pa.schema(
    [
        ("score", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("segments", pa.int64()),
        ("signature", pa.string()),
    ]
)
#: Per-query values of measures.
SCORES = pa.schema([("query_id", pa.string()), ("measure", pa.string()), ("value", pa.float64())])


def embeddings(dimension: int, dtype: str = "float32") -> pa.Schema:
    """Vectors of one shard: ``row``, ``id`` and a fixed-size list of ``dimension`` numbers.

    Those of int8 have a ``scale`` each, by which its numbers are multiplied.
    """
    item = pa.field("item", pa.from_numpy_dtype(dtype), nullable=False)
    columns = [("row", pa.int64()), ("id", pa.string()), pa.field("vector", pa.list_(item, dimension))]
    return pa.schema([*columns, *([("scale", pa.float32())] if dtype == "int8" else [])])


def join_title_text(title: str, text: str) -> str:
    """Title and text as one passage, as BEIR joins them: a blank between, none where one is empty."""
    return f"{title} {text}".strip()
