"""The stage table: the whole data flow on one page.

corpus.jsonl ─ import-corpus ─┬─ translate ─ check ─┐
queries.jsonl ─ import-queries ┤                     ├─ index ─ search-bm25 ─┬─ rerank ─┐
qrels/*.tsv ─ import-qrels ────┘                     ├─ embed ─ search-exact ┘          ├─ evaluate
                                                     └──────────────────────────────────┘
"""

from beirnl.stages import score, search, text
from beirnl.stages.base import Stage

STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage("import-corpus", 1, text.import_corpus),
        Stage("import-queries", 1, text.import_queries),
        Stage("import-qrels", 1, text.import_qrels),
        Stage(
            "translate", 1, text.translate, text.shards, load=text.load_translator, pool=text.translation_pool
        ),
        Stage("check", 1, text.check, text.shards),
        Stage("index", 1, search.build_index, search.index_units, reduce=search.combine_index),
        Stage(
            "search-bm25",
            1,
            search.search_bm25,
            search.query_units,
            load=search.load_index,
            pool=search.index_pool,
        ),
        Stage("embed", 1, search.embed, text.shards, load=search.load_embedder, pool=search.embed_pool),
        Stage("search-exact", 1, search.search_exact, search.search_units, reduce=search.merge_search),
        Stage(
            "rerank",
            1,
            search.rerank,
            search.rerank_units,
            load=search.load_second_stage,
            pool=search.rerank_pool,
        ),
        Stage("evaluate", 1, score.evaluate, eager=True),
    )
}

__all__ = ["STAGES", "Stage"]
