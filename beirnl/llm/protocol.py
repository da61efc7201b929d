"""What is asked of an LLM and what it answers; the one protocol that all engines keep."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from beirnl.specs import ModelRef

FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to ask: either a ``prompt`` to continue, or the ``messages`` of a chat.

    Attributes:
        prompt: text that a base model continues.
        messages: ``(role, content)`` pairs, put together by the model's own chat template.
        max_tokens: most tokens of the answer.
        temperature: 0 takes the likeliest token each time.
        stop: strings before which the answer ends; they are not part of it.
    """

    prompt: str | None = None
    messages: tuple[tuple[str, str], ...] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    stop: tuple[str, ...] = ()

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
        asked = {
            "prompt": self.prompt,
            "messages": self.messages,
            "max_tokens": self.max_tokens,
            "temperature": float(self.temperature),
            "stop": self.stop,
            "model": [model.source, model.revision, model.recipe] if model else None,
            "sample": sample,
            "attempt": attempt,
        }
        canonical = json.dumps(asked, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(canonical.encode("ascii"), digest_size=16).hexdigest()

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
    """

    text: str
    finish_reason: FinishReason
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""


class LLM(Protocol):
    """An engine with a model loaded. One that holds a process or memory may also have ``close()``."""

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """One answer per request, in the order of the requests.

        A request that cannot be answered (a prompt longer than the window) yields an answer with
        ``finish_reason`` ``error``; the others are answered.
        """
        ...


def too_long(prompt_tokens: int, window: int) -> Answer:
    """The answer to a prompt that leaves no room in the model's window."""
    reason = f"the prompt has {prompt_tokens} tokens, the window is {window}"
    return Answer("", "error", prompt_tokens, 0, reason)
