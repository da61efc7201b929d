"""Prompts of questions and answers: text files with placeholders, as those of translations are.

Above the line ``---`` stands TOML: ``form`` (``chat`` or ``completion``), ``stop``, and in a prompt for
answers how one ``passage`` and one ``option`` look. See :mod:`beirnl.translation.prompts`.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from beirnl.errors import ConfigError
from beirnl.llm.protocol import Request
from beirnl.translation.prompts import lines, read_head

#: Placeholders of each kind of prompt; those of the value must be there, the others may.
QUESTION = {"text": True, "options": False, "wrong": False}
ANSWER = {"question": True, "options": True, "passages": True, "last": False}
OPEN = {"question": True, "passages": True}
MATCH = {"question": True, "answer": True, "options": True, "last": False, "none": False}

_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")


class _Head(BaseModel):
    """What stands above the template."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    form: Literal["chat", "completion"] = "chat"
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    passage: str = "[{rank}] {passage}\n\n"
    option: str = "({number}) {option}"


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt file, read.

    Attributes:
        text: the template.
        form: whether it is one message of a chat, or a text to continue.
        stop: strings that end an answer.
        passage, option: templates of one passage and one option.
    """

    text: str
    form: Literal["chat", "completion"]
    stop: tuple[str, ...]
    passage: str
    option: str

    def request(self, values: Mapping[str, str], **decoding: object) -> Request:
        """The request with placeholders filled in; braces in values are text.

        Args:
            values: of all placeholders.
            decoding: fields of the request.
        """
        prompt = fill(self.text, values)
        asked = {"messages": (("user", prompt),)} if self.form == "chat" else {"prompt": prompt}
        return Request(**asked, **decoding)  # type: ignore[arg-type]


def read_question_prompt(name: str, content: str) -> Template:
    """A prompt file that asks for a question: ``{text}``, and if it likes ``{options}`` and ``{wrong}``, the
    numbers of options and of wrong ones.

    Raises:
        ConfigError: a placeholder is missing or unknown, or the part above ``---`` is malformed.
    """
    return _read(name, content, *_placeholders(QUESTION))


def read_answer_prompt(name: str, content: str) -> Template:
    """A prompt file that asks for an answer: ``{question}``, ``{passages}``, ``{options}``, and if it likes
    ``{last}``, the number of the last option.

    Raises:
        ConfigError: a placeholder is missing or unknown, or the part above ``---`` is malformed.
    """
    template = _read(name, content, *_placeholders(ANSWER))
    _check(name, template.passage, *_PASSAGE)
    _check(name, template.option, *_OPTION)
    return template


def read_open_prompt(name: str, content: str) -> Template:
    """A prompt file that asks for an answer without options: ``{question}``, ``{passages}``.

    Raises:
        ConfigError: as :func:`read_answer_prompt`.
    """
    template = _read(name, content, *_placeholders(OPEN))
    _check(name, template.passage, *_PASSAGE)
    return template


def read_match_prompt(name: str, content: str) -> Template:
    """A prompt file that links an open answer to an option: ``{question}``, ``{answer}``, ``{options}``, and
    if it likes ``{last}`` and ``{none}``, the number of the last option and that of none of them.

    Raises:
        ConfigError: as :func:`read_answer_prompt`.
    """
    template = _read(name, content, *_placeholders(MATCH))
    _check(name, template.option, *_OPTION)
    return template


_PASSAGE = ("passage", "rank"), ("passage",)
_OPTION = ("option", "number"), ("option", "number")


def _placeholders(kind: Mapping[str, bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All of a kind of prompt, and those that must be there."""
    return tuple(kind), tuple(name for name, needed in kind.items() if needed)


def fill(template: str, values: Mapping[str, str]) -> str:
    """A template with its placeholders filled in, once: what looks like one in a value stays."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


@cache
def _read(name: str, content: str, known: tuple[str, ...], needed: tuple[str, ...]) -> Template:
    above, line, below = lines(content).partition("\n---\n")
    head = read_head(name, above if line else "", _Head)
    text = (below if line else above).strip("\n")
    _check(name, text, known, needed)
    return Template(text, head.form, head.stop, head.passage, head.option)


def _check(name: str, text: str, known: Collection[str], needed: Collection[str]) -> None:
    found = set(_PLACEHOLDER.findall(text))
    for missing in sorted(set(needed) - found):
        remedy = f"write {{{missing}}} into it"
        raise ConfigError(f"the prompt has no {{{missing}}}", where=f"{name}.txt", remedy=remedy)
    for strange in sorted(found - set(known)):
        remedy = "use " + ", ".join(f"{{{placeholder}}}" for placeholder in known)
        raise ConfigError(f"unknown placeholder {{{strange}}}", where=f"{name}.txt", remedy=remedy)
