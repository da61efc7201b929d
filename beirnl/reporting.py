"""What an experiment has found so far, gathered from its artifacts into an evaluation report."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import polars as pl

from beirnl.evaluation.measures import mean_of_parts, parse, summarise
from beirnl.evaluation.records import Conditions, Example, Record, Report, RunFile, Timing, Translations
from beirnl.graph import Evaluation, Node
from beirnl.pipeline import Pipeline
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import digest

_EXAMPLES = 3


def gather(pipeline: Pipeline) -> Report:
    """The report of what is finished; what is pending is a warning."""
    states = pipeline.plan()
    finished = {status.node.key for status in states if status.state == "done"}
    evaluations = [e for e in pipeline.graph.evaluations if e.node.key in finished]
    pending = len(states) - len(finished)
    warnings = (
        [f"{pending} of {len(states)} artifacts are not finished; run the experiment"] if pending else []
    )
    nodes = [node for node in pipeline.graph.nodes.values() if node.key in finished]
    warnings += [
        f"{node.label}: {line}"
        for node in nodes
        for receipt in _artifact(pipeline, node).receipts()
        for line in receipt.warnings
    ]
    warnings += _cut_short(evaluations) + _missing_parts(pipeline, evaluations)
    return Report(
        name=pipeline.experiment.name,
        records=list(_records(pipeline, evaluations)),
        translations=dict(_translations(pipeline, nodes)),
        warnings=warnings,
        runs=[_run_file(pipeline, evaluation) for evaluation in evaluations],
        scores=_scores(pipeline, evaluations),
        notes=list(pipeline.experiment.notes),
        timings=list(_timings(pipeline, nodes)),
    )


def _cut_short(evaluations: Sequence[Evaluation]) -> list[str]:
    """Measures that look deeper than a system's run goes."""
    lines: dict[str, None] = {}
    for evaluation in evaluations:
        spec: Any = evaluation.node.spec
        for measure in parse(spec.measures):
            depth = evaluation.system.depth
            if measure.cutoff and measure.cutoff > depth:
                name = evaluation.system.name
                lines[
                    f"{measure.name} of {name} sees {depth} hits a query; raise depth to {measure.cutoff}"
                ] = None
    return list(lines)


def _missing_parts(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> list[str]:
    """Parts of a dataset that are expected and not there."""
    lines = []
    for dataset, expected in pipeline.graph.expected_parts.items():
        found = {evaluation.part for evaluation in evaluations if evaluation.dataset == dataset}
        missing = [part for part in expected if part not in found]
        if missing and found:
            lines.append(f"{dataset}: incomplete without {', '.join(missing)}")
    return lines


def _artifact(pipeline: Pipeline, node: Node) -> Artifact:
    return node.artifact(pipeline.workspace)


def _per_query(pipeline: Pipeline, evaluation: Evaluation) -> pl.DataFrame:
    frame = pl.from_arrow(_artifact(pipeline, evaluation.node).read(0))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _scores(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> pl.DataFrame | None:
    frames = [
        _per_query(pipeline, e).select(
            pl.lit(e.dataset).alias("dataset"),
            pl.lit(e.language).alias("language"),
            pl.lit(e.system.name).alias("system"),
            pl.col("query_id") if not e.part else pl.concat_str(pl.lit(e.part + "/"), "query_id"),
            "measure",
            "value",
        )
        for e in evaluations
    ]
    return pl.concat(frames) if frames else None


# Records ----------------------------------------------------------------------------------------------------


def _identity(evaluation: Evaluation) -> tuple[str, str, str]:
    return evaluation.dataset, evaluation.language, evaluation.system.name


def _records(pipeline: Pipeline, evaluations: Sequence[Evaluation]) -> Iterator[Record]:
    """One record per dataset, language, system and measure; a dataset in parts has the mean of its parts."""
    for identity, group in groupby(sorted(evaluations, key=_identity), key=_identity):
        members = list(group)
        summaries = {e.part: _summary(pipeline, e) for e in members}
        expected = pipeline.graph.expected_parts.get(identity[0]) or ("",)
        conditions = _conditions(pipeline, members)
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
                conditions=conditions,
            )


def _row(frame: pl.DataFrame, measure: str) -> dict[str, Any]:
    return frame.filter(pl.col("measure") == measure).row(0, named=True)


def _summary(pipeline: Pipeline, evaluation: Evaluation) -> pl.DataFrame:
    return summarise(_per_query(pipeline, evaluation), _artifact(pipeline, evaluation.qrels).table())


def _conditions(pipeline: Pipeline, members: Sequence[Evaluation]) -> Conditions:
    first = members[0]
    contents = [
        _artifact(pipeline, node).manifest.content for e in members for node in (e.corpus, e.queries, e.qrels)
    ]
    return Conditions(
        dataset_hash=digest(contents),
        self_matches="removed" if first.remove_self_matches else "kept",
        averaging="parts" if first.part else "queries",
        versions=_artifact(pipeline, first.node).manifest.versions,
        **_search_conditions(first.node.inputs["run"]),
        **_translation_conditions(first.corpus),
    )


def _translation_conditions(corpus: Node) -> dict[str, Any]:
    """What turned the source into this language; nothing for an original."""
    if corpus.stage != "check":
        return {}
    spec: Any = corpus.spec
    translation = spec.translation
    model = translation.llm.model
    return {
        "translated_from": translation.source_language,
        "translation_engine": translation.llm.engine,
        "translation_model": model and model.name,
        "translation_revision": model and f"{model.source} {model.revision}",
        "translation_prompt": translation.prompt,
    }


def _search_conditions(run: Node) -> dict[str, Any]:
    """Conditions that the stage of a run brings with it."""
    spec: Any = run.spec
    if run.stage == "search-bm25":
        bm25 = spec.bm25
        return {
            "search": "bm25",
            "profile": bm25.profile,
            "analyzer": bm25.analyzer,
            "k1": bm25.k1,
            "b": bm25.b,
            "depth": spec.depth,
        }
    if run.stage == "search-exact":
        model_spec, search = run.inputs["rows"].spec.encoder, {"search": "exact"}  # type: ignore[attr-defined]
    else:
        first = run.inputs["run"]
        model_spec, search = (
            spec.reranker,
            {"search": "rerank", "first": first.purpose, "method": spec.reranker.kind},
        )
    return {
        **search,
        "model": model_spec.model.name,
        "source": model_spec.model.source,
        "revision": model_spec.model.revision,
        "dtype": model_spec.dtype,
        "query_prompt": model_spec.query_prompt or None,
        "document_prompt": model_spec.document_prompt or None,
        "depth": spec.depth,
    }


def _run_file(pipeline: Pipeline, evaluation: Evaluation) -> RunFile:
    artifact = _artifact(pipeline, evaluation.node)
    dataset = "/".join(filter(None, (evaluation.dataset, evaluation.part)))
    path = artifact.directory / artifact.parts[1].file
    return RunFile(dataset, evaluation.language, evaluation.system.name, str(path))


# Translations and timings -----------------------------------------------------------------------------------


def _translations(pipeline: Pipeline, nodes: Sequence[Node]) -> Iterator[tuple[str, Translations]]:
    for node in nodes:
        if node.stage == "check":
            receipts = _artifact(pipeline, node).receipts()
            counts: Counter[str] = Counter()
            for status, number in (item for receipt in receipts for item in receipt.counts.items()):
                counts[_first_problem(status)] += number
            yield node.label, Translations(dict(counts.most_common()), _examples(pipeline, node))


def _examples(pipeline: Pipeline, node: Node) -> list[Example]:
    """The first rows of each status, source and translation side by side."""
    source = node.inputs["rows"].inputs["rows"]
    found: Counter[str] = Counter()
    examples = []
    for part, original in zip(
        _artifact(pipeline, node).tables(), _artifact(pipeline, source).tables(), strict=True
    ):
        for row, before in zip(part.to_pylist(), original.to_pylist(), strict=True):
            status = _first_problem(row["status"])
            if found[status] < _EXAMPLES:
                found[status] += 1
                examples.append(Example(row["status"], _shown(before), _shown(row)))
    return sorted(examples, key=lambda example: example.status)


def _shown(row: dict[str, Any]) -> str:
    return f"{row['title']} | {row['text']}" if row["title"] else str(row["text"])


def _first_problem(status: str) -> str:
    """The status that a row is counted under: of several failed checks the first, which is the gravest."""
    return status.partition(",")[0]


def _timings(pipeline: Pipeline, nodes: Sequence[Node]) -> Iterator[Timing]:
    """Seconds and units by stage and dataset."""
    work: dict[tuple[str, str], list[float]] = {}
    for node in nodes:
        seconds = [receipt.seconds for receipt in _artifact(pipeline, node).receipts()]
        work.setdefault((node.stage, node.label), []).extend(seconds)
    for (stage, label), seconds in work.items():
        yield Timing(stage, label, sum(seconds), len(seconds))
