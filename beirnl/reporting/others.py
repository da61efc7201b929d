"""Results that others have published, as rows beside ours: marked, and without tests of significance."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from beirnl import registry
from beirnl.errors import DataError
from beirnl.evaluation.measures import mean_of_parts, parse
from beirnl.evaluation.records import Conditions, Record, Report
from beirnl.evaluation.runs.exchange import Result, read_results
from beirnl.pipeline import Pipeline
from beirnl.reporting.mteb import dataset_of

#: Stands behind the name of a system whose figures are not ours.
MARK = "(published)"


class _Place(NamedTuple):
    """A dataset in a language, as the experiment calls it, and a part of it."""

    dataset: str
    language: str
    part: str = ""


def with_results(report: Report, pipeline: Pipeline, files: Sequence[Path]) -> Report:
    """A report with the figures of files beside its own.

    A result of MTEB names its task. Those of BEIR and ranx name no set: their file is called ``SET.json``, as
    :mod:`beirnl.reporting.exporting` calls it, or the experiment has one set only. What is of no set of the
    experiment is left out with a warning.

    Args:
        report: of the experiment; it says which measures are shown.
        pipeline: the experiment.
        files: JSON files, see :mod:`beirnl.evaluation.runs.exchange`.

    Raises:
        DataError: a file that cannot be read; two files with one figure.
    """
    shown = {(r.dataset, r.language): r for r in report.records}
    measures = list(dict.fromkeys(record.measure for record in report.records))
    groups: dict[tuple[str, str, str], dict[str, Result]] = {}
    warnings = []
    for result in (one for file in files for one in read_results(file)):
        place = _place(result, pipeline)
        if place is None or (place.dataset, place.language) not in shown:
            warnings.append(f"{result.file.name}: {result.task} is no set of the experiment; left out")
            continue
        parts = groups.setdefault((_called(result), place.dataset, place.language), {})
        if place.part in parts:
            raise DataError(
                f"holds {result.system} on {result.task}, as {parts[place.part].file} does",
                where=result.file,
                remedy="give one of the files",
            )
        parts[place.part] = result
    records = [
        record
        for (system, dataset, language), parts in groups.items()
        for record in _records(system, shown[dataset, language], parts, measures, pipeline)
    ]
    return replace(report, records=[*report.records, *records], warnings=[*report.warnings, *warnings])


def _called(result: Result) -> str:
    revision = f"@{result.revision[:8]}" if result.revision else ""
    return f"{result.system}{revision} {MARK}"


def _places(pipeline: Pipeline) -> list[_Place]:
    found = (_Place(e.dataset, e.language, e.part) for e in pipeline.graph.evaluations)
    return list(dict.fromkeys(found))


def _place(result: Result, pipeline: Pipeline) -> _Place | None:
    """Where in the experiment a result belongs: to the set as it came, if it is MTEB's."""
    places = _places(pipeline)
    if result.form != "mteb":
        by_name = {".".join(filter(None, (p.dataset, p.part, p.language))): p for p in places}
        by_name |= {p.dataset: p for p in places if sum(p.dataset == o.dataset for o in places) == 1}
        return by_name.get(result.task) or (places[0] if len(places) == 1 else None)
    named = dataset_of(result.task)
    for place in places:
        entry = registry.dataset(place.dataset)
        name = entry.name if entry else place.dataset
        original = pipeline.graph.source_languages.get(place.dataset) == place.language
        own = ".".join(filter(None, (place.dataset, place.part, place.language)))
        if (original and named == (name, place.part)) or result.task == own:
            return place
    return None


def _records(
    system: str,
    ours: Record,
    parts: dict[str, Result],
    measures: Iterable[str],
    pipeline: Pipeline,
) -> list[Record]:
    """Records of a system on a dataset; of a dataset in parts the mean, if all are there."""
    expected = pipeline.graph.expected_parts.get(ours.dataset) or ("",)
    first = next(iter(parts.values()))
    told = Conditions(
        dataset_hash=", ".join(dict.fromkeys(r.version for r in parts.values() if r.version)) or "unknown",
        model=first.system or None,
        revision=first.revision or None,
        search="published",
        self_matches="unknown",
        averaging=ours.conditions.averaging,
    )
    split = _split(pipeline, ours)
    values = {part: result.values.get(split, result.values.get("", {})) for part, result in parts.items()}
    found = []
    for measure in parse(measures):
        known = {part: table[measure.name] for part, table in values.items() if measure.name in table}
        if known:
            value = mean_of_parts(known, expected)
            found.append(
                Record(
                    dataset=ours.dataset,
                    language=ours.language,
                    system=system,
                    measure=measure.name,
                    value=value,
                    queries=ours.queries,
                    conditions=told,
                )
            )
    return found


def _split(pipeline: Pipeline, ours: Record) -> str:
    """The split that the experiment evaluates of a dataset."""
    for evaluation in pipeline.graph.evaluations:
        if (evaluation.dataset, evaluation.language) == (ours.dataset, ours.language):
            return str(evaluation.qrels.spec.split)  # type: ignore[attr-defined]
    return ""
