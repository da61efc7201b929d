"""From an experiment to its graph: which artifact is made by which stage from which others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from beirnl import registry
from beirnl.config import (
    PACKAGE,
    Bm25System,
    DatasetConfig,
    DenseSystem,
    Experiment,
    RerankSystem,
    System,
    resolve_path,
)
from beirnl.datasets import beir
from beirnl.datasets.importing import count_lines, shard_count
from beirnl.errors import ConfigError
from beirnl.evaluation import measures
from beirnl.retrieval import analysis
from beirnl.specs import Bm25Spec, EncoderSpec, LlmSpec, ModelRef, RerankerSpec, Spec, TranslationSpec
from beirnl.stages import STAGES
from beirnl.stages.score import EvaluateSpec
from beirnl.stages.search import Bm25SearchSpec, EmbedSpec, IndexSpec, RerankSpec, SearchSpec
from beirnl.stages.text import ChecksSpec, CorpusSpec, JudgedSpec
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import FileDigests, artifact_key
from beirnl.store.workspace import Workspace

Kind = Literal["query", "document"]


@dataclass(frozen=True, eq=False)
class Node:
    """An artifact to be made: a stage, its spec and its inputs. ``purpose`` says for whom, in words."""

    stage: str
    label: str
    spec: Spec
    inputs: Mapping[str, "Node"]
    purpose: str = ""

    @cached_property
    def key(self) -> str:
        """The artifact's key."""
        inputs = {name: node.key for name, node in self.inputs.items()}
        return artifact_key(self.stage, STAGES[self.stage].version, self.spec, inputs)

    def artifact(self, workspace: Workspace) -> Artifact:
        """Where it lies."""
        return workspace.artifact(self.stage, self.label, self.key)


@dataclass(frozen=True)
class Evaluation:
    """A system evaluated on a dataset (or a part of one) in a language."""

    dataset: str
    part: str
    language: str
    system: System
    node: Node
    corpus: Node
    queries: Node
    qrels: Node
    remove_self_matches: bool


@dataclass
class Graph:
    """All nodes in order of making, each key once, and what is evaluated."""

    nodes: dict[str, Node] = field(default_factory=dict)
    evaluations: list[Evaluation] = field(default_factory=list)
    expected_parts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, node: Node) -> Node:
        """Add a node, or find the one that makes the same."""
        return self.nodes.setdefault(node.key, node)


@dataclass(frozen=True)
class _Texts:
    """A dataset (or part) in one language, ready to be searched."""

    dataset: DatasetConfig
    part: str
    language: str
    remove_self_matches: bool
    corpus: Node
    queries: Node
    qrels: Node

    @property
    def label(self) -> str:
        return "/".join(filter(None, (self.dataset.name, self.part, self.language)))


def build_graph(experiment: Experiment, workspace: Workspace) -> Graph:
    """Resolve an experiment against the registry and the files that it names.

    Raises:
        ConfigError: a name that the registry lacks, or systems that fit no language.
        DataError: a dataset's folder or split is not there.
        PrerequisiteError: a model's folder is not there.
    """
    graph = Graph()
    digests = workspace.digests()
    measures.parse(experiment.evaluation.measures)
    for dataset in experiment.dataset:
        for texts in _variants(graph, experiment, dataset, digests):
            _add_systems(graph, experiment, texts)
    _refuse_idle(graph, experiment)
    return graph


def _refuse_idle(graph: Graph, experiment: Experiment) -> None:
    """A system whose datasets and languages fit nothing is a mistake."""
    used = {evaluation.system.name for evaluation in graph.evaluations}
    for system in experiment.system:
        if system.name not in used:
            raise ConfigError(
                f"system {system.name!r} runs on no dataset",
                where=experiment.file,
                remedy="look at its datasets and languages",
            )


# Datasets ---------------------------------------------------------------------------------------------------


def _variants(
    graph: Graph, experiment: Experiment, dataset: DatasetConfig, digests: FileDigests
) -> Iterator[_Texts]:
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
) -> _Texts:
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
    return _Texts(dataset, part, language, remove, corpus_node, queries_node, qrels_node)


def _translated(
    graph: Graph, experiment: Experiment, source: _Texts, entry: registry.DatasetEntry | None
) -> _Texts:
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

    return _Texts(
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
    model = _model(experiment, config.model, "llm") if config.model else None
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


def _model(experiment: Experiment, name: str, kind: registry.Kind) -> ModelRef:
    """A model by its registry name, hub path, or folder (relative to the experiment file)."""
    local = resolve_path(name, experiment.file)
    return registry.resolve_model(str(local) if local.is_dir() else name, kind)


# Systems ----------------------------------------------------------------------------------------------------


def _add_systems(graph: Graph, experiment: Experiment, texts: _Texts) -> None:
    runs: dict[str, Node] = {}
    for system in experiment.system:
        if texts.dataset.name not in (system.datasets or (texts.dataset.name,)):
            continue
        if texts.language not in (system.languages or (texts.language,)):
            continue
        if isinstance(system, Bm25System):
            runs[system.name] = _bm25(graph, system, texts)
        elif isinstance(system, DenseSystem):
            runs[system.name] = _dense(graph, experiment, system, texts)
        else:
            runs[system.name] = _rerank(graph, experiment, system, texts, runs)
        spec = EvaluateSpec(measures=experiment.evaluation.measures, tag=system.name)
        inputs = {"run": runs[system.name], "qrels": texts.qrels}
        node = graph.add(Node("evaluate", texts.label, spec, inputs, system.name))
        graph.evaluations.append(
            Evaluation(
                texts.dataset.name,
                texts.part,
                texts.language,
                system,
                node,
                texts.corpus,
                texts.queries,
                texts.qrels,
                texts.remove_self_matches,
            )
        )


def _bm25(graph: Graph, system: Bm25System, texts: _Texts) -> Node:
    name = system.analyzer or analysis.for_language(texts.language)
    spec = Bm25Spec(
        profile=system.profile, analyzer=name, k1=system.k1, b=system.b, tie_breaker=system.tie_breaker
    )
    version = analysis.analyzer(name).version
    index_spec = IndexSpec(profile=system.profile, analyzer=name, analyzer_version=version)
    index = graph.add(Node("index", texts.label, index_spec, {"rows": texts.corpus}, system.profile))
    search = Bm25SearchSpec(depth=system.depth, remove_self_matches=texts.remove_self_matches, bm25=spec)
    inputs = {"index": index, "queries": texts.queries}
    return graph.add(Node("search-bm25", texts.label, search, inputs, system.name))


def _prompts(name: str) -> tuple[str, str]:
    entry = registry.find_model(name)
    return (entry.prompts.query, entry.prompts.document) if entry else ("", "")


def _dense(graph: Graph, experiment: Experiment, system: DenseSystem, texts: _Texts) -> Node:
    query_prompt, document_prompt = _prompts(system.model)
    encoder = EncoderSpec(
        model=_model(experiment, system.model, "encoder"),
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        dtype=system.dtype,
        vectors=system.vectors,
        max_tokens=system.max_tokens,
        batch_size=system.batch_size,
    )

    def embedded(rows: Node, kind: Kind) -> Node:
        spec = EmbedSpec(encoder=encoder, kind=kind)
        return graph.add(Node("embed", texts.label, spec, {"rows": rows}, f"{system.model}, {kind}"))

    inputs = {"rows": embedded(texts.corpus, "document"), "queries": embedded(texts.queries, "query")}
    search = SearchSpec(depth=system.depth, remove_self_matches=texts.remove_self_matches)
    return graph.add(Node("search-exact", texts.label, search, inputs, system.name))


def _rerank(
    graph: Graph, experiment: Experiment, system: RerankSystem, texts: _Texts, runs: dict[str, Node]
) -> Node:
    if system.first not in runs:
        raise ConfigError(
            f"system {system.name!r} reranks {system.first!r}, which does not run on {texts.label}",
            where=experiment.file,
            remedy="give both the same datasets and languages",
        )
    cross = system.method == "cross-encoder"
    query_prompt, document_prompt = _prompts(system.model)
    spec = RerankSpec(
        depth=system.depth,
        remove_self_matches=texts.remove_self_matches,
        reranker=RerankerSpec(
            kind=system.method,
            model=_model(experiment, system.model, "reranker" if cross else "encoder"),
            query_prompt=query_prompt,
            document_prompt=document_prompt,
            dtype=system.dtype,
            max_tokens=system.max_tokens,
            batch_size=system.batch_size,
        ),
    )
    inputs = {"run": runs[system.first], "queries": texts.queries, "corpus": texts.corpus}
    return graph.add(Node("rerank", texts.label, spec, inputs, system.name))
