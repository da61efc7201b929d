"""The stage table: the whole data flow on one page.

corpus.jsonl ─ import-corpus ─┬─ TRANSLATION ─┬─ index ─ search-bm25 ─┬─ rerank ─┐
queries.jsonl ─ import-queries ┤               ├─ embed ─ search-exact ┘          ├─ evaluate
qrels/*.tsv ─ import-qrels ────┘               └──────────────────────────────────┘
TRANSLATION: translate ─ lengths ─ check ─ repair (once for each engine of the ladder)
parallel text: import-lines ─ TRANSLATION ─ quality
"""

from typing import Any

from beirnl.stages import bm25, dense, imports, score, second
from beirnl.stages import translate as text
from beirnl.stages.base import Stage

_ASKING: dict[str, Any] = {
    "load": text.Translator,
    "pool": text.llm_pool,
    "in_flight": text.units_in_flight,
    "openings": text.openings,
}
STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage("import-corpus", 1, imports.import_corpus),
        Stage("import-lines", 1, imports.import_lines),
        Stage("import-queries", 1, imports.import_queries),
        Stage("import-qrels", 1, imports.import_qrels),
        Stage("translate", 2, text.translate, text.shards, **_ASKING),
        Stage("lengths", 1, text.measure_lengths, text.shards, reduce=text.learn_lengths),
        Stage("check", 2, text.check, text.shards),
        Stage("repair", 1, text.repair, text.shards, **_ASKING),
        Stage("quality", 1, text.compare, eager=True),
        Stage("index", 1, bm25.build_index, bm25.index_units, reduce=bm25.combine_index),
        Stage(
            "search-bm25",
            1,
            bm25.search_bm25,
            bm25.query_units,
            load=bm25.load_index,
            pool=bm25.index_pool,
        ),
        Stage("embed", 1, dense.embed, text.shards, load=dense.load_embedder, pool=dense.embed_pool),
        Stage("search-exact", 1, dense.search_exact, dense.search_units, reduce=dense.merge_search),
        Stage(
            "rerank",
            1,
            second.rerank,
            second.rerank_units,
            load=second.load_second_stage,
            pool=second.rerank_pool,
        ),
        Stage("evaluate", 1, score.evaluate, eager=True),
    )
}

__all__ = ["STAGES", "Stage"]
