"""Question answering as nodes: documents, questions, passages, a run per system, prompts, answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from beirnl.config import (
    AnswersConfig,
    Bm25System,
    DatasetConfig,
    DenseSystem,
    Experiment,
    LateSystem,
    QuestionsConfig,
    RagConfig,
    RagCorpus,
    System,
    resolve_path,
)
from beirnl.errors import ConfigError, DataError, PrerequisiteError
from beirnl.graph.nodes import Answering, Graph, Node, Searched, Texts
from beirnl.graph.systems import encoder_spec, late_spec, search
from beirnl.graph.translations import llm_spec, read_prompt
from beirnl.rag.documents import Source, find
from beirnl.rag.prompts import (
    read_answer_prompt,
    read_match_prompt,
    read_open_prompt,
    read_question_prompt,
)
from beirnl.rag.questions.own import read_questions
from beirnl.rag.readers import ReaderSpec
from beirnl.specs import EncoderSpec, LlmSpec, QuestionSpec
from beirnl.stages.documents import DocumentsSpec, PassagesSpec
from beirnl.stages.questions import AnswersSpec, OwnQuestionsSpec
from beirnl.store.keys import FileDigests, digest
from beirnl.store.places import place_of

_SEARCHED = ("rows", "index")  # the input of a search that holds vectors or index


def add_answering(
    graph: Graph, experiment: Experiment, digests: FileDigests, failed: Mapping[str, str]
) -> None:
    """Add the nodes of ``[rag]``.

    Args:
        graph: added to; ``failed`` gets the systems that are left out.
        experiment: has a ``[rag]``.
        digests: of input files.
        failed: systems that are to be left out, and why.

    Raises:
        ConfigError, DataError: something that the file names is not there or not as it must be.
        PrerequisiteError: no system is left, and why the first is not.
    """
    assert experiment.rag is not None
    graph.failed.update(
        {system.name: failed[system.name] for system in experiment.system if system.name in failed}
    )
    for corpus in experiment.rag.corpora:
        graph.corpora[corpus.name] = _answering(graph, experiment, corpus, digests)
    _refuse_twice(graph, experiment)


def _answering(graph: Graph, experiment: Experiment, corpus: RagCorpus, digests: FileDigests) -> Answering:
    """The nodes of one corpus."""
    rag = experiment.rag
    assert rag is not None
    documents = graph.add(
        Node("import-documents", corpus.name, _documents(experiment, rag, corpus, digests), {})
    )
    generated = _generated(graph, experiment, rag, documents)
    questions = _questions(graph, experiment, corpus, documents, generated, digests)
    language = corpus.language or rag.language
    dataset = DatasetConfig(name=corpus.name)
    texts = Texts(dataset, "", language, language, False, documents, questions, questions)
    readers = _readers(graph, experiment, texts)
    searched = []
    for system in experiment.system:
        if system.name in readers:
            passages = _passages(graph, rag, documents, system, readers)
            searched.append(_search(graph, experiment, texts, system, readers[system.name], passages))
    plans, answers = {}, {}
    for one in rag.answers:
        spec = _answers_spec(experiment, rag, one, searched)
        inputs = {"questions": questions}
        for n, found in enumerate(searched):
            inputs |= {f"run-{n}": found.run, f"passages-{n}": found.passages}
        plans[one.called] = graph.add(Node("plan-answers", texts.label, spec, inputs, one.called))
        inputs = {"rows": plans[one.called], "questions": questions}
        answers[one.called] = graph.add(Node("answer", texts.label, spec, inputs, one.called))
    return Answering(documents, questions, generated, tuple(searched), plans, answers)


def _refuse_twice(graph: Graph, experiment: Experiment) -> None:
    """Two corpora of equal documents and questions would be one, told twice."""
    names: dict[str, str] = {}
    for name, one in graph.corpora.items():
        other = names.setdefault(one.questions.key, name)
        if other != name:
            raise ConfigError(
                f"the corpora {other!r} and {name!r} have the same documents and questions",
                where=experiment.file,
                remedy="leave one of them out",
            )


def _documents(
    experiment: Experiment, rag: RagConfig, corpus: RagCorpus, digests: FileDigests
) -> DocumentsSpec:
    folder = resolve_path(corpus.documents, experiment.file)
    if not folder.is_dir():
        raise DataError("is no folder", where=folder, remedy="set documents to the folder that holds them")
    workspace = place_of(experiment.workspace_path)
    if isinstance(workspace, Path) and workspace.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            "the workspace lies within the documents, and would be read as some",
            where=experiment.file,
            remedy="set workspace to a folder beside them",
        )
    files = [source for source in find(folder) if isinstance(source, Source)]
    named = dict(zip((f.id for f in files), digests.all_sha256(f.path for f in files), strict=True))
    described = _file(experiment, corpus.descriptions) if corpus.descriptions else None
    more = [digests.sha256(described)] if described else []
    return DocumentsSpec(
        sha256=digest([named, *more]), fields=rag.fields, folder=folder, descriptions=described
    )


def _file(experiment: Experiment, name: str) -> Path:
    path = resolve_path(name, experiment.file)
    if not path.is_file():
        raise DataError("is not there", where=path, remedy="check the path in [rag]")
    return path


def _generated(graph: Graph, experiment: Experiment, rag: RagConfig, documents: Node) -> Node | None:
    config = rag.questions
    if not config.count:
        return None
    spec = _question_spec(experiment, config)
    inputs = {"rows": documents}
    return graph.add(Node("generate-questions", documents.label, spec, inputs, spec.prompt))


def _question_spec(experiment: Experiment, config: QuestionsConfig) -> QuestionSpec:
    name, template = read_prompt(experiment, config.prompt)
    read_question_prompt(name, template)
    return QuestionSpec(
        llm=llm_spec(experiment, config, heading="[rag.questions]"),
        prompt=name,
        template=template,
        stratify=config.stratify or "",
        language=config.language or "",
        **config.model_dump(include={"count", "seed", "per_document", "options", "attempts", "min_words"}),
    )


def _questions(
    graph: Graph,
    experiment: Experiment,
    corpus: RagCorpus,
    documents: Node,
    generated: Node | None,
    digests: FileDigests,
) -> Node:
    assert experiment.rag is not None
    inputs, spec = {"documents": documents}, OwnQuestionsSpec()
    if corpus.questions:
        file, options = _file(experiment, corpus.questions), experiment.rag.questions.options
        read_questions(file, options=options or None)  # what is wrong with it is told before a model is paid
        spec = OwnQuestionsSpec(sha256=digests.sha256(file), options=options or None, file=file)
    if generated:
        inputs["generated"] = generated
    return graph.add(Node("questions", documents.label, spec, inputs))


def _readers(graph: Graph, experiment: Experiment, texts: Texts) -> dict[str, Node]:
    """The reader of every system that is not left out; one whose model is not there is left out now."""
    found: dict[str, Node] = {}
    missing: PrerequisiteError | None = None
    for system in experiment.system:
        if system.name in graph.failed:
            continue
        try:
            spec = _reader_spec(experiment, system, texts)
        except PrerequisiteError as error:
            missing = missing or error
            graph.failed[system.name] = str(error)
            continue
        found[system.name] = graph.add(Node("reader", texts.label, spec, {}, _model(system)))
    if missing and not found:
        raise missing
    return found


def _model(system: System) -> str:
    return system.model if isinstance(system, DenseSystem | LateSystem) else system.kind


def _reader_spec(experiment: Experiment, system: System, texts: Texts) -> ReaderSpec:
    """The model of a system, without what its tokenizer and window do not depend on."""
    if isinstance(system, DenseSystem):
        whole = encoder_spec(experiment, system, texts)
        kept = {"model", "document_prompt", "max_tokens", "tokenizer"}
        return ReaderSpec(encoder=EncoderSpec(**{name: getattr(whole, name) for name in kept}))
    if isinstance(system, LateSystem):
        late = late_spec(experiment, system, texts)
        return ReaderSpec(
            late=late.model_copy(update={"dtype": "float32", "vectors": "float16", "batch_size": 32})
        )
    return ReaderSpec()


def _passages(
    graph: Graph, rag: RagConfig, documents: Node, system: System, readers: Mapping[str, Node]
) -> Node:
    """The passages that a system reads: its own, or those of all models (of BM25, where there is none)."""
    cut = rag.passages
    chosen: Sequence[Node] = [readers[system.name]]
    if cut.mode == "common":
        models = [node for node in readers.values() if node.spec != ReaderSpec()]
        chosen = list(dict.fromkeys(models or readers.values()))
    inputs = {"rows": documents, **{f"reader-{n}": node for n, node in enumerate(chosen)}}
    spec = PassagesSpec(size=cut.size, overlap=cut.overlap, sentences=cut.sentences)
    purpose = "all" if cut.mode == "common" else _model(system)
    return graph.add(Node("cut", documents.label, spec, inputs, purpose))


def _search(
    graph: Graph, experiment: Experiment, texts: Texts, system: System, reader: Node, passages: Node
) -> Searched:
    assert isinstance(system, Bm25System | DenseSystem | LateSystem)
    own = Texts(texts.dataset, "", texts.language, texts.version, False, passages, texts.queries, texts.qrels)
    run = search(graph, experiment, system, own)
    searched = next(run.inputs[name] for name in _SEARCHED if name in run.inputs)
    return Searched(system, reader, run, passages, searched)


def _answers_spec(
    experiment: Experiment, rag: RagConfig, config: AnswersConfig, searched: Sequence[Searched]
) -> AnswersSpec:
    name, template = read_prompt(experiment, config.prompt)
    (read_open_prompt if config.open else read_answer_prompt)(name, template)
    match = read_prompt(experiment, config.match_prompt) if config.open else ("", "")
    if config.open:
        read_match_prompt(*match)
    llm = llm_spec(experiment, config, heading="[[rag.answers]]")
    # an answer's length is told with each request: the model is then the one that asks, if that is the same
    llm = llm.model_copy(update={"max_tokens": LlmSpec.model_fields["max_tokens"].default})
    return AnswersSpec(
        llm=llm,
        prompt=name,
        template=template,
        ks=tuple(sorted(rag.ks)),
        permutations=rag.permutations,
        max_tokens=config.max_tokens,
        logprobs=config.logprobs,
        tokens_per_passage=rag.passages.budget,
        name=config.called,
        systems=tuple(one.system.name for one in searched),
        match_prompt=match[0],
        match_template=match[1],
    )
