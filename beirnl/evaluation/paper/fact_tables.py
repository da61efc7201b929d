"""Tables of facts: sizes of the datasets of a report, and what the registry knows of models."""

from collections.abc import Mapping, Sequence

from beirnl import registry
from beirnl.evaluation.paper.identity import model_name, original
from beirnl.evaluation.records import DatasetSize, Record
from beirnl.evaluation.tables import Cell, Column, Table
from beirnl.registry import ModelEntry
from beirnl.registry.layouts import Layout, Row, heading

_NONE = "–"


def dataset_table(
    layout: Layout, sizes: Sequence[DatasetSize], published: Sequence[Mapping[str, str]] = ()
) -> Table:
    """Task, domain, queries, documents and relevant documents per query of every dataset of a report.

    Args:
        layout: of the form ``datasets``; a dataset that it does not name follows below.
        sizes: one per dataset and language.
        published: rows with dataset, domain, queries, documents and relevant_per_query, to stand beside ours.
    """
    theirs = {original(row["dataset"]): row for row in published}
    rows = {row.dataset: row for row in layout.rows}
    found: dict[str, list[DatasetSize]] = {name: [] for name in rows}
    for size in sizes:
        found.setdefault(original(size.dataset), []).append(size)
    body = []
    for name, several in found.items():
        row = rows.get(name, Row(dataset=name))
        for one in several:
            relevant = one.relevant / one.queries if one.queries else None
            body.append(_dataset(row, one.language, one.domain, one.queries, one.documents, relevant))
        if said := theirs.get(name):
            numbers = int(said["queries"]), int(said["documents"]), float(said["relevant_per_query"])
            body.append(_dataset(row, "as published", said["domain"], *numbers))
    heads = ("task", "dataset", "language", "source", "domain", "#queries", "#docs", "avg. D/Q")
    missing = [heading(name) for name, several in found.items() if not several]
    caption = "Counted in what was imported. Avg. D/Q: relevant documents per judged query."
    if missing and body:
        caption += f" Not in this experiment, or not imported yet: {', '.join(missing)}."
    return Table("Datasets", _title(layout), caption, [Column(name) for name in heads], _grouped(body))


def _dataset(
    row: Row, language: str, domain: str, queries: int, documents: int, relevant: float | None
) -> list[Cell]:
    return [
        Cell(row.group or _NONE),
        Cell(heading(row.dataset)),
        Cell(language),
        Cell(row.citation or _NONE),
        Cell(domain),
        Cell(f"{queries:,}", queries),
        Cell(f"{documents:,}", documents),
        Cell(_NONE) if relevant is None else Cell(f"{relevant:.1f}", relevant),
    ]


def model_table(layout: Layout, records: Sequence[Record]) -> Table:
    """What the registry knows of the models of a layout, and of those that a report used besides.

    Args:
        layout: of the form ``models``.
        records: of a report.
    """
    used = [model_name(record.conditions.model) for record in records if record.conditions.model]
    named = {row.system: row.group for row in layout.rows}
    others = {name: "other" for name in dict.fromkeys(used) if name not in named}
    body = []
    for name, group in (named | others).items():
        entry = registry.find_model(name)
        body.append([Cell(group), Cell(name), *(_model(entry) if entry else [Cell(_NONE)] * 6)])
    heads = ("kind", "model", "based on", "#parameters", "dim", "max input", "IR finetuned", "trained on")
    caption = f"As the registry has them; {_NONE}: not known, or it does not apply."
    return Table("Models", _title(layout), caption, [Column(name) for name in heads], _grouped(body))


def _model(entry: ModelEntry) -> list[Cell]:
    whole, used = entry.parameters, entry.active_parameters
    said = f"{whole:,.0f}M" + (f" ({used:,.0f}M used)" if used else "") if whole else _NONE
    return [
        Cell(entry.base or _NONE),
        Cell(said, round(whole * 1e6) if whole else None),
        *(
            Cell(f"{number:,}", number) if number else Cell(_NONE)
            for number in (entry.dimension, entry.max_tokens)
        ),
        Cell({True: "Yes", False: "No", None: _NONE}[entry.for_retrieval]),
        Cell(", ".join(entry.training) or _NONE),
    ]


def _grouped(rows: Sequence[list[Cell]]) -> list[list[Cell]]:
    """Rows with equal heads next to each other, heads in the order in which they first stand."""
    order = list(dict.fromkeys(row[0].text for row in rows))
    return sorted(rows, key=lambda row: order.index(row[0].text))


def _title(layout: Layout) -> str:
    return f"Table {layout.name}. {layout.title}"
