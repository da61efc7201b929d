"""What the user says of files: a CSV or JSON file with their paths and descriptions."""

import csv
from pathlib import Path
from typing import Any

import msgspec

from beirnl.errors import DataError
from beirnl.rag.documents.decoding import decode, separator
from beirnl.rag.documents.kinds import UnreadableError

_FILE, _DESCRIPTION = "file", "description"
_REMEDY = f"write a CSV with the columns {_FILE} and {_DESCRIPTION}, or a JSON object of one per path"


def read_descriptions(path: Path) -> dict[str, str]:
    """Descriptions by path of the file (relative to the folder of documents, with ``/``) or id of a document.

    Args:
        path: CSV with a header that has ``file`` and ``description`` (separated by commas, semicolons or
            tabs), a JSON object ``{path: description}``, or a JSON list of objects with both fields.

    Raises:
        DataError: it is not there, of another form, or describes a file twice in different words.
    """
    try:
        text, _ = decode(path.read_bytes())
    except (OSError, UnreadableError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot be read ({reason})", where=path, remedy=_REMEDY) from error
    pairs = _json_pairs(text, path) if path.suffix.lower() == ".json" else _csv_pairs(text, path)
    found: dict[str, str] = {}
    for where, name, description in pairs:
        key = name.strip().replace("\\", "/").removeprefix("./")
        line = " ".join(description.split())
        if found.setdefault(key, line) != line:
            raise DataError(f"describes {key} a second time", where=where, remedy="leave one description")
    return {key: line for key, line in found.items() if line}


_Pairs = list[tuple[str, str, str]]


def _csv_pairs(text: str, path: Path) -> _Pairs:
    reader = csv.DictReader(text.splitlines(keepends=True), delimiter=separator(text))
    if not {_FILE, _DESCRIPTION} <= set(reader.fieldnames or ()):
        raise DataError(f"has no columns {_FILE} and {_DESCRIPTION}", where=f"{path}:1", remedy=_REMEDY)
    return [(f"{path}:{reader.line_num}", row[_FILE] or "", row[_DESCRIPTION] or "") for row in reader]


def _json_pairs(text: str, path: Path) -> _Pairs:
    try:
        value: Any = msgspec.json.decode(text)
        rows = (
            value.items() if isinstance(value, dict) else [(row[_FILE], row[_DESCRIPTION]) for row in value]
        )
        return [(str(path), *msgspec.convert(row, tuple[str, str])) for row in rows]
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise DataError(
            f"is no JSON of paths and descriptions ({error})", where=path, remedy=_REMEDY
        ) from error
