"""What annotators said: one append-only file each, in a folder beside the sheet."""

import os
import re
import threading
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from beirnl.errors import ConfigError, DataError
from beirnl.store.files import disk_errors, fsync_path

Label = Literal["correct", "minor", "major"]

#: From good to bad, which is their order where one is needed (BEIR-NL, section 3.1).
LABELS: tuple[Label, ...] = ("correct", "minor", "major")

#: Letters, digits and ``. _ ' -`` or single blanks between them.
_NAME = re.compile(r"\w(?:[\w .'-]{0,38}\w)?")


class Judgement(msgspec.Struct, frozen=True):
    """An annotator's label of an item and a note; the last one of an item counts.

    Attributes:
        key: of the item, with its texts (:attr:`beirnl.audit.sheet.Item.key`).
        label: None where only a note was written.
        note: free text.
        at: when, in UTC (ISO 8601).
    """

    key: str
    label: Label | None
    note: str = ""
    at: str = ""


def annotator_name(name: str) -> str:
    """A name as files spell it: composed (NFC), in small letters, blanks single.

    Raises:
        ConfigError: it is empty, longer than 40 characters, or has characters that a name does not have.
    """
    found = " ".join(unicodedata.normalize("NFC", name).lower().split())
    if not _NAME.fullmatch(found):
        raise ConfigError(
            f"annotator {name[:60]!r} is no name",
            remedy="use at most 40 letters, digits, blanks, points or hyphens; begin and end with a letter",
        )
    return found


class Labels:
    """The labels of one sheet.

    Args:
        sheet: the sheet's file; labels lie in ``<sheet>.labels/<annotator>.jsonl``, and those of annotators
            who worked elsewhere may be copied there.
    """

    def __init__(self, sheet: Path) -> None:
        self.folder = sheet.with_name(f"{sheet.name}.labels")
        self._lock = threading.Lock()

    def annotators(self) -> list[str]:
        """Names of those who have labelled, sorted.

        Raises:
            DataError: a file bears no annotator's name.
        """
        names = sorted(path.stem for path in self.folder.glob("*.jsonl"))
        for name in names:
            if not _is_name(name):
                where = self.folder / f"{name}.jsonl"
                remedy = "rename it to the annotator's name in small letters, or move it away"
                raise DataError("bears no annotator's name", where=where, remedy=remedy)
        return names

    def read(self, annotator: str) -> dict[str, Judgement]:
        """The last judgement of each item by its key; a line that was cut off is as if never written.

        Raises:
            ConfigError: as :func:`annotator_name`.
            DataError: a line is damaged.
        """
        path = self._path(annotator)
        lines = _whole(path.read_bytes()).splitlines() if path.exists() else []
        found: dict[str, Judgement] = {}
        for number, line in enumerate(lines, 1):
            try:
                judgement = msgspec.json.decode(line, type=Judgement)
            except ValueError as error:
                remedy = "mend or delete the line"
                raise DataError("is not a label", where=f"{path}:{number}", remedy=remedy) from error
            found[judgement.key] = judgement
        return found

    def append(self, annotator: str, key: str, label: Label | None, note: str = "") -> Judgement:
        """Save a judgement; it is on the disk when this returns.

        Raises:
            ConfigError: as :func:`annotator_name`.
            StoreError: the disk is full or read-only.
        """
        path = self._path(annotator)
        judgement = Judgement(key, label, note, datetime.now(UTC).isoformat(timespec="seconds"))
        with self._lock, disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                file.seek(0)
                file.truncate(len(_whole(file.read())))
                file.write(msgspec.json.encode(judgement) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            fsync_path(self.folder)
        return judgement

    def _path(self, annotator: str) -> Path:
        return self.folder / f"{annotator_name(annotator)}.jsonl"


def _is_name(name: str) -> bool:
    try:
        return annotator_name(name) == name
    except ConfigError:
        return False


def _whole(data: bytes) -> bytes:
    """Without the line that a crash cut off: it was never said to be saved."""
    return data[: data.rfind(b"\n") + 1]
