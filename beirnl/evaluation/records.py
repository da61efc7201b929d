"""What an evaluation hands on: records (the JSON contract), and the report that tables and page show."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

if TYPE_CHECKING:
    from beirnl.evaluation.page import Part
    from beirnl.evaluation.page.drawing import Plot
    from beirnl.evaluation.tables import Table
    from beirnl.evaluation.translations.back_translation import BackTranslation
    from beirnl.evaluation.translations.quality import Quality
    from beirnl.evaluation.uncertainty import Uncertainty

Fraction = Annotated[float, Field(ge=0, le=1)]
#: Whose scores: a system, a dataset and a language.
Subject = tuple[str, str, str]


class Strict(BaseModel):
    """What is written as JSON: no further fields, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class Conditions(Strict):
    """The conditions under which a number holds; what a system has no use for is null (BM25 has no dtype).

    Further fields are allowed (``ann_recall``, ``query_prompt``): text, numbers, booleans or null.

    Attributes:
        dataset_hash: digest of corpus, queries and qrels.
        model: encoder or reranker by its registry name.
        revision: of the model; ``unpinned`` if its source has none.
        dtype: the model's number format.
        profile: whose conventions hold, ``paper``, ``mteb`` or a BM25 profile.
        search: how candidates are found: by BM25, exactly, approximately, by MaxSim over all passages, by
            rescoring a first stage, or by fusing the runs of other systems; ``imported`` is a run that was
            made elsewhere and scored here, ``published`` a figure of others.
        self_matches: whether hits whose id is the query's were removed.
        averaging: over what the mean is, ``queries`` or ``parts`` (CQADupStack's forums).
        versions: packages that compute the number, by name.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | int | float | bool | None] = Field(init=False)

    dataset_hash: str
    model: str | None = None
    revision: str | None = None
    dtype: str | None = None
    profile: str | None = None
    search: Literal["bm25", "exact", "ann", "late", "rerank", "fusion", "imported", "published"]
    self_matches: Literal["kept", "removed", "unknown"]
    averaging: str = "queries"
    versions: dict[str, str] = Field(default_factory=dict)


class Record(Strict):
    """One number: a system's value of a measure on a dataset in a language, with its conditions.

    Attributes:
        dataset: name of the dataset.
        language: of corpus and queries, ``nl``.
        system: name under which the system is shown; one row of a table.
        measure: canonical name, see :func:`beirnl.evaluation.measures.parse`.
        value: mean over the judged queries, 0 to 1; null if incomplete (parts are missing).
        queries: number of judged queries.
        without_relevant: how many of them have no relevant document and count 0.
        value_with_relevant: mean without those; null if none remain or it was not computed.
        low, high: 95 % bootstrap interval of ``value``; null where it is not computed.
        p: of the paired randomisation test against the best system of the same dataset, language and measure,
            two-sided; null for the best itself, as are the following.
        p_holm: corrected over the systems that are compared with that best one.
        wins, losses, ties: queries on which the system is better, worse, equal to it.
        not_below_best: whether it is not significantly worse.
        conditions: see :class:`Conditions`.
    """

    dataset: str
    language: str
    system: str
    measure: str
    value: Fraction | None
    queries: Annotated[int, Field(ge=0)]
    without_relevant: Annotated[int, Field(ge=0)] = 0
    value_with_relevant: Fraction | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    p: Fraction | None = None
    p_holm: Fraction | None = None
    wins: Annotated[int, Field(ge=0)] | None = None
    losses: Annotated[int, Field(ge=0)] | None = None
    ties: Annotated[int, Field(ge=0)] | None = None
    not_below_best: bool | None = None
    conditions: Conditions


class Example(NamedTuple):
    """One translated row: its status, the source, what the model answered first, and what stands in the end:
    a translation, or the source where no answer was good enough."""

    status: str
    source: str
    answer: str
    kept: str


class Translations(NamedTuple):
    """How the translation of a dataset went.

    Attributes:
        counts: rows by status as they stand.
        examples: some of each status, to look at.
        first: rows by status of the first answers, before any repair.
        rungs: rows whose text came from a rung of the repair ladder.
    """

    counts: Mapping[str, int]
    examples: Sequence[Example] = ()
    first: Mapping[str, int] = {}
    rungs: Mapping[str, int] = {}


class RunFile(NamedTuple):
    """A run in TREC's format that stands beside the report."""

    dataset: str
    language: str
    system: str
    path: str


class Timing(NamedTuple):
    """Time that a stage took on a dataset: seconds of work, and how many units (shards) it did."""

    stage: str
    dataset: str
    seconds: float
    units: int


class DatasetSize(NamedTuple):
    """What was imported of a dataset in a language; parts are counted together.

    Attributes:
        dataset, language: as records name them.
        domain: as its translation was told, or would be.
        queries: judged ones.
        documents: of the corpus.
        relevant: judgements above 0.
    """

    dataset: str
    language: str
    domain: str
    queries: int
    documents: int
    relevant: int


class Speed(NamedTuple):
    """How fast a system was on a dataset in a language, per worker, by the seconds of its receipts.

    Attributes:
        dataset, language, system: as records name them.
        documents: per second, through everything that is made of documents before a query is asked.
        queries: per second, from query to run, first stages included.
    """

    dataset: str
    language: str
    system: str
    documents: float | None
    queries: float | None


@dataclass(frozen=True)
class Report:
    """Everything that is shown about one experiment.

    Attributes:
        name: of the experiment.
        records: numbers; at most one per dataset, language, system and measure.
        translations: by dataset.
        warnings: what a reader must know before trusting a number; one line each.
        concerns: whose scores a warning is about; one that is not there is about all.
        runs: files with the rankings.
        scores: columns dataset, language, part, system, query_id, measure, value.
        notes: plain statements, such as the quality that the translating model can have.
        timings: per stage and dataset.
        quality: scores of translations against references, by translation.
        back_translation: scores before and after a translation there and back.
        datasets: sizes of what was imported.
        speeds: of the systems.
        tables: further tables, which stand first.
        plots: further plots, which stand first.
        parts: further sections of its page.
        uncertainty: intervals and tests of the scores, also of averages and of all pairs.
        pairs: whether all pairs of systems are shown.
    """

    name: str
    records: Sequence[Record] = ()
    translations: Mapping[str, Translations] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    runs: Sequence[RunFile] = ()
    scores: pl.DataFrame | None = None
    notes: Sequence[str] = ()
    timings: Sequence[Timing] = ()
    quality: Mapping[str, "Quality"] = field(default_factory=dict)
    back_translation: "BackTranslation | None" = None
    datasets: Sequence[DatasetSize] = ()
    speeds: Sequence[Speed] = ()
    tables: Sequence["Table"] = ()
    plots: Sequence["Plot"] = ()
    parts: Sequence["Part"] = ()
    uncertainty: "Uncertainty | None" = None
    pairs: bool = False
    concerns: Mapping[str, Collection[Subject]] = field(default_factory=dict)


_RECORDS = TypeAdapter(tuple[Record, ...])


def to_json(records: Iterable[Record]) -> str:
    """Records as a JSON list that ``report.schema.json`` describes; ends in a line feed."""
    values = _RECORDS.dump_python(tuple(records), mode="json")
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"
