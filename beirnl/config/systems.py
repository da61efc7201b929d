"""The systems of an experiment file: ``[[system]]``, told apart by their kind."""

from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator

from beirnl.config.fields import Languages, Line, Lines, Name
from beirnl.config.sections import Section, ServerConfig
from beirnl.specs import Dtype, Profile, SystemProfile
from beirnl.wording import counted


class _System(Section):
    """What all systems have.

    Attributes:
        profile: whose conditions hold (default: the experiment's), see ``registry/profiles.toml``; of BM25
            also conditions of its own.
    """

    name: Name
    profile: SystemProfile | None = None
    datasets: Lines | None = None
    languages: Languages | None = None
    depth: int = Field(default=100, gt=0, le=100_000)

    @field_validator("profile")
    @classmethod
    def _of_its_kind(cls, profile: SystemProfile | None) -> SystemProfile | None:
        if profile not in (None, *get_args(Profile)) and not issubclass(cls, Bm25System):
            raise ValueError(f"must be 'paper' or 'mteb'; {profile!r} is for kind bm25 alone")
        return profile


class Bm25System(_System):
    """``[[system]]`` of kind ``bm25``.

    Attributes:
        profile: ``elasticsearch``, ``flat``, ``mteb``, ``anserini-flat`` or ``anserini-multifield``, or
            ``paper`` (default: the experiment's, else ``elasticsearch``).
        analyzer, k1, b, tie_breaker: in place of the profile's.
        shards: indexes into which a corpus is divided that is too large for one node's disk; scores are those
            of one index.
    """

    kind: Literal["bm25"]
    analyzer: Line | None = None
    k1: float | None = Field(default=None, ge=0)
    b: float | None = Field(default=None, ge=0, le=1)
    tie_breaker: float | None = Field(default=None, ge=0, le=1)
    shards: int = Field(default=1, gt=0)


class AnnConfig(Section):
    """``ann = { expansion_search = 512 }``: approximate search; see :mod:`beirnl.retrieval.ann`.

    Attributes:
        numbers: number format of the graph's vectors; scores are computed from the stored ones.
        connectivity: neighbours of a node of the graph.
        expansion_add, expansion_search: candidates looked at for a new vector, and for a query.
        recall_queries: queries that recall against exact search is measured on; all if there are fewer.
        min_recall: what the lower end of the recall's 95 % interval must reach, else the stage fails.
    """

    numbers: Literal["bf16", "i8"] = "bf16"
    connectivity: int = Field(default=16, ge=2)
    expansion_add: int = Field(default=128, gt=0)
    expansion_search: int = Field(default=256, gt=0)
    recall_queries: int = Field(default=1_000, gt=0)
    min_recall: float = Field(default=0.95, ge=0, le=1)


class DenseSystem(_System):
    """``[[system]]`` of kind ``dense``: a bi-encoder, and search by cosine.

    Attributes:
        model: a model of the registry, a hub path, or a folder; for an API the provider's name.
        engine: ``openai``: the model is behind an OpenAI-compatible API, even if no entry says so.
        query_prompt, document_prompt: what stands in front of texts (default: the registry's).
        instruction: the task in words, for a model that is told it (default: that of its model card).
        dimensions: only the first numbers of each vector, for models trained for that.
        batch_size, batch_tokens: most texts, and most tokens, in a batch or in a request to an API.
        language_adapter: the adapter of a model that has them (default: the text's language, if the
            registry says that the model has them).
        tokenizer: how ``max_tokens`` is counted for an API: ``cl100k_base`` by tiktoken, ``bytes`` as one
            token per three bytes; ``auto``: the first where the model has it and tiktoken is installed.
        server: where an API is reached and its limits; see :class:`beirnl.specs.Server`.
        vectors: number format in which vectors are stored; int8 with a scale per vector, queries in float32.
        search: ``exact``, or ``ann`` for USearch, whose recall stands beside each score.
        ann: settings of ``ann``.
    """

    kind: Literal["dense"]
    model: Line
    engine: Literal["openai"] | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    instruction: Line | None = None
    dtype: Dtype = "float32"
    vectors: Literal["float32", "float16", "int8"] = "float32"
    dimensions: int | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=32, gt=0)
    batch_tokens: int | None = Field(default=None, gt=0)
    language_adapter: Line | None = None
    tokenizer: Literal["auto", "cl100k_base", "bytes"] = "auto"
    server: ServerConfig = ServerConfig()
    search: Literal["exact", "ann"] = "exact"
    ann: AnnConfig = AnnConfig()


class RerankSystem(_System):
    """``[[system]]`` of kind ``rerank``: a second stage over the first ``depth`` of another system."""

    kind: Literal["rerank"]
    first: Line
    model: Line
    method: Literal["cross-encoder", "bi-encoder"] = "cross-encoder"
    dtype: Dtype = "float32"
    max_tokens: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=32, gt=0)


class LateSystem(_System):
    """``[[system]]`` of kind ``late``: a vector per token, compared by MaxSim.

    Attributes:
        first: the system whose first ``depth`` hits are scored; without it all passages are.
        model: a checkpoint of ColBERT or its kin.
        language_adapter: the adapter of a model that has them (default: that of the text's language).
        vectors: how token vectors are stored, without ``first``.
        max_tokens: longest document (default: the model's own limit).
        max_passages: without ``first``: a larger corpus is refused; never part of a key.
    """

    kind: Literal["late"]
    model: Line
    first: Line | None = None
    language_adapter: Line | None = None
    dtype: Dtype = "float32"
    vectors: Literal["float32", "float16"] = "float16"
    max_tokens: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=32, gt=0)
    max_passages: int = Field(default=100_000, gt=0)


class FusionSystem(_System):
    """``[[system]]`` of kind ``fusion``: several systems as one.

    Attributes:
        of: systems above it.
        method: reciprocal rank, or the sum of normalised scores; see :mod:`beirnl.retrieval.fusion`.
        weights: of the systems, in their order (default: 1 each).
        k: of ``rrf``.
    """

    kind: Literal["fusion"]
    of: tuple[Line, ...] = Field(min_length=2)
    method: Literal["rrf", "min-max", "z-score"] = "rrf"
    weights: tuple[float, ...] = ()
    k: int = Field(default=60, ge=0)

    @model_validator(mode="after")
    def _each_once(self) -> "FusionSystem":
        if self.weights and len(self.weights) != len(self.of):
            raise ValueError(
                f"{counted(len(self.of), 'system has', 'systems have')} "
                f"{counted(len(self.weights), 'weight')}: give one for each"
            )
        for name in self.of:
            if self.of.count(name) > 1:
                raise ValueError(f"fuses {name!r} with itself: name it once; weights make one count for more")
        return self


class RunSystem(_System):
    """``[[system]]`` of kind ``run``: a run that was made elsewhere, scored and compared as any other.

    Attributes:
        path: a file in one of the formats of :mod:`beirnl.evaluation.runs`; ``{dataset}``, ``{language}`` and
            ``{part}`` are replaced, so that one system has a file for each set.
        depth: hits of a query that are read (default: all; in a comparison, the shortest run decides).
        model: what made it, as conditions tell it.
    """

    kind: Literal["run"]
    path: Line
    depth: int = Field(default=100_000, gt=0, le=100_000)
    model: Line | None = None


System = Annotated[
    Bm25System | DenseSystem | RerankSystem | LateSystem | FusionSystem | RunSystem,
    Field(discriminator="kind"),
]
