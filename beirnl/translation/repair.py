"""The repair ladder: rows that failed a check are asked for again, rung by rung, until one passes.

What still fails keeps its best attempt, or the source, with its status. No row is dropped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from beirnl.llm.protocol import Answer, Request
from beirnl.specs import RepairSpec, Rung
from beirnl.translation import translated_table
from beirnl.translation.asks import (
    Ask,
    asks_in_pieces,
    asks_of,
    join,
    judge_pieces,
    piece_budget,
    texts_of,
    worst,
)
from beirnl.translation.checks import accept, badness, check_rows, keeps, needs_repair
from beirnl.translation.lengths import Bounds
from beirnl.translation.prompts import read_template
from beirnl.translation.splitting import Piece, sentences, split

_ATTEMPT_OF = {"room": 1}  # rungs that ask warmer and with more room; the others ask something else


class Asks(Protocol):
    """What answers: :class:`beirnl.llm.asking.Asker`."""

    def ask(self, requests: list[Request], attempt: int = 0) -> list[Answer]:
        """Answers in the order of the requests."""
        ...


@dataclass
class _Row:
    """The best that a row has so far."""

    source: tuple[str, str]
    kept: tuple[str, str]
    status: str
    rung: str


class Ladder:
    """The rows of a shard on their way up.

    Args:
        spec: the rungs, and the checks.
        bounds: of the length ratio, as they were learned.
        checked: the rows so far (schema ``TRANSLATED``).
        source: the rows that were asked about (schema ``CORPUS``), in the same order.
    """

    def __init__(self, spec: RepairSpec, bounds: Bounds | None, checked: pa.Table, source: pa.Table) -> None:
        self._spec, self._bounds, self._source = spec, bounds, source
        columns = zip(
            texts_of(source),
            texts_of(checked),
            checked["status"].to_pylist(),
            checked["repair"].to_pylist(),
            strict=True,
        )
        self._rows = [_Row(*row) for row in columns]

    def failing(self) -> list[int]:
        """Places of the rows that must be asked for again."""
        return [place for place, row in enumerate(self._rows) if needs_repair(row.status)]

    def climb(self, rung: Rung, asker: Asks) -> None:
        """Ask for the failing rows on one rung; what is better than before is kept."""
        fits = piece_budget(rung.translation)
        asked = [(place, asks) for place in self.failing() if (asks := _asks(rung, self._rows[place], fits))]
        answers = iter(asker.ask([ask.request for _, asks in asked for ask in asks], rung.number))
        for place, asks in asked:
            self._judge(self._rows[place], rung, asks, [next(answers) for _ in asks])

    def _judge(self, row: _Row, rung: Rung, asks: list[Ask], answers: list[Answer]) -> None:
        spec = rung.translation
        template = read_template(spec.prompt, spec.template, spec.kind)
        texts, gaps = [answer.text for answer in answers], [ask.gap for ask in asks]
        judge = judge_pieces([ask.piece for ask in asks], spec, self._spec.checks, self._bounds)
        parsed = join(row.source, texts, gaps, template, judge)
        translation = (parsed.title, parsed.text)
        (status,) = check_rows(
            [row.source],
            [translation],
            [worst(answers)],
            spec.source_language,
            spec.target_language,
            self._spec.checks,
            [parsed.problems],
            self._bounds,
        )
        if badness(status) < badness(row.status):
            row.kept, row.status = accept(status, row.source, translation), status
            row.rung = "" if keeps(status) == "source" else rung.name

    def table(self) -> pa.Table:
        """All rows as they stand (schema ``TRANSLATED``)."""
        kept, statuses = [row.kept for row in self._rows], [row.status for row in self._rows]
        return translated_table(self._source, kept, statuses, [row.rung for row in self._rows])


def _asks(rung: Rung, row: _Row, fits: Callable[[str], bool]) -> list[Ask]:
    """The requests of a row on a rung; none where the rung has nothing else to ask."""
    title, text = row.source
    spec = rung.translation
    if rung.name != "pieces":
        return asks_of(title, text, spec, fits, _ATTEMPT_OF.get(rung.name, 0))
    pieces = [part for sentence in sentences(text) for part in _fitting(sentence, fits)]
    if len(pieces) + bool(title.strip()) < 2:
        return []
    return asks_in_pieces(title, pieces, spec, 0)


def _fitting(sentence: Piece, fits: Callable[[str], bool]) -> list[Piece]:
    """A sentence, cut up where it is too long by itself; the first part keeps its gap."""
    if fits(sentence.text):
        return [sentence]
    first, *others = split(sentence.text, fits)
    return [Piece(sentence.gap + first.gap, first.text), *others]
