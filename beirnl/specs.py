"""Specs: the settings that enter the key of what a stage produces.

A ``Spec`` is frozen. Fields at their default are left out of the key, so that a new field with a default
does not re-key what exists. Settings of *where and how fast* (workers, threads, addresses) are ``Runtime``
in :mod:`beirnl.config` and never stand here.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Dtype = Literal["float32", "float16", "bfloat16"]
#: Whose conditions hold; what each states is in ``registry/profiles.toml``, and resolved into specs.
Profile = Literal["paper", "mteb"]
Bm25Profile = Literal["elasticsearch", "flat", "mteb", "anserini-flat", "anserini-multifield"]
#: What a system of kind bm25 can state: either.
SystemProfile = Literal["paper", "mteb", "elasticsearch", "flat", "anserini-flat", "anserini-multifield"]
#: How a vector is made from the tokens' states; empty: as the checkpoint itself says.
Pooling = Literal["", "mean", "cls", "pooler"]


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
        code: ``ORG/NAME@COMMIT`` of the repository with that code, where it is not the model's.
        pooling: of an encoder whose checkpoint does not say it; ``pooler`` takes the model's pooler output.
    """

    name: str
    source: str
    revision: str = "unpinned"
    recipe: str = ""
    trust_remote_code: bool = False
    code: str = ""
    pooling: Pooling = ""


class Server(BaseModel):
    """Where an LLM is reached and how hard it may be pressed: never part of a key.

    Attributes:
        base_url: of an OpenAI-compatible API, with its version (``https://api.openai.com/v1``).
        api_key_env: name of the environment variable that holds the key; empty for a server without keys.
        requests_per_minute, tokens_per_minute: the provider's limits, for the whole cluster; None: no limit.
        in_flight: most requests at once per worker.
        timeout: seconds that one request may take.
        retries: how often a request is repeated after 429, 5xx, a time-out or a broken connection.
        batch_requests, batch_megabytes: most that one batch file may hold (OpenAI: 50,000 and 200).
        poll_seconds: between two looks at a batch job.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    in_flight: int = Field(default=64, gt=0)
    timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=6, ge=0)
    batch_requests: int = Field(default=50_000, gt=0)
    batch_megabytes: float = Field(default=200.0, gt=0)
    poll_seconds: float = Field(default=60.0, gt=0)


class EncoderSpec(Spec):
    """A bi-encoder: one vector per text, compared by cosine.

    Attributes:
        model: its weights; ``source`` is ``api:NAME`` for one behind an API.
        query_prompt, document_prompt: what stands in front of a text.
        dtype: of the weights and the forward pass.
        vectors: how vectors are stored.
        max_tokens: texts are cut after so many tokens, prompt and special tokens included; None: the model's.
        batch_size: most texts in a batch, or in a request.
        batch_tokens: most tokens in a batch, padding included, or in a request; None: no such limit.
        dimensions: only the first numbers of each vector, for models trained for that; asked of an API.
        query_task, document_task: the model's own name of what it is to do, for models with task adapters.
        language: the language adapter that is set; see :mod:`beirnl.retrieval.languages`.
        tokenizer: how tokens of a text for an API are counted; see :mod:`beirnl.retrieval.api_encoder`.
        server: where an API is reached; not part of the key.
    """

    model: ModelRef
    query_prompt: str = ""
    document_prompt: str = ""
    dtype: Dtype = "float32"
    vectors: Literal["float32", "float16", "int8"] = "float32"
    max_tokens: int | None = None
    batch_size: int = 32
    batch_tokens: int | None = None
    dimensions: int | None = None
    query_task: str = ""
    document_task: str = ""
    language: str = ""
    tokenizer: Literal["", "cl100k_base", "bytes"] = ""
    server: Server = Field(default=Server(), exclude=True)

    @property
    def is_remote(self) -> bool:
        """Whether the model is asked over the network, not loaded."""
        return self.model.source.startswith("api:")

    @property
    def api(self) -> "LlmSpec | None":
        """How the API is reached, as that of an LLM is: model, server and key; None for a loaded model."""
        return LlmSpec(engine="openai", model=self.model, server=self.server) if self.is_remote else None


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

    ``statistics``: ``lucene`` keeps four significant bits of a document's length and leaves documents without
    a term in a field out of its statistics; ``bm25s`` has exact lengths, and all documents count.
    """

    profile: Literal["elasticsearch", "flat"] = "elasticsearch"
    analyzer: str = "english"
    k1: float = 1.2
    b: float = 0.75
    tie_breaker: float = 0.5
    statistics: Literal["lucene", "bm25s"] = "lucene"


class LlmSpec(Spec):
    """An engine, its model and its decoding parameters.

    Attributes:
        engine: a key of :data:`beirnl.llm.ENGINES`.
        model: its model; for an engine that is reached over the network, ``source`` is ``api:NAME``.
        dtype: of the weights, where the engine loads them.
        temperature: 0 takes the likeliest token each time.
        max_tokens: most tokens of an answer.
        max_model_len: the window, prompt and answer together.
        stop: strings before which an answer ends.
        languages: source and target (ISO 639-1) of a sequence-to-sequence model, which gets the bare text.
        server: where the engine is reached; not part of the key.
    """

    engine: str
    model: ModelRef | None = None
    dtype: Dtype = "bfloat16"
    temperature: float = 0.0
    max_tokens: int = 2048
    max_model_len: int = 4096
    stop: tuple[str, ...] = ()
    languages: tuple[str, str] | None = None
    server: Server = Field(default=Server(), exclude=True)


class CheckSpec(Spec):
    """Thresholds of the checks on translations; see :mod:`beirnl.translation.checks`.

    Attributes:
        min_length_ratio, max_length_ratio: characters of the translation over those of the source. Bounds
            learned from a dataset (of 100 rows and more) are narrower; they lie within these.
        max_repetition: share of three-word phrases that have occurred before in the text.
        language_words: the language is identified from this many words at the beginning.
        min_words: texts with fewer words are not judged for their language, nor as copied.
        language: whether the language is checked; off for one that the identifier does not know.
    """

    min_length_ratio: float = 0.4
    max_length_ratio: float = 2.5
    max_repetition: float = 0.5
    language_words: int = 25
    min_words: int = 4
    language: bool = True


class TranslationSpec(Spec):
    """What turns rows into requests to an LLM, and its answers into rows again.

    Attributes:
        llm: engine, model and decoding parameters.
        kind: whether the rows are queries or documents.
        prompt: name of the prompt file.
        template: its text, line ends normalised to LF; see :mod:`beirnl.translation.prompts`.
        source_language, target_language: ISO 639-1 codes.
        domain: named in prompts (BEIR-NL, Table 1).
        expansion: tokens of an answer for a token of its source, for which room is kept: a document that
            would not leave it is split.
    """

    llm: LlmSpec
    kind: Literal["query", "document"]
    prompt: str
    template: str
    source_language: str
    target_language: str
    domain: str = "general"
    expansion: float = 1.6


class Rung(Spec):
    """A rung of the repair ladder: how rows are asked for again.

    Attributes:
        name: ``room`` (warmer, with twice the room), ``prompt`` (another prompt), ``pieces`` (sentence by
            sentence) or ``engine`` (a second engine).
        number: place on the whole ladder, from 1; enters the requests' keys, so that an answer that was
            rejected is never read again.
        translation: the engine and prompt that are asked.
    """

    name: Literal["room", "prompt", "pieces", "engine"]
    number: int
    translation: TranslationSpec


class RepairSpec(Spec):
    """The rungs that one engine climbs, and the checks that send a row there and let it go."""

    rungs: tuple[Rung, ...]
    checks: CheckSpec


class QuestionSpec(Spec):
    """How questions are made from documents; see :mod:`beirnl.rag.questions`.

    Attributes:
        llm: engine, model and decoding parameters of the LLM that asks.
        prompt, template: name and text of the prompt file.
        count: questions that are wanted.
        seed: draws documents, their windows and the order of options.
        stratify: what each draw is spread over: quartiles of length in characters, or folders.
        per_document: most questions of one document.
        options: of each question.
        attempts: how often a document is asked for one question.
        min_words: documents with fewer are not asked.
        similarity: share of words in common from which two questions are near-duplicates.
        language: that questions must be in (ISO 639-1); empty: the document's.
    """

    llm: LlmSpec
    prompt: str
    template: str
    count: int = Field(gt=0)
    seed: int = 7
    stratify: Literal["", "length", "group"] = ""
    per_document: int = Field(default=1, gt=0)
    options: int = Field(default=4, ge=2, le=10)
    attempts: int = Field(default=3, gt=0)
    min_words: int = 20
    similarity: float = 0.75
    language: str = ""


class AnswerSpec(Spec):
    """How questions are answered; see :mod:`beirnl.rag.answers`.

    Attributes:
        llm: engine, model and decoding parameters of the LLM that answers.
        prompt, template: name and text of the prompt file.
        ks: numbers of passages in a prompt (BES4RAG, section 3.6).
        permutations: orders of the options in which each question is asked.
        max_tokens: of an answer (BES4RAG, section 4.3: one).
        logprobs: likeliest first tokens whose log-probabilities are asked for; 0: none. OpenAI tells 20 of
            a chat, 5 of a completion.
        tokens_per_passage: if set, k stands for a budget of k times so many tokens of the answering LLM,
            filled with whole passages: systems with short passages then show as much text as the others.
        match_prompt, match_template: if set, answers are open, and this prompt links them to an option.
    """

    llm: LlmSpec
    prompt: str
    template: str
    ks: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 10)
    permutations: Literal[1, 2, 4] = 1
    max_tokens: int = Field(default=1, gt=0)
    logprobs: int = Field(default=20, ge=0, le=20)
    tokens_per_passage: int = Field(default=0, ge=0)
    match_prompt: str = ""
    match_template: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the options are not shown with the question."""
        return bool(self.match_template)
