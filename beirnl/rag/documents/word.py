"""Word documents."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beirnl.rag.documents.kinds import Text, UnreadableError

_COMPOUND = b"\xd0\xcf\x11\xe0"  # the container of encrypted files, and of Word before 2007
_BEFORE_CELL = re.compile(r"\s*\x1f")
_ROW_END = re.compile(r"[\x1f\n]*\x1e")
_BLANK_LINES = re.compile(r"\n{3,}")


def read_docx(path: Path) -> Iterator[Text]:
    """Title and text: paragraphs, those of tables and text boxes with them, in the order of the file.

    Cells of a table are separated by tabs. Headers, footers, notes and deleted text are left out.
    """
    from docx import Document

    with path.open("rb") as file:
        if file.read(4) == _COMPOUND:
            raise UnreadableError("encrypted, or of Word before 2007; save it as .docx without a password")
        file.seek(0)
        document = Document(file)
        text = "".join(_pieces(document.element.body))
        title = document.core_properties.title or ""
    text = _BEFORE_CELL.sub("\t", _ROW_END.sub("\n", text))
    yield Text(_BLANK_LINES.sub("\n\n", text), title)


def _pieces(element: Any) -> Iterator[str]:
    """Text below an element, in order; \\x1f ends a cell of a table and \\x1e a row."""
    for child in element:
        kind = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else ""
        if kind == "t":
            yield child.text or ""
        elif kind not in ("Fallback", "pPr", "rPr"):  # a text box comes twice, once for older versions
            yield from _pieces(child)
            yield _AFTER.get(kind, "")


_AFTER = {"tab": "\t", "br": "\n", "cr": "\n", "p": "\n\n", "tc": "\x1f", "tr": "\x1e", "tbl": "\n"}
