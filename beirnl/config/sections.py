"""The tables of an experiment file."""

import os
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from beirnl.specs import CheckSpec, Dtype, Server

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"


class Section(BaseModel):
    """Base of all tables of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class DatasetConfig(Section):
    """``[[dataset]]``: a retrieval set in BEIR form.

    Attributes:
        name: how reports call it; a name of the dataset registry brings that entry's facts.
        path: folder with ``corpus.jsonl``, or with sub-folders that have one (a dataset in parts).
            ``${VARIABLE}`` is replaced. Default: the registry's; that of ``sample`` is in the package.
        language: ISO code of the text (default: the registry's, else ``en``).
        split: which file of ``qrels/`` judges (default: the registry's, else ``test``).
        domain: named in the translation prompts (BEIR-NL, Table 1).
        remove_self_matches: drop a hit whose id is the query's, before every cut.
        parts: the parts that must be there; the mean over fewer is shown as incomplete.
        shard_documents: most documents that a shard holds, about (default: 10,000; less in a small corpus).
        reference: folder in BEIR form with the same ids in the target language, translated by people: the
            translation is compared with it (chrF, BLEU).
    """

    name: str = Field(pattern=NAME)
    path: str | None = None
    language: str | None = None
    split: str | None = None
    domain: str | None = None
    remove_self_matches: bool | None = None
    parts: tuple[str, ...] | None = None
    shard_documents: int | None = Field(default=None, gt=0)
    reference: str | None = None


class PriceConfig(Section):
    """``price = { input = 0.3, output = 2.5 }``: money per million tokens, in place of the registry's."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    batch_discount: float = Field(default=1.0, gt=0, le=1)
    currency: str = "USD"


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

    engine: str = "auto"
    model: str | None = None
    dtype: Dtype = "bfloat16"
    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=2048, gt=0)
    max_model_len: int = Field(default=4096, gt=0)
    stop: tuple[str, ...] = ()
    server: Server = Server()
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

    to: str
    datasets: tuple[str, ...] | None = None
    query_prompt: str = "paper-query"
    document_prompt: str = "paper-document"
    repair: tuple[RungName, ...] = ("room", "prompt", "pieces", "engine")
    repair_query_prompt: str | None = None
    repair_document_prompt: str | None = None
    second: EngineConfig | None = None
    back: bool = False
    checks: CheckSpec = CheckSpec()
    max_cost: float | None = Field(default=None, gt=0)


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

    name: str = Field(pattern=NAME)
    source: str
    reference: str
    language: str = "en"
    limit: int | None = Field(default=None, gt=0)
    kind: Literal["query", "document"] = "document"
    domain: str = "general"


class _System(Section):
    name: str = Field(pattern=NAME)
    datasets: tuple[str, ...] | None = None
    languages: tuple[str, ...] | None = None
    depth: int = Field(default=100, gt=0, le=100_000)


class Bm25System(_System):
    """``[[system]]`` of kind ``bm25``."""

    kind: Literal["bm25"]
    profile: Literal["elasticsearch", "flat"] = "elasticsearch"
    analyzer: str | None = None
    k1: float = Field(default=1.2, ge=0)
    b: float = Field(default=0.75, ge=0, le=1)
    tie_breaker: float = Field(default=0.5, ge=0, le=1)


class DenseSystem(_System):
    """``[[system]]`` of kind ``dense``: a bi-encoder and exact search by cosine."""

    kind: Literal["dense"]
    model: str
    dtype: Dtype = "float32"
    vectors: Literal["float32", "float16"] = "float32"
    max_tokens: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=32, gt=0)


class RerankSystem(_System):
    """``[[system]]`` of kind ``rerank``: a second stage over the first ``depth`` of another system."""

    kind: Literal["rerank"]
    first: str
    model: str
    method: Literal["cross-encoder", "bi-encoder"] = "cross-encoder"
    dtype: Dtype = "float32"
    max_tokens: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=32, gt=0)


System = Annotated[Bm25System | DenseSystem | RerankSystem, Field(discriminator="kind")]


class EvaluationConfig(Section):
    """``[evaluation]``: measures by their names in ir_measures."""

    measures: tuple[str, ...] = Field(default=("nDCG@10", "R@100"), min_length=1)


class Runtime(Section):
    """``[runtime]``: where and how fast; never part of a key.

    Attributes:
        workers: actors per pool; more than one, or an address, means Ray.
        threads: threads per worker (default: all cores over the workers).
        gpus: GPUs per worker, fractions allowed.
        device: where encoders run.
        object_store_mb: Ray's object store on one machine.
    """

    workers: int = Field(default=1, gt=0)
    threads: int | None = Field(default=None, gt=0)
    gpus: float = Field(default=0.0, ge=0)
    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")
    object_store_mb: int = Field(default=256, ge=80)

    @property
    def worker_threads(self) -> int:
        """Threads that one worker may use."""
        return self.threads or max(1, len(os.sched_getaffinity(0)) // self.workers)
