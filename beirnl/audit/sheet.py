"""The sheet: sampled items with all that an annotator and the report need, as a file of JSON lines.

JSON lines and not CSV: a spreadsheet cuts a cell at 32,767 characters, runs one that begins with ``=``, and
rewrites an id such as ``007`` or ``1E5``. A line is one item, readable in any editor and by any data frame;
the first line says what was sampled. For reading there is the page.
"""

from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from beirnl.errors import DataError
from beirnl.store.files import disk_errors, write_atomically
from beirnl.store.keys import digest

Kind = Literal["document", "query"]

FORMAT = 1


class Head(msgspec.Struct, frozen=True):
    """First line of a sheet: how the sample was drawn."""

    experiment: str
    seed: int
    per_dataset: int
    sheet: Literal["beirnl-audit"] = "beirnl-audit"
    format: int = FORMAT


class Item(msgspec.Struct, frozen=True, dict=True, forbid_unknown_fields=True):
    """A translated document or query beside its source.

    Attributes:
        dataset: its name.
        part: the part that the item is of, empty where the dataset has none.
        kind: document or query.
        id: in the dataset (or part).
        language, source_language: ISO 639-1 codes.
        size: number of translated items of the dataset that the sample was drawn from.
        status: verdict of the checks: ``ok``, or names of failed checks joined by ``,``.
        source_title, source_text: what was translated.
        title, text: its translation.
    """

    dataset: str
    part: str
    kind: Kind
    id: str
    language: str
    source_language: str
    size: int
    status: str
    source_title: str
    source_text: str
    title: str
    text: str

    @property
    def stratum(self) -> str:
        """The dataset in its language, as evaluation tables name it."""
        return f"{self.dataset} ({self.language})"

    @cached_property
    def key(self) -> str:
        """What a label is of: the item with its texts, so that another translation is another item."""
        texts = (self.source_title, self.source_text, self.title, self.text)
        return digest([self.dataset, self.part, self.kind, self.id, self.language, *texts])


class Sheet(msgspec.Struct, frozen=True):
    """A sample: how it was drawn, and its items, dataset after dataset."""

    head: Head
    items: tuple[Item, ...]


def write_sheet(path: Path, sheet: Sheet) -> None:
    """Write a sheet, whole or not at all.

    Raises:
        DataError: the file exists and holds something else: its labels would be of other items.
        StoreError: the disk is full or read-only.
    """
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in (sheet.head, *sheet.items))
    if path.exists() and path.read_bytes() != data:
        raise DataError(
            "exists and holds something else than this sample",
            where=path,
            remedy="give another --output, or move the file and its labels away",
        )
    with disk_errors(path.parent):
        write_atomically(path, data)


def read_sheet(path: Path) -> Sheet:
    """Read a sheet.

    Raises:
        DataError: the file is no sheet, was written by a newer version, or has a damaged or repeated line.
        OSError: the file cannot be read.
    """
    remedy = "make one with `beirnl audit sample EXP`"
    if not path.exists():
        raise DataError("is not there", where=path, remedy=remedy)
    first, *lines = path.read_bytes().splitlines() or [b""]
    try:
        head = msgspec.json.decode(first, type=Head)
    except ValueError as error:
        raise DataError("is not a sheet of samples", where=path, remedy=remedy) from error
    if head.format > FORMAT:
        raise DataError("was written by a newer version", where=path, remedy="upgrade beirnl")
    items: dict[str, Item] = {}
    for number, line in enumerate(lines, 2):
        item = _item(line, f"{path}:{number}")
        if item.key in items:
            raise DataError("repeats an item", where=f"{path}:{number}", remedy="delete the line")
        items[item.key] = item
    if not items:
        raise DataError("holds no items", where=path, remedy="make it again with `beirnl audit sample EXP`")
    return Sheet(head, tuple(items.values()))


def _item(line: bytes, where: str) -> Item:
    try:
        return msgspec.json.decode(line, type=Item)
    except ValueError as error:
        remedy = "mend the line, or make the sheet again with `beirnl audit sample EXP`"
        raise DataError(f"is not an item of a sheet ({error})", where=where, remedy=remedy) from error
