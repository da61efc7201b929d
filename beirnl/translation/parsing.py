"""Title and text out of an LLM's answer. The answer is data: it is cut up, never evaluated."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from beirnl.translation.prompts import TAG, Template, lines

_FENCE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)
_BRACKETS = (
    ("['", "']"),
    ("[’", "’]"),
    ("[‘", "’]"),
)  # the prompts of BEIR-NL's appendix B put texts in these
_JSON = json.JSONDecoder(strict=False)  # line ends inside strings are let through
_ATTEMPTS = 8  # braces at which a JSON object is looked for


class Parsed(NamedTuple):
    """An answer, cut up; ``problems`` are names of :data:`beirnl.translation.checks.CHECKS`."""

    title: str
    text: str
    problems: tuple[str, ...] = ()


def parse(answer: str, template: Template, *, titled: bool) -> Parsed:
    """Cut an answer into title and text.

    Args:
        answer: what the LLM wrote.
        template: of the prompt that it answers; it shows the layout.
        titled: whether the row that was asked about has a title.

    Returns:
        Title and text, with the problem ``malformed`` where an answer that should be JSON lacks a field, has
        one that is no text, or is cut short (its text is then the answer as it is); ``preamble`` where there
        is text outside the tags; ``markup`` where parts of the prompt are in it; ``title-lost`` where there
        is no title.
    """
    answer = lines(answer).strip()
    parsed = _cut(answer, template, titled)
    seen = parsed.text if template.fields else answer
    if any(echo in seen for echo in template.echoes):
        return parsed._replace(problems=(*parsed.problems, "markup"))
    return parsed


def _cut(answer: str, template: Template, titled: bool) -> Parsed:
    if template.fields:
        return _object(answer, template, titled)
    answer = _unwrapped(answer)
    if template.tagged and "<" in answer and TAG.search(answer):
        return _tagged(answer, titled)
    if template.separator and titled:
        title, separator, text = answer.partition(template.separator)
        if separator:
            return Parsed(title.strip(), text.strip())
    if template.above and titled:
        title, _, text = answer.partition("\n")
        if text.strip():
            return Parsed(title.strip(), text.strip())
    return Parsed("", answer, ("title-lost",) if titled and answer else ())


def _object(answer: str, template: Template, titled: bool) -> Parsed:
    """The fields of the last JSON object that has them; what stands around it does not matter."""
    if not answer:
        return Parsed("", "")
    needed = [field for field in template.fields if field != "title" or titled]
    complete = [
        found for found in json_objects(answer) if all(isinstance(found.get(field), str) for field in needed)
    ]
    if not complete:
        return Parsed("", answer, ("malformed",))
    title, text = (_text(complete[-1].get(field)) for field in ("title", "text"))
    return Parsed(title, text, ("title-lost",) if titled and not title else ())


def json_objects(answer: str) -> Iterator[dict[str, Any]]:
    """JSON objects in a text, in their order; what stands around them (a Markdown fence) does not matter."""
    place = answer.find("{")
    for _ in range(_ATTEMPTS):
        if place < 0:
            return
        try:
            found, end = _JSON.raw_decode(answer, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield found
        place = answer.find("{", end)


def _text(value: object) -> str:
    """A field's text; halves of surrogate pairs, which JSON's escapes can spell, are replaced."""
    text = lines(value).strip() if isinstance(value, str) else ""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _tagged(answer: str, titled: bool) -> Parsed:
    """Title up to the body's first tag, body up to its last; a closing tag may be missing or oddly formed."""
    tags = list(TAG.finditer(answer))
    bodies = [tag for tag in tags if tag[1].lower() == "body"]
    heading = [
        tag for tag in tags if tag[1].lower() == "title" and (not bodies or tag.start() < bodies[0].start())
    ]
    begin, end = len(answer), len(answer)
    if bodies:
        begin = bodies[0].end()
        end = bodies[-1].start() if len(bodies) > 1 else end
    elif len(heading) > 1:  # what follows the title is the body, though nothing says so
        begin = heading[-1].end()
    head_end = bodies[0].start() if bodies else begin
    title = answer[heading[0].end() : heading[1].start() if len(heading) > 1 else head_end] if heading else ""
    outside = answer[: tags[0].start()] + (answer[bodies[-1].end() :] if len(bodies) > 1 else "")
    problems = [
        name
        for name, found in (("preamble", outside.strip()), ("title-lost", titled and not title.strip()))
        if found
    ]
    return Parsed(title.strip(), answer[begin:end].strip(), tuple(problems))


def _unwrapped(answer: str) -> str:
    """The answer without a Markdown fence or the prompt's brackets around the whole of it."""
    if answer.startswith("```"):
        fenced = _FENCE.fullmatch(answer)
        answer = fenced[1].strip() if fenced else answer
    for left, right in _BRACKETS if answer.startswith("[") else ():
        if answer.startswith(left) and answer.endswith(right):
            return answer[len(left) : -len(right)].strip()
    return answer
