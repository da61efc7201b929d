"""PDF files."""

import logging
from collections.abc import Iterator
from pathlib import Path

from beirnl.rag.documents.kinds import Text, UnreadableError
from beirnl.wording import counted


def read_pdf(path: Path) -> Iterator[Text]:
    """Title and text of the pages, a blank line between them.

    A file that opens without a password is read also where it is encrypted.

    Raises:
        UnreadableError: it needs a password, has no pages, or no page has text.
    """
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of every flaw that it reads over
    with path.open("rb") as file:
        reader = PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("encrypted: needs a password; save it without one")
        pages = [page.extract_text().strip() for page in reader.pages]
        title = (reader.metadata and reader.metadata.title) or ""
    written = [page for page in pages if page]
    if not pages:
        raise UnreadableError("empty: has no pages")
    if not written:
        raise UnreadableError(
            f"scanned: none of its {counted(len(pages), 'page')} has text; run text recognition (OCR) on it"
        )
    silent = len(pages) - len(written)
    note = (
        f"{counted(silent, 'page has', 'pages have', of=len(pages))} no text (scanned, or pictures only)"
        if silent
        else ""
    )
    yield Text("\n\n".join(written), str(title), note=note)
