"""Translation by an LLM, as functions on tables: rows to requests, answers to rows, rows to checked rows.

Every function gives back as many rows as it gets, in the same order and with the same ids: a translation that
cannot be used is replaced by its source and keeps the reason in its status, so that judgements always point
at a document.
"""

from collections.abc import Sequence

import pyarrow as pa

from beirnl.llm.protocol import Answer, Request
from beirnl.schema import ANSWERS, TRANSLATED
from beirnl.specs import CheckSpec, TranslationSpec
from beirnl.translation.checks import accept, badness, check_rows
from beirnl.translation.parsing import parse
from beirnl.translation.prompts import read_template, render

__all__ = ["answers_table", "badness", "checked_table", "requests_for"]


def requests_for(table: pa.Table, spec: TranslationSpec, attempt: int = 0) -> list[Request]:
    """One request per row of ``table`` (schema ``CORPUS``), in its order.

    Args:
        table: queries or documents.
        spec: prompt, languages, domain and decoding.
        attempt: from 0; a repair asks warmer and with more room.

    Raises:
        ConfigError: the prompt lacks a placeholder, or is written for another language.
    """
    template = read_template(spec.prompt, spec.template, spec.kind)
    return [
        render(
            template,
            title=title,
            text=text,
            domain=spec.domain,
            source_language=spec.source_language,
            target_language=spec.target_language,
            llm=spec.llm,
            attempt=attempt,
        )
        for title, text in _texts(table)
    ]


def answers_table(table: pa.Table, answers: Sequence[Answer]) -> pa.Table:
    """Rows with what was answered for them (schema ``ANSWERS``).

    Args:
        table: the rows that were asked about (schema ``CORPUS``).
        answers: one per row, in the order of the rows.
    """
    if len(answers) != table.num_rows:
        raise ValueError(f"{len(answers)} answers for {table.num_rows} rows")
    columns = {name: table[name] for name in ("row", "id", "title", "text")}
    columns["answer"] = pa.array([answer.text for answer in answers], pa.string())
    columns["finish_reason"] = pa.array([answer.finish_reason for answer in answers], pa.string())
    return pa.table(columns).cast(ANSWERS)


def checked_table(answers: pa.Table, spec: TranslationSpec, checks: CheckSpec) -> pa.Table:
    """Translated rows with the checks' verdict (schema ``TRANSLATED``).

    Args:
        answers: as :func:`answers_table` gives them.
        spec: how they were asked for.
        checks: thresholds.
    """
    template = read_template(spec.prompt, spec.template, spec.kind)
    sources = _texts(answers)
    parsed = [
        parse(answer or "", template, titled=bool(title.strip()))
        for answer, (title, _) in zip(answers["answer"].to_pylist(), sources, strict=True)
    ]
    translations = [(one.title, one.text) for one in parsed]
    statuses = check_rows(
        sources,
        translations,
        answers["finish_reason"].to_pylist(),
        spec.source_language,
        spec.target_language,
        checks,
        [one.problems for one in parsed],
    )
    kept = [accept(*row) for row in zip(statuses, sources, translations, strict=True)]
    columns = {
        "row": answers["row"],
        "id": answers["id"],
        "title": pa.array([title for title, _ in kept], pa.string()),
        "text": pa.array([text for _, text in kept], pa.string()),
        "status": pa.array(statuses, pa.string()),
    }
    return pa.table(columns).cast(TRANSLATED)


def _texts(table: pa.Table) -> list[tuple[str, str]]:
    """Title and text of each row; a missing one is empty."""
    columns = zip(table["title"].to_pylist(), table["text"].to_pylist(), strict=True)
    return [(title or "", text or "") for title, text in columns]
