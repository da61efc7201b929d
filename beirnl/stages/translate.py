"""Stages that translate: ask, learn the length bounds, check, repair, compare with a reference."""

import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from beirnl.errors import BudgetError, DataError
from beirnl.llm.asking import Asker, Usage
from beirnl.llm.protocol import Request
from beirnl.schema import ANSWERS, BOUNDS, QUALITY, RATIOS, TRANSLATED, join_title_text
from beirnl.specs import AnswerSpec, CheckSpec, LlmSpec, QuestionSpec, RepairSpec, Spec, TranslationSpec
from beirnl.stages.base import Allowance, Inputs, Task, Unit
from beirnl.store.artifacts import Artifact
from beirnl.store.journal import Journal, bucket_range
from beirnl.store.keys import digest, spec_fields
from beirnl.store.parquet import read_table
from beirnl.store.places import Place
from beirnl.store.workspace import Workspace


class LengthsSpec(Spec):
    """The translation whose length ratios are learned."""

    translation: TranslationSpec


class ChecksSpec(Spec):
    """Checks on what a translation answered."""

    checks: CheckSpec
    translation: TranslationSpec


class QualitySpec(Spec):
    """Scores against a reference, with bootstrap intervals."""

    seed: int = 7
    resamples: int = 1000


def llm_of(spec: Spec) -> LlmSpec:
    """The LLM that a stage's spec asks: its own, or that of the rungs of a repair."""
    if isinstance(spec, RepairSpec):
        return spec.rungs[0].translation.llm
    assert isinstance(spec, TranslationSpec | QuestionSpec | AnswerSpec)
    return spec.llm


def journal_folder(workspace: Workspace, llm: LlmSpec) -> Place:
    """Where the answers of an LLM are kept, for all datasets."""
    return workspace.journal / digest(spec_fields(llm))


def shards(spec: Spec, inputs: Inputs) -> int:
    """A unit per shard of the rows that go in."""
    return len(inputs["rows"].parts)


def openings(spec: Spec) -> tuple[str, ...]:
    """What the requests of a stage's spec begin with."""
    from beirnl.translation.prompts import opening

    if isinstance(spec, RepairSpec):
        return tuple({opening(rung.translation): None for rung in spec.rungs})
    assert isinstance(spec, TranslationSpec)
    return (opening(spec),)


def llm_pool(spec: Spec, inputs: Mapping[str, str]) -> str:
    """One pool per engine and model, for documents and queries of all datasets, first answers and repairs."""
    return digest(spec_fields(llm_of(spec)))


def units_in_flight(spec: Spec) -> int:
    """As many units at once as keep the engine full across their ends."""
    from beirnl.llm import ENGINES

    return ENGINES[llm_of(spec).engine].units


def loads_weights(spec: Spec) -> bool:
    """Whether the LLM runs in the worker itself, and not at a server."""
    from beirnl.llm import ENGINES

    return ENGINES[llm_of(spec).engine].weights


class Translator:
    """What a worker keeps: the engine, and what the units of one group have spent on it."""

    def __init__(self, task: Task) -> None:
        from beirnl.llm import Surroundings, load_llm

        spec, runtime = llm_of(task.spec), task.runtime
        folder = journal_folder(Workspace(task.workspace), spec)
        book = folder if isinstance(folder, Path) else None
        surroundings = Surroundings(runtime.worker_threads, runtime.gpus, 1 / runtime.workers, book)
        self.llm = load_llm(spec, surroundings)
        self._spent: dict[str, float] = {}
        self._lock = threading.Lock()

    def asker(self, unit: Unit, llm: LlmSpec, journal: Journal) -> Asker:
        """The engine behind the journal of a unit; watches money, and whether the run is being stopped."""
        return Asker(self.llm, llm, journal, unit.number, *Meter(self, unit, llm).hooks)

    def close(self) -> None:
        """Let go of the engine."""
        close = getattr(self.llm, "close", None)
        if close:
            close()

    def spend(self, allowance: Allowance, money: float) -> None:
        """Count money spent; BudgetError when the worker's allowance for this group is used up."""
        with self._lock:
            self._spent[allowance.group] = self._spent.get(allowance.group, 0.0) + money
        if self.is_spent(allowance):
            raise BudgetError("the allowance of this worker is spent")

    def is_spent(self, allowance: Allowance) -> bool:
        """Whether the worker's allowance for this group is used up."""
        return self._spent.get(allowance.group, 0.0) >= allowance.money

    def reserve(self, allowance: Allowance, money: float = 0.0) -> None:
        """Count money that an order will cost; BudgetError, and nothing counted, where nothing or too little
        is left for it."""
        with self._lock:
            spent = self._spent.get(allowance.group, 0.0)
            if self.is_spent(allowance) or spent + money > allowance.money:
                raise BudgetError("the allowance of this worker does not pay for the order")
            self._spent[allowance.group] = spent + money


class Meter:
    """Counts what one unit spends. What is answered at once is paid as it comes; what a batch job answers is
    paid when it is ordered, at what it is expected to cost."""

    def __init__(self, translator: Translator, unit: Unit, llm: LlmSpec) -> None:
        from beirnl.llm import ENGINES

        self._translator, self._unit, self._llm = translator, unit, llm
        self._deferred = ENGINES[llm.engine].deferred
        self._rows = unit.inputs["rows"].parts[unit.number].rows
        self._prompt = self._completion = 0  # tokens paid so far

    @property
    def hooks(
        self,
    ) -> tuple[Callable[[Usage], None], Callable[[Collection[Request]], None], Callable[[], bool]]:
        """For :class:`Asker`: ``watch``, ``order`` and ``stopped``."""
        return self._watch, self._order, self._stopped

    def _stopped(self) -> bool:
        allowance = self._unit.task.allowance
        spent = allowance and not self._deferred and self._translator.is_spent(allowance)
        return bool(spent) or self._unit.stop.is_set()

    def _watch(self, usage: Usage) -> None:
        self._unit.check_stop()
        self._unit.out.tell(min(usage.asked, self._rows))  # a row in pieces asks more than one answer
        allowance = self._unit.task.allowance
        if allowance and not self._deferred:
            new = usage.prompt_tokens - self._prompt, usage.completion_tokens - self._completion
            self._prompt, self._completion = usage.prompt_tokens, usage.completion_tokens
            self._translator.spend(allowance, allowance.price_of(*new))

    def _order(self, requests: Collection[Request]) -> None:
        allowance = self._unit.task.allowance
        if allowance:
            expected = allowance.price_of(*self._expected(requests)) if self._deferred else 0.0
            self._translator.reserve(allowance, expected)

    def _expected(self, requests: Collection[Request]) -> tuple[int, int]:
        """Tokens of prompts and of answers: a translation is taken to be as long as its prompt."""
        from beirnl.llm.local import counter

        count = counter(self._llm)
        prompts = [count(request.last_text) for request in requests]
        answers = (min(n, r.max_tokens) for n, r in zip(prompts, requests, strict=True))
        return sum(prompts), sum(answers)


def _journal(unit: Unit, llm: LlmSpec) -> Journal:
    folder = journal_folder(Workspace(unit.task.workspace), llm)
    return Journal(folder, *bucket_range(unit.number, len(unit.inputs["rows"].parts)), unit.out.attempt)


def count_usage(unit: Unit, usage: Usage) -> None:
    """Put what was asked into the receipt."""
    unit.out.count("asked", usage.asked)
    unit.out.count("prompt tokens", usage.prompt_tokens)
    unit.out.count("completion tokens", usage.completion_tokens)


def translate(unit: Unit) -> None:
    """Ask the LLM for every row of a shard, through the journal; no row is dropped."""
    from beirnl.translation import answers_table, asks_for, piece_budget

    spec = unit.task.spec
    assert isinstance(spec, TranslationSpec)
    rows = unit.inputs["rows"].read(unit.number)
    asks = asks_for(rows, spec, piece_budget(spec))
    with _journal(unit, spec.llm) as journal:
        asker: Asker = unit.resource.asker(unit, spec.llm, journal)
        answers = asker.ask([ask.request for row in asks for ask in row])
    unit.out.rows_in = rows.num_rows
    unit.out.count("split", sum(len(row) > 1 for row in asks))
    count_usage(unit, asker.usage)
    unit.out.write(answers_table(rows, asks, answers), ANSWERS)


def measure_lengths(unit: Unit) -> None:
    """The length ratios of a shard, as a histogram."""
    from beirnl.translation import length_histogram

    spec = unit.task.spec
    assert isinstance(spec, LengthsSpec)
    answers = unit.inputs["rows"].read(unit.number)
    counts = length_histogram(unit.inputs["source"].read(unit.number), answers, spec.translation)
    unit.out.rows_in = answers.num_rows
    unit.out.write(pa.table([counts], schema=RATIOS), RATIOS)


def learn_lengths(unit: Unit) -> None:
    """Bounds from the ratios of all shards: they do not depend on the order in which these were made."""
    from beirnl.translation import learn_bounds

    parts = [read_table(path)["count"].to_numpy() for path in Artifact(unit.task.directory).unit_paths()]
    bounds = learn_bounds(np.sum(parts, axis=0))
    row = {"low": [bounds.low], "high": [bounds.high], "rows": [bounds.rows]} if bounds else {}
    unit.out.write(pa.table(row, schema=BOUNDS) if row else BOUNDS.empty_table(), BOUNDS)


def check(unit: Unit) -> None:
    """Judge every answer of a shard; what cannot be used keeps its source text, with its status."""
    from beirnl.translation import bounds_of, checked_table

    spec = unit.task.spec
    assert isinstance(spec, ChecksSpec)
    answers = unit.inputs["rows"].read(unit.number)
    source = unit.inputs["source"].read(unit.number)
    bounds = bounds_of(unit.inputs["lengths"].table())
    _write_translated(unit, checked_table(source, answers, spec.translation, spec.checks, bounds))


def repair(unit: Unit) -> None:
    """Ask again for the rows of a shard that failed, rung by rung; the best attempt is kept."""
    from beirnl.translation import bounds_of
    from beirnl.translation.repair import Ladder

    spec = unit.task.spec
    assert isinstance(spec, RepairSpec)
    checked = unit.inputs["rows"].read(unit.number)
    source = unit.inputs["source"].read(unit.number)
    ladder = Ladder(spec, bounds_of(unit.inputs["lengths"].table()), checked, source)
    if ladder.failing():
        llm = llm_of(spec)
        with _journal(unit, llm) as journal:
            asker: Asker = unit.resource.asker(unit, llm, journal)
            for rung in spec.rungs:
                ladder.climb(rung, asker)
        count_usage(unit, asker.usage)
    _write_translated(unit, ladder.table())


def _write_translated(unit: Unit, table: pa.Table) -> None:
    unit.out.rows_in = table.num_rows
    for status in table["status"].to_pylist():
        unit.out.count(status)
    for rung in table["repair"].to_pylist():
        if rung:
            unit.out.count(f"repaired: {rung}")
    unit.out.write(table, TRANSLATED)


def passages(rows: Artifact) -> dict[str, str]:
    """Title and text of every row as one passage, by identifier; for artifacts that are small."""
    found = (row for table in rows.tables() for row in table.select(["id", "title", "text"]).to_pylist())
    return {row["id"]: join_title_text(row["title"], row["text"]) for row in found}


def compare(unit: Unit) -> None:
    """chrF and BLEU of a translation against a reference, segment by segment, by identifier."""
    from beirnl.evaluation.translations.quality import score, to_rows

    spec = unit.task.spec
    assert isinstance(spec, QualitySpec)

    ours, theirs = passages(unit.inputs["rows"]), passages(unit.inputs["reference"])
    shared = [name for name in ours if theirs.get(name)]
    if not shared:
        raise DataError(
            "translation and reference share no identifier",
            where=unit.task.label,
            remedy="give a reference with the ids of the source",
        )
    unit.out.rows_in = len(ours)
    unit.out.count("without a reference", len(ours) - len(shared))
    found = score(
        [ours[name] for name in shared],
        [theirs[name] for name in shared],
        seed=spec.seed,
        resamples=spec.resamples,
    )
    unit.out.write(pa.Table.from_pylist(to_rows(found), schema=QUALITY), QUALITY)
