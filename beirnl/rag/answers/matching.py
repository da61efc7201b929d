"""Open answers, linked back to one of the options by the LLM (BES4RAG, section 6, future work)."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from beirnl.llm.protocol import Answer, Request
from beirnl.rag.answers.prompts import option_lines, option_numbers, rotated, texts_by_id
from beirnl.rag.prompts import Template, read_match_prompt
from beirnl.specs import AnswerSpec
from beirnl.translation.prompts import one_line
from beirnl.translation.repair import Asks


def match_answers(
    prompts: pa.Table, questions: pa.Table, given: Sequence[Answer], spec: AnswerSpec, asker: Asks
) -> list[Answer]:
    """Ask which option each open answer names; an empty one, or none at all, is not asked about.

    Args:
        prompts: schema ``PROMPTS``.
        questions: schema ``QUESTIONS``.
        given: open answers, in the order of the prompts.
        spec: prompt file and decoding.
        asker: :class:`beirnl.llm.asking.Asker`, or what answers like it.

    Returns:
        Numbers of options in the order of the prompts, as if they had been asked for at once: their tokens
        are those of both requests. The number behind the last option, which is no option, stands for none.

    Raises:
        ConfigError: the prompt file cannot be read.
    """
    template = read_match_prompt(spec.match_prompt, spec.match_template)
    asked = texts_by_id(questions)
    said = [one_line(answer.text) if answer.finish_reason != "error" else "" for answer in given]
    rows = prompts.select(["question_id", "permutation"]).to_pylist()
    requests = [
        _request(*asked[row["question_id"]], row["permutation"], text, template, spec)
        for row, text in zip(rows, said, strict=True)
        if text
    ]
    matched = iter(asker.ask(requests))
    return [
        _both(answer, next(matched)) if text else replace(answer, text="")
        for answer, text in zip(given, said, strict=True)
    ]


def _request(
    question: str, options: Sequence[str], rotation: int, answer: str, template: Template, spec: AnswerSpec
) -> Request:
    none = str(len(options))
    numbers = option_numbers(len(options))
    values = {
        "question": one_line(question),
        "answer": answer,
        "options": option_lines(rotated(options, rotation), template),
        "last": numbers[-1],
        "none": none,
    }
    return template.request(
        values,
        max_tokens=len(none),
        temperature=spec.llm.temperature,
        stop=template.stop + spec.llm.stop,
        choices=(*numbers, none),
        logprobs=spec.logprobs,
    )


def _both(opened: Answer, matched: Answer) -> Answer:
    tokens = {
        name: getattr(opened, name) + getattr(matched, name)
        for name in ("prompt_tokens", "completion_tokens")
    }
    return replace(matched, **tokens)
