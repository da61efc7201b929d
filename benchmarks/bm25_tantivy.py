"""Plain Tantivy as a peer: the same terms, without corrected statistics or ordered ties."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from bm25_peers import ANALYZER, shards_of

from beirnl.retrieval.analysis import analyzer

FIELDS = {"elasticsearch": ("title", "text"), "flat": ("text",)}


def build(folder: Path, out: Path, profile: str) -> float:
    """Seconds in which one process analyses documents and hands them to Tantivy, one by one."""
    import tantivy

    schema = tantivy.SchemaBuilder().add_unsigned_field("n", fast=True)
    for field in FIELDS[profile]:
        schema.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    out.mkdir()
    begin = time.monotonic()
    writer = tantivy.Index(schema.build(), str(out)).writer(1_000_000_000, 1)
    row = 0
    for shard in shards_of(folder):
        table = pq.read_table(shard)
        columns = {name: table[name].to_pylist() for name in ("title", "text")}
        if profile == "flat":
            columns = {"text": [f"{t} {x}" for t, x in zip(columns["title"], columns["text"], strict=True)]}
        terms = {field: analyzer(ANALYZER).batch(texts) for field, texts in columns.items()}
        for document in zip(*terms.values(), strict=True):
            entry = tantivy.Document()
            entry.add_unsigned("n", row)
            for field, found in zip(terms, document, strict=True):
                entry.add_text(field, " ".join(found))
            writer.add_document(entry)
            row += 1
    writer.commit()
    writer.wait_merging_threads()
    return time.monotonic() - begin


def search(index: Path, profile: str, queries: list[str], k: int) -> dict[str, float]:
    """Queries per second; a hit is an address in Tantivy's own order."""
    import tantivy

    opened = tantivy.Index.open(str(index))
    searcher = opened.searcher()

    def query(terms: Counter[str]) -> Any:
        fields = []
        for field in FIELDS[profile]:
            clauses = []
            for term, repeated in terms.items():
                clause = tantivy.Query.term_query(opened.schema, field, term, "freq")
                boosted = tantivy.Query.boost_query(clause, float(repeated))
                clauses.append((tantivy.Occur.Should, boosted))
            fields.append(tantivy.Query.boolean_query(clauses))
        return fields[0] if len(fields) == 1 else tantivy.Query.disjunction_max_query(fields, 0.5)

    begin = time.monotonic()
    for terms in analyzer(ANALYZER).batch(queries):
        searcher.search(query(Counter(terms)), k, count=False)
    return {"queries/s": len(queries) / (time.monotonic() - begin)}
