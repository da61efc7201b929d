"""Questions that users bring: CSV, JSON or JSON lines, with the place of whatever is wrong with them.

A question has ``question``, ``options``, ``answer``, and if it likes ``id``, ``doc`` (id of the document that
holds the answer) and ``explanations``. ``answer`` is the index of the correct option, from 0, or its text;
where it could be either, the column is named ``answer_index`` or ``answer_text``. In CSV (commas, semicolons
or tabs) the options are columns ``option_0``, ``option_1`` ..., or one column with a JSON list.
"""

import csv
import io
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from beirnl.errors import DataError, nearest
from beirnl.rag.documents.decoding import separator
from beirnl.rag.questions.filters import plain
from beirnl.rag.tables import QUESTIONS
from beirnl.translation.prompts import one_line
from beirnl.wording import counted

_FIELDS = ("id", "question", "options", "answer", "answer_index", "answer_text", "doc", "explanations")
_MOST = 10  # options: their numbers have one digit
_OPTION = re.compile(r"option_\d")
_JSON = json.JSONDecoder()


def read_questions(path: Path, documents: Collection[str] | None = None, options: int | None = 4) -> pa.Table:
    """Questions of a user (schema ``QUESTIONS``, ``origin`` is ``user``).

    Args:
        path: ``.csv``, ``.json`` (a list of objects) or ``.jsonl``.
        documents: ids of the documents that exist; None: any may be named.
        options: how many each question has; None: 2 to 10.

    Raises:
        DataError: the file cannot be read, or a question is wrong; names file and line.
    """
    rows: list[dict[str, Any]] = []
    lines: dict[str, int] = {}
    for line, found in _records(path):
        where = f"{path}:{line}"
        row = _question(found, where, options, f"{path.stem}-{len(rows) + 1}")
        if row["id"] in lines:
            raise DataError(
                f"the id {row['id']!r} is that of line {lines[row['id']]}, too",
                where=where,
                remedy="give every question an id of its own",
            )
        if row["doc_id"] and documents is not None and row["doc_id"] not in documents:
            raise DataError(
                f"there is no document {row['doc_id']!r}",
                where=where,
                remedy=nearest(row["doc_id"], documents, "leave doc out"),
            )
        lines[row["id"]] = line
        rows.append(row)
    if not rows:
        raise DataError("holds no question", where=path, remedy="write at least one")
    return pa.Table.from_pylist(rows, schema=QUESTIONS)


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    readers = {".csv": _csv, ".json": _json, ".jsonl": _json_lines}
    if path.suffix.lower() not in readers:
        raise DataError("is no file of questions", where=path, remedy=f"give one of: {', '.join(readers)}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=path, remedy="check the path") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(
            f"byte {error.start + 1} is not UTF-8", where=f"{path}:{line}", remedy="re-encode the file"
        ) from error
    return readers[path.suffix.lower()](text, path)


def _csv(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows as objects, with the line on which each begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator(text))
    begin = 1
    try:
        names = [name.strip() for name in next(reader, [])]
        while True:
            begin = reader.line_num + 1
            row = next(reader, None)
            if row is None:
                return
            if len(row) not in (0, len(names)):
                raise csv.Error(f"{counted(len(row), 'column')}, the header has {len(names)}")
            if row:
                yield begin, _gathered(dict(zip(names, row, strict=True)), f"{path}:{begin}")
    except csv.Error as error:
        remedy = "quote texts that hold commas or quotes"
        raise DataError(f"not CSV ({error})", where=f"{path}:{begin}", remedy=remedy) from error


def _gathered(row: dict[str, str], where: str) -> dict[str, Any]:
    """A CSV row with its options as a list; empty cells are absent."""
    cells: dict[str, Any] = {name: cell for name, cell in row.items() if cell.strip()}
    for name in ("options", "explanations"):
        if name in cells:
            try:
                cells[name] = json.loads(cells[name])
            except ValueError as error:
                remedy = f'write {name} as ["...", "..."], or options as columns option_0, option_1 ...'
                raise DataError(f"{name} is not JSON ({error})", where=where, remedy=remedy) from error
    numbered = {int(name[7:]): cells.pop(name) for name in list(cells) if _OPTION.fullmatch(name)}
    if numbered:
        cells["options"] = [numbered[number] for number in sorted(numbered)]
    return cells


def _json_lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _decoded(line.strip(), 0, number, path)[0]


def _json(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list, each with the line on which it begins."""
    place = _skip(text, 0, " \t\r\n")
    if text[place : place + 1] != "[":
        raise DataError(
            "is no JSON list of questions", where=f"{path}:1", remedy="write [ { ... }, { ... } ]"
        )
    place = _skip(text, place + 1, " \t\r\n")
    while text[place : place + 1] != "]":
        line = text.count("\n", 0, place) + 1
        found, place = _decoded(text, place, line, path)
        yield line, found
        end = _skip(text, place, " \t\r\n")
        place = _skip(text, end, " \t\r\n,")
        if text[end : end + 1] not in (",", "]"):
            raise DataError(
                "the list is cut short",
                where=f"{path}:{text.count(chr(10), 0, end) + 1}",
                remedy="end it with ]",
            )


def _decoded(text: str, place: int, line: int, path: Path) -> tuple[dict[str, Any], int]:
    try:
        found, end = _JSON.raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        at = line + text.count("\n", place, getattr(error, "pos", place))
        raise DataError(f"not JSON ({error})", where=f"{path}:{at}", remedy="mend the file") from error
    if not isinstance(found, dict):
        raise DataError("is no JSON object", where=f"{path}:{line}", remedy="write each question as { ... }")
    return found, end


def _skip(text: str, place: int, characters: str) -> int:
    while place < len(text) and text[place] in characters:
        place += 1
    return place


def _question(found: dict[str, Any], where: str, count: int | None, name: str) -> dict[str, Any]:
    unknown = sorted(set(found) - set(_FIELDS))
    if unknown:
        raise DataError(f"unknown field {unknown[0]!r}", where=where, remedy=f"use {', '.join(_FIELDS)}")
    question = found.get("question")
    if not isinstance(question, str) or not question.strip():
        raise DataError("has no question", where=where, remedy="fill in the field question")
    options = _options(found.get("options"), where, count)
    explanations = found.get("explanations") or []
    if explanations and (not isinstance(explanations, list) or len(explanations) != len(options)):
        raise DataError("needs one explanation per option", where=where, remedy="or leave explanations out")
    return {
        "id": str(found.get("id", name)),
        "doc_id": str(found.get("doc") or ""),
        "question": one_line(question),
        "options": options,
        "answer": _answer(found, options, where),
        "explanations": [one_line(str(text)) for text in explanations],
        "origin": "user",
    }


def _options(found: object, where: str, count: int | None) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(o, str | int | float) for o in found):
        raise DataError("has no list of options", where=where, remedy="write options as a list of texts")
    options = [one_line(str(option)) for option in found]
    if len(options) != count if count else not 2 <= len(options) <= _MOST:
        wanted = count or f"2 to {_MOST}"
        remedy = f"give {wanted}, or set another number of options"
        raise DataError(f"has {counted(len(options), 'option')}, not {wanted}", where=where, remedy=remedy)
    for place, option in enumerate(options):
        if not option:
            raise DataError(f"option {place} is empty", where=where, remedy="fill it in")
        if option in options[:place]:
            remedy = "make them differ"
            raise DataError(
                f"options {options.index(option)} and {place} are equal", where=where, remedy=remedy
            )
    return options


def _answer(found: dict[str, Any], options: list[str], where: str) -> int:
    """The index of the correct option, given as index or as text."""
    by_name = [name for name in ("answer", "answer_index", "answer_text") if found.get(name) is not None]
    if len(by_name) != 1:
        raise DataError("needs one answer", where=where, remedy="give answer, answer_index or answer_text")
    name, value = by_name[0], found[by_name[0]]
    numbers = found["options"] if isinstance(value, int) and name == "answer" else [value]  # 2 is not "2"
    told = name != "answer_index" and value in numbers
    text = _as_text(str(value), options) if told else None
    index = None if name == "answer_text" else _as_index(value, len(options))
    if text is not None and index is not None and text != index:
        raise DataError(
            f"the answer {value!r} is both the text of option {text} and the index of another one",
            where=where,
            remedy="name the field answer_text or answer_index",
        )
    chosen = index if text is None else text
    if chosen is None:
        raise DataError(
            f"the correct answer {value!r} is not among the options",
            where=where,
            remedy=f"give the text of one, or its index from 0 to {len(options) - 1}",
        )
    return chosen


def _as_text(value: str, options: list[str]) -> int | None:
    """The option with this text; letter case and white space count only where they tell options apart."""
    if one_line(value) in options:
        return options.index(one_line(value))
    alike = [place for place, option in enumerate(options) if plain(option) == plain(value)]
    return alike[0] if len(alike) == 1 else None


def _as_index(value: object, count: int) -> int | None:
    if isinstance(value, bool) or not str(value).strip().isdecimal():
        return None
    return int(str(value)) if int(str(value)) < count else None
