"""Text files, and those of Markdown, which stay as they are written."""

import re
from collections.abc import Iterator
from pathlib import Path

from beirnl.rag.documents.decoding import decode
from beirnl.rag.documents.kinds import Text

_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


def read_text(path: Path) -> Iterator[Text]:
    """The whole file."""
    text, note = decode(path.read_bytes())
    yield Text(text, note=note)


def read_markdown(path: Path) -> Iterator[Text]:
    """The whole file; its title is the first heading of the first level."""
    text, note = decode(path.read_bytes())
    heading = _HEADING.search(text)
    yield Text(text, heading[1] if heading else "", note=note)
