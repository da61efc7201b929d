"""A translation as nodes: ask, learn the length bounds, check, repair, compare with a reference."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from beirnl import registry
from beirnl.config import EngineConfig, Experiment, TranslationConfig, resolve_path
from beirnl.errors import ConfigError, nearest
from beirnl.graph.models import resolve
from beirnl.graph.nodes import Graph, Kind, Node, Translation
from beirnl.llm.mock import LANGUAGES as MOCK_LANGUAGES
from beirnl.specs import LlmSpec, ModelRef, RepairSpec, Rung, TranslationSpec
from beirnl.stages.translate import ChecksSpec, LengthsSpec, QualitySpec

_OTHER_PROMPTS = {"query": "json-query", "document": "json-document"}  # of the rung `prompt`


@dataclass(frozen=True)
class Subject:
    """What is to be translated: the rows of a node, and what a prompt says of them."""

    dataset: str
    part: str
    kind: Kind
    label: str
    rows: Node
    domain: str
    languages: tuple[str, str]
    back: bool = False


def translated(graph: Graph, experiment: Experiment, subject: Subject, reference: Node | None = None) -> Node:
    """Add the nodes of a translation; the last of them holds the translated rows."""
    config = experiment.translation
    assert config is not None
    _check_languages(experiment, config, subject)
    spec = _translation_spec(experiment, config, subject, _prompt_of(config, subject.kind))
    source = {"source": subject.rows}

    def add(stage: str, spec: LengthsSpec | ChecksSpec | RepairSpec, inputs: dict[str, Node]) -> Node:
        return graph.add(Node(stage, subject.label, spec, inputs))

    answers = graph.add(Node("translate", subject.label, spec, {"rows": subject.rows}))
    lengths = add("lengths", LengthsSpec(translation=spec), {"rows": answers, **source})
    checks = ChecksSpec(checks=config.checks, translation=spec)
    checked = final = add("check", checks, {"rows": answers, **source, "lengths": lengths})
    for rungs in _ladder(experiment, config, subject, spec):
        ladder = RepairSpec(rungs=rungs, checks=config.checks)
        final = add("repair", ladder, {"rows": final, **source, "lengths": lengths})
    quality = None
    if reference:
        inputs = {"rows": final, "reference": reference}
        quality = graph.add(Node("quality", subject.label, QualitySpec(), inputs))
    graph.translations.append(
        Translation(
            subject.dataset,
            subject.part,
            subject.kind,
            subject.languages[1],
            subject.rows,
            answers,
            checked,
            final,
            quality,
            subject.back,
        )
    )
    return final


def _check_languages(experiment: Experiment, config: TranslationConfig, subject: Subject) -> None:
    source, target = subject.languages
    if source == target:
        raise ConfigError(
            f"dataset {subject.dataset!r} is to be translated from {source!r} into itself",
            where=experiment.file,
            remedy="set translation.to to another language, or translation.datasets to the other datasets",
        )
    for code in subject.languages:
        registry.language(code)
    entry = registry.language(target)
    if config.checks.language and not entry.identified:
        raise ConfigError(
            f"the language check does not know {entry.name} ({target})",
            where=experiment.file,
            remedy="set language = false under [translation.checks] to translate without it",
        )
    if config.checks.language and config.engine == "mock" and target not in MOCK_LANGUAGES:
        raise ConfigError(
            "the mock engine writes the likeness of Dutch only, which the language check rejects",
            where=experiment.file,
            remedy='set to = "nl", or language = false under [translation.checks]',
        )


def _prompt_of(config: TranslationConfig, kind: Kind) -> str:
    return config.query_prompt if kind == "query" else config.document_prompt


def _ladder(
    experiment: Experiment, config: TranslationConfig, subject: Subject, first: TranslationSpec
) -> Iterator[tuple[Rung, ...]]:
    """The rungs in their order, in groups that one engine climbs."""
    rungs: list[Rung] = []
    for name in config.repair:
        spec: TranslationSpec | None = first
        if name == "prompt":
            other = _other_prompt(config, subject.kind, first)
            spec = _translation_spec(experiment, config, subject, other) if other else None
        elif name == "engine":
            prompt = _prompt_of(config, subject.kind)
            spec = _translation_spec(experiment, config.second, subject, prompt) if config.second else None
        if spec:
            rungs.append(Rung(name=name, number=len(rungs) + 1, translation=spec))
    for _, group in groupby(rungs, key=lambda rung: rung.translation.llm):
        yield tuple(group)


def _other_prompt(config: TranslationConfig, kind: Kind, first: TranslationSpec) -> str | None:
    """The prompt of the rung ``prompt``: what the file says, else JSON where the first one is a chat."""
    named = config.repair_query_prompt if kind == "query" else config.repair_document_prompt
    if named:
        return named
    from beirnl.translation.prompts import read_template

    template = read_template(first.prompt, first.template, kind)
    other = _OTHER_PROMPTS[kind]
    return other if template.head.form == "chat" and first.prompt != other else None


def _translation_spec(
    experiment: Experiment, config: EngineConfig, subject: Subject, prompt: str
) -> TranslationSpec:
    from beirnl.translation.prompts import opening

    name, text = read_prompt(experiment, prompt)
    spec = TranslationSpec(
        llm=llm_spec(experiment, config, _languages_of(name, text, subject)),
        kind=subject.kind,
        prompt=name,
        template=text,
        source_language=subject.languages[0],
        target_language=subject.languages[1],
        domain=subject.domain,
    )
    opening(spec)  # refuses languages that the prompt is not written for
    return spec


def read_prompt(experiment: Experiment, prompt: str) -> tuple[str, str]:
    """Name and text of a prompt: the registry's, or a file's beside the experiment."""
    if prompt in registry.prompts():
        return prompt, registry.prompt(prompt)
    path = resolve_path(prompt, experiment.file)
    if not prompt.endswith(".txt"):
        raise _unknown_prompt(prompt, path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "this prompt file cannot be read", where=path, remedy="give a text file in UTF-8"
        ) from error
    return Path(prompt).stem, text


def _unknown_prompt(prompt: str, path: Path) -> ConfigError:
    """A name that no prompt of the registry has; it may be meant as a file."""
    whole = path.with_name(f"{path.name}.txt")
    if whole.is_file():
        remedy = f"a file is named with its suffix: {prompt + '.txt'!r}"
    elif path.exists() or "/" in prompt or path.suffix:
        remedy = "a file of your own is to be called ....txt"
    else:
        remedy = nearest(prompt, registry.prompts(), "name a .txt file")
    return ConfigError(f"unknown prompt {prompt!r}", remedy=remedy)


def _languages_of(name: str, text: str, subject: Subject) -> tuple[str, str] | None:
    """Languages for a model that is told them apart from the text (prompts of the form ``source``)."""
    from beirnl.translation.prompts import read_template

    form = read_template(name, text, subject.kind).head.form
    return subject.languages if form == "source" else None


def llm_spec(
    experiment: Experiment,
    config: EngineConfig,
    languages: tuple[str, str] | None = None,
    heading: str = "[translation]",
) -> LlmSpec:
    """The LLM of an engine's table in the experiment file.

    Raises:
        ConfigError: no such engine, or one that needs a model and has none.
    """
    from beirnl.llm import ENGINES, resolve_engine

    name = resolve_engine(config.engine)
    engine = ENGINES[name]
    if config.model is None and (engine.weights or engine.remote):
        raise ConfigError(
            f"engine {name!r} needs a model", where=experiment.file, remedy=f"set model under {heading}"
        )
    model = None
    if config.model and engine.remote:
        model = ModelRef(name=config.model, source=f"api:{config.model}")
    elif config.model:
        model = resolve(experiment, config.model, "llm")
    return LlmSpec(
        engine=name,
        model=model,
        dtype=config.dtype,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        max_model_len=config.max_model_len,
        stop=config.stop,
        languages=languages,
        server=config.server,
    )
