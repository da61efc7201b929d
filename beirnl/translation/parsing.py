"""Title and text out of an LLM's answer. The answer is data: it is cut up, never evaluated."""

import re
from typing import NamedTuple

from beirnl.translation.prompts import TAG, Template, lines

_FENCE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)
_BRACKETS = (
    ("['", "']"),
    ("[’", "’]"),
    ("[‘", "’]"),
)  # the prompts of BEIR-NL's appendix B put texts in these


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
    """
    answer = _unwrapped(lines(answer).strip())
    if template.tagged and TAG.search(answer):
        return _tagged(answer, titled)
    if template.separator and titled:
        title, separator, text = answer.partition(template.separator)
        if separator:
            return Parsed(title.strip(), text.strip())
    return Parsed("", answer, ("title-lost",) if titled and answer else ())


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
    fenced = _FENCE.fullmatch(answer)
    answer = fenced[1].strip() if fenced else answer
    for left, right in _BRACKETS:
        if answer.startswith(left) and answer.endswith(right):
            return answer[len(left) : -len(right)].strip()
    return answer
