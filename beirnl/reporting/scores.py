"""Numbers of finished evaluations, with their conditions, and the files with their runs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import polars as pl

from beirnl.evaluation.measures import evaluate, mean_of_parts, summarise
from beirnl.evaluation.records import Conditions, Record, RunFile
from beirnl.evaluation.runs.comparing import cut
from beirnl.graph import Evaluation, Node
from beirnl.pipeline import Pipeline
from beirnl.reporting import depths
from beirnl.reporting.depths import Place
from beirnl.specs import TranslationSpec
from beirnl.stages.ann import Recall, check_recall, recall_of, recalls_of
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import digest


def _artifact(pipeline: Pipeline, node: Node) -> Artifact:
    return node.artifact(pipeline.workspace)


def _per_query(pipeline: Pipeline, evaluation: Evaluation, least: Mapping[Place, int]) -> pl.DataFrame:
    """Values per query, those of deep measures from the run as deep as that of every system."""
    frame = pl.from_arrow(_artifact(pipeline, evaluation.node).read(0))
    assert isinstance(frame, pl.DataFrame)
    depth = least[depths.place(evaluation)]
    deeper = depths.deeper(pipeline, evaluation, depth)
    if not deeper:
        return frame
    run = cut(_artifact(pipeline, evaluation.node.inputs["run"]).table(), depth)
    values = evaluate(run, _artifact(pipeline, evaluation.qrels).table(), deeper)
    joined = frame.join(values, on=["query_id", "measure"], how="left", maintain_order="left")
    return joined.select("query_id", "measure", pl.coalesce("value_right", "value").alias("value"))


def scores(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> pl.DataFrame | None:
    """Values per query: columns dataset, language, part, system, query_id, measure, value."""
    least = depths.least(pipeline, evaluations)
    frames = [
        _per_query(pipeline, e, least).select(
            pl.lit(e.dataset).alias("dataset"),
            pl.lit(e.language).alias("language"),
            pl.lit(e.part).alias("part"),
            pl.lit(e.system.name).alias("system"),
            pl.col("query_id")
            if not e.part
            else pl.concat_str(pl.lit(e.part + "/"), "query_id").alias("query_id"),
            "measure",
            "value",
        )
        for e in evaluations
    ]
    return pl.concat(frames) if frames else None


def _identity(evaluation: Evaluation) -> tuple[str, str, str]:
    return evaluation.dataset, evaluation.language, evaluation.system.name


def records(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> Iterator[Record]:
    """One record per dataset, language, system and measure; a dataset in parts has the mean of its parts."""
    least = depths.least(pipeline, evaluations)
    for identity, group in groupby(sorted(evaluations, key=_identity), key=_identity):
        members = list(group)
        summaries = {e.part: _summary(pipeline, e, least) for e in members}
        expected = pipeline.graph.expected_parts.get(identity[0]) or ("",)
        shared = conditions(pipeline, members)
        cuts = _cuts(pipeline, members, least)
        for measure in summaries[members[0].part]["measure"]:
            rows = {part: _row(frame, measure) for part, frame in summaries.items()}
            yield Record(
                dataset=identity[0],
                language=identity[1],
                system=identity[2],
                measure=measure,
                value=mean_of_parts({part: row["mean"] for part, row in rows.items()}, expected),
                queries=sum(row["queries"] for row in rows.values()),
                without_relevant=sum(row["without_relevant"] for row in rows.values()),
                value_with_relevant=mean_of_parts(
                    {part: row["mean_with_relevant"] for part, row in rows.items()}, expected
                ),
                conditions=shared.model_copy(update=cuts.get(measure, {})),
            )


def _cuts(
    pipeline: Pipeline, members: Sequence[Evaluation], least: Mapping[Place, int]
) -> dict[str, dict[str, int]]:
    """By measure, the condition that a run was cut where the shortest of its column ends."""
    found: dict[str, dict[str, int]] = {}
    for one in members:
        shortest = least[depths.place(one)]
        for measure in depths.deeper(pipeline, one, shortest):
            found[measure] = {"cut_at": min(shortest, found.get(measure, {}).get("cut_at", shortest))}
    return found


def _row(frame: pl.DataFrame, measure: str) -> dict[str, Any]:
    return frame.filter(pl.col("measure") == measure).row(0, named=True)


def _summary(pipeline: Pipeline, evaluation: Evaluation, least: Mapping[Place, int]) -> pl.DataFrame:
    return summarise(_per_query(pipeline, evaluation, least), _artifact(pipeline, evaluation.qrels).table())


def conditions(pipeline: Pipeline, members: Sequence[Evaluation]) -> Conditions:
    """The conditions of a system's values on a dataset, of which these are the parts."""
    first = members[0]
    contents = [
        _artifact(pipeline, node).manifest.content for e in members for node in (e.corpus, e.queries, e.qrels)
    ]
    return Conditions(
        dataset_hash=digest(contents),
        self_matches="removed" if first.remove_self_matches else "kept",
        averaging="parts" if first.part else "queries",
        profile=first.profile or None,
        versions=_artifact(pipeline, first.node).manifest.versions,
        **_search_conditions(pipeline, first.node.inputs["run"]),
        **_imported_conditions(pipeline, members),
        **_recall_conditions(pipeline, members),
        **_translation_conditions(first.corpus),
        **_source_conditions(first.corpus),
    )


def first_translation(rows: Node) -> TranslationSpec | None:
    """How translated rows were asked for at first; None for imported ones."""
    node: Node | None = rows
    while node and node.stage != "translate":
        node = node.inputs.get("rows")
    spec = node.spec if node else None
    return spec if isinstance(spec, TranslationSpec) else None


def _source_conditions(corpus: Node) -> dict[str, Any]:
    """Where the documents were fetched from and at which revision; nothing for a folder of the user's."""
    node: Node | None = corpus
    while node and node.stage != "import-corpus":
        node = node.inputs.get("rows") or node.inputs.get("corpus")
    source = getattr(node.spec, "source", "") if node else ""
    return {"dataset_source": source} if source else {}


def _translation_conditions(corpus: Node) -> dict[str, Any]:
    """What turned the source into this language; nothing for an original."""
    translation = first_translation(corpus)
    if translation is None:
        return {}
    model = translation.llm.model
    return {
        "translated_from": translation.source_language,
        "translation_engine": translation.llm.engine,
        "translation_model": model and model.name,
        "translation_revision": model and f"{model.source} {model.revision}",
        "translation_prompt": translation.prompt,
    }


def _search_conditions(pipeline: Pipeline, run: Node) -> dict[str, Any]:
    """Conditions that the stage of a run brings with it."""
    spec: Any = run.spec
    if run.stage in ("search-bm25", "search-shards"):
        return _bm25_conditions(pipeline, run)
    if run.stage == "fuse":
        return _fusion_conditions(run)
    if run.stage == "import-run":
        return {"search": "imported", "model": spec.model}
    model, search = _model_conditions(run)
    return {
        **search,
        "model": model.model.name,
        "source": model.model.source,
        "revision": model.model.revision,
        "code": model.model.code or None,
        "pooling": model.model.pooling or None,
        "dtype": model.dtype,
        "query_prompt": model.query_prompt or None,
        "document_prompt": model.document_prompt or None,
        "max_tokens": model.max_tokens,
        "dimensions": getattr(model, "dimensions", None),
        "language_adapter": getattr(model, "language", "") or None,
        "depth": spec.depth,
    }


def _bm25_conditions(pipeline: Pipeline, run: Node) -> dict[str, Any]:
    spec: Any = run.spec
    index, fields = run.inputs["index"], spec.bm25.profile == "elasticsearch"
    divided = index.stage == "index-shards"
    return {
        "search": "bm25",
        "fields": {"elasticsearch": "title, text", "flat": "one"}[spec.bm25.profile],
        "analyzer": spec.bm25.analyzer,
        "k1": spec.bm25.k1,
        "b": spec.bm25.b,
        "tie_breaker": spec.bm25.tie_breaker if fields else None,  # of several fields
        "statistics": spec.bm25.statistics,
        "document_shards": len(_artifact(pipeline, index).parts) if divided else 1,
        "depth": spec.depth,
    }


def _fusion_conditions(run: Node) -> dict[str, Any]:
    spec: Any = run.spec
    return {
        "search": "fusion",
        "of": " + ".join(run.inputs[f"run-{number}"].purpose for number in range(len(run.inputs))),
        "method": spec.method,
        "weights": ", ".join(map(str, spec.weights)) or None,
        "k": spec.k if spec.method == "rrf" else None,
        "depth": spec.depth,
    }


def _model_conditions(run: Node) -> tuple[Any, dict[str, Any]]:
    """The spec of the model that a run was made with, and what is told of the search itself."""
    spec: Any = run.spec
    if run.stage == "rerank":
        return spec.reranker, {"search": "rerank", "first": run.inputs["run"].purpose, "method": spec.method}
    index = run.inputs.get("index")
    encoder: Any = (index.inputs if index else run.inputs)["rows"].spec.encoder  # type: ignore[attr-defined]
    if run.stage == "search-exact":
        return encoder, {"search": "exact", "vectors": encoder.vectors}
    if run.stage == "search-late":
        return encoder, {"search": "late", "method": "late-interaction", "vectors": encoder.vectors}
    assert index is not None
    settings = index.spec.model_dump() | {"expansion_search": spec.expansion_search}
    told = {f"ann_{name}": value for name, value in settings.items()}
    return encoder, {"search": "ann", "vectors": encoder.vectors, **told}


def _recall_conditions(pipeline: Pipeline, members: Sequence[Evaluation]) -> dict[str, Any]:
    """How much of exact search an approximate one has found, over the queries of all parts.

    A second stage or a fusion has that of what it stands on; of several, the worst.
    """
    beneath = zip(*(_approximate(e.node.inputs["run"]) for e in members), strict=True)
    found = [recall for runs in beneath if (recall := _recall(pipeline, runs))]
    if not found:
        return {}
    recall = min(found)
    return {
        "ann_recall": round(recall.mean, 5),
        "ann_recall_low": round(recall.low, 5),
        "ann_recall_high": round(recall.high, 5),
        "ann_recall_queries": recall.queries,
    }


def _imported_conditions(pipeline: Pipeline, members: Sequence[Evaluation]) -> dict[str, Any]:
    """Which files an imported run is from, and how deep they go."""
    runs = [e.node.inputs["run"] for e in members]
    if runs[0].stage != "import-run":
        return {}
    specs: list[Any] = [run.spec for run in runs]
    return {
        "file": ", ".join(dict.fromkeys(spec.file.name for spec in specs)),
        "file_sha256": digest([spec.sha256 for spec in specs]) if len(specs) > 1 else specs[0].sha256,
        "depth": max(depths.depth(pipeline, member) for member in members),
    }


def _approximate(run: Node) -> list[Node]:
    """The approximate searches that a run is, or stands on, in the order in which it names them."""
    if run.stage == "search-ann":
        return [run]
    runs = [node for name, node in run.inputs.items() if name.startswith("run")]
    return [node for other in runs for node in _approximate(other)]


def _recall(pipeline: Pipeline, runs: Sequence[Node]) -> Recall | None:
    """Over the queries of all parts of a dataset."""
    frames = [recalls_of(_artifact(pipeline, run)) for run in runs]
    for run, frame in zip(runs, frames, strict=True):  # the threshold may have been raised since
        check_recall(run.spec, recall_of(frame), run.label)  # type: ignore[arg-type]
    return recall_of(pl.concat(frames))


def run_file(pipeline: Pipeline, evaluation: Evaluation) -> RunFile:
    """Where the ranking of an evaluation lies."""
    artifact = _artifact(pipeline, evaluation.node)
    dataset = "/".join(filter(None, (evaluation.dataset, evaluation.part)))
    path = artifact.directory / artifact.parts[1].file
    return RunFile(dataset, evaluation.language, evaluation.system.name, str(path))
