"""Tables of facts: sizes of the datasets of a report, and what the registry knows of models."""

from collections.abc import Sequence

from beirnl import registry
from beirnl.evaluation.identity import model_name, original
from beirnl.evaluation.records import DatasetSize, Record
from beirnl.evaluation.tables import Cell, Column, Table
from beirnl.registry import ModelEntry
from beirnl.registry.layouts import Layout, Row, heading

_NONE = "–"
_TRAINED = ("encoder", "reranker", "late-interaction")


def dataset_table(layout: Layout, sizes: Sequence[DatasetSize]) -> Table:
    """Task, domain, queries, documents and relevant documents per query of every dataset of a report.

    Args:
        layout: of the form ``datasets``; a dataset that it does not name follows below.
        sizes: one per dataset and language.
    """
    rows = {row.dataset: row for row in layout.rows}
    found: dict[str, list[DatasetSize]] = {name: [] for name in rows}
    for size in sizes:
        found.setdefault(original(size.dataset, size.language), []).append(size)
    body = [
        _dataset(rows.get(name, Row(dataset=name)), size)
        for name, several in found.items()
        for size in several
    ]
    heads = ("task", "dataset", "language", "source", "domain", "#queries", "#docs", "avg. D/Q")
    missing = [heading(name) for name, several in found.items() if not several]
    caption = "Counted in what was imported. Avg. D/Q: relevant documents per judged query."
    if missing and body:
        caption += f" Not in this experiment, or not imported yet: {', '.join(missing)}."
    return Table("Datasets", _title(layout), caption, [Column(name) for name in heads], _grouped(body))


def _dataset(row: Row, size: DatasetSize) -> list[Cell]:
    relevant = size.relevant / size.queries if size.queries else None
    return [
        Cell(row.group or _NONE),
        Cell(heading(row.dataset)),
        Cell(size.language),
        Cell(row.citation or _NONE),
        Cell(size.domain),
        Cell(f"{size.queries:,}", size.queries),
        Cell(f"{size.documents:,}", size.documents),
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
    parameters = parameters_of(entry)
    trained = ", ".join(entry.training)
    return [
        Cell(getattr(entry, "base", "") or _NONE),
        Cell(f"{parameters:,.0f}M", parameters) if parameters else Cell(_NONE),
        *(
            Cell(f"{number:,}", number) if number else Cell(_NONE)
            for number in (entry.dimension, entry.max_tokens)
        ),
        Cell("Yes" if trained else "No") if entry.kind in _TRAINED else Cell(_NONE),
        Cell(trained or _NONE),
    ]


def parameters_of(entry: ModelEntry) -> float | None:
    """Millions of parameters of a model, None where the registry has no figure."""
    return getattr(entry, "parameters", None)


def _grouped(rows: Sequence[list[Cell]]) -> list[list[Cell]]:
    """Rows with equal heads next to each other, heads in the order in which they first stand."""
    order = list(dict.fromkeys(row[0].text for row in rows))
    return sorted(rows, key=lambda row: order.index(row[0].text))


def _title(layout: Layout) -> str:
    return f"Table {layout.name}. {layout.title}"
