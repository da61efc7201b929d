"""A folder of documents of any kind: what is read, what is not, and why."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from beirnl.datasets import files
from beirnl.errors import BeirnlError, DataError
from beirnl.rag.documents import html, objects, pdf, plain, transcripts, word
from beirnl.rag.documents.descriptions import read_descriptions
from beirnl.rag.documents.kinds import Document, Fault, Reader, Text, Unread, UnreadableError
from beirnl.rag.tables import DOCUMENTS
from beirnl.wording import counted

#: Who reads which suffix (in lower case); :mod:`beirnl.rag.documents.objects` has those of rows.
READERS: dict[str, Reader] = {
    ".txt": plain.read_text,
    ".text": plain.read_text,
    ".md": plain.read_markdown,
    ".markdown": plain.read_markdown,
    ".html": html.read_html,
    ".htm": html.read_html,
    ".xhtml": html.read_html,
    ".docx": word.read_docx,
    ".pdf": pdf.read_pdf,
    ".srt": transcripts.read_transcript,
    ".vtt": transcripts.read_transcript,
}
_ROWS = (".jsonl", ".jsonl.gz", ".parquet")  # the forms of a retrieval set that hold documents as rows
_EMPTY = "empty: holds no text"
_SHOWN = 3  # files named per reason
_REASONS = 5  # reasons named


class Source(NamedTuple):
    """A file that may hold documents: its ``id`` (relative path with ``/``) and its ``path``."""

    id: str
    path: Path


def read_folder(
    folder: Path, descriptions: Path | None = None, fields: Sequence[str] = ()
) -> Iterator[Document | Unread]:
    """Everything in a folder and below, each as documents or with the reason why not; one by one, in order.

    Args:
        folder: of files; ids are relative to it.
        descriptions: as :func:`beirnl.rag.documents.descriptions.read_descriptions` reads it.
        fields: which fields of JSON objects and of rows are text; empty: see ``objects``.

    Yields:
        Documents, and what is no document. By folder, first files and then folders, each by name.

    Raises:
        DataError: the folder is not there; the descriptions cannot be read; after the last yield: nothing in
            the folder could be read (lists the reasons).
    """
    if not folder.is_dir():
        raise DataError("is no folder", where=folder, remedy="give the folder that holds the documents")
    described = read_descriptions(descriptions) if descriptions else {}
    return _read_all(folder, descriptions, described, fields)


def _read_all(
    folder: Path, descriptions: Path | None, described: Mapping[str, str], fields: Sequence[str]
) -> Iterator[Document | Unread]:
    known: set[int] = set()  # hashes: corpora may have millions of identifiers
    used: set[str] = set()
    refused: list[Unread] = []
    own = os.path.relpath(descriptions.resolve(), folder.resolve()) if descriptions else None
    for source in find(folder):
        if source.id == own:
            continue
        for item in read(source, described, fields) if isinstance(source, Source) else [source]:
            if isinstance(item, Document):
                used.update({source.id, item.id} & described.keys())
                if hash(item.id) in known:
                    item = Unread(item.id, f"a second document of this identifier, in {source.id}")
                known.add(hash(item.id))
            if not isinstance(item, Document) and not known:
                refused.append(item)
            yield item
    if not known:
        raise DataError(_why(refused), where=folder, remedy=f"give files of {', '.join(suffixes())}")
    yield from (
        Unread(name, "is described, but no document has this path or identifier")
        for name in sorted(described.keys() - used)
    )


def _why(refused: Sequence[Unread]) -> str:
    if not refused:
        return "holds no files"
    reasons = Counter(item.reason for item in refused)
    told = []
    for reason, count in reasons.most_common(_REASONS):
        names = list(islice((item.id for item in refused if item.reason == reason), _SHOWN))
        told.append(f"{', '.join(names)}{f' and {count - _SHOWN} more' if count > _SHOWN else ''}: {reason}")
    if len(reasons) > _REASONS:
        told.append(f"{len(reasons) - _REASONS} other reasons")
    return f"holds no document that can be read ({'; '.join(told)})"


def suffixes() -> list[str]:
    """The suffixes that are read."""
    return [*READERS, *objects.readers()]


def find(folder: Path) -> Iterator[Source | Unread]:
    """The files of a folder and below, in the order of :func:`read_folder`, unopened."""
    failed: list[OSError] = []
    aside: set[Path] = set()
    for place, folders, names in os.walk(folder, onerror=failed.append):
        here = Path(place)
        group = here.relative_to(folder).as_posix().removeprefix(".")
        for name in sorted(folders):
            if name.startswith(".") or (here / name).is_symlink():
                folders.remove(name)
                reason = "hidden" if name.startswith(".") else "a link to a folder; it is not followed"
                yield Unread(_join(group, name), reason)
        folders.sort()
        aside |= _no_documents(here)
        for name in sorted(names):
            yield _file(here / name, _join(group, name), aside)
        yield from _unlisted(failed, folder)
    yield from _unlisted(failed, folder)


def _unlisted(failed: list[OSError], folder: Path) -> Iterator[Unread]:
    while failed:
        error = failed.pop()
        yield Unread(os.path.relpath(error.filename, folder), f"cannot be opened ({error.strerror})")


def _file(path: Path, name: str, aside: set[Path]) -> Source | Unread:
    suffix = files.suffix_of(Path(name.lower()))
    if path.name.startswith("."):
        return Unread(name, "hidden")
    if not path.is_file():
        return Unread(name, "no file, or a link to none")
    if path in aside:
        return Unread(name, "queries or judgements of the retrieval set in this folder")
    if suffix not in suffixes():
        return Unread(name, f"unknown kind of file ({suffix or 'no suffix'})")
    return Source(name, path)


def _no_documents(folder: Path) -> set[Path]:
    """Queries and judgements of a folder that is a retrieval set."""
    corpus = files.find_texts(folder, "corpus")
    if corpus is None or files.suffix_of(files.files_of(corpus)[0]) not in _ROWS:
        return set()
    tables = [files.find_texts(folder, "queries"), *files.find_judgements(folder).values()]
    return {file for table in tables if table for file in files.files_of(table)}


def _join(group: str, name: str) -> str:
    """A path relative to the folder as text; bytes of a name that are no text are replaced."""
    path = f"{group}/{name}" if group else name
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read(
    source: Source, described: Mapping[str, str] | None = None, fields: Sequence[str] = ()
) -> Iterator[Document | Unread]:
    """The documents of one file; those that follow a fault are lost only if the file cannot be read on.

    Args:
        source: as :func:`find` gives it.
        described: descriptions by id of the file or of the document, which goes first.
        fields: as for :func:`read_folder`.
    """
    described = described or {}
    group = source.id.rpartition("/")[0]
    for item in _parsed(source, fields):
        name = (
            _join(group, item[0]) if isinstance(item, Fault) else _join(group, item.name or source.path.name)
        )
        if isinstance(item, Fault):
            yield Unread(name, item.reason)
            continue
        text = clean(item.text)
        if not text:
            yield Unread(name, _EMPTY)
            continue
        description = described.get(name, described.get(source.id, ""))
        yield Document(name, clean(item.title), text, clean(description), group, item.note)


def _parsed(source: Source, fields: Sequence[str]) -> Iterator[Text | Fault]:
    """What the reader gives, and the reason as the last item where it gives up."""
    reader = (READERS | objects.readers(fields))[files.suffix_of(Path(source.id.lower()))]
    name, count = source.path.name, 0
    try:
        for item in reader(source.path) if source.path.stat().st_size else ():
            yield item
            count += 1
        if not count:
            yield Fault(name, _EMPTY)
        return
    except (BeirnlError, ImportError):
        raise
    except UnreadableError as error:
        reason = str(error)
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
    except Exception as error:  # libraries that parse damaged files raise anything
        reason = f"broken ({type(error).__name__}: {error})"
    after = f"; what is before this place was read: {counted(count, 'document')}" if count else ""
    yield Fault(name, " ".join(reason.split()) + after)


def clean(text: str) -> str:
    """Text as it is kept: LF at line ends, no NUL, no lone surrogate, no white space around it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # halves of pairs, which PDFs hold, are joined; others replaced
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def table(documents: Iterable[Document]) -> pa.Table:
    """Documents as a table of schema :data:`beirnl.rag.tables.DOCUMENTS`."""
    columns = list(zip(*documents, strict=True))[: len(DOCUMENTS)] or [()] * len(DOCUMENTS)
    return pa.table([list(column) for column in columns], schema=DOCUMENTS)
