"""Results of several corpora in one report: which system is best can differ from one to the next
(BES4RAG, section 5, RQ1)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from beirnl.evaluation.page import Part
from beirnl.evaluation.records import Report
from beirnl.evaluation.tables import NOT_BELOW, Cell, Column, Table
from beirnl.rag.marks import Setup
from beirnl.rag.result import Result
from beirnl.rag.result_tables import NOT_SHOWN, estimate


def joined(name: str, reports: Mapping[str, Report], results: Mapping[str, Result], part: Part) -> Report:
    """One report: an overview of all corpora, and then each by itself.

    Args:
        name: of the experiment.
        reports: by corpus.
        results: by corpus, of those that have one.
        part: the questions of all.
    """
    llms = dict.fromkeys(llm for result in results.values() for llm in result.llms)
    whole = Report(name, tables=[overview(results, llm) for llm in llms], parts=[part])
    for corpus, one in reports.items():
        whole = replace(
            whole,
            tables=[*whole.tables, *(t._replace(section=f"{corpus}: {t.section}") for t in one.tables)],
            plots=[*whole.plots, *(p._replace(title=f"{corpus}: {p.title}") for p in one.plots)],
            notes=[*whole.notes, *_of(corpus, one.notes)],
            warnings=[*whole.warnings, *_of(corpus, one.warnings)],
        )
    return whole


def _of(corpus: str, lines: Sequence[str]) -> list[str]:
    return [f"{corpus}: {line}" for line in lines]


def overview(results: Mapping[str, Result], llm: str) -> Table:
    """Accuracies of all systems at the declared k, a column for each corpus.

    Args:
        results: by corpus.
        llm: which answered.
    """
    systems = dict.fromkeys(system for result in results.values() for system in result.systems)
    rows = [[Cell(s), *(_accuracy(result, llm, s) for result in results.values())] for s in systems]
    ks = {result.k for result in results.values()}
    title = f"Accuracy by corpus at k = {', '.join(map(str, sorted(ks)))}, answered by {llm}"
    caption = "Each corpus has questions of its own, so that columns are not to be compared with each other."
    columns = [Column("system"), *(Column(corpus) for corpus in results)]
    marked = any(NOT_BELOW in cell.notes for row in rows for cell in row)
    return Table("All corpora", title, caption, columns, rows, [(NOT_BELOW, NOT_SHOWN)] if marked else [])


def _accuracy(result: Result, llm: str, system: str) -> Cell:
    setup, choice = Setup(llm, system, result.k), result.choices.get(llm)
    cell = estimate(result.found.get(setup))
    if choice is None:
        return cell
    return cell._replace(best=choice.best == setup, notes=NOT_BELOW if setup in choice.equals else "")
