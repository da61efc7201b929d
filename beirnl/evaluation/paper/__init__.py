"""A report cut down to a table of the paper, or set beside what others have published."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from beirnl import registry
from beirnl.errors import PrerequisiteError
from beirnl.evaluation.paper.fact_tables import dataset_table, model_table
from beirnl.evaluation.paper.identity import original, systems
from beirnl.evaluation.paper.layout_tables import chosen, score_table
from beirnl.evaluation.paper.published import Figure, Key, comparison, figures
from beirnl.evaluation.records import Record, Report
from beirnl.evaluation.tables import Table, condition_tables
from beirnl.evaluation.translations import back_translation
from beirnl.registry.layouts import Layout, Source, heading, layout, source

_REMEDIES = {
    "scores": "run the experiment",
    "datasets": "run the experiment",
    "models": "run the experiment",
    "back-translation": "run an experiment with `back = true` in [translation], to the end",
}


def compared(report: Report, sources: Sequence[str]) -> Report:
    """A report that begins with a table of its differences from published figures.

    Args:
        report: of an experiment.
        sources: names, ``paper`` or ``mteb``.

    Raises:
        ConfigError: no such source.
        PrerequisiteError: none of them has published what the report holds.
    """
    found = [source(name) for name in sources]
    published = {one.name: figures(one.files) for one in found}
    table = comparison(report.records, systems(report.records), found, published, report.datasets)
    if not table.rows:
        raise PrerequisiteError(
            f"nothing that is finished was published by {' or '.join(one.title for one in found)}",
            remedy="evaluate their models on their datasets, under the registry's names",
        )
    return replace(report, tables=[table, *report.tables])


def tabled(report: Report, name: str, sources: Sequence[str] = ()) -> Report:
    """A report of one table alone, with the conditions of its values.

    Args:
        report: of an experiment.
        name: of the table, see :func:`beirnl.registry.layouts.layout`.
        sources: whose published figures are set beside ours.

    Raises:
        ConfigError: no such table, or no such source.
        PrerequisiteError: nothing is known yet that it could show.
    """
    form = layout(name)
    found = [source(one) for one in sources]
    if form.form == "scores":
        made = _scores(form, report, found)
    elif form.form == "back-translation":
        made = _back(form, report, found)
    elif form.form == "datasets":
        theirs = registry.published(form.published) if _is_paper(found) else []
        made = [dataset_table(form, report.datasets, theirs)]
    else:
        made = [model_table(form, report.records)]
    shown = [table for table in made if table.rows]
    if not shown:
        raise PrerequisiteError(f"there is nothing for table {name} yet", remedy=_REMEDIES[form.form])
    lines = list(_warnings(form, report))
    return Report(f"{report.name}: table {name}", warnings=lines, notes=report.notes, tables=shown)


def _warnings(form: Layout, report: Report) -> Iterator[str]:
    """The warnings of a report that are about a score or a dataset of a table."""
    if form.form == "models":
        return  # nothing that was run stands there
    shown = {(record.system, record.dataset, record.language) for record in _shown(form, report)}
    named = {row.dataset for row in form.rows}
    if form.form == "back-translation" and report.back_translation:
        named = {original(dataset) for dataset in report.back_translation.datasets}
    for line in report.warnings:
        subjects = report.concerns.get(line)
        if (
            subjects is None
            or (form.form == "scores" and not shown.isdisjoint(subjects))
            or (form.form != "scores" and any(original(dataset) in named for _, dataset, _ in subjects))
        ):
            yield line


def _shown(form: Layout, report: Report) -> list[Record]:
    """The records of a report that a table of scores shows."""
    places = {
        (name, dataset, row.language or form.language)
        for row, name in chosen(form, report.records)
        for dataset in form.datasets
    }
    return [
        record
        for record in report.records
        if (record.system, original(record.dataset), record.language) in places
        and record.measure in form.measures
    ]


def _scores(form: Layout, report: Report, sources: Sequence[Source]) -> list[Table]:
    published, used = _published(form, sources), _shown(form, report)
    made = [score_table(form, report.records, sources, published)]
    if sources:
        made.append(comparison(used, systems(report.records), sources, published, report.datasets))
    return [*made, *condition_tables(used)]


def _published(form: Layout, sources: Sequence[Source]) -> Mapping[str, Mapping[Key, Figure]]:
    """Figures by source; those that were printed in the same table come first."""
    return {one.name: figures(sorted(one.files, key=lambda file: file != form.published)) for one in sources}


def _back(form: Layout, report: Report, sources: Sequence[Source]) -> list[Table]:
    if report.back_translation is None:
        return []
    first, *more = back_translation.tables(report.back_translation)
    first = first._replace(title=f"Table {form.name}. {form.title}: {first.title}")
    return [_headed(table) for table in ([first, *more] if _is_paper(sources) else [first, *more[:1]])]


def _headed(table: Table) -> Table:
    """A table that calls datasets as the paper's tables do."""
    columns = [column._replace(name=heading(column.name)) for column in table.columns]
    datasets = [column.name == "dataset" for column in table.columns]
    rows = [
        [
            cell._replace(text=heading(cell.text)) if named else cell
            for cell, named in zip(row, datasets, strict=True)
        ]
        for row in table.rows
    ]
    return table._replace(columns=columns, rows=rows)


def _is_paper(sources: Sequence[Source]) -> bool:
    return any(one.name == "paper" for one in sources)
