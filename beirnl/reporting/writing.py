"""The report of an experiment as files in its workspace."""

from beirnl.evaluation import formats, page
from beirnl.evaluation.records import Report
from beirnl.evaluation.tables import text
from beirnl.pipeline import Pipeline
from beirnl.reporting import per_query
from beirnl.store.files import disk_errors
from beirnl.store.places import Place


def write(pipeline: Pipeline, found: Report) -> Place:
    """Leave Markdown, JSON and HTML in the workspace; the place of the page."""
    folder = pipeline.workspace.report_folder(pipeline.experiment.name)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(text.to_markdown(found), encoding="utf-8")
        (folder / "report.json").write_text(formats.to_json(found), encoding="utf-8")
        page.write_page(folder / "report.html", found, per_query.views(pipeline, found.scores))
    return folder / "report.html"
