"""Asking an LLM through the journal: equal requests are asked once, and no answer is asked for again."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import UNSET

from beirnl.errors import BeirnlError, EngineError
from beirnl.llm.protocol import LLM, Answer, Enough, Request, never
from beirnl.specs import LlmSpec
from beirnl.store.failpoints import failpoint
from beirnl.store.journal import Entry, Journal
from beirnl.wording import counted


@dataclass
class Usage:
    """What has been asked: requests that reached the engine, and their tokens."""

    asked: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, answer: Answer) -> None:
        """Count an answer that the engine has given now."""
        self.asked += 1
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens


@dataclass
class Asker:
    """An engine behind its journal, for one unit.

    Args:
        llm: the engine.
        spec: its model enters the keys, with its revision.
        journal: answers already given, and where new ones go.
        unit: for the failpoint ``after-answer``.
        watch: called after every new answer with the usage so far; may raise to stop the unit: then nothing
            more is sent, and what is under way is still answered and put away.
        order: called with the requests that the engine is about to be asked; may raise to prevent it.
        stopped: whether the run is being stopped; looked at by an engine that waits.
    """

    llm: LLM
    spec: LlmSpec
    journal: Journal
    unit: int
    watch: Callable[[Usage], None] = lambda usage: None
    order: Callable[[Collection[Request]], None] = lambda requests: None
    stopped: Callable[[], bool] = never
    usage: Usage = field(default_factory=Usage)

    def ask(self, requests: Sequence[Request], attempt: int = 0) -> list[Answer]:
        """Answers in the order of the requests; each is in the journal as soon as it has come.

        Args:
            requests: what to ask; equal ones are asked once.
            attempt: enters the key, so that a repair never gets the answer that was rejected.
        """
        keys = [request.key(self.spec.model, attempt=attempt) for request in requests]
        answers = {key: _answer(entry) for key, entry in self.journal.known(set(keys)).items()}
        pending = {key: r for key, r in zip(keys, requests, strict=True) if key not in answers}
        if pending:
            self.order(pending.values())
            answers |= self._ask(pending)
        return [answers[key] for key in keys]

    def _ask(self, pending: Mapping[str, Request]) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        stop: BeirnlError | None = None

        def enough() -> bool:
            return stop is not None or self.stopped()

        for key, answer in self.new_answers(pending, enough):
            answers[key] = answer
            if answer.finish_reason != "error":  # an error may pass; it is asked again by the next run
                self.journal.append(entry_of(key, answer))
                failpoint("after-answer", self.unit)
            self.usage.add(answer)
            try:
                self.watch(self.usage)
            except BeirnlError as error:
                stop = stop or error
        if stop:
            raise stop
        if len(answers) < len(pending):
            self.watch(self.usage)  # says why, if the run is being stopped
            raise EngineError(
                f"the engine has left {counted(len(pending) - len(answers), 'request')} without an answer"
            )
        return answers

    def new_answers(self, pending: Mapping[str, Request], enough: Enough) -> Iterator[tuple[str, Answer]]:
        """Answers to requests by their keys, as they come from the engine."""
        keys = list(pending)
        return ((keys[place], answer) for place, answer in self.llm.generate(list(pending.values()), enough))


def entry_of(key: str, answer: Answer) -> Entry:
    """An answer as the journal keeps it."""
    return Entry(
        key=key,
        text=answer.text,
        finish_reason=answer.finish_reason,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        error=answer.error,
        logprobs=answer.logprobs or UNSET,
    )


def _answer(entry: Entry) -> Answer:
    return Answer(
        text=entry.text,
        finish_reason=entry.finish_reason,
        prompt_tokens=entry.prompt_tokens,
        completion_tokens=entry.completion_tokens,
        error=entry.error,
        logprobs=entry.logprobs or (),
    )
