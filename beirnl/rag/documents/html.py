"""Web pages: the text that a reader sees, in blocks."""

import re
from collections.abc import Iterator
from pathlib import Path

from beirnl.rag.documents.decoding import decode
from beirnl.rag.documents.kinds import Text

_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_HEAD = 4096  # bytes in which a page declares its encoding
_UNSEEN = ("head", "script", "style", "noscript", "template", "svg")
_LINES = ("br", "dt", "dd", "li", "tr", "option", "caption", "figcaption", "legend")
_NAMES = """
    address article aside blockquote body details dialog div dl fieldset figure footer form h1 h2 h3 h4 h5 h6
    header hr main nav ol p pre section summary table ul
"""
_BLOCKS = _NAMES.split()
#: Private characters that stand for a cell's, a line's and a block's end until white space is collapsed.
_CELL, _LINE, _BLOCK = "\ue0f0", "\ue0f1", "\ue0f2"
_ENDS = {"td": _CELL, "th": _CELL} | dict.fromkeys(_LINES, _LINE) | dict.fromkeys(_BLOCKS, _BLOCK)
_AROUND_CELL = re.compile(rf" ?{_CELL} ?")
_BREAK = re.compile(rf"[\s{_CELL}]*[{_LINE}{_BLOCK}][\s{_CELL}{_LINE}{_BLOCK}]*")


def read_html(path: Path) -> Iterator[Text]:
    """Title and text of a page; scripts, styles and what else is never shown is left out."""
    from lxml import html

    source, note = _decode(path.read_bytes())
    if not source.strip():
        yield Text("")
        return
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    tree = html.document_fromstring(source.encode("utf-8", "replace"), parser=parser)
    title = " ".join(tree.findtext(".//title", default="").split())
    for element in [*tree.iter(*_UNSEEN)]:
        if element.getparent() is not None:
            element.drop_tree()
    for element in tree.iter(*_ENDS):
        mark = _ENDS[element.tag]
        if mark != _CELL:
            element.text = mark + (element.text or "")
        element.tail = mark + (element.tail or "")
    yield Text(_collapse(str(tree.text_content())), title, note=note)


def _decode(data: bytes) -> tuple[str, str]:
    declared = _CHARSET.search(data[:_HEAD])
    if declared and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        name = declared[1].decode("ascii").lower()
        try:  # the web means Windows-1252 by both names
            return data.decode("cp1252" if name in ("iso-8859-1", "us-ascii") else name), ""
        except (LookupError, UnicodeDecodeError):
            pass
    return decode(data)


def _collapse(text: str) -> str:
    """Marks as tabs, line ends and blank lines; all other white space as one blank."""
    running = " ".join(text.split())
    broken = _BREAK.sub(lambda match: "\n\n" if _BLOCK in match[0] else "\n", running)
    return _AROUND_CELL.sub("\t", broken)
