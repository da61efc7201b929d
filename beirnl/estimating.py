"""What the rest of an experiment's translations will take: requests, tokens, money and hours.

Rows are counted exactly: those with a text that an earlier dataset shares (under the same prompt, domain and
model) are asked once. Tokens are counted on a sample of each dataset, by the model's own tokenizer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from beirnl.cost import (
    EXPANSION,
    REPAIRS,
    EstimateRow,
    Factor,
    Price,
    SetSample,
    Speed,
    estimate,
    measured_expansion,
    measured_repairs,
    measured_speed,
    notes,
)
from beirnl.datasets.importing import text_digest
from beirnl.graph import Node, Translation
from beirnl.llm import ENGINES
from beirnl.llm.local import counter
from beirnl.pipeline import Pipeline
from beirnl.specs import LlmSpec, TranslationSpec
from beirnl.spending import price_of_llm
from beirnl.stages.translate import llm_of
from beirnl.store.artifacts import Artifact, Receipt
from beirnl.store.keys import digest, spec_fields
from beirnl.translation import asks_for, piece_budget
from beirnl.translation.asks import prompt_tokens, texts_of

SAMPLE = 400  # rows of each set whose tokens are counted


@dataclass(frozen=True)
class Forecast:
    """An estimate and what it rests on."""

    rows: list[EstimateRow]
    currency: str
    notes: list[str]


def sources(pipeline: Pipeline) -> list[Node]:
    """The imported rows that an estimate reads: they must be there before."""
    return pipeline.needed([t.source for t in pipeline.graph.translations if not t.back])


def forecast(pipeline: Pipeline) -> Forecast:
    """The estimate of an experiment whose sources are imported.

    A translation back is as large as the one before it, whose texts are not known yet: it counts as one more.

    Raises:
        ConfigError: a model without a price, or a window without room beside the prompt.
    """
    translations = [t for t in pipeline.graph.translations if not t.back]
    llm = llm_of(translations[0].answers.spec)
    price = price_of_llm(pipeline.experiment, llm)
    batch = ENGINES[llm.engine].deferred
    paid: Price | None = price if price.input or price.output else None
    receipts = [r for t in translations for r in _receipts(pipeline, t.answers)]
    factors = _expansion(translations, receipts), _repairs(pipeline, translations)
    speed = _speed(pipeline, llm, receipts)
    samples = list(_samples(pipeline, translations))
    rows = estimate(samples, paid, batch=batch, expansion=factors[0], repairs=factors[1], speed=speed)
    return Forecast(rows, price.currency, notes(paid, batch, *factors, speed) + _back(pipeline))


def _back(pipeline: Pipeline) -> list[str]:
    back = sum(t.back for t in pipeline.graph.translations)
    return [f"{back} translations back are not counted; each takes about what its translation takes"] * (
        back > 0
    )


def _artifact(pipeline: Pipeline, node: Node) -> Artifact:
    return node.artifact(pipeline.workspace)


def _receipts(pipeline: Pipeline, node: Node) -> list[Receipt]:
    return _artifact(pipeline, node).receipts()


def _samples(pipeline: Pipeline, translations: Sequence[Translation]) -> Iterator[SetSample]:
    """Requests of each set, distinct from those of the sets before it, and a sample of their tokens."""
    seen: dict[str, np.ndarray] = {}
    for translation in translations:
        spec = translation.answers.spec
        assert isinstance(spec, TranslationSpec)
        source = _artifact(pipeline, translation.source)
        group, found = digest(spec_fields(spec)), _digests(source)
        before = seen.get(group, np.zeros(0, np.uint64))
        seen[group] = np.union1d(before, found)
        requests = len(seen[group]) - len(before)
        done = sum(receipt.rows_in for receipt in _receipts(pipeline, translation.answers))
        dataset = "/".join(filter(None, (translation.dataset, translation.part)))
        yield SetSample(dataset, translation.kind, requests, min(done, requests), *_tokens(source, spec))


def _digests(source: Artifact) -> np.ndarray:
    """Digests of the distinct texts of a set: uint64."""
    parts = [
        np.fromiter((text_digest(*row) for row in texts_of(table)), np.uint64, table.num_rows)
        for table in source.tables()
    ]
    return np.unique(np.concatenate(parts))


def _tokens(source: Artifact, spec: TranslationSpec) -> tuple[list[int], list[int]]:
    """Tokens of the prompts and of the texts of sampled rows: the rows with the lowest digests, which are in
    the first shards and as good as drawn at random."""
    table = _first_rows(source)
    texts = texts_of(table)
    chosen = table.take(sorted(range(len(texts)), key=lambda place: text_digest(*texts[place]))[:SAMPLE])
    count = counter(spec.llm)
    asks = asks_for(chosen, spec, piece_budget(spec))
    prompts = [sum(count(ask.request.last_text) for ask in row) for row in asks]
    return prompts, [count(f"{title} {text}") for title, text in texts_of(chosen)]


def _first_rows(source: Artifact) -> pa.Table:
    """The first shards that have enough rows for a sample together."""
    tables: list[pa.Table] = []
    for table in source.tables():
        tables.append(table)
        if sum(one.num_rows for one in tables) >= SAMPLE:
            break
    return pa.concat_tables(tables)


def _expansion(translations: Sequence[Translation], receipts: Sequence[Receipt]) -> Factor:
    """Tokens of an answer for one of its source: measured where units are done."""
    spec = translations[0].answers.spec
    assert isinstance(spec, TranslationSpec)
    overhead = prompt_tokens(spec)
    pairs = [
        (
            r.counts.get("prompt tokens", 0) - r.counts.get("asked", 0) * overhead,
            r.counts["completion tokens"],
        )
        for r in receipts
        if r.counts.get("completion tokens")
    ]
    known = [(source, completion) for source, completion in pairs if source > 0]
    if not known:
        return EXPANSION
    found = measured_expansion(*map(list, zip(*known, strict=True)))
    return found._replace(origin=f"measured on {len(known)} units of work")


def _repairs(pipeline: Pipeline, translations: Sequence[Translation]) -> Factor:
    """Requests of the ladder for each first one: measured where units are done."""
    counts: list[int] = []
    for translation in translations:
        if translation.final.stage != "repair":
            continue
        for receipt in _receipts(pipeline, translation.final):
            asked = receipt.counts.get("asked", 0)
            counts += [1] * asked + [0] * max(0, receipt.rows_in - asked)
    return measured_repairs(counts) if counts else REPAIRS


def _speed(pipeline: Pipeline, llm: LlmSpec, receipts: Sequence[Receipt]) -> Speed:
    """What earlier units took, and the provider's limits."""
    done = [r for r in receipts if r.counts.get("asked") and r.seconds > 0]
    workers = pipeline.experiment.runtime.workers
    completion = [r.counts["completion tokens"] for r in done]
    measured = measured_speed(completion, [r.seconds for r in done], workers) if sum(completion) else None
    server = llm.server
    remote = ENGINES[llm.engine].remote
    return Speed(
        measured,
        server.requests_per_minute if remote else None,
        server.tokens_per_minute if remote else None,
    )
