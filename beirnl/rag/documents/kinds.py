"""What readers of files give: texts, and what could not be read and why."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple


class Text(NamedTuple):
    """One document of a file.

    Attributes:
        text: as it was extracted.
        title: empty where the file tells none.
        name: identifier within the folder of the file; empty: the file's own name.
        note: what a user should know of how it was read; empty: nothing.
    """

    text: str
    title: str = ""
    name: str = ""
    note: str = ""


class Fault(NamedTuple):
    """A part of a file that could not be read; ``place`` as ``Text.name``."""

    place: str
    reason: str


#: Reads the documents of one file, in order.
Reader = Callable[[Path], Iterator[Text | Fault]]


class UnreadableError(Exception):
    """A file that holds no documents, as a whole or from here on; its text is the reason."""


class Document(NamedTuple):
    """A document of a folder: the columns of :data:`beirnl.rag.tables.DOCUMENTS`, and a ``note``.

    Attributes:
        id: path relative to the folder, with ``/``; of a file that holds several documents the path of its
            folder and the document's own identifier, or ``FILE:N`` with the number of its row from 1.
        title: empty where there is none.
        text: never empty; lines end in LF; no white space at its ends, no NUL, no lone surrogate.
        description: what the user says of the document; empty where nothing.
        group: the folder, relative; empty for the top one.
        note: what a user should know of how it was read.
    """

    id: str
    title: str
    text: str
    description: str
    group: str
    note: str = ""


class Unread(NamedTuple):
    """What is in the folder and is no document: ``id`` as that of a document, and the ``reason``."""

    id: str
    reason: str
