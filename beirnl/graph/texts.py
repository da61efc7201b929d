"""Datasets, their parts and their translations, as nodes ready to be searched."""

from collections.abc import Iterator
from pathlib import Path

from beirnl import registry
from beirnl.config import PACKAGE, DatasetConfig, Experiment, resolve_path
from beirnl.datasets import beir
from beirnl.datasets.importing import count_lines, shard_count
from beirnl.errors import ConfigError
from beirnl.graph.models import resolve
from beirnl.graph.nodes import Graph, Kind, Node, Texts
from beirnl.specs import LlmSpec, TranslationSpec
from beirnl.stages.text import ChecksSpec, CorpusSpec, JudgedSpec
from beirnl.store.keys import FileDigests


def variants(
    graph: Graph, experiment: Experiment, dataset: DatasetConfig, digests: FileDigests
) -> Iterator[Texts]:
    """A dataset in its own language and in its translation, part by part."""
    entry = registry.dataset(dataset.name)
    folder = _folder(experiment, dataset, entry)
    folders = beir.locate(folder)
    expected = dataset.parts or (entry.parts if entry else ()) or tuple(part for part in folders if part)
    graph.expected_parts[dataset.name] = expected
    for part, place in folders.items():
        source = _imported(graph, dataset, entry, part, place, digests)
        yield source
        translation = experiment.translation
        if translation and dataset.name in (translation.datasets or (dataset.name,)):
            yield _translated(graph, experiment, source, entry)


def _folder(experiment: Experiment, dataset: DatasetConfig, entry: registry.DatasetEntry | None) -> Path:
    if dataset.path:
        return resolve_path(dataset.path, experiment.file)
    if entry is None:
        raise ConfigError(
            f"dataset {dataset.name!r} has no path and is not in the registry",
            where=experiment.file,
            remedy="add path = ..., or use a name that `beirnl datasets` lists",
        )
    path = entry.path.replace("{package}", str(PACKAGE)).replace("{data}", "${BEIRNL_DATA}")
    return resolve_path(path, experiment.file)


def _imported(
    graph: Graph,
    dataset: DatasetConfig,
    entry: registry.DatasetEntry | None,
    part: str,
    folder: Path,
    digests: FileDigests,
) -> Texts:
    language = dataset.language or (entry.language if entry else "en")
    split = dataset.split or (entry.split if entry else "test")
    label = "/".join(filter(None, (dataset.name, part, language)))
    corpus_file = folder / "corpus.jsonl"
    corpus = CorpusSpec(
        sha256=digests.sha256(corpus_file),
        shards=shard_count(count_lines(corpus_file), dataset.shard_documents),
        folder=folder,
    )
    judged = JudgedSpec(
        split=split,
        queries_sha256=digests.sha256(beir.queries_path(folder)),
        qrels_sha256=digests.sha256(beir.qrels_path(folder, split)),
        folder=folder,
    )
    corpus_node = graph.add(Node("import-corpus", label, corpus, {}))
    queries_node = graph.add(Node("import-queries", label, judged, {}))
    inputs = {"corpus": corpus_node, "queries": queries_node}
    qrels_node = graph.add(Node("import-qrels", label, judged, inputs))
    remove = dataset.remove_self_matches
    if remove is None:
        remove = entry.remove_self_matches if entry else False
    return Texts(dataset, part, language, remove, corpus_node, queries_node, qrels_node)


def _translated(
    graph: Graph, experiment: Experiment, source: Texts, entry: registry.DatasetEntry | None
) -> Texts:
    config = experiment.translation
    assert config is not None
    if config.to == source.language:
        raise ConfigError(
            f"dataset {source.dataset.name!r} is to be translated from {source.language!r} into itself",
            where=experiment.file,
            remedy="set translation.to to another language, or translation.datasets to the other datasets",
        )
    domain = source.dataset.domain or (entry.domain if entry else "general")
    base = Path(source.label).parent.as_posix()
    label = f"{base}/{config.to}"

    def translated(rows: Node, kind: Kind) -> Node:
        spec = _translation_spec(experiment, kind, source.language, domain)
        answers = graph.add(Node("translate", f"{label}/{kind}", spec, {"rows": rows}))
        checks = ChecksSpec(checks=config.checks, translation=spec)
        return graph.add(Node("check", f"{label}/{kind}", checks, {"rows": answers}))

    return Texts(
        source.dataset,
        source.part,
        config.to,
        source.remove_self_matches,
        translated(source.corpus, "document"),
        translated(source.queries, "query"),
        source.qrels,
    )


def _translation_spec(
    experiment: Experiment, kind: Kind, source_language: str, domain: str
) -> TranslationSpec:
    from beirnl.llm import resolve_engine

    config = experiment.translation
    assert config is not None
    engine = resolve_engine(config.engine)
    if config.model is None and engine != "mock":
        raise ConfigError(
            f"engine {engine!r} needs a model", where=experiment.file, remedy="set model under [translation]"
        )
    model = resolve(experiment, config.model, "llm") if config.model else None
    prompt = config.query_prompt if kind == "query" else config.document_prompt
    llm = LlmSpec(
        engine=engine,
        model=model,
        dtype=config.dtype,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        max_model_len=config.max_model_len,
        stop=config.stop,
    )
    return TranslationSpec(
        llm=llm,
        kind=kind,
        prompt=prompt,
        template=registry.prompt(prompt),
        source_language=source_language,
        target_language=config.to,
        domain=domain,
    )
