"""What is asked of an LLM and what it answers; the one protocol that all engines keep."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from beirnl.specs import ModelRef

FinishReason = Literal["stop", "length", "error"]

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to ask: either a ``prompt`` to continue, or the ``messages`` of a chat.

    Attributes:
        prompt: text that a base model continues.
        messages: ``(role, content)`` pairs, put together by the model's own chat template.
        max_tokens: most tokens of the answer.
        temperature: 0 takes the likeliest token each time.
        stop: strings before which the answer ends; they are not part of it.
        json_fields: if set, the answer is one JSON object with these text fields; an engine that can
            constrain its output to that does so.
        json_schema: as the text of a JSON Schema, where the object is more than text fields.
        choices: if set, the answer is one of these; an engine that can constrain its output does so.
        logprobs: so many of the likeliest first tokens are told with the answer, by engines that can.
    """

    prompt: str | None = None
    messages: tuple[tuple[str, str], ...] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    json_fields: tuple[str, ...] = ()
    json_schema: str = ""
    choices: tuple[str, ...] = ()
    logprobs: int = 0

    def __post_init__(self) -> None:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("a request has either a prompt or messages")

    def key(self, model: ModelRef | None, sample: int = 0, attempt: int = 0) -> str:
        """Name of this request in the journal, as 32 hexadecimal digits: equal requests are asked once.

        Args:
            model: whose answer it is; source and revision enter, the name the user gave it does not.
            sample: which of several answers to one request.
            attempt: which attempt, where earlier answers were rejected.
        """
        asked: dict[str, object] = {
            "prompt": self.prompt,
            "messages": self.messages,
            "max_tokens": self.max_tokens,
            "temperature": float(self.temperature),
            "stop": self.stop,
            "model": (model.source, model.revision, model.recipe) if model else None,
            "sample": sample,
            "attempt": attempt,
        }
        later: dict[
            str, object
        ] = {  # left out where it is empty: answers given before the field existed stay known
            "json": self.json_fields,
            "schema": self.json_schema,
            "choices": self.choices,
            "logprobs": self.logprobs,
        }
        asked |= {name: value for name, value in later.items() if value}
        return hashlib.blake2b(_canonical(asked).encode("ascii"), digest_size=16).hexdigest()

    @property
    def last_text(self) -> str:
        """The prompt, or the content of the last message."""
        return self.prompt if self.prompt is not None else (self.messages or (("", ""),))[-1][1]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        text: the answer, without the stop string.
        finish_reason: ``stop``, ``length`` (cut at ``max_tokens`` or at the model's window) or ``error``.
        prompt_tokens: tokens of the prompt.
        completion_tokens: tokens of the answer.
        error: why there is no answer, where ``finish_reason`` is ``error``.
        logprobs: likeliest first tokens and their natural log-probabilities, where they were asked for and
            the engine tells them; before any constraint, where the engine has one.
    """

    text: str
    finish_reason: FinishReason
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    logprobs: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an engine needs to know of the place where it runs; the executor says it.

    Attributes:
        threads: CPU threads that the engine may use.
        gpus: GPUs that it has; with more than one, tensor-parallel.
        share: its share of the cluster-wide rate limits, as one of so many workers (1 of 4: 0.25).
        folder: where an engine may remember what outlives it (ids of batch jobs); None: nowhere.
    """

    threads: int = 1
    gpus: float = 0.0
    share: float = 1.0
    folder: Path | None = None


Enough = Callable[[], bool]


def never() -> bool:
    """All requests are to be answered."""
    return False


class LLM(Protocol):
    """An engine with a model loaded. One that holds a process or memory may also have ``close()``."""

    def generate(self, requests: Sequence[Request], enough: Enough = never) -> Iterator[tuple[int, Answer]]:
        """Answers as they come: the place of a request among ``requests`` and its answer, each place once.

        Once ``enough`` says so, nothing more is sent. What has been sent and must be paid for is still
        answered, and then the answers end.

        A request that cannot be answered (a prompt longer than the window, a server that keeps failing on
        it) yields an answer with ``finish_reason`` ``error``; the others are answered. May be called by
        several threads at once if :data:`beirnl.llm.ENGINES` gives the engine more than one unit in flight.

        Raises:
            EngineError: nothing can be answered (a wrong key, an unreachable server).
        """
        ...


def in_order(llm: LLM, requests: Sequence[Request]) -> list[Answer]:
    """All answers, in the order of the requests."""
    answers = dict(llm.generate(requests))
    return [answers[place] for place in range(len(requests))]


def too_long(prompt_tokens: int, window: int) -> Answer:
    """The answer to a prompt that leaves no room in the model's window."""
    reason = f"the prompt has {prompt_tokens} tokens, the window is {window}"
    return Answer("", "error", prompt_tokens, 0, reason)
