"""Systems on a dataset in a language, as nodes: search, second stage, evaluation."""

from beirnl import registry
from beirnl.config import Bm25System, DenseSystem, Experiment, RerankSystem
from beirnl.errors import ConfigError
from beirnl.graph.models import resolve
from beirnl.graph.nodes import Evaluation, Graph, Kind, Node, Texts
from beirnl.retrieval import analysis
from beirnl.specs import Bm25Spec, EncoderSpec, RerankerSpec
from beirnl.stages.bm25 import Bm25SearchSpec, IndexSpec
from beirnl.stages.dense import EmbedSpec
from beirnl.stages.score import EvaluateSpec
from beirnl.stages.searching import SearchSpec
from beirnl.stages.second import RerankSpec


def add_systems(graph: Graph, experiment: Experiment, texts: Texts) -> None:
    """Add what the systems make of texts; those for other datasets or languages are passed over."""
    runs: dict[str, Node] = {}
    for system in experiment.system:
        if texts.dataset.name not in (system.datasets or (texts.dataset.name,)):
            continue
        if not {texts.language, texts.version} & set(system.languages or (texts.language,)):
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
                texts.version,
                system,
                node,
                texts.corpus,
                texts.queries,
                texts.qrels,
                texts.remove_self_matches,
            )
        )


def _bm25(graph: Graph, system: Bm25System, texts: Texts) -> Node:
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


def _dense(graph: Graph, experiment: Experiment, system: DenseSystem, texts: Texts) -> Node:
    query_prompt, document_prompt = _prompts(system.model)
    encoder = EncoderSpec(
        model=resolve(experiment, system.model, "encoder"),
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
    graph: Graph, experiment: Experiment, system: RerankSystem, texts: Texts, runs: dict[str, Node]
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
            model=resolve(experiment, system.model, "reranker" if cross else "encoder"),
            query_prompt=query_prompt,
            document_prompt=document_prompt,
            dtype=system.dtype,
            max_tokens=system.max_tokens,
            batch_size=system.batch_size,
        ),
    )
    inputs = {"run": runs[system.first], "queries": texts.queries, "corpus": texts.corpus}
    return graph.add(Node("rerank", texts.label, spec, inputs, system.name))
