"""What the rest of an experiment's translations will take: requests, tokens, money and hours.

Texts are counted exactly: one that an earlier dataset shares (under the same prompt, domain and model) is
asked once. Units that are finished are known; for the others the journal tells what is answered, whoever has
paid for it: of all texts, or of a sample where they are many. Tokens are counted on a sample, by the model's
own tokenizer where it is at hand; what the provider has counted for the answers that are there corrects it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from beirnl.cost import (
    REPAIRS,
    EstimateRow,
    Factor,
    Price,
    Range,
    SetSample,
    Speed,
    TokenCounter,
    estimate,
    measured_counted,
    measured_expansion,
    measured_known,
    measured_repairs,
    measured_speed,
    notes,
    usual_expansion,
)
from beirnl.datasets.importing import text_digest
from beirnl.errors import ConfigError
from beirnl.graph import Node, Translation
from beirnl.llm import ENGINES
from beirnl.llm.local import counter, estimate_tokens
from beirnl.pipeline import Pipeline
from beirnl.specs import LlmSpec, TranslationSpec
from beirnl.spending import price_of_llm
from beirnl.stages.translate import journal_folder, llm_of
from beirnl.store.artifacts import Receipt
from beirnl.store.journal import Entry, Journal, bucket_range
from beirnl.store.keys import digest, spec_fields
from beirnl.translation import asks_for, piece_budget
from beirnl.translation.asks import texts_of
from beirnl.wording import counted

ROWS = 20_000  # rows of each set that are looked up in the journal,
UNITS = 128  # of so many units; of fewer
_FINISHED = 8  # that are finished, where it only tells how the provider counts,
_OF_A_UNIT = 50  # and of each at least so many
_COUNTED = 400  # rows of each set whose tokens are counted: of those to be asked, and of those answered
_LEAST = 20  # answers that something is measured on

_T = TypeVar("_T")


@dataclass(frozen=True)
class Forecast:
    """An estimate and what it rests on."""

    rows: list[EstimateRow]
    currency: str
    notes: list[str]


class _Row(NamedTuple):
    """A row that was looked up: its text, the prompts of its requests, and what the journal holds of each."""

    text: str
    prompts: list[str]
    answers: list[Entry | None]

    @property
    def left(self) -> list[str]:
        """Prompts that have no answer."""
        return [prompt for prompt, answer in zip(self.prompts, self.answers, strict=True) if not answer]

    @property
    def is_known(self) -> bool:
        """Whether nothing is left."""
        return all(self.answers)

    def unanswered(self) -> "_Row":
        """The same row as if nothing were known."""
        return self._replace(answers=[None] * len(self.prompts))


class _Unit(NamedTuple):
    """A unit of work: how many texts are asked in it first, and those that were looked up."""

    texts: int
    is_finished: bool
    is_repaired: bool
    rows: list[_Row]


class _Answered(NamedTuple):
    """Tokens of a row that is answered: counted here, and by the provider."""

    prompt: float
    source: float
    prompt_tokens: int
    completion_tokens: int


def sources(pipeline: Pipeline) -> list[Node]:
    """The imported rows that an estimate reads: they must be there before."""
    return pipeline.needed([t.source for t in _forth(pipeline)])


def _forth(pipeline: Pipeline) -> list[Translation]:
    return [translation for translation in pipeline.graph.translations if not translation.back]


def forecast(pipeline: Pipeline) -> Forecast:
    """The estimate of an experiment whose sources are imported; without money where a price is not known.

    A translation back is as large as the one before it, whose texts are not known yet: it counts as one more.

    Raises:
        ConfigError: a window without room beside the prompt.
    """
    translations = _forth(pipeline)
    llm = llm_of(translations[0].answers.spec)
    price = _price(pipeline, llm)
    batch = ENGINES[llm.engine].deferred
    repairs, speed = _repairs(pipeline, translations), _speed(pipeline, llm, translations)
    samples = _samples(pipeline, translations)
    paid = price if isinstance(price, Price) else None
    rows = estimate(samples, paid, batch=batch, repairs=repairs, speed=speed)
    told = notes(samples, price, batch, repairs, speed) + _left_out(pipeline, translations)
    return Forecast(rows, paid.currency if paid else "money", told)


def _price(pipeline: Pipeline, llm: LlmSpec) -> Price | str | None:
    """The price of an engine; None where nothing is paid; what to do about it where it is not known."""
    try:
        price = price_of_llm(pipeline.experiment, llm)
    except ConfigError as error:
        return error.remedy or str(error)
    return price if price.input or price.output else None


def _left_out(pipeline: Pipeline, translations: Sequence[Translation]) -> list[str]:
    """What the estimate does not count, or not at its own price."""
    lines = []
    if back := sum(t.back for t in pipeline.graph.translations):
        lines.append(
            f"not counted: {counted(back, 'translation')} back; each takes about what its translation takes"
        )
    first = llm_of(translations[0].answers.spec)
    if any(llm_of(node.spec) != first for t in translations for node in _ladder(t)):
        lines.append("repairs by the second engine are counted at the price of the first")
    return lines


def _receipts(pipeline: Pipeline, node: Node) -> list[Receipt]:
    """Of the units that are finished and will not be made again."""
    stale = pipeline.plan([node])[-1].state == "stale"
    return [] if stale else node.artifact(pipeline.workspace).receipts()


def _ladder(translation: Translation) -> list[Node]:
    """The nodes of the repairs, the last one first."""
    nodes, node = [], translation.final
    while node.stage == "repair":
        nodes.append(node)
        node = node.inputs["rows"]
    return nodes


def _samples(pipeline: Pipeline, translations: Sequence[Translation]) -> list[SetSample]:
    """Every set with a sample of it; how the provider counts is measured on all sets of a kind together."""
    seen: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(0, np.uint64))
    answered: dict[tuple[str, str], list[_Answered]] = defaultdict(list)
    samples = []
    for translation in translations:
        spec = _spec(translation)
        group = digest(spec_fields(spec))
        fresh, units = _look(pipeline, translation, seen[group])
        seen[group] = np.union1d(seen[group], fresh)
        samples.append(_sample(translation, units, _counter(spec)))
        answered[spec.kind, spec.source_language] += _answered(units, _counter(spec))
    keys = [(one.kind, _spec(t).source_language) for one, t in zip(samples, translations, strict=True)]
    left: dict[tuple[str, str], float] = defaultdict(float)
    for key, one in zip(keys, samples, strict=True):
        left[key] += one.texts - one.known.mid
    return [_corrected(one, answered[key], left[key]) for key, one in zip(keys, samples, strict=True)]


def _spec(translation: Translation) -> TranslationSpec:
    spec = translation.answers.spec
    assert isinstance(spec, TranslationSpec)
    return spec


def _counter(spec: TranslationSpec) -> TokenCounter:
    found, model = counter(spec.llm), spec.llm.model
    name = model.name if model else f"engine {spec.llm.engine!r}"
    return TokenCounter(name, spec.source_language, None if found is estimate_tokens else found)


def _look(pipeline: Pipeline, translation: Translation, before: np.ndarray) -> tuple[np.ndarray, list[_Unit]]:
    """Digests of the texts of a set that no set before it has (uint64), and its units."""
    spec, source = _spec(translation), translation.source.artifact(pipeline.workspace)
    fresh = [_fresh(table, before) for table in source.tables()]
    finished = {receipt.unit for receipt in _receipts(pipeline, translation.answers)}
    repaired = {receipt.unit for receipt in _receipts(pipeline, translation.final)}
    asking = [number for number, (found, _) in enumerate(fresh) if len(found)]
    pending = _spread([number for number in asking if number not in finished], UNITS)
    done = _spread([number for number in asking if number in finished], _FINISHED)
    most = dict.fromkeys(pending, max(_OF_A_UNIT, -(-ROWS // max(1, len(pending)))))
    most |= dict.fromkeys(done, _OF_A_UNIT)

    def look(number: int) -> list[_Row]:
        chosen = fresh[number][1][: most[number]]  # the lowest digests: as good as drawn at random
        buckets = bucket_range(number, len(fresh))
        journal = Journal(journal_folder(pipeline.workspace, spec.llm), *buckets, "")
        return _rows(source.read(number).take(np.sort(chosen)), spec, journal)

    units = [
        _Unit(len(found), number in finished, number in repaired, look(number) if number in most else [])
        for number, (found, _) in enumerate(fresh)
    ]
    return np.concatenate([np.zeros(0, np.uint64), *(found for found, _ in fresh)]), units


def _fresh(table: pa.Table, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Digests of the texts that were not there before, in order, and the place of each; an empty row asks
    nothing."""
    texts = texts_of(table)
    digests = np.fromiter((text_digest(*row) for row in texts), np.uint64, len(texts))
    asking = np.flatnonzero([bool(title.strip() or text.strip()) for title, text in texts])
    found, first = np.unique(digests[asking], return_index=True)
    new = ~np.isin(found, before, assume_unique=True)
    return found[new], asking[first[new]]


def _rows(table: pa.Table, spec: TranslationSpec, journal: Journal) -> list[_Row]:
    """Rows with their requests, and the answers to these that the journal holds."""
    asks = [[ask.request for ask in row] for row in asks_for(table, spec, piece_budget(spec))]
    keys = [[request.key(spec.llm.model) for request in row] for row in asks]
    known = journal.known({key for row in keys for key in row})
    texts = [f"{title} {text}" for title, text in texts_of(table)]
    prompts = [[request.last_text for request in row] for row in asks]
    answers = [[known.get(key) for key in row] for row in keys]
    return [_Row(*row) for row in zip(texts, prompts, answers, strict=True)]


def _spread(found: Sequence[_T], most: int) -> list[_T]:
    """At most so many, evenly spaced."""
    return [found[place * len(found) // most] for place in range(most)] if len(found) > most else list(found)


def _sample(translation: Translation, units: Sequence[_Unit], counting: TokenCounter) -> SetSample:
    """A set by the units that were looked at; what is to be asked is like what is not answered of them."""
    pending = [unit for unit in units if not unit.is_finished]
    known = measured_known(
        [(u.texts, len(u.rows), sum(r.is_known for r in u.rows)) for u in pending if u.rows],
        sum(unit.texts for unit in pending),
    )
    rows = [row for unit in units for row in unit.rows]
    like = [row for row in rows if not row.is_known] or [row.unanswered() for row in rows]
    sampled = _spread(like, _COUNTED)
    tokens = [counting(row.text, row.left, len(row.left) / len(row.prompts)) for row in sampled]
    spec = _spec(translation)
    return SetSample(
        dataset="/".join(filter(None, (translation.dataset, translation.part))),
        kind=translation.kind,
        texts=sum(unit.texts for unit in units),
        known=Range.exactly(sum(unit.texts for unit in units if unit.is_finished)) + known,
        unrepaired=sum(unit.texts for unit in units if not unit.is_repaired) if _ladder(translation) else 0,
        prompt_tokens=[prompt for prompt, _ in tokens],
        source_tokens=[source for _, source in tokens],
        requests=[len(row.left) for row in sampled],
        counted=counting.counted,
        expansion=usual_expansion(spec.source_language, spec.target_language),
        counter=counting.description,
    )


def _answered(units: Sequence[_Unit], counting: TokenCounter) -> list[_Answered]:
    """Rows of which all answers are there, with the tokens that the provider has told."""
    rows = [row for unit in units for row in unit.rows if row.is_known]
    told = [row for row in rows if all(answer and answer.prompt_tokens for answer in row.answers)]
    return [
        _Answered(
            *counting(row.text, row.prompts),
            sum(answer.prompt_tokens for answer in row.answers if answer),
            sum(answer.completion_tokens for answer in row.answers if answer),
        )
        for row in _spread(told, _COUNTED)
    ]


def _corrected(one: SetSample, answered: Sequence[_Answered], left: float) -> SetSample:
    """The sample with what the provider has counted, where there are answers enough; for what is left."""
    if len(answered) < _LEAST:
        return one
    left = max(1.0, left)
    counted = measured_counted([a.prompt for a in answered], [a.prompt_tokens for a in answered], left)
    source = [a.source * counted.mid for a in answered]
    completion = [a.completion_tokens for a in answered]
    return one._replace(counted=counted, expansion=measured_expansion(source, completion, left))


def _repairs(pipeline: Pipeline, translations: Sequence[Translation]) -> Factor:
    """Requests of the ladder for each row: measured where its units are done."""
    if not any(map(_ladder, translations)):
        return Factor(0.0, 0.0, 0.0, "none are asked for")
    counts: list[int] = []
    for translation in translations:
        ladder = [_receipts(pipeline, node) for node in _ladder(translation)]
        asked: dict[int, int] = defaultdict(int)
        for receipt in (receipt for receipts in ladder for receipt in receipts):
            asked[receipt.unit] += receipt.counts.get("asked", 0)
        for receipt in ladder[0] if ladder else ():
            counts += [1] * asked[receipt.unit] + [0] * max(0, receipt.rows_in - asked[receipt.unit])
    return measured_repairs(counts) if counts else REPAIRS


def _speed(pipeline: Pipeline, llm: LlmSpec, translations: Sequence[Translation]) -> Speed:
    """What earlier units took, and the provider's limits."""
    receipts = [receipt for t in translations for receipt in _receipts(pipeline, t.answers)]
    done = [r for r in receipts if r.counts.get("asked") and r.seconds > 0]
    workers = pipeline.experiment.runtime.of("translate").workers
    completion = [r.counts["completion tokens"] for r in done]
    measured = measured_speed(completion, [r.seconds for r in done], workers) if sum(completion) else None
    server = llm.server
    remote = ENGINES[llm.engine].remote
    return Speed(
        measured,
        server.requests_per_minute if remote else None,
        server.tokens_per_minute if remote else None,
    )
