"""The tables of an experiment file."""

import os
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from beirnl.config.fields import (
    Device,
    Gpus,
    Language,
    Line,
    Lines,
    Name,
    check_url,
    check_variable,
)
from beirnl.specs import CheckSpec, Dtype, Profile, Server

LARGEST_WINDOW = 100_000_000  # tokens; far beyond any model, and a number that servers can read


class Section(BaseModel):
    """Base of all tables of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class DatasetConfig(Section):
    """``[[dataset]]``: a retrieval set in BEIR form.

    Attributes:
        name: how reports call it; a name of the dataset registry brings that entry's facts.
        path: folder with ``corpus.jsonl``, or with sub-folders that have one (a dataset in parts); also
            ``hub:ORG/NAME@REVISION`` and ``irds:ID``, see :mod:`beirnl.datasets.sources`. ``${VARIABLE}`` is
            replaced. Default: the registry's; that of ``sample`` is in the package.
        language: ISO code of the text (default: the registry's, else ``en``).
        split: which file of ``qrels/`` judges (default: the registry's, else ``test``).
        domain: named in the translation prompts (BEIR-NL, Table 1).
        remove_self_matches: drop a hit whose id is the query's, before every cut.
        parts: the parts that must be there; the mean over fewer is shown as incomplete.
        shard_documents: most documents that a shard holds, about (default: 10,000; less in a small corpus).
        reference: folder in BEIR form with the same ids in the target language, translated by people: the
            translation is compared with it (chrF, BLEU).
    """

    name: Name
    path: Line | None = None
    language: Language | None = None
    split: Line | None = None
    domain: Line | None = None
    remove_self_matches: bool | None = None
    parts: Lines | None = None
    shard_documents: int | None = Field(default=None, gt=0)
    reference: Line | None = None


class PriceConfig(Section):
    """``price = { input = 0.3, output = 2.5 }``: money per million tokens, in place of the registry's."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    batch_discount: float = Field(default=1.0, gt=0, le=1)
    currency: Line = "USD"


class ServerConfig(Server, Section):
    """``[translation.server]``: where an API is reached and its limits; see :class:`beirnl.specs.Server`."""

    _url = field_validator("base_url")(check_url)
    _variable = field_validator("api_key_env")(check_variable)


class ChecksConfig(CheckSpec, Section):
    """``[translation.checks]``: thresholds of the checks; see :class:`beirnl.specs.CheckSpec`."""

    @field_validator("min_length_ratio", "max_length_ratio", "max_repetition", "language_words")
    @classmethod
    def _positive(cls, number: float) -> float:
        if number <= 0:
            raise ValueError("must be more than 0")
        return number

    @field_validator("max_repetition")
    @classmethod
    def _share(cls, number: float) -> float:
        if number > 1:
            raise ValueError("is a share: must be 1 at most")
        return number

    @field_validator("min_words")
    @classmethod
    def _count(cls, number: int) -> int:
        if number < 0:
            raise ValueError("must be 0 or more")
        return number

    @model_validator(mode="after")
    def _in_order(self) -> "ChecksConfig":
        if self.min_length_ratio >= self.max_length_ratio:
            raise ValueError("min_length_ratio must be less than max_length_ratio")
        return self


class EngineConfig(Section):
    """An engine with its model: ``[translation]`` itself, and ``[translation.second]``.

    Attributes:
        engine: ``vllm``, ``transformers``, ``openai``, ``batch``, ``gemini-batch``, ``mock``, or ``auto``:
            vLLM where it is installed, else transformers.
        model: a model of the registry, a hub path, or a folder; for an API the provider's name.
        max_tokens: most tokens of an answer.
        max_model_len: the window, prompt and answer together; longer documents are split.
        server: where an API is reached and its limits; see :class:`beirnl.specs.Server`.
        price: money per million tokens, if the registry has none.
    """

    engine: Line = "auto"
    model: Line | None = None
    dtype: Dtype = "bfloat16"
    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=2048, gt=0, le=LARGEST_WINDOW)
    max_model_len: int = Field(default=4096, gt=0, le=LARGEST_WINDOW)
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    server: ServerConfig = ServerConfig()
    price: PriceConfig | None = None


RungName = Literal["room", "prompt", "pieces", "engine"]


class TranslationConfig(EngineConfig):
    """``[translation]``: every dataset is also evaluated in its translation.

    Attributes:
        to: ISO code of the target language.
        query_prompt, document_prompt: prompts of the registry, or paths of ``.txt`` files.
        repair: how rows that fail a check are asked for again, in this order; empty: not at all.
        repair_query_prompt, repair_document_prompt: of the rung ``prompt``.
        second: the engine of the rung ``engine``.
        back: also translate back into the source language and evaluate that (BEIR-NL, section 5.3).
        checks: thresholds; changing them asks again only what now fails.
        max_cost: money, in the price's currency; when it is spent, the run stops and can go on later.
    """

    to: Language
    datasets: Lines | None = None
    query_prompt: Line = "paper-query"
    document_prompt: Line = "paper-document"
    repair: tuple[RungName, ...] = ("room", "prompt", "pieces", "engine")
    repair_query_prompt: Line | None = None
    repair_document_prompt: Line | None = None
    second: EngineConfig | None = None
    back: bool = False
    checks: ChecksConfig = ChecksConfig()
    max_cost: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _second_engine(self) -> "TranslationConfig":
        if "repair" in self.model_fields_set and "engine" in self.repair and self.second is None:
            raise ValueError('repair has the rung "engine", which needs a [translation.second]')
        return self


class ParallelConfig(Section):
    """``[[parallel]]``: text that people have translated, one segment a line: what a model is chosen by.

    Attributes:
        name: how reports call it.
        source, reference: files with as many lines; ``${VARIABLE}`` is replaced.
        language: ISO code of the source.
        limit: only so many lines from the beginning.
        kind: with which prompt the lines are translated.
        domain: named in the prompts.
    """

    name: Name
    source: Line
    reference: Line
    language: Language = "en"
    limit: int | None = Field(default=None, gt=0)
    kind: Literal["query", "document"] = "document"
    domain: Line = "general"


class EvaluationConfig(Section):
    """``[evaluation]``: how systems are evaluated, and how sure their values are; the latter is in no key.

    Attributes:
        measures: by their names in ir_measures; also ``R_cap@k`` and ``hole@k``.
        profile: whose conditions hold where a system states none, ``paper`` or ``mteb`` (default: nobody's:
            BM25 as Elasticsearch's, self-matches removed where MTEB's task says so).
        seed: of intervals and tests.
        bootstrap: resamples of queries for intervals.
        randomisation: random signs for p values; with few of them, no corrected p can be small.
        alpha: a corrected p of this or less is significant.
    """

    measures: Lines = ("nDCG@10", "R@100")
    profile: Profile | None = None
    seed: int = Field(default=7, ge=0)
    bootstrap: int = Field(default=1000, gt=0, le=1_000_000)
    randomisation: int = Field(default=20_000, gt=0, le=1_000_000)
    alpha: float = Field(default=0.05, gt=0, lt=1)


class StageRuntime(Section):
    """``[runtime.stages.NAME]``: what one stage has in place of what ``[runtime]`` says for all.

    Attributes:
        workers, threads, gpus: as in ``[runtime]``.
    """

    workers: int | None = Field(default=None, gt=0)
    threads: int | None = Field(default=None, gt=0)
    gpus: Gpus | None = None


class Runtime(Section):
    """``[runtime]``: where and how fast; never part of a key.

    Attributes:
        workers: actors per pool; more than one, or an address, means Ray. On a cluster with fewer CPUs (or
            GPUs) the pool is smaller, and grows when nodes come.
        threads: threads per worker (default: all cores over the workers).
        gpus: GPUs of a worker that runs a model, or searches vectors exactly; other workers have none.
            Fractions share a GPU; with more than one, vLLM splits the model over the GPUs of its node.
        stages: what single stages have in place of that, by their names.
        device: where encoders run.
        object_store_mb: Ray's object store on one machine.
        products: number format of the matrix products of exact search; its results are the same.
        search_memory_mb: what exact search may take for its blocks, per worker.
    """

    workers: int = Field(default=1, gt=0)
    threads: int | None = Field(default=None, gt=0)
    gpus: Gpus = 0.0
    device: Device = "auto"
    object_store_mb: int = Field(default=256, ge=80)
    products: Literal["auto", "float32", "bfloat16"] = "auto"
    search_memory_mb: int = Field(default=384, ge=16)
    stages: dict[str, StageRuntime] = {}

    def of(self, stage: str) -> "Runtime":
        """What a stage has."""
        own = self.stages.get(stage)
        return self.model_copy(update=own.model_dump(exclude_none=True)) if own else self

    @property
    def most_workers(self) -> int:
        """Workers of the largest pool."""
        return max(self.workers, *(own.workers or 0 for own in self.stages.values()), 0)

    @property
    def worker_threads(self) -> int:
        """Threads that one worker may use."""
        return self.threads or max(1, len(os.sched_getaffinity(0)) // self.workers)
