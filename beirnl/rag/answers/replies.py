"""Replies: what was read out of the answers to distinct prompts, for every question, system and k."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from beirnl.llm.protocol import Answer
from beirnl.rag.answers.prompts import rotated, texts_by_id
from beirnl.rag.answers.reading import INVALID, read_logprobs, read_option
from beirnl.rag.tables import REPLIES

#: What was answered to a prompt: the option in the original order (-1: invalid), log-probabilities likewise,
#: the answer as it is, and why there is none.
ANSWERED = pa.schema(
    [
        ("prompt", pa.int64()),
        ("answer", pa.int8()),
        ("logprobs", pa.list_(pa.float32())),
        ("prompt_tokens", pa.int32()),
        ("text", pa.string()),
        ("error", pa.string()),
    ]
)


def answered_table(
    prompts: pa.Table,
    questions: pa.Table,
    answers: Sequence[Answer],
    said: Sequence[Answer] | None = None,
) -> pa.Table:
    """Read the answers to prompts (schema ``ANSWERED``); options are mapped back to their original order.

    Args:
        prompts: schema ``PROMPTS``: a whole plan's, or a slice of them.
        questions: schema ``QUESTIONS``.
        answers: numbers of options, in the order of the prompts.
        said: the answers that are kept as they are, where those are others.
    """
    asked = texts_by_id(questions)
    rows = prompts.select(["prompt", "question_id", "permutation"]).to_pylist()
    read = [
        _read(row, asked[row["question_id"]][1], answer, text.text)
        for row, answer, text in zip(rows, answers, said or answers, strict=True)
    ]
    return pa.Table.from_pylist(read, schema=ANSWERED)


def _read(prompt: dict, options: Sequence[str], answer: Answer, said: str) -> dict:
    rotation = prompt["permutation"]
    place = INVALID
    if answer.finish_reason != "error":
        place = read_option(answer.text, rotated(options, rotation))
    logprobs = read_logprobs(answer.logprobs, len(options))
    return {
        "prompt": prompt["prompt"],
        "answer": (place + rotation) % len(options) if place != INVALID else INVALID,
        "logprobs": logprobs[-rotation:] + logprobs[:-rotation] if rotation else logprobs,
        "prompt_tokens": answer.prompt_tokens,
        "text": said,
        "error": answer.error,
    }


def replies_table(references: pa.Table, answered: pa.Table, llm: str) -> pa.Table:
    """One reply per question, system, k and permutation (schema ``REPLIES``).

    Args:
        references: schema ``REFERENCES``.
        answered: schema ``ANSWERED``, of all prompts, in any order.
        llm: the answering model.

    Raises:
        ValueError: prompts without an answer, or with two.
    """
    place = np.argsort(answered["prompt"].to_numpy())
    if not np.array_equal(answered["prompt"].to_numpy()[place], np.arange(answered.num_rows)):
        raise ValueError("each prompt is answered once, from 0 on")
    given = answered.take(pa.array(place[references["prompt"].to_numpy()]))
    columns = {
        name: references[name] for name in ("question_id", "system", "k", "permutation", "context", "cut")
    }
    columns |= {name: given[name] for name in ("answer", "logprobs", "prompt_tokens")}
    columns["llm"] = pa.array([llm] * references.num_rows, pa.string())
    return pa.table({name: columns[name] for name in REPLIES.names}).cast(REPLIES)
