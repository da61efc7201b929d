"""Bytes of text files as text, in the encoding that they are in."""

import codecs
import re

from beirnl.rag.documents.kinds import UnreadableError

#: The longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NUL_SHARE = (
    0.3  # of the high bytes of UTF-16, in any language that also has blanks, digits and Latin letters
)
_DAMAGED = 0.1  # bytes that are not UTF-8, per character that takes several bytes: still UTF-8
_BEYOND_ASCII = re.compile("[^\x00-\x7f�]")


def decode(data: bytes) -> tuple[str, str]:
    """Text, and a note where it had to be guessed.

    A byte order mark decides; then NUL in every second byte (UTF-16), then whether it is UTF-8. What is
    none of these is Windows-1252, the superset of Latin-1 that is meant by that name on the web.

    Raises:
        UnreadableError: it is no text.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "") or _utf16(data)
    if encoding:
        try:
            return data.decode(encoding), ""
        except UnicodeDecodeError as error:
            raise UnreadableError(f"broken: not {encoding.upper()} at byte {error.start + 1}") from error
    if b"\0" in data:
        raise UnreadableError("binary: holds NUL bytes, so it is no text")
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return _guess(data)


def separator(table: str) -> str:
    """What separates the columns of a CSV file: comma, semicolon or tab, whichever its header has most."""
    return max(",;\t", key=table.partition("\n")[0].count)


def _utf16(data: bytes) -> str:
    """The byte order of UTF-16 without a mark; empty where it is something else."""
    low, high = data[0::2].count(0), data[1::2].count(0)
    if len(data) % 2 or max(low, high) <= _NUL_SHARE * len(data) / 2 or min(low, high):
        return ""
    return "utf-16-le" if high else "utf-16-be"


def _guess(data: bytes) -> tuple[str, str]:
    text = data.decode("utf-8", "replace")
    replaced = text.count("�")
    if replaced <= _DAMAGED * len(_BEYOND_ASCII.findall(text)):
        return text, f"{replaced} bytes are not UTF-8 and were replaced"
    for encoding, name in (("cp1252", "Windows-1252"), ("latin-1", "Latin-1")):
        try:
            return data.decode(encoding), f"not UTF-8; read as {name}"
        except UnicodeDecodeError:
            continue
    raise AssertionError("every byte is Latin-1")
