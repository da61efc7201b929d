"""Asking an LLM through the journal: equal requests are asked once, and no answer is asked for again."""

from collections.abc import Iterator, Sequence

from beirnl.llm.protocol import LLM, Answer, Request
from beirnl.specs import ModelRef
from beirnl.store.failpoints import failpoint
from beirnl.store.journal import Entry, Journal

ASKED_AT_ONCE = 256  # answers reach the journal after each of these; more would be lost by a kill


def ask(
    llm: LLM, requests: Sequence[Request], model: ModelRef | None, journal: Journal, unit: int
) -> tuple[list[Answer], int]:
    """Answers in the order of the requests, and how many requests the engine was asked.

    Args:
        llm: the engine.
        requests: what to ask.
        model: enters the key, with its revision.
        journal: answers already given, and where new ones go.
        unit: for the failpoint ``after-answer``.
    """
    keys = [request.key(model) for request in requests]
    answers = {key: _answer(entry) for key, entry in journal.known().items()}
    pending = {key: request for key, request in zip(keys, requests, strict=True) if key not in answers}
    for block in _blocks(list(pending.items())):
        given = llm.generate([request for _, request in block])
        for (key, _), answer in zip(block, given, strict=True):
            answers[key] = answer
            if answer.finish_reason != "error":  # an error may pass; it is asked again by the next run
                journal.append(_entry(key, answer))
        journal.sync()
        failpoint("after-answer", unit)
    return [answers[key] for key in keys], len(pending)


def _blocks(items: list[tuple[str, Request]]) -> Iterator[list[tuple[str, Request]]]:
    for begin in range(0, len(items), ASKED_AT_ONCE):
        yield items[begin : begin + ASKED_AT_ONCE]


def _entry(key: str, answer: Answer) -> Entry:
    return Entry(
        key=key,
        text=answer.text,
        finish_reason=answer.finish_reason,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        error=answer.error,
    )


def _answer(entry: Entry) -> Answer:
    return Answer(
        text=entry.text,
        finish_reason=entry.finish_reason,
        prompt_tokens=entry.prompt_tokens,
        completion_tokens=entry.completion_tokens,
        error=entry.error,
    )
