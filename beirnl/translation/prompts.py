"""Prompts: text files with placeholders, and the requests made of them.

A prompt file is a template, optionally below a line ``---`` with TOML above it::

    form = "completion"         # a text to continue; "chat" (the default): one message of a user;
                                # "source": the bare text, for a sequence-to-sequence model
    stop = ["\\n"]               # ends the answer
    json = ["title", "text"]    # the answer is a JSON object with these fields
    source_language = "en"      # set where the template holds examples in two languages
    target_language = "nl"
    ---
    English: {title} | {text}
    Dutch:

Placeholders are ``{text}``, ``{title}``, ``{domain}``, ``{source_language}`` and ``{target_language}``. Title
and text are translated together and come back apart, in the layout in which the template shows them: between
``<title>`` and ``<body>`` tags; on one line with a sign between them that texts rarely have; ``{title}`` on a
line of its own and ``{text}`` below it; or, with ``json``, as JSON strings with their quotes
(``{"title": {title}, "text": {text}}``). Without tags or JSON, a row without a title is its text alone. Any
other layout (labels, which a model translates, among them) is refused: no answer to it could be taken apart.
With the form ``source`` only ``{text}`` may stand in the template, and titles are asked by themselves.
"""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from beirnl.errors import ConfigError
from beirnl.llm.protocol import Request
from beirnl.specs import LlmSpec, TranslationSpec
from beirnl.translation.language import language_name

Kind = Literal["query", "document"]

PLACEHOLDERS = ("text", "title", "domain", "source_language", "target_language")
#: A title or body tag in any form a model gives it, ``<title\\>`` of BEIR-NL's appendix B included.
TAG = re.compile(r"<\s*[/\\]?\s*(title|body)\s*[/\\]?\s*>", re.IGNORECASE)

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_JOINED = re.compile(r"\{title\}([^{}]*)\{text\}")  # title and text with nothing else to tell them apart
_ON_ITS_OWN = re.compile(r"^\{title\}[^\S\n]*(\n\s*)\{text\}", re.MULTILINE)
_TAGGED = re.compile(rf"{TAG.pattern}\s*\{{title\}}\s*(?:{TAG.pattern}\s*)+\{{text\}}", re.IGNORECASE)
_ORDINARY = re.compile(r"[\w\s.,:;!?'\"()–—-]")  # what titles have, so that it separates nothing
_ROOM = 64  # tokens an answer may have besides one per character of its source: ends a runaway answer early
WARMER = 0.4  # added to the temperature with each attempt, since the same question gets the same answer
_BETWEEN = re.compile(r"\{[a-z_]+\}|\n|\||</?\w+>")  # what separates the constant parts of a template
_LABEL = re.compile(r"^\s*\w+:\s")
_ECHO = 5  # words that a constant part has at least, to be recognised in an answer


class _Head(BaseModel):
    """What stands above the template."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    form: Literal["chat", "completion", "source"] = "chat"
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    fields: tuple[Literal["title", "text"], ...] = Field(default=(), alias="json")
    source_language: str | None = None
    target_language: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A prompt file, read; compared by identity, since :func:`read_template` gives equal ones once.

    Attributes:
        name: of the file, without its suffix.
        text: the template.
        head: form, stop strings and languages.
        separator: what stands between title and text on one line; empty in the other layouts.
        above: the line ends between a title on a line of its own and its text; empty in the other layouts.
        tagged: whether title and body stand between tags.
        with_title: whether it has a place for the title; if not, titles are asked by themselves.
        echoes: parts of lines that a model may repeat from the prompt, and no translation has.
    """

    name: str
    text: str
    head: _Head
    separator: str = ""
    above: str = ""
    tagged: bool = False
    with_title: bool = False
    echoes: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of the JSON object that is asked for; empty where the answer is plain text."""
        return self.head.fields


@cache
def read_template(name: str, content: str, kind: Kind) -> Template:
    """A prompt file's content as a template.

    Args:
        name: the file's name, for errors.
        content: the file's text.
        kind: what it is to be used for; a prompt for documents must have a place for the title, unless its
            form is ``source``.

    Raises:
        ConfigError: a placeholder is missing or unknown, title and text stand in no layout in which they come
            back apart, or the part above ``---`` is malformed.
    """
    above, line, below = lines(content).partition("\n---\n")
    head = read_head(name, above if line else "", _Head)
    text = (below if line else above).strip("\n")
    _check_placeholders(name, text, head, kind)
    template = Template(name, text, head, with_title="{title}" in text, echoes=_echoes(text))
    return template if head.fields or head.form == "source" else _with_layout(template)


def _with_layout(template: Template) -> Template:
    """The template of a plain text with what tells its title from its text."""
    text, stop = template.text, template.head.stop
    if not template.with_title:
        return replace(template, tagged=bool(TAG.search(text)))
    if _TAGGED.search(text):
        return replace(template, tagged=True)
    if (found := _ON_ITS_OWN.search(text)) and not any(one in found[1] for one in stop):
        return replace(template, above=found[1])
    between = _JOINED.search(text)
    separator = between[1].strip() if between and "\n" not in between[1] else ""
    if _ORDINARY.sub("", separator) and not re.search(r"\w", separator):
        return replace(template, separator=separator)
    what = (
        "stop ends its answers behind the title"
        if found
        else "no answer to it comes apart into title and text"
    )
    raise ConfigError(
        what,
        where=f"{template.name}.txt",
        remedy="write {title} | {text} on one line, <title> {title} </title> <body> {text} </body>, or "
        "{title} alone on a line and {text} below it",
    )


def _echoes(text: str) -> tuple[str, ...]:
    pieces = (_LABEL.sub("", piece).strip() for piece in _BETWEEN.split(text))
    return tuple(dict.fromkeys(piece for piece in pieces if len(piece.split()) >= _ECHO))


def _check_placeholders(name: str, text: str, head: _Head, kind: Kind) -> None:
    found = set(_PLACEHOLDER.findall(text))
    titled = kind == "document" and head.form != "source"
    needed = {"text", "title"} if titled else {"text"}
    where = f"{name}.txt"
    for missing in sorted(needed - found):
        remedy = f"write {{{missing}}} into it"
        raise ConfigError(f"the {kind} prompt has no {{{missing}}}", where=where, remedy=remedy)
    allowed = PLACEHOLDERS if head.form != "source" else ("text",)
    for strange in sorted(found - set(allowed)):
        known = ", ".join(f"{{{placeholder}}}" for placeholder in allowed)
        raise ConfigError(f"unknown placeholder {{{strange}}}", where=where, remedy=f"use {known}")
    for field in sorted(needed - set(head.fields)) if head.fields else ():
        raise ConfigError(f"json: the {kind} prompt needs the field {field!r}", where=where, remedy="add it")
    if head.fields and head.form == "source":
        raise ConfigError("json: a bare source asks for no structure", where=where, remedy="leave json out")


_H = TypeVar("_H", bound=BaseModel)


def read_head(name: str, text: str, kind: type[_H]) -> _H:
    """What stands above the line ``---`` of a prompt file.

    Args:
        name: the file's name, for errors.
        text: TOML.
        kind: the fields that it may have.

    Raises:
        ConfigError: it is not TOML, or has another field or a value that cannot be.
    """
    try:
        return kind.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML above the line --- ({error})", where=f"{name}.txt") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        known = ", ".join(info.alias or field for field, info in kind.model_fields.items())
        raise ConfigError(
            f"{field}: {first['msg']}", where=f"{name}.txt", remedy=f"above the line --- use {known}"
        ) from error


class _Filled(NamedTuple):
    """A template with all but title and text filled in: what stands before, between and after them.

    Attributes:
        begin: what stands before the first of them.
        rest: pairs of a placeholder (``title`` or ``text``) and what follows it.
    """

    begin: str
    rest: tuple[tuple[str, str], ...]

    def put(self, title: str, text: str) -> str:
        """The prompt of one row."""
        parts = [self.begin]
        for name, after in self.rest:
            parts.append(title if name == "title" else text)
            parts.append(after)
        return "".join(parts)


@lru_cache(maxsize=256)
def _filled(
    template: Template, titled: bool, domain: str, source_language: str, target_language: str
) -> _Filled:
    """The template for one dataset; ``titled`` is whether the row has a title."""
    _check_languages(template, source_language, target_language)
    values = {
        "domain": domain,
        "source_language": language_name(source_language),
        "target_language": language_name(target_language),
    }
    pattern = template.text
    if (template.separator or template.above) and not titled:
        pattern = _JOINED.sub("{text}", pattern)
    parts = _PLACEHOLDER.split(pattern)
    begin, rest = parts[0], list[tuple[str, str]]()
    for name, after in zip(parts[1::2], parts[2::2], strict=True):
        if name in ("title", "text"):
            rest.append((name, after))
        elif rest:
            rest[-1] = (rest[-1][0], rest[-1][1] + values[name] + after)
        else:
            begin += values[name] + after
    return _Filled(begin, tuple(rest))


def opening(spec: TranslationSpec) -> str:
    """What every request of a translation begins with. Two translations can ask the same only if the opening
    of one begins with that of the other."""
    template = read_template(spec.prompt, spec.template, spec.kind)
    return _filled(template, True, spec.domain, spec.source_language, spec.target_language).begin


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
        template: of a query or document prompt; one without a place for the title leaves it out.
        title, text: the row; braces in them are text.
        domain: as the prompt names it.
        source_language, target_language: ISO 639-1 codes.
        llm: decoding parameters.
        attempt: from 0; later ones are warmer and have more room.

    Raises:
        ConfigError: an unknown language, or one that the prompt is not written for.
    """
    title, text, head = lines(title), lines(text), template.head
    if template.separator:
        title, text = one_line(title).replace(template.separator, "-"), one_line(text)
    if template.above:
        title, text = one_line(title), text.strip()
    if head.fields:
        title, text = _quoted(title), _quoted(text)
    room = _ROOM + len(title) + len(text)
    prompt = _filled(template, bool(title), domain, source_language, target_language).put(title, text)
    chat = head.form == "chat"
    return Request(
        None if chat else prompt,
        (("user", prompt),) if chat else None,
        min(llm.max_tokens, room) << attempt,
        round(llm.temperature + attempt * WARMER, 3),
        head.stop + llm.stop,
        head.fields,
    )


_quoted: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode


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
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def one_line(text: str) -> str:
    """Text with every run of white space as one blank."""
    return " ".join(text.split())
