"""A report as one HTML page that needs nothing else: no network, no fonts, no scripts from elsewhere."""

import base64
import hashlib
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from beirnl.evaluation.plots import plots
from beirnl.evaluation.records import Report
from beirnl.evaluation.tables import Table, tables
from beirnl.store.files import write_atomically

#: Sorts a table by the column whose head is pressed: numbers from high to low first, texts from a to z first.
_SCRIPT = """
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
  const at = Number(head.dataset.column), key = (row) => row.cells[at].dataset.order;
  const numbers = [...body.rows].some((row) => key(row) !== undefined);
  const now = head.getAttribute("aria-sort");
  const descending = now ? now === "ascending" : numbers;
  const missing = descending ? -Infinity : Infinity;
  const value = (row) => Number(key(row) ?? missing);
  const text = (row) => row.cells[at].textContent.trim();
  const rows = [...body.rows].sort((a, b) => (numbers ? (value(a) > value(b)) - (value(a) < value(b))
    : text(a).localeCompare(text(b), undefined, {numeric: true})) * (descending ? -1 : 1));
  for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  body.append(...rows);
});
"""


def render(report: Report) -> str:
    """The page as HTML. Names, ids and texts are escaped; a policy in the page forbids every request.

    Raises:
        DataError: as :func:`beirnl.evaluation.tables.tables`.
    """
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(files(__package__).joinpath("report.jinja").read_text("utf-8"))
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    made = tables(report)
    return template.render(
        report=report,
        sections=list(dict.fromkeys(table.section for table in made)),
        tables=made,
        spans=_spans,
        plots=plots(report),
        script=_SCRIPT,
        script_digest=digest,
    )


def _spans(table: Table) -> list[tuple[str, int]]:
    """Groups of adjacent columns, with the number of columns in each."""
    return [(group, len(list(same))) for group, same in groupby(column.group for column in table.columns)]


def write_page(path: Path, report: Report) -> None:
    """Writes the page whole or not at all."""
    write_atomically(path, render(report).encode("utf-8", "replace"))
