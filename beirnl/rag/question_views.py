"""Questions one by one: what each system retrieved and what was answered, as a section of a page."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from beirnl.evaluation.page import Part
from beirnl.evaluation.page.query_views import LIMIT, fitted, in_script
from beirnl.rag.marks import Setup
from beirnl.rag.result import Result

_TEXT = 600  # characters of a passage that are shown
_SHOWN = ("system", "k", "permutation", "answer", "context", "cut")

#: Answers and contexts of a question, one of each (system, k).
_Replies = Mapping[tuple[str, int], list[dict[str, Any]]]


class _Question(NamedTuple):
    """A question as it is shown, with its replies by system and k."""

    row: Mapping[str, Any]
    replies: _Replies


def part(
    result: Result,
    questions: pl.DataFrame,
    replies: pl.DataFrame,
    passages: pl.DataFrame,
    limit: int = LIMIT,
) -> Part:
    """A section in which any question can be looked up; arguments as of :func:`views`."""
    return section(views(result, questions, replies, passages, limit))


def section(shown: Sequence[Mapping[str, Any]]) -> Part:
    """The section of a page with some :func:`views`."""
    html, script = (files(__package__).joinpath(name).read_text("utf-8") for name in _FILES)
    data = f'<script type="application/json" id="per-question-data">{in_script(shown)}</script>\n'
    return Part("per-question", "Question by question", html + data, script)


def views(
    result: Result,
    questions: pl.DataFrame,
    replies: pl.DataFrame,
    passages: pl.DataFrame,
    limit: int = LIMIT,
    corpus: str = "",
) -> list[dict[str, Any]]:
    """Questions as each LLM answered them, those first on which systems differ most.

    Args:
        result: of the replies.
        questions: as :data:`.tables.QUESTIONS`.
        replies: as :data:`.tables.REPLIES`.
        passages: columns id, doc_id and text, of the passages in contexts; others may be among them.
        limit: characters of JSON, shared equally by LLMs; questions beyond it are left out, and their number
            is said.
        corpus: what they are about, where there are several.
    """
    wanted = replies["context"].explode().drop_nulls().unique()
    shown = passages.filter(pl.col("id").is_in(wanted.implode()))
    texts: dict[str, tuple[str, str, str]] = {name: (name, "", "") for name in wanted}
    texts |= {
        name: (name, doc, _cut(text)) for name, doc, text in shown.select("id", "doc_id", "text").rows()
    }
    rows = {row["id"]: row for row in questions.iter_rows(named=True)}
    share = limit // max(1, len(result.llms))
    made = [_view(result, llm, rows, replies.filter(llm=llm), texts, share) for llm in result.llms]
    return [one | {"name": f"{one['name']}, {corpus}"} for one in made] if corpus else made


_FILES = ("question_views.html", "question_views.js")


def _view(
    result: Result,
    llm: str,
    rows: Mapping[str, Mapping[str, Any]],
    replies: pl.DataFrame,
    texts: Mapping[str, tuple[str, str, str]],
    limit: int,
) -> dict[str, Any]:
    groups: dict[str, dict[tuple[str, int], list[dict[str, Any]]]] = {}
    for row in replies.sort("permutation").select("question_id", *_SHOWN).iter_rows(named=True):
        groups.setdefault(row["question_id"], {}).setdefault((row["system"], row["k"]), []).append(row)
    order = [result.marks.questions[at] for at in _by_difference(result, llm)]
    chosen = [_Question(rows[name], groups[name]) for name in order if name in groups]

    def made(question: _Question, numbers: Mapping[str, int]) -> dict[str, Any]:
        return _question(question, numbers, result)

    shown, documents = fitted(chosen, _keys, made, texts, limit)
    return {
        "name": llm,
        "systems": result.systems,
        "ks": result.ks,
        "k": result.k,
        "total": len(chosen),
        "questions": shown,
        "passages": documents,
    }


def _by_difference(result: Result, llm: str) -> Sequence[int]:
    """Questions in the order of how much systems differ on them at the declared k, else as they come."""
    setups = [s for s in result.marks.setups if s.llm == llm and s.k == result.k]
    values = result.marks.of(setups)
    spread = np.ptp(np.nan_to_num(values), axis=1) if setups else np.zeros(len(values))
    return [int(at) for at in np.argsort(-spread, kind="stable")]


def _keys(question: _Question) -> Iterator[str]:
    return (name for group in question.replies.values() for row in group for name in row["context"])


def _question(question: _Question, numbers: Mapping[str, int], result: Result) -> dict[str, Any]:
    """Per system and k: answers by rotation, numbers of the passages in the prompt, and how many were cut."""

    def told(setup: Setup) -> list[Any] | None:
        group = question.replies.get((setup.system, setup.k))
        if not group:
            return None
        answers = [row["answer"] for row in group]
        return [answers, [numbers[name] for name in group[0]["context"]], group[0]["cut"]]

    row = question.row
    return {
        "id": row["id"],
        "doc": row["doc_id"],
        "text": row["question"],
        "options": row["options"],
        "answer": row["answer"],
        "replies": [[told(Setup("", s if k else "", k)) for k in result.ks] for s in result.systems],
    }


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else line[: _TEXT - 1] + "…"
