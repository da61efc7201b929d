"""Translation by an LLM, as functions on tables: rows to requests, answers to rows, rows to checked rows.

Every function gives back as many rows as it gets, in the same order and with the same ids: a translation that
cannot be used is replaced by its source and keeps the reason in its status, so that judgements always point
at a document.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from beirnl.llm.protocol import Answer
from beirnl.schema import ANSWERS, TRANSLATED
from beirnl.specs import CheckSpec, TranslationSpec
from beirnl.translation.asks import (
    Ask,
    Texts,
    asks_for,
    join,
    judge_pieces,
    piece_budget,
    texts_of,
    worst,
)
from beirnl.translation.checks import accept, check_rows
from beirnl.translation.lengths import Bounds, histogram, learn, ratios
from beirnl.translation.parsing import Parsed
from beirnl.translation.prompts import read_template

__all__ = [
    "answers_table",
    "asks_for",
    "bounds_of",
    "checked_table",
    "learn_bounds",
    "length_histogram",
    "piece_budget",
]

learn_bounds = learn


def answers_table(table: pa.Table, asks: Sequence[Sequence[Ask]], answers: Sequence[Answer]) -> pa.Table:
    """What was answered for rows (schema ``ANSWERS``).

    Args:
        table: the rows that were asked about (schema ``CORPUS``).
        asks: the requests of each row, as :func:`asks_for` gives them.
        answers: of all rows' requests, one after another.
    """
    if len(asks) != table.num_rows or sum(map(len, asks)) != len(answers):
        raise ValueError(f"{len(answers)} answers for {table.num_rows} rows")
    answer = iter(answers)
    given = [[next(answer) for _ in row] for row in asks]
    return pa.table(
        {
            "row": table["row"],
            "id": table["id"],
            "answers": pa.array([[one.text for one in row] for row in given], pa.list_(pa.string())),
            "gaps": pa.array([[ask.gap for ask in row] for row in asks], pa.list_(pa.string())),
            "pieces": pa.array([_pieces(row) for row in asks], pa.list_(pa.string())),
            "finish_reason": pa.array([worst(row) for row in given], pa.string()),
            "error": pa.array([_error(row) for row in given], pa.string()),
        }
    ).cast(ANSWERS)


def _pieces(asks: Sequence[Ask]) -> list[str]:
    """The pieces that a row was cut into; of a row asked whole they would only repeat it."""
    return [ask.piece for ask in asks] if len(asks) > 1 else []


def _error(answers: Sequence[Answer]) -> str:
    return next((answer.error for answer in answers if answer.error), "")


def length_histogram(source: pa.Table, answers: pa.Table, spec: TranslationSpec) -> np.ndarray:
    """How many rows have which ratio of lengths: counts per bin of :mod:`beirnl.translation.lengths`.

    Args:
        source: the rows that were asked about (schema ``CORPUS``).
        answers: as :func:`answers_table` gives them.
        spec: how they were asked for.
    """
    sources = texts_of(source)
    parsed = _parsed(sources, answers, spec)
    texts = [(one.title, one.text) for one in parsed]
    return histogram(ratios(sources, texts, answers["finish_reason"].to_pylist()))


def bounds_of(table: pa.Table) -> Bounds | None:
    """Learned bounds out of their table (schema ``BOUNDS``); None where there were too few rows."""
    rows = table.to_pylist()
    return Bounds(**rows[0]) if rows else None


def checked_table(
    source: pa.Table,
    answers: pa.Table,
    spec: TranslationSpec,
    checks: CheckSpec,
    bounds: Bounds | None = None,
) -> pa.Table:
    """Translated rows with the checks' verdict (schema ``TRANSLATED``).

    Args:
        source: the rows that were asked about (schema ``CORPUS``).
        answers: as :func:`answers_table` gives them.
        spec: how they were asked for.
        checks: thresholds.
        bounds: of the length ratio, learned from the dataset.
    """
    sources = texts_of(source)
    parsed = _parsed(sources, answers, spec, lambda pieces: judge_pieces(pieces, spec, checks, bounds))
    translations = [(one.title, one.text) for one in parsed]
    statuses = check_rows(
        sources,
        translations,
        answers["finish_reason"].to_pylist(),
        spec.source_language,
        spec.target_language,
        checks,
        [one.problems for one in parsed],
        bounds,
    )
    kept = [accept(*row) for row in zip(statuses, sources, translations, strict=True)]
    return translated_table(source, kept, statuses, [""] * len(kept))


def translated_table(
    source: pa.Table, texts: Texts, statuses: Sequence[str], rungs: Sequence[str]
) -> pa.Table:
    """Rows of ``source`` with their translation, status and rung (schema ``TRANSLATED``)."""
    columns = {
        "row": source["row"],
        "id": source["id"],
        "title": pa.array([title for title, _ in texts], pa.string()),
        "text": pa.array([text for _, text in texts], pa.string()),
        "status": pa.array(statuses, pa.string()),
        "repair": pa.array(rungs, pa.string()),
    }
    return pa.table(columns).cast(TRANSLATED)


Judge = Callable[[Sequence[str]], Callable[[Texts], Sequence[str]]]


def _parsed(
    sources: Texts, answers: pa.Table, spec: TranslationSpec, judge: Judge = lambda pieces: lambda texts: ()
) -> list[Parsed]:
    template = read_template(spec.prompt, spec.template, spec.kind)
    columns = (answers[name].to_pylist() for name in ("answers", "gaps", "pieces"))
    rows = zip(sources, *columns, strict=True)
    return [join(source, texts, gaps, template, judge(pieces)) for source, texts, gaps, pieces in rows]
