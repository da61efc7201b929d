"""Systems on a dataset in a language, as nodes: search, second stage, evaluation."""

from beirnl import registry
from beirnl.config import (
    Bm25System,
    DenseSystem,
    Experiment,
    FusionSystem,
    LateSystem,
    ModelConfig,
    RerankSystem,
    RunSystem,
    resolve_path,
)
from beirnl.errors import ConfigError, DataError
from beirnl.graph.models import find, resolve
from beirnl.graph.nodes import Evaluation, Graph, Kind, Node, Texts
from beirnl.graph.profiles import bm25_conditions, conditions_name, instruction, under_profile
from beirnl.retrieval import analysis
from beirnl.retrieval.api_encoder import counting
from beirnl.retrieval.late import LateSpec
from beirnl.specs import Bm25Spec, EncoderSpec, ModelRef, RerankerSpec
from beirnl.stages.ann import AnnIndexSpec, AnnSearchSpec
from beirnl.stages.bm25 import Bm25SearchSpec, IndexSpec, ShardedIndexSpec
from beirnl.stages.dense import EmbedSpec
from beirnl.stages.fusion import FuseSpec
from beirnl.stages.late import EmbedTokensSpec
from beirnl.stages.runs import RunFileSpec
from beirnl.stages.score import EvaluateSpec
from beirnl.stages.searching import SearchSpec
from beirnl.stages.second import RerankSpec
from beirnl.store.keys import FileDigests


def add_systems(graph: Graph, experiment: Experiment, texts: Texts, digests: FileDigests) -> None:
    """Add what the systems make of texts; those for other datasets or languages are passed over."""
    runs: dict[str, Node] = {}
    whole = texts
    for system in experiment.system:
        texts = under_profile(experiment, system, whole)
        if texts.dataset.name not in (system.datasets or (texts.dataset.name,)):
            continue
        if not {texts.language, texts.version} & set(system.languages or (texts.language,)):
            continue
        if isinstance(system, RerankSystem):
            runs[system.name] = _rerank(graph, experiment, system, texts, runs)
        elif isinstance(system, RunSystem):
            runs[system.name] = _imported(graph, experiment, system, texts, digests)
        elif isinstance(system, FusionSystem):
            runs[system.name] = _fusion(graph, experiment, system, texts, runs)
        else:
            runs[system.name] = search(graph, experiment, system, texts, runs)
        spec = EvaluateSpec(measures=experiment.evaluation.measures, tag=system.name)
        inputs = {"run": runs[system.name], "qrels": texts.qrels}
        node = graph.add(Node("evaluate", texts.label, spec, inputs, system.name))
        graph.evaluations.append(
            Evaluation(
                texts.dataset.name,
                texts.part,
                texts.version,
                system,
                node,
                texts.corpus,
                texts.queries,
                texts.qrels,
                texts.remove_self_matches,
                conditions_name(experiment, system),
            )
        )


def search(
    graph: Graph,
    experiment: Experiment,
    system: Bm25System | DenseSystem | LateSystem,
    texts: Texts,
    runs: dict[str, Node] | None = None,
) -> Node:
    """Add what a system makes of texts up to its run; ``runs`` are those of the systems above it."""
    if isinstance(system, Bm25System):
        return _bm25(graph, experiment, system, texts)
    if isinstance(system, DenseSystem):
        return _dense(graph, experiment, system, texts)
    return _late(graph, experiment, system, texts, runs or {})


def _analyzer(
    experiment: Experiment, system: Bm25System, conditions: registry.Bm25Entry, texts: Texts
) -> analysis.Analyzer:
    """The analyzer that a system or its conditions name, or that of the language.

    Raises:
        ConfigError: there is none; names the file and the system.
    """
    try:
        named = system.analyzer or conditions.analyzer
        return analysis.analyzer(named or analysis.for_language(texts.language))
    except ConfigError as error:
        other = "" if system.analyzer else "; or set analyzer, or languages to those it is to run on"
        raise ConfigError(
            f"system {system.name!r} on {texts.label}: {error.what}",
            where=experiment.file,
            remedy=f"{error.remedy}{other}",
        ) from error


def _bm25(graph: Graph, experiment: Experiment, system: Bm25System, texts: Texts) -> Node:
    conditions = bm25_conditions(experiment, system)
    analyzer = _analyzer(experiment, system, conditions, texts)
    name, stated = analyzer.name, system.model_dump(include={"k1", "b", "tie_breaker"}, exclude_none=True)
    parameters = conditions.model_dump(include={"k1", "b", "tie_breaker", "statistics"}) | stated
    spec = Bm25Spec(profile=conditions.fields, analyzer=name, **parameters)
    index_spec = IndexSpec(profile=spec.profile, analyzer=name, analyzer_version=analyzer.version)
    building, searching = "index", "search-bm25"
    if system.shards > 1:
        index_spec = ShardedIndexSpec(**index_spec.model_dump(), shards=system.shards)
        building, searching = "index-shards", "search-shards"
    index = graph.add(Node(building, texts.label, index_spec, {"rows": texts.corpus}, conditions.name))
    search = Bm25SearchSpec(depth=system.depth, remove_self_matches=texts.remove_self_matches, bm25=spec)
    inputs = {"index": index, "queries": texts.queries}
    return graph.add(Node(searching, texts.label, search, inputs, system.name))


def _prompts(experiment: Experiment, name: str, said: str | None) -> tuple[str, str]:
    entry = find(experiment, name)
    prompts = entry.prompts_with(said) if entry else registry.Prompts()
    return prompts.query, prompts.document


def encoder_spec(experiment: Experiment, system: DenseSystem, texts: Texts) -> EncoderSpec:
    """The encoder of a system: what the file says, else the registry."""
    entry = find(experiment, system.model)
    facts = entry or registry.ModelEntry(name=system.model, kind="encoder", licence="")
    api = ModelRef(name=system.model, source=f"api:{system.model}") if system.engine else None
    model = api or resolve(experiment, system.model, "encoder", system.dtype)
    remote = model.source.startswith("api:")
    stated = remote or isinstance(facts, ModelConfig)
    limit = system.max_tokens or (facts.max_tokens if stated else None)
    adapter = system.language_adapter or (texts.language if facts.language_adapters else "")
    prompts = facts.prompts_with(system.instruction or instruction(experiment, system, texts))
    counted = counting(facts.tokenizer) if system.tokenizer == "auto" else system.tokenizer
    return EncoderSpec(
        model=model,
        query_prompt=prompts.query if system.query_prompt is None else system.query_prompt,
        document_prompt=prompts.document if system.document_prompt is None else system.document_prompt,
        dtype=system.dtype,
        vectors=system.vectors,
        max_tokens=limit,
        batch_size=system.batch_size,
        batch_tokens=system.batch_tokens,
        dimensions=system.dimensions,
        query_task=facts.tasks.query,
        document_task=facts.tasks.document,
        language=adapter,
        tokenizer=counted if remote and limit else "",
        server=system.server,
    )


def _dense(graph: Graph, experiment: Experiment, system: DenseSystem, texts: Texts) -> Node:
    encoder = encoder_spec(experiment, system, texts)

    def embedded(rows: Node, kind: Kind) -> Node:
        spec = EmbedSpec(encoder=encoder, kind=kind)
        return graph.add(Node("embed", texts.label, spec, {"rows": rows}, f"{system.model}, {kind}"))

    documents, queries = embedded(texts.corpus, "document"), embedded(texts.queries, "query")
    if system.search == "ann":
        return _approximate(graph, system, texts, documents, queries)
    search = SearchSpec(depth=system.depth, remove_self_matches=texts.remove_self_matches)
    inputs = {"rows": documents, "queries": queries}
    return graph.add(Node("search-exact", texts.label, search, inputs, system.name))


def _approximate(graph: Graph, system: DenseSystem, texts: Texts, documents: Node, queries: Node) -> Node:
    ann = system.ann
    index_spec = AnnIndexSpec(
        numbers=ann.numbers, connectivity=ann.connectivity, expansion_add=ann.expansion_add
    )
    index = graph.add(Node("ann-index", texts.label, index_spec, {"rows": documents}, system.model))
    search = AnnSearchSpec(
        depth=system.depth,
        remove_self_matches=texts.remove_self_matches,
        expansion_search=ann.expansion_search,
        recall_queries=ann.recall_queries,
        min_recall=ann.min_recall,
    )
    inputs = {"index": index, "queries": queries}
    return graph.add(Node("search-ann", texts.label, search, inputs, system.name))


def _run_of(name: str, system: str, experiment: Experiment, texts: Texts, runs: dict[str, Node]) -> Node:
    """The run of a system above, on the same texts."""
    if name not in runs:
        raise ConfigError(
            f"system {system!r} stands on {name!r}, which does not run on {texts.label}",
            where=experiment.file,
            remedy="give both the same datasets and languages",
        )
    return runs[name]


def _second_stage(graph: Graph, spec: RerankSpec, first: Node, texts: Texts, name: str) -> Node:
    """Gather the passages that the first stage found, and score them."""
    cut = SearchSpec(depth=spec.depth, remove_self_matches=spec.remove_self_matches)
    inputs = {"run": first, "corpus": texts.corpus}
    passages = graph.add(Node("gather", texts.label, cut, inputs, first.purpose))
    inputs = {"run": first, "queries": texts.queries, "passages": passages}
    return graph.add(Node("rerank", texts.label, spec, inputs, name))


def _rerank(
    graph: Graph, experiment: Experiment, system: RerankSystem, texts: Texts, runs: dict[str, Node]
) -> Node:
    cross = system.method == "cross-encoder"
    query_prompt, document_prompt = _prompts(experiment, system.model, instruction(experiment, system, texts))
    spec = RerankSpec(
        depth=system.depth,
        remove_self_matches=texts.remove_self_matches,
        reranker=RerankerSpec(
            kind=system.method,
            model=resolve(experiment, system.model, "reranker" if cross else "encoder", system.dtype),
            query_prompt=query_prompt,
            document_prompt=document_prompt,
            dtype=system.dtype,
            max_tokens=system.max_tokens,
            batch_size=system.batch_size,
        ),
    )
    first = _run_of(system.first, system.name, experiment, texts, runs)
    return _second_stage(graph, spec, first, texts, system.name)


def late_spec(experiment: Experiment, system: LateSystem, texts: Texts) -> LateSpec:
    """The model of a system: what the file says, else the registry."""
    query_prompt, document_prompt = _prompts(experiment, system.model, instruction(experiment, system, texts))
    return LateSpec(
        model=resolve(experiment, system.model, "late-interaction", system.dtype),
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        language=system.language_adapter or texts.language,
        dtype=system.dtype,
        vectors=system.vectors,
        max_tokens=system.max_tokens,
        batch_size=system.batch_size,
    )


def _late(
    graph: Graph, experiment: Experiment, system: LateSystem, texts: Texts, runs: dict[str, Node]
) -> Node:
    late = late_spec(experiment, system, texts)
    depth, remove = system.depth, texts.remove_self_matches
    if system.first:
        spec = RerankSpec(depth=depth, remove_self_matches=remove, reranker=late)
        first = _run_of(system.first, system.name, experiment, texts, runs)
        return _second_stage(graph, spec, first, texts, system.name)

    def embedded(rows: Node, kind: Kind) -> Node:
        tokens = EmbedTokensSpec(encoder=late, kind=kind, max_passages=system.max_passages)
        return graph.add(Node("embed-tokens", texts.label, tokens, {"rows": rows}, f"{system.model}, {kind}"))

    inputs = {"rows": embedded(texts.corpus, "document"), "queries": embedded(texts.queries, "query")}
    search = SearchSpec(depth=depth, remove_self_matches=remove)
    return graph.add(Node("search-late", texts.label, search, inputs, system.name))


def _fusion(
    graph: Graph, experiment: Experiment, system: FusionSystem, texts: Texts, runs: dict[str, Node]
) -> Node:
    found = [_run_of(name, system.name, experiment, texts, runs) for name in system.of]
    spec = FuseSpec(
        depth=system.depth,
        remove_self_matches=texts.remove_self_matches,
        method=system.method,
        weights=system.weights,
        k=system.k,
    )
    inputs = {f"run-{number}": run for number, run in enumerate(found)}
    return graph.add(Node("fuse", texts.label, spec, inputs, system.name))


def _imported(
    graph: Graph, experiment: Experiment, system: RunSystem, texts: Texts, digests: FileDigests
) -> Node:
    """A run from a file, known by its content."""
    names = {"{dataset}": texts.dataset.name, "{language}": texts.version, "{part}": texts.part}
    path = system.path
    for name, value in names.items():
        path = path.replace(name, value)
    file = resolve_path(path, experiment.file)
    if not file.is_file():
        raise DataError(
            f"there is no such run file, which system {system.name!r} names for {texts.label}",
            where=file,
            remedy="check the path, or set datasets and languages to those that it is for",
        )
    spec = RunFileSpec(
        depth=system.depth,
        remove_self_matches=texts.remove_self_matches,
        sha256=digests.sha256(file),
        file=file,
        model=system.model,
    )
    inputs = {"corpus": texts.corpus, "queries": texts.queries}
    return graph.add(Node("import-run", texts.label, spec, inputs, system.name))
