"""Transcripts: what is said, without times."""

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from beirnl.rag.documents.decoding import decode
from beirnl.rag.documents.kinds import Text, UnreadableError

_TIMES = re.compile(r"(?:\d+:)?\d+:\d{2}[.,]\d{1,3}\s*-->")
_BLOCK_END = re.compile(r"\n[^\S\n]*\n\s*")
_SPEAKER = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")  # of WebVTT and SubRip, and of SubStation in SubRip


def read_transcript(path: Path) -> Iterator[Text]:
    """The text of a SubRip or WebVTT file as running text; a speaker who is named begins a line.

    A line that repeats the one before it, as in captions that roll, is left out.

    Raises:
        UnreadableError: no cue has a time.
    """
    source, note = decode(path.read_bytes())
    blocks = _BLOCK_END.split(source.replace("\r\n", "\n").replace("\r", "\n"))
    cues = [lines for block in blocks if (lines := _cue(block)) is not None]
    if source.strip() and not cues:
        raise UnreadableError("broken: no cue of a transcript in it")
    yield Text(" ".join(_said(line for cue in cues for line in cue)).replace(" \n", "\n"), note=note)


def _cue(block: str) -> list[str] | None:
    """The lines of a cue after its times; None for a block that is none (a header, a style, a comment)."""
    lines = block.split("\n")
    timed = next((n for n, line in enumerate(lines) if _TIMES.search(line)), None)
    return None if timed is None else [line.strip() for line in lines[timed + 1 :] if line.strip()]


def _said(lines: Iterable[str]) -> Iterator[str]:
    """Lines without tags and repetitions; a speaker's name stands before the first line of what one says."""
    speaker = before = ""
    for line in lines:
        found = _SPEAKER.search(line)
        changed = found is not None and found[1].strip() != speaker
        if found:
            speaker = found[1].strip()
        text = " ".join(html.unescape(_TAG.sub("", line)).split())
        if changed or text != before:
            yield f"\n{speaker}: {text}" if changed else text
        before = text
