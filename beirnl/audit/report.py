"""What the labels of a sheet say, as tables for a terminal, Markdown or JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from beirnl.audit.agreement import Agreement, Votes, agreement, majority
from beirnl.audit.labels import Label, Labels
from beirnl.audit.rates import (
    PAPER_ITEMS,
    PAPER_NOTE,
    RESAMPLES,
    Rates,
    Stratum,
    paper_rates,
    pooled,
    rates,
    together,
)
from beirnl.audit.sheet import Head, Sheet, read_sheet
from beirnl.errors import DataError
from beirnl.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from beirnl.evaluation.tables import Cell, Table

_SHOWN: tuple[Label, ...] = ("major", "minor", "correct")


class Row(msgspec.Struct, frozen=True):
    """Rates of one dataset, or of all together; no rates where nothing is labelled."""

    name: str
    size: int
    sampled: int
    labelled: int
    rates: Rates


class AuditReport(msgspec.Struct, frozen=True):
    """Everything that a report shows.

    Attributes:
        sample: how the sheet was drawn.
        annotators: how many items of the sheet each has labelled.
        items: number of items on the sheet.
        labelled: number of items with at least one label; only these count.
        datasets: rates per dataset, with Wilson intervals.
        all_items: plain rates of all labelled items, with Wilson intervals.
        dataset_equal: mean of the datasets' rates, with stratified bootstrap intervals.
        size_weighted: the same, weighted by the datasets' sizes.
        seed, resamples: of the bootstrap.
        agreement: None with fewer than two annotators.
        paper: the rates that BEIR-NL prints, with Wilson intervals.
        notes: what has to be known to read the rates.
    """

    sample: Head
    annotators: Mapping[str, int]
    items: int
    labelled: int
    datasets: Sequence[Row]
    all_items: Row
    dataset_equal: Rates
    size_weighted: Rates
    seed: int
    resamples: int
    agreement: Agreement | None
    paper: Rates
    notes: Sequence[str]


def gather(path: Path, *, seed: int = 0) -> AuditReport:
    """Read a sheet and its labels.

    Args:
        path: the sheet.
        seed: of the bootstrap.

    Raises:
        DataError: no item is labelled, or sheet or labels are damaged.
        OSError: the sheet cannot be read.
    """
    sheet, labels = read_sheet(path), Labels(path)
    everything = {name: labels.read(name) for name in labels.annotators()}
    keys = {item.key for item in sheet.items}
    votes = {
        name: {key: one.label for key, one in given.items() if one.label and key in keys}
        for name, given in everything.items()
    }
    votes = {name: given for name, given in votes.items() if given}
    foreign = sum(key not in keys for given in everything.values() for key in given)
    strata = _strata(sheet, votes)
    labelled = [one for one in strata if one.labelled]
    if not labelled:
        raise DataError("has no labels yet", where=path, remedy=f"label it with `beirnl audit serve {path}`")
    overall = together(strata, "all items")
    return AuditReport(
        sample=sheet.head,
        annotators={name: len(given) for name, given in votes.items()},
        items=len(sheet.items),
        labelled=overall.labelled,
        datasets=[_row(one) for one in strata],
        all_items=_row(overall),
        dataset_equal=pooled(labelled, [1.0] * len(labelled), seed=seed),
        size_weighted=pooled(labelled, [one.size for one in labelled], seed=seed),
        seed=seed,
        resamples=RESAMPLES,
        agreement=agreement(votes),
        paper=paper_rates(),
        notes=_notes(strata, len(votes), foreign),
    )


def _strata(sheet: Sheet, votes: Votes) -> list[Stratum]:
    """The items of each dataset, with one label each."""
    counts: dict[str, dict[Label, int]] = {}
    sampled: dict[str, list[int]] = {}
    for item in sheet.items:
        of_dataset = counts.setdefault(item.stratum, {})
        sampled.setdefault(item.stratum, []).append(item.size)
        given = [labels[item.key] for labels in votes.values() if item.key in labels]
        if given:
            label = majority(given)
            of_dataset[label] = of_dataset.get(label, 0) + 1
    return [Stratum(name, sizes[0], len(sizes), counts[name]) for name, sizes in sampled.items()]


def _row(stratum: Stratum) -> Row:
    found = rates(stratum) if stratum.labelled else {}
    return Row(stratum.name, stratum.size, stratum.sampled, stratum.labelled, found)


def _notes(strata: Sequence[Stratum], annotators: int, foreign: int) -> list[str]:
    lines = []
    items, labelled = sum(one.sampled for one in strata), sum(one.labelled for one in strata)
    if labelled < items:
        said = counted(items - labelled, "item has no label and is", "items have no label and are", of=items)
        lines.append(f"{said} left out of all rates.")
    without = [one.name for one in strata if not one.labelled]
    if without:
        lines.append(f"Pooled rates are without {', '.join(without)}: no item of it is labelled.")
    if foreign:
        lines.append(
            f"{counted(foreign, 'label is', 'labels are')} of items or translations that this sheet does not "
            "hold; not counted."
        )
    if annotators > 1:
        lines.append("An item's label is the one that most annotators gave; of a tie, the worse one.")
    if any(len(one.counts) == 1 for one in strata):
        lines.append(
            "Where all labels of a dataset are equal, resampling it gives no width: the bootstrap intervals "
            "are too narrow then, and the datasets' Wilson intervals say more."
        )
    return [*lines, PAPER_NOTE]


# Output -----------------------------------------------------------------------------------------------------


def to_json(report: AuditReport) -> str:
    """The report as JSON; rates are fractions of 1."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def to_markdown(report: AuditReport) -> str:
    """The report in (GitHub's) Markdown."""
    from beirnl.evaluation.tables import text

    notes = "\n".join(f"- {note}" for note in report.notes)
    return "\n\n".join([*(text.markdown_table(one) for one in tables(report)), notes]) + "\n"


def show(report: AuditReport, console: "Console") -> None:
    """Print the report on a terminal."""
    from rich.text import Text

    from beirnl.evaluation.tables import text

    for table in tables(report):
        text.show_table(table, console)
    for note in report.notes:
        console.print(Text.assemble(("Note: ", "cyan"), note))


def tables(report: AuditReport) -> "list[Table]":
    """Rates per dataset, pooled rates beside the paper's, and agreement."""
    return [_dataset_table(report), _pooled_table(report), *_agreement_tables(report)]


def _dataset_table(report: AuditReport) -> "Table":
    from beirnl.evaluation.tables import Cell, Column, Table

    rows = [
        [
            Cell(row.name),
            Cell(f"{row.size:,}", row.size),
            Cell(f"{row.labelled} of {row.sampled}", row.labelled),
            *_cells(row.rates),
        ]
        for row in report.datasets
    ]
    heads = [Column(name) for name in ("dataset", "translated items", "labelled", *_SHOWN)]
    caption = "Number of labelled items, their share, and its 95% Wilson interval."
    return Table("Audit", "Labels by dataset", caption, heads, rows)


def _pooled_table(report: AuditReport) -> "Table":
    from beirnl.evaluation.tables import Cell, Column, Table

    plain = report.all_items
    drawn = f"bootstrap within datasets, {report.resamples:,} resamples, seed {report.seed}"
    rows = [
        [Cell("datasets count equally"), *_cells(report.dataset_equal), Cell(drawn)],
        [Cell("datasets count by their size"), *_cells(report.size_weighted), Cell(drawn)],
        [Cell(f"all {plain.labelled} labelled items"), *_cells(plain.rates), Cell("Wilson")],
        [Cell(f"BEIR-NL, section 3.1: {PAPER_ITEMS} items"), *_cells(report.paper), Cell("Wilson")],
    ]
    heads = [Column(name) for name in ("over", *_SHOWN, "95% interval")]
    caption = "Size: translated items of a dataset that the sample was drawn from."
    return Table("Audit", "Pooled rates, and the paper's", caption, heads, rows)


def _cells(found: Rates) -> "list[Cell]":
    from beirnl.evaluation.tables import Cell

    cells = []
    for label in _SHOWN:
        rate = found.get(label)
        if rate is None:
            cells.append(Cell("–"))
            continue
        count = "" if rate.count is None else f"{rate.count}: "
        shown = f"{count}{rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}]"
        cells.append(Cell(shown, rate.value))
    return cells


def _agreement_tables(report: AuditReport) -> "list[Table]":
    from beirnl.evaluation.tables import Cell, Column, Table

    rows = [[Cell(f"labelled by {name}"), Cell(str(n), n)] for name, n in report.annotators.items()]
    found = report.agreement
    if found:
        rows.append([Cell("labelled by two or more"), Cell(str(found.items), found.items)])
        rows += [[Cell(name), Cell(value)] for name, value in _coefficients(found).items()]
    return [Table("Audit", "Annotators", "", [Column("what"), Column("value")], rows)]


def _coefficients(found: Agreement) -> dict[str, str]:
    def shown(value: float | None) -> str:
        if not found.items:
            return "no item in common"
        return "undefined: only one label was given" if value is None else f"{value:.3f}"

    equal = {"equal labels among pairs": "–" if found.equal is None else f"{found.equal:.1%}"}
    if found.annotators == 2:
        return {**equal, "Cohen's kappa (unweighted)": shown(found.kappa)}
    return {
        **equal,
        "Krippendorff's alpha (ordinal: correct < minor < major)": shown(found.alpha_ordinal),
        "Krippendorff's alpha (nominal)": shown(found.alpha_nominal),
    }
