"""Documents that are JSON objects or rows: ``.json``, ``.jsonl`` (BEIR's corpora) and Parquet.

Which fields are text: those the user names; else the first of :data:`TEXT` that is there; else all, a line
``name: value`` each. A title stands before the text, as BEIR joins them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from beirnl.datasets import rows
from beirnl.errors import DataError
from beirnl.rag.documents.decoding import decode
from beirnl.rag.documents.kinds import Fault, Reader, Text, UnreadableError
from beirnl.schema import join_title_text

ID, TITLE = ("_id", "id", "docid"), ("title", "titolo", "titel", "headline", "name")
TEXT = ("text", "contents", "content", "body", "testo", "tekst")
_BATCH = 1_024


def readers(fields: Sequence[str] = ()) -> dict[str, Reader]:
    """Readers by suffix.

    Args:
        fields: names of the fields that are text, in this order; empty: as the module says.
    """
    text = partial(_text, fields)
    lines = partial(_read_lines, text)
    return {
        ".json": partial(_read_json, text),
        ".jsonl": lines,
        ".jsonl.gz": lines,
        ".parquet": partial(_read_parquet, text),
    }


_Make = Callable[[Mapping[str, Any], str], Text]


def _text(fields: Sequence[str], row: Mapping[str, Any], place: str) -> Text:
    """A row as a document; ``place`` is its name where it has none of its own."""
    name = next((str(row[key]) for key in ID if row.get(key) not in (None, "")), place)
    titled = next((key for key in TITLE if isinstance(row.get(key), str)), "")
    title = row[titled] if titled else ""
    chosen = fields or [key for key in TEXT if isinstance(row.get(key), str)][:1]
    if not chosen:
        return Text("\n".join(f"{key}: {value}" for key, value in _flat(row) if key not in ID), title, name)
    text = "\n".join(_lines(row.get(key)) for key in chosen).strip()
    return Text(text if titled in chosen else join_title_text(title, text), title, name)


def _lines(value: Any) -> str:
    """The leaves of a value, a line each."""
    return "\n".join(text for _, text in _flat(value))


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a value that say something, with the dotted names of the fields that they are in."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _flat(inner, key)
    elif value is not None and str(value).strip():
        yield key, str(value)


def _read_json(text: _Make, path: Path) -> Iterator[Text | Fault]:
    source, note = decode(path.read_bytes())
    if not source.strip():
        yield Text("")
        return
    try:
        value = msgspec.json.decode(source)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UnreadableError(f"broken: no JSON ({error})") from error
    if isinstance(value, Mapping):
        yield text(value, path.name)._replace(name="", note=note)
    elif isinstance(value, list):
        for number, row in enumerate(value, 1):
            place = f"{path.name}:{number}"
            yield text(row if isinstance(row, Mapping) else {"text": _lines(row)}, place)._replace(note=note)
    else:
        raise UnreadableError("is neither a JSON object nor a list")


def _read_lines(text: _Make, path: Path) -> Iterator[Text | Fault]:
    try:
        for number, line in rows.lines(path):
            place = f"{path.name}:{number}"
            try:
                yield text(msgspec.json.decode(rows.decoded(line, path, number), type=dict[str, Any]), place)
            except DataError as error:
                yield Fault(place, f"broken: {error.what}")
            except msgspec.MsgspecError as error:
                yield Fault(place, f"broken: no JSON object ({error})")
    except DataError as error:
        raise UnreadableError(f"broken: {error.what}") from error


def _read_parquet(text: _Make, path: Path) -> Iterator[Text | Fault]:
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        told = [field.name for field in file.schema_arrow if not _is_vector(field.type)]
        number = 0
        for batch in file.iter_batches(_BATCH, columns=told):
            for row in pa.Table.from_batches([batch]).to_pylist():
                number += 1
                yield text(row, f"{path.name}:{number}")


def _is_vector(kind: Any) -> bool:
    """Whether a column holds lists of numbers or bytes, which nobody reads."""
    import pyarrow as pa

    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return True
    return hasattr(kind, "value_type") and pa.types.is_primitive(kind.value_type)
