"""Specs: the settings that enter the key of what a stage produces.

A ``Spec`` is frozen. Fields at their default are left out of the key, so that a new field with a default
does not re-key what exists. Settings of *where and how fast* (workers, threads, addresses) are ``Runtime``
in :mod:`beirnl.config` and never stand here.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Dtype = Literal["float32", "float16", "bfloat16"]


class Spec(BaseModel):
    """Base of all specs: frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ModelRef(Spec):
    """A model whose weights are pinned as far as its source allows.

    Attributes:
        name: registry name, hub path or folder as the user wrote it.
        source: ``package:DIST==VERSION``, ``hub:ORG/NAME`` or ``path:/absolute/folder``.
        revision: hub commit, package version, or digest of the folder's files; ``unpinned`` if unknown.
        recipe: how a package's files become a model folder; a key of ``beirnl.models.recipes.RECIPES``.
        trust_remote_code: whether the registry allows the model's own code.
    """

    name: str
    source: str
    revision: str = "unpinned"
    recipe: str = ""
    trust_remote_code: bool = False


class EncoderSpec(Spec):
    """A bi-encoder: one vector per text, compared by cosine."""

    model: ModelRef
    query_prompt: str = ""
    document_prompt: str = ""
    dtype: Dtype = "float32"
    vectors: Literal["float32", "float16"] = "float32"
    max_tokens: int | None = None
    batch_size: int = 32


class RerankerSpec(Spec):
    """A second stage over the first ``depth`` documents of a first stage."""

    kind: Literal["cross-encoder", "bi-encoder"]
    model: ModelRef
    query_prompt: str = ""
    document_prompt: str = ""
    dtype: Dtype = "float32"
    max_tokens: int | None = None
    batch_size: int = 32


class Bm25Spec(Spec):
    """BM25 index conditions.

    ``elasticsearch``: fields title and text, best_fields with a tie breaker (BEIR's Elasticsearch baseline,
    BEIR-NL section 4.1.1). ``flat``: one field, title and text joined.
    """

    profile: Literal["elasticsearch", "flat"] = "elasticsearch"
    analyzer: str = "english"
    k1: float = 1.2
    b: float = 0.75
    tie_breaker: float = 0.5


class LlmSpec(Spec):
    """An engine, its model and its decoding parameters."""

    engine: str
    model: ModelRef | None = None
    dtype: Dtype = "bfloat16"
    temperature: float = 0.0
    max_tokens: int = 512
    max_model_len: int = 1024
    stop: tuple[str, ...] = ()


class CheckSpec(Spec):
    """Thresholds of the checks on translations; see :mod:`beirnl.translation.checks`.

    Attributes:
        min_length_ratio, max_length_ratio: characters of the translation over those of the source.
        max_repetition: share of three-word phrases that have occurred before in the text.
        language_words: the language is identified from this many words at the beginning.
        min_words: texts with fewer words are not judged for their language, nor as copied.
    """

    min_length_ratio: float = 0.4
    max_length_ratio: float = 2.5
    max_repetition: float = 0.5
    language_words: int = 25
    min_words: int = 4


class TranslationSpec(Spec):
    """What turns rows into requests to an LLM, and its answers into rows again.

    Attributes:
        llm: engine, model and decoding parameters.
        kind: whether the rows are queries or documents.
        prompt: name of the prompt file.
        template: its text, line ends normalised to LF; see :mod:`beirnl.translation.prompts`.
        source_language, target_language: ISO 639-1 codes.
        domain: named in prompts (BEIR-NL, Table 1).
    """

    llm: LlmSpec
    kind: Literal["query", "document"]
    prompt: str
    template: str
    source_language: str
    target_language: str
    domain: str = "general"
