"""Prompts: text files with placeholders, and the requests made of them.

A prompt file is a template, optionally below a line ``---`` with TOML above it::

    form = "completion"         # a text to continue; without it "chat": one message of a user
    stop = ["\\n"]               # ends the answer
    source_language = "en"      # set where the template holds examples in two languages
    target_language = "nl"
    ---
    English: {title} | {text}
    Dutch:

Placeholders are ``{text}``, ``{title}``, ``{domain}``, ``{source_language}`` and ``{target_language}``. Title
and text are translated together and come back apart, in the layout in which the template shows them: between
``<title>`` and ``<body>`` tags, or on one line with a separator. On one line a row without a title is its
text alone.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from beirnl.errors import ConfigError
from beirnl.llm.protocol import Request
from beirnl.specs import LlmSpec
from beirnl.translation.language import language_name

Kind = Literal["query", "document"]

PLACEHOLDERS = ("text", "title", "domain", "source_language", "target_language")
#: A title or body tag in any form a model gives it, ``<title\\>`` of BEIR-NL's appendix B included.
TAG = re.compile(r"<\s*[/\\]?\s*(title|body)\s*[/\\]?\s*>", re.IGNORECASE)

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_SEPARATOR = re.compile(r"\{title\}([^{}\n]+)\{text\}")
_ROOM = 64  # tokens an answer may have besides one per character of its source: ends a runaway answer early
_WARMER = 0.4  # added to the temperature with each attempt, since the same question gets the same answer


class _Head(BaseModel):
    """What stands above the template."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    form: Literal["chat", "completion"] = "chat"
    stop: tuple[str, ...] = ()
    source_language: str | None = None
    target_language: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt file, read.

    Attributes:
        name: of the file, without its suffix.
        text: the template.
        head: form, stop strings and languages.
        separator: what stands between title and text on one line; empty in the other layouts.
    """

    name: str
    text: str
    head: _Head
    separator: str = ""

    @property
    def tagged(self) -> bool:
        """Whether title and body stand between tags."""
        return bool(TAG.search(self.text))


@cache
def read_template(name: str, content: str, kind: Kind) -> Template:
    """A prompt file's content as a template.

    Args:
        name: the file's name, for errors.
        content: the file's text.
        kind: what it is to be used for; a prompt for documents must have a place for the title.

    Raises:
        ConfigError: a placeholder is missing or unknown, or the part above ``---`` is malformed.
    """
    above, line, below = lines(content).partition("\n---\n")
    text = (below if line else above).strip("\n")
    found = set(_PLACEHOLDER.findall(text))
    needed = {"text", "title"} if kind == "document" else {"text"}
    for missing in sorted(needed - found):
        raise ConfigError(
            f"the {kind} prompt has no {{{missing}}}",
            where=f"{name}.txt",
            remedy=f"write {{{missing}}} into it",
        )
    for strange in sorted(found - set(PLACEHOLDERS)):
        known = ", ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS)
        raise ConfigError(f"unknown placeholder {{{strange}}}", where=f"{name}.txt", remedy=f"use {known}")
    between = None if TAG.search(text) else _SEPARATOR.search(text)
    return Template(
        name, text, _read_head(name, above if line else ""), between[1].strip() if between else ""
    )


def _read_head(name: str, text: str) -> _Head:
    try:
        return _Head.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML above the line --- ({error})", where=f"{name}.txt") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{field}: {first['msg']}",
            where=f"{name}.txt",
            remedy=f"above the line --- use {', '.join(_Head.model_fields)}",
        ) from error


def render(
    template: Template,
    *,
    title: str,
    text: str,
    domain: str,
    source_language: str,
    target_language: str,
    llm: LlmSpec,
    attempt: int = 0,
) -> Request:
    """The request that asks for the translation of one row.

    Args:
        template: of a query or document prompt.
        title, text: the row; braces in them are text.
        domain: as the prompt names it.
        source_language, target_language: ISO 639-1 codes.
        llm: decoding parameters.
        attempt: from 0; later ones are warmer and have more room.

    Raises:
        ConfigError: an unknown language, or one that the prompt is not written for.
    """
    _check_languages(template, source_language, target_language)
    title, text, pattern = lines(title), lines(text), template.text
    if template.separator:
        title, text = one_line(title).replace(template.separator, "-"), one_line(text)
        if not title:
            pattern = _SEPARATOR.sub("{text}", pattern)
    values = {
        "title": title,
        "text": text,
        "domain": domain,
        "source_language": language_name(source_language),
        "target_language": language_name(target_language),
    }
    prompt = _PLACEHOLDER.sub(lambda match: values[match[1]], pattern)
    completion = template.head.form == "completion"
    return Request(
        prompt=prompt if completion else None,
        messages=None if completion else (("user", prompt),),
        max_tokens=min(llm.max_tokens, _ROOM + len(title) + len(text)) << attempt,
        temperature=round(llm.temperature + attempt * _WARMER, 3),
        stop=(*template.head.stop, *llm.stop),
    )


def _check_languages(template: Template, source_language: str, target_language: str) -> None:
    asked = {"source_language": source_language, "target_language": target_language}
    for field, code in asked.items():
        written = getattr(template.head, field)
        if written and written != code:
            raise ConfigError(
                f"the prompt is written for {field} {written!r}, not {code!r}",
                where=f"{template.name}.txt",
                remedy="choose another prompt, or write one with examples in these languages",
            )


def lines(text: str) -> str:
    """Text with its line ends as LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def one_line(text: str) -> str:
    """Text with every run of white space as one blank."""
    return " ".join(text.split())
