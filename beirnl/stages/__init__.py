"""The stage table: the whole data flow on one page.

corpus.jsonl ─ import-corpus ──┬─ TRANSLATION ─┬─ index ─ search-bm25 ──────────┬─ gather ─ rerank ─┬─ fuse
queries.jsonl ─ import-queries ┤               ├─ index-shards ─ search-shards ─┤                   │
qrels/*.tsv ─ import-qrels ────┘               ├─ embed ┬─ search-exact ────────┤                   │
                                               │        └─ ann-index ─ search-ann                   │
                                               ├─ embed-tokens ─ search-late ───┤                   │
                               ├─ import-run ───────────────────┴───────────────────┘
                                               └─ evaluate, for the run of every system
TRANSLATION: translate ─ lengths ─ check ─ repair (once for each engine of the ladder)
parallel text: import-lines ─ TRANSLATION ─ quality

documents/ ─ import-documents ─┬─ cut (with the readers) ── as a corpus ───┬─ index, embed, search as above ─┐
models ───── reader ───────────┘                                         │                                 │
documents ── generate-questions ─ questions (with the user's) ── as queries ┴─ plan-answers ─ answer ────────┘
"""

from typing import Any

from beirnl.stages import ann, bm25, dense, documents, fusion, imports, late, questions, runs, score, second
from beirnl.stages import translate as text
from beirnl.stages.base import Stage, always

_ASKING: dict[str, Any] = {
    "asks": True,
    "load": text.Translator,
    "pool": text.llm_pool,
    "in_flight": text.units_in_flight,
    "openings": text.openings,
    "server": text.llm_of,
    "gpu": text.loads_weights,
    "memory": ("translation.max_model_len", "translation.server.in_flight"),
}
_ASKING_ABOUT = _ASKING | {
    "openings": questions.asking_openings,
    "memory": ("rag.questions.max_model_len", "rag.questions.server.in_flight"),
}
_SEARCH_MEMORY = ("runtime.search_memory_mb",)
_GRAPH_MEMORY = 'ann.numbers to "i8"', "ann.connectivity"
STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage("import-corpus", 1, imports.import_corpus),
        Stage("import-lines", 1, imports.import_lines),
        Stage("import-queries", 1, imports.import_queries),
        Stage("import-qrels", 1, imports.import_qrels),
        Stage("import-run", 1, runs.import_run, memory=("depth",)),
        Stage("import-documents", 1, documents.import_documents),
        Stage("generate-questions", 1, questions.generate_questions, retried="not made", **_ASKING_ABOUT),
        Stage("questions", 1, questions.gather_questions, eager=True),
        Stage("reader", 1, documents.describe_reader),
        Stage(
            "cut",
            1,
            documents.cut_passages,
            text.shards,
            load=documents.load_cut,
            pool=documents.cut_pool,
        ),
        Stage("translate", 2, text.translate, text.shards, **_ASKING),
        Stage("lengths", 1, text.measure_lengths, text.shards, reduce=text.learn_lengths),
        Stage("check", 3, text.check, text.shards),
        Stage("repair", 1, text.repair, text.shards, **_ASKING),
        Stage("quality", 1, text.compare, eager=True),
        Stage("index", 2, bm25.build_index, bm25.index_units, reduce=bm25.combine_index),
        Stage(
            "search-bm25",
            3,
            bm25.search_bm25,
            bm25.query_units,
            load=bm25.load_index,
            pool=bm25.index_pool,
        ),
        Stage("index-shards", 1, bm25.build_shard, bm25.shard_units, reduce=bm25.count_shards),
        Stage("search-shards", 1, bm25.search_shard, bm25.searched_shards, reduce=bm25.merge_shards),
        Stage(
            "embed",
            2,
            dense.embed,
            text.shards,
            load=dense.load_embedder,
            pool=dense.embed_pool,
            in_flight=dense.embeds_in_flight,
            openings=dense.embed_openings,
            least_bytes=dense.embedded_bytes,
            server=dense.embed_server,
            gpu=dense.embeds_here,
            memory=("batch_tokens", "batch_size", "max_tokens"),
        ),
        Stage(
            "search-exact",
            1,
            dense.search_exact,
            dense.search_units,
            reduce=dense.merge_search,
            gpu=always,
            memory=_SEARCH_MEMORY,
        ),
        Stage("ann-index", 2, ann.build_ann, ann.ann_units, memory=_GRAPH_MEMORY),
        Stage(
            "search-ann",
            2,
            ann.search_ann,
            ann.ann_search_units,
            reduce=ann.merge_ann,
            memory=_SEARCH_MEMORY,
        ),
        Stage(
            "embed-tokens",
            2,
            late.embed_tokens,
            text.shards,
            load=late.load_token_embedder,
            pool=late.embed_tokens_pool,
            check=late.check_passages,
            gpu=always,
            memory=("batch_size", "max_tokens"),
        ),
        Stage(
            "search-late", 1, late.search_late, late.search_late_units, reduce=dense.merge_search, gpu=always
        ),
        Stage("gather", 1, second.gather, second.gather_units, memory=("depth",)),
        Stage(
            "rerank",
            3,
            second.rerank,
            second.rerank_units,
            load=second.load_second_stage,
            pool=second.rerank_pool,
            gpu=always,
            memory=("batch_size", "max_tokens", "depth"),
        ),
        Stage("plan-answers", 1, questions.plan_answers),
        Stage(
            "answer",
            1,
            questions.answer,
            questions.answer_units,
            reduce=questions.lay_out,
            retried="failed",
            **_ASKING_ABOUT,
        ),
        Stage("fuse", 1, fusion.fuse, eager=True, memory=("depth",)),
        Stage("evaluate", 1, score.evaluate, eager=True, memory=("depth",)),
    )
}

__all__ = ["STAGES", "Stage"]
