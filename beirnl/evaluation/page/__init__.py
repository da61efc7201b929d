"""A report as one HTML page that needs nothing else: no network, no fonts, no scripts from elsewhere."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from beirnl.evaluation.page import query_views
from beirnl.evaluation.page.plots import plots
from beirnl.evaluation.page.query_views import View
from beirnl.evaluation.records import Report
from beirnl.evaluation.tables import Table, tables
from beirnl.store.files import write_atomically
from beirnl.store.places import Place


class Part(NamedTuple):
    """A further section of a page.

    Attributes:
        id: of the element, which nothing else in the page has.
        title: its heading.
        html: its content, trusted.
        script: runs after the page's own, whose functions it may call.
    """

    id: str
    title: str
    html: str
    script: str = ""


def render(report: Report, views: Sequence[View] = (), parts: Sequence[Part] = ()) -> str:
    """The page as HTML. Names, ids and texts are escaped; a policy in the page forbids every request.

    Args:
        report: of an experiment.
        views: datasets to be looked at query by query, as far as they fit into the page.
        parts: further sections, after the plots.

    Raises:
        DataError: as :func:`beirnl.evaluation.tables.tables`.
    """
    import jinja2

    parts = [*report.parts, *parts]
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(files(__package__).joinpath("report.jinja").read_text("utf-8"))
    script = files(__package__).joinpath("page.js").read_text("utf-8")
    script += "".join(part.script for part in parts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = query_views.embedded(views)
    made = tables(report)
    return template.render(
        report=report,
        sections=list(dict.fromkeys(table.section for table in made)),
        tables=made,
        spans=_spans,
        plots=plots(report),
        parts=parts,
        per_query=data if data != "[]" else "",
        script=script,
        script_digest=digest,
    )


def _spans(table: Table) -> list[tuple[str, int]]:
    """Groups of adjacent columns, with the number of columns in each."""
    return [(group, len(list(same))) for group, same in groupby(column.group for column in table.columns)]


def write_page(path: Place, report: Report, views: Sequence[View] = ()) -> None:
    """Writes the page whole or not at all."""
    write_atomically(path, render(report, views).encode("utf-8", "replace"))
