"""A result as a report, and as one HTML page with its questions."""

import polars as pl

from beirnl.evaluation import page
from beirnl.evaluation.records import Report
from beirnl.rag import question_views, result_plots, result_tables, result_text
from beirnl.rag.result import Result


def report(name: str, result: Result, mark: str = "") -> Report:
    """The result as a report that every format of the command line renders; ``mark`` as of its plots."""
    return Report(
        name=name,
        tables=result_tables.tables(result),
        plots=result_plots.plots(result, mark),
        notes=result_text.notes(result),
        warnings=result_text.warnings(result),
    )


def render(
    name: str, result: Result, questions: pl.DataFrame, replies: pl.DataFrame, passages: pl.DataFrame
) -> str:
    """The page as HTML: plots, tables, and for any question what was retrieved and answered.

    Args:
        name: of the experiment.
        result: of the replies.
        questions: as :data:`.tables.QUESTIONS`.
        replies: as :data:`.tables.REPLIES`.
        passages: columns id, doc_id and text, see :func:`.question_views.part`.
    """
    part = question_views.part(result, questions, replies, passages)
    return page.render(report(name, result), parts=[part])
