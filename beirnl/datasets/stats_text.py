"""Statistics of a dataset as text, Markdown or JSON, beside what others say of it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

from beirnl import registry
from beirnl.datasets.stats import Statistics

_ROUNDED = 0.005  # the paper gives numbers of documents in three digits
_COMPARED = {"queries": 0.0, "documents": _ROUNDED, "relevant_per_query": 0.0}
_TABLE = "beir-nl-table1"
_NO_PARTS = "-"


class Table(NamedTuple):
    """Headings and rows."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Said(NamedTuple):
    """What somebody says of a dataset, and whether that was found (to the digits that are given)."""

    by: str
    what: str
    value: float
    found: float
    agrees: bool


def said_of(entry: "registry.DatasetEntry | None", found: Statistics) -> list[Said]:
    """What the registry and the paper's Table 1 say of a dataset, beside what was found; may be empty."""
    if entry is None:
        return []
    lines = [("registry", row) for row in _counts(entry)] + [("Table 1", row) for row in _of_table(entry)]
    return [
        Said(by, what, value, getattr(found, what), _agree(what, value, getattr(found, what)))
        for by, row in lines
        for what, value in row.items()
    ]


def _counts(entry: "registry.DatasetEntry") -> Iterator[dict[str, float]]:
    counts = getattr(entry, "counts", None)
    if counts is not None:
        yield {name: getattr(counts, name) for name in ("queries", "documents", "relevant")}


def _of_table(entry: "registry.DatasetEntry") -> Iterator[dict[str, float]]:
    names = {entry.name, getattr(entry, "source", "") or entry.name}
    try:
        rows = registry.published(_TABLE)
    except FileNotFoundError:
        return
    for row in rows:
        if row["dataset"] in names and row.get("language", entry.language) == entry.language:
            yield {what: float(row[what]) for what in _COMPARED if row.get(what)}


def _agree(what: str, value: float, found: float) -> bool:
    if what == "relevant_per_query":
        return round(found, 1) == value
    return abs(found - value) <= _COMPARED.get(what, 0.0) * value


def to_json(name: str, parts: Sequence[Statistics], said: Sequence[Said]) -> str:
    """Everything as one JSON object; ends in a line feed."""
    rows = [{**asdict(part), "relevant_per_query": part.relevant_per_query} for part in parts]
    for row in rows:
        row["longest"] = dict(zip(("characters", "id"), row["longest"], strict=True))
        row["defects"] = [defect._asdict() for defect in row["defects"]]
    value = {"dataset": name, "statistics": rows, "said": [one._asdict() for one in said]}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def tables(name: str, parts: Sequence[Statistics], said: Sequence[Said]) -> Iterator[Table]:
    """Headings and rows: the numbers, the defects that there are, and what others say.

    Args:
        name: of the dataset.
        parts: its parts, after them the whole.
        said: see :func:`said_of`.
    """
    yield Table(_NUMBERS, [_numbers(name, part) for part in parts])
    whole = parts[-1]
    defects = [d for d in whole.defects if d.rows]
    rows = [(d.name, f"{d.rows:,}", ", ".join(d.examples)) for d in defects] or [("none", "0", "")]
    yield Table(("defect", "rows", "first"), rows)
    if said:
        yield Table(("said by", "what", "value", "here", ""), [_saying(one) for one in said])


_NUMBERS = ("dataset", "part", "queries", "documents", "relevant/query", "words/query", "words/document",
            "longest (characters)")  # fmt: skip


def _numbers(name: str, one: Statistics) -> Sequence[str]:
    longest = f"{one.longest[0]:,} ({one.longest[1]})"
    means = (one.relevant_per_query, one.query_words, one.document_words)
    counts = (f"{one.queries:,}", f"{one.documents:,}")
    return (name, one.part or _NO_PARTS, *counts, *(f"{mean:.2f}" for mean in means), longest)


def _saying(one: Said) -> Sequence[str]:
    found = f"{one.found:,.2f}" if one.what == "relevant_per_query" else f"{one.found:,.0f}"
    return one.by, one.what.replace("_", " "), f"{one.value:,g}", found, "" if one.agrees else "differs"


def to_markdown(name: str, parts: Sequence[Statistics], said: Sequence[Said]) -> str:
    """The tables of :func:`tables` in Markdown; ends in a line feed."""
    lines = []
    for headings, rows in tables(name, parts, said):
        lines += [_line(headings), _line(["---"] * len(headings)), *map(_line, rows), ""]
    return "\n".join(lines[:-1]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
