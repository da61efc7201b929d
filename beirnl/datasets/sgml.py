"""TREC's documents and topics: SGML records between ``<DOC>`` and ``</DOC>``, ``<top>`` and ``</top>``.

A document is its ``DOCNO``, its title (``TITLE``, ``HEADLINE`` or ``HEAD``) and the text of all its ``TEXT``;
without one, the text of all that is not its number or title. A topic is its number and its title (``title``
or ``query``), or, where that is empty, its description. Tags may be left open, as those of topics are. White
space is one blank; entities become characters.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from beirnl.datasets.rows import Record, decoded, identifier, lines
from beirnl.errors import DataError

_BEGIN = re.compile(r"<(DOC|topic|top)(?:\s[^>]*)?>", re.IGNORECASE)
_END = re.compile(r"</(DOC|topic|top)\s*>", re.IGNORECASE)
_OPENING = re.compile(rb"<(?:DOC|topic|top)[\s>]", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_NUMBER_ATTRIBUTE = re.compile(r"""\snumber\s*=\s*["']?([^"'>\s]+)""", re.IGNORECASE)
_SAID = re.compile(r"^(?:Number|Topic|Description)\s*:\s*", re.IGNORECASE)
_FIELDS = {
    "id": ("docno", "num"),
    "title": ("title", "headline", "head", "query"),
    "text": ("text",),
    "description": ("desc", "description", "question"),
    "rest": ("narr", "narrative", "con", "fac", "def", "smry", "dom"),
}
_NAMES = "|".join(name for names in _FIELDS.values() for name in names)
_FIELD = re.compile(rf"<({_NAMES})(?:\s[^>]*)?>(.*?)(?=</?(?:{_NAMES})(?:\s[^>]*)?>|\Z)", re.I | re.S)


def read(path: Path) -> Iterator[Record]:
    """Documents or topics of one file, in order; a record's line is that of its first tag.

    Raises:
        DataError: a record that is cut or has no number, a NUL byte, bytes that are not UTF-8.
    """
    held: list[str] = []
    first = 0
    for number, raw in lines(path):
        line = decoded(raw, path, number)
        begins = len(_BEGIN.findall(line))
        if begins and (held or begins > 1):
            raise _cut(path, first or number)
        if begins:
            first = number
        if begins or held:
            held.append(line)
        if held and _END.search(line):
            yield _record("\n".join(held), path, first)
            held, first = [], 0
    if held:
        raise _cut(path, first)


def count(path: Path) -> int:
    """About how many records a file has: its lines on which one begins."""
    return sum(bool(_OPENING.search(line)) for _, line in lines(path))


def _cut(path: Path, line: int) -> DataError:
    return DataError(
        "begins a record that does not end before the next one, or the file's end",
        where=f"{path}:{line}",
        remedy="end every record with </DOC> or </top>, and begin it on a line of its own",
    )


def _record(block: str, path: Path, line: int) -> Record:
    opening = _BEGIN.search(block)
    assert opening is not None
    body = _END.sub(" ", block[opening.end() :])
    fields = _fields(body)
    numbered = _NUMBER_ATTRIBUTE.search(opening.group())
    name = identifier(fields["id"] or (numbered.group(1) if numbered else ""), path, line)
    if opening.group(1).lower() != "doc":
        return Record(line, name, "", fields["title"] or fields["description"])
    text = fields["text"]
    if "text" not in {found.lower() for found, _ in _FIELD.findall(body)}:
        text = _plain(_without_number_and_title(body))
    return Record(line, name, fields["title"], text)


def _fields(body: str) -> dict[str, str]:
    """The first number, title and description; all texts."""
    found = {kind: [_SAID.sub("", _plain(t)) for n, t in _FIELD.findall(body) if n.lower() in names]
             for kind, names in _FIELDS.items()}  # fmt: skip
    first = {kind: next(filter(None, texts), "") for kind, texts in found.items()}
    return first | {"text": " ".join(filter(None, found["text"]))}


def _without_number_and_title(body: str) -> str:
    named = (*_FIELDS["id"], *_FIELDS["title"])
    return _FIELD.sub(lambda match: " " if match.group(1).lower() in named else match.group(), body)


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())
