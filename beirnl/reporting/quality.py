"""Translations of several experiments against the same references."""

from collections.abc import Sequence

from beirnl.errors import PrerequisiteError
from beirnl.evaluation.tables import Cell, Column, Table
from beirnl.evaluation.translations import quality
from beirnl.evaluation.translations.quality import Change, Comparison, of_rows
from beirnl.graph import Node, Translation
from beirnl.pipeline import Pipeline
from beirnl.stages.translate import passages


def quality_tables(pipelines: Sequence[Pipeline]) -> list[Table]:
    """Scores of every experiment, and the first compared with each of the others.

    Raises:
        PrerequisiteError: an experiment has no finished translation with a reference.
    """
    found = {p.experiment.name: (p, _compared(p)) for p in pipelines}
    scores = {
        f"{name}: {label}": of_rows(_artifact_rows(pipeline, one.quality))
        for name, (pipeline, translations) in found.items()
        for label, one in translations.items()
        if one.quality
    }
    tables = [quality.table(scores)]
    first, *others = found.items()
    rows = [row for other in others for row in _changes(first, other)]
    if rows:
        tables.append(_table(rows))
    return tables


_Found = tuple[str, tuple[Pipeline, dict[str, Translation]]]


def _compared(pipeline: Pipeline) -> dict[str, Translation]:
    """Finished translations with a reference, by dataset and kind."""
    done = pipeline.finished()
    found = {
        "/".join(filter(None, (t.dataset, t.part, t.language, t.kind))): t
        for t in pipeline.graph.translations
        if t.quality and t.quality.key in done
    }
    if not found:
        raise PrerequisiteError(
            "has no finished translation with a reference",
            where=pipeline.experiment.file,
            remedy="add [[parallel]] or a dataset's reference, and run `beirnl translate`",
        )
    return found


def _changes(first: _Found, other: _Found) -> list[list[Cell]]:
    (a_name, (a, a_found)), (b_name, (b, b_found)) = first, other
    rows = []
    for label, one in a_found.items():
        if label in b_found:
            found = _compare(a, one, b, b_found[label])
            names = [Cell(f"{a_name} to {b_name}"), Cell(label)]
            rows.append(
                [
                    *names,
                    *_cells(found.chrf),
                    *_cells(found.bleu),
                    Cell(f"{found.segments:,}", found.segments),
                ]
            )
    return rows


def _compare(a: Pipeline, ours: Translation, b: Pipeline, theirs: Translation) -> Comparison:
    assert ours.quality and theirs.quality
    references = _texts(a, ours.quality.inputs["reference"])
    left, right = _texts(a, ours.final), _texts(b, theirs.final)
    shared = [name for name in left if name in right and references.get(name)]
    return quality.compare(
        [left[name] for name in shared],
        [right[name] for name in shared],
        [references[name] for name in shared],
    )


def _texts(pipeline: Pipeline, node: Node) -> dict[str, str]:
    return passages(node.artifact(pipeline.workspace))


def _artifact_rows(pipeline: Pipeline, node: Node) -> list[dict[str, object]]:
    return list(node.artifact(pipeline.workspace).read(0).to_pylist())


def _cells(change: Change) -> list[Cell]:
    low, high = change.interval
    return [
        Cell(f"{change.difference:+.1f} [{low:+.1f}, {high:+.1f}]", change.difference),
        Cell(f"{change.p:.3f}", change.p),
    ]


def _table(rows: list[list[Cell]]) -> Table:
    names = ("experiments", "translation", "chrF change", "p (chrF)", "BLEU change", "p (BLEU)", "segments")
    caption = "Paired bootstrap over segments: difference with its 95 % interval, and two-sided p."
    return Table("Translation", "Compared", caption, [Column(name) for name in names], rows)
