"""Datasets, their parts and their translations, as nodes ready to be searched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from beirnl import registry
from beirnl.config import DatasetConfig, Experiment, ParallelConfig, resolve_path
from beirnl.datasets import beir, sources
from beirnl.datasets.importing import shard_count
from beirnl.errors import ConfigError, DataError
from beirnl.graph.nodes import Graph, Node, Texts, back_version
from beirnl.graph.translations import Subject, translated
from beirnl.stages.imports import CorpusSpec, JudgedSpec, LinesSpec
from beirnl.store.keys import FileDigests
from beirnl.wording import counted


def variants(
    graph: Graph, experiment: Experiment, dataset: DatasetConfig, digests: FileDigests
) -> Iterator[Texts]:
    """A dataset in its own language and in its translation, part by part."""
    entry = registry.dataset(dataset.name)
    folders = _places(experiment, dataset, entry)
    expected = dataset.parts or (entry.parts if entry else ()) or tuple(part for part in folders if part)
    graph.expected_parts[dataset.name] = expected
    for part, place in folders.items():
        source = _imported(graph, dataset, entry, part, place, digests)
        graph.source_languages[dataset.name] = source.language
        yield source
        translation = experiment.translation
        if translation and dataset.name in (translation.datasets or (dataset.name,)):
            domain = dataset.domain or (entry.domain if entry else "general")
            forth = _translated(graph, experiment, source, domain, source.language, translation.to, digests)
            yield forth
            if translation.back:
                yield _translated(graph, experiment, forth, domain, translation.to, source.language, digests)


def _places(
    experiment: Experiment, dataset: DatasetConfig, entry: registry.DatasetEntry | None
) -> dict[str, sources.Place]:
    if dataset.path:
        return sources.locate(dataset.path, experiment.file)
    if entry is None:
        raise ConfigError(
            f"dataset {dataset.name!r} has no path and is not in the registry",
            where=experiment.file,
            remedy=f"add path = ...; for one of the registry, {registry.near_datasets(dataset.name)}",
        )
    return sources.locate_entry(entry, experiment.file)


def _imported(
    graph: Graph,
    dataset: DatasetConfig,
    entry: registry.DatasetEntry | None,
    part: str,
    place: sources.Place,
    digests: FileDigests,
) -> Texts:
    language = dataset.language or (entry.language if entry else "en")
    if language not in registry.languages() and registry.language_meant(language):
        registry.language(language)  # says how it is written
    split = dataset.split or (entry.split if entry else "test")
    label = "/".join(filter(None, (dataset.name, part, language)))
    folder = place.folder
    corpus = _corpus_spec(dataset, place, digests)
    judged = JudgedSpec(
        split=split,
        queries_sha256=beir.content_sha256(beir.queries_path(folder), digests.sha256),
        qrels_sha256=beir.content_sha256(beir.qrels_path(folder, split), digests.sha256),
        folder=folder,
        source=place.source,
    )
    corpus_node = graph.add(Node("import-corpus", label, corpus, {}))
    queries_node = graph.add(Node("import-queries", label, judged, {}))
    inputs = {"corpus": corpus_node, "queries": queries_node}
    qrels_node = graph.add(Node("import-qrels", label, judged, inputs))
    remove = dataset.remove_self_matches
    if remove is None:
        remove = entry.remove_self_matches if entry else False
    return Texts(dataset, part, language, language, remove, corpus_node, queries_node, qrels_node)


def _corpus_spec(dataset: DatasetConfig, place: sources.Place, digests: FileDigests) -> CorpusSpec:
    file = beir.corpus_path(place.folder)
    shards = shard_count(beir.count_rows(file), dataset.shard_documents)
    sha256 = beir.content_sha256(file, digests.sha256)
    return CorpusSpec(sha256=sha256, shards=shards, folder=place.folder, source=place.source)


def _translated(
    graph: Graph,
    experiment: Experiment,
    texts: Texts,
    domain: str,
    source_language: str,
    target_language: str,
    digests: FileDigests,
) -> Texts:
    """Texts in another language, or back in their own."""
    back = texts.corpus.stage != "import-corpus"
    version = back_version(target_language, source_language) if back else target_language
    base = Path(texts.label).parent.as_posix()

    def subject(rows: Node, kind: Literal["query", "document"]) -> Subject:
        return Subject(
            dataset=texts.dataset.name,
            part=texts.part,
            kind=kind,
            label=f"{base}/{version}/{kind}",
            rows=rows,
            domain=domain,
            languages=(source_language, target_language),
            back=back,
        )

    reference = None if back else _reference(graph, experiment, texts, digests)
    return Texts(
        texts.dataset,
        texts.part,
        target_language,
        version,
        texts.remove_self_matches,
        translated(graph, experiment, subject(texts.corpus, "document"), reference),
        translated(graph, experiment, subject(texts.queries, "query")),
        texts.qrels,
    )


def _reference(graph: Graph, experiment: Experiment, texts: Texts, digests: FileDigests) -> Node | None:
    """The corpus in the target language as people have translated it, where the file names one."""
    dataset = texts.dataset
    if dataset.reference is None:
        return None
    place = sources.locate(dataset.reference, experiment.file).get(texts.part)
    if place is None:
        raise ConfigError(
            f"the reference of dataset {dataset.name!r} has no part {texts.part!r}",
            where=experiment.file,
            remedy="give a folder with the same parts",
        )
    spec = _corpus_spec(dataset, place, digests)
    return graph.add(Node("import-corpus", f"{texts.label}/reference", spec, {}))


def add_parallel(graph: Graph, experiment: Experiment, digests: FileDigests) -> None:
    """Add the parallel texts: translated, and compared with their references."""
    translation = experiment.translation
    for config in experiment.parallel if translation else ():
        assert translation is not None

        def lines(which: str, name: str, limit: int | None = config.limit, label: str = config.name) -> Node:
            file = resolve_path(name, experiment.file)
            spec = LinesSpec(sha256=digests.sha256(file), limit=limit, file=file)
            return graph.add(Node("import-lines", f"{label}/{which}", spec, {}))

        _check_parallel(experiment, config)

        subject = Subject(
            dataset=config.name,
            part="",
            kind=config.kind,
            label=f"{config.name}/{translation.to}/{config.kind}",
            rows=lines(config.language, config.source),
            domain=config.domain,
            languages=(config.language, translation.to),
        )
        translated(graph, experiment, subject, lines("reference", config.reference))


def _check_parallel(experiment: Experiment, config: ParallelConfig) -> None:
    """Both files are there and have as many lines; a text that is one line off says nothing of a model."""
    files = [resolve_path(name, experiment.file) for name in (config.source, config.reference)]
    for file in files:
        if not file.is_file():
            raise DataError("is not there", where=file, remedy="check the path of the parallel text")
    counts = [len(file.read_bytes().splitlines()) for file in files]
    if counts[0] != counts[1]:
        raise DataError(
            f"has {counted(counts[1], 'line')}, and {files[0].name} has {counts[0]:,}",
            where=files[1],
            remedy="give files with one segment a line, as many in both",
        )
