"""What a question answering experiment has found so far, gathered from its artifacts."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from beirnl.evaluation.page.query_views import LIMIT
from beirnl.evaluation.records import Report
from beirnl.evaluation.uncertainty import Resampling
from beirnl.graph import Answering, Node
from beirnl.pipeline import Pipeline
from beirnl.rag import corpora, question_views, result_page
from beirnl.rag.marks import answerable, marks
from beirnl.rag.result import Result
from beirnl.rag.result import result as evaluated
from beirnl.stages.questions import contexts_of, prompts_of, questions_of, references_of
from beirnl.store.artifacts import Artifact
from beirnl.wording import counted


def answered(pipeline: Pipeline, finished: Collection[str], settings: Resampling) -> Report:
    """The report of the models that have answered; empty where none has.

    Args:
        pipeline: of an experiment with ``[rag]``.
        finished: keys of what is done.
        settings: of resampling.
    """
    experiment = pipeline.experiment
    answerings = pipeline.graph.corpora
    several, limit = len(answerings) > 1, LIMIT // len(answerings)
    gathered = {name: _Gathered(pipeline, one, finished, settings) for name, one in answerings.items()}
    results, reports, views = dict[str, Result](), dict[str, Report](), []
    for number, (corpus, one) in enumerate(gathered.items()):
        if one.has_answers:
            found = one.found(f"c{number}-" if several else "")
            results[corpus], reports[corpus] = found.result, found.report
            views += one.views(found, limit, corpus if several else "")
    if not results:
        return Report(experiment.name, warnings=_left_out(pipeline))
    part = question_views.section(views)
    if several:
        return corpora.joined(experiment.name, reports, results, part)
    return replace(next(iter(reports.values())), parts=[part])


def _left_out(pipeline: Pipeline) -> list[str]:
    return [f"{system} is left out: {why}" for system, why in pipeline.graph.failed.items()]


class _Found(NamedTuple):
    """What was found on a corpus: the report, and what it is of."""

    report: Report
    result: Result
    questions: pl.DataFrame
    replies: pl.DataFrame


class _Gathered:
    """Artifacts of a corpus that are done, as tables."""

    def __init__(
        self, pipeline: Pipeline, answering: Answering, finished: Collection[str], settings: Resampling
    ) -> None:
        self._pipeline, self._answering, self._settings = pipeline, answering, settings
        self._llms = [llm for llm, node in answering.answers.items() if node.key in finished]

    @property
    def has_answers(self) -> bool:
        """Whether a model has answered."""
        return bool(self._llms)

    def found(self, mark: str) -> _Found:
        """Tables, plots, notes and warnings; ``mark`` as of the plots."""
        questions, replies = self._questions(), self._replies()
        easy = self._answerable(questions, replies)
        kept = questions.filter(~pl.col("id").is_in(easy))
        asked = replies.filter(~pl.col("question_id").is_in(easy))
        result = self._result(kept, asked)
        made = result_page.report(self._pipeline.experiment.name, result, mark)
        notes = [*made.notes, *self._conditions(), *self._savings(), *self._refusals()]
        if easy:
            notes += _removed(self._result(questions, replies), len(easy))
        return _Found(replace(made, notes=notes), result, kept, asked)

    def views(self, found: _Found, limit: int, corpus: str) -> list[dict[str, Any]]:
        """The questions one by one, in so many characters of JSON."""
        shown = _by_system(found.replies)
        return question_views.views(found.result, found.questions, shown, self._contexts(), limit, corpus)

    def _artifact(self, node: Node) -> Artifact:
        return node.artifact(self._pipeline.workspace)

    def _questions(self) -> pl.DataFrame:
        return _frame(questions_of(self._artifact(self._answering.questions)))

    def _replies(self) -> pl.DataFrame:
        nodes = self._answering.answers
        return _frame(pa.concat_tables([self._artifact(nodes[llm]).table() for llm in self._llms]))

    def _answerable(self, questions: pl.DataFrame, replies: pl.DataFrame) -> list[str]:
        """Questions that are removed, since most models answer them without a passage."""
        rag = self._pipeline.experiment.rag
        if rag is None or rag.questions.answerable == "keep":
            return []
        values = marks(questions, replies)
        found = list(compress(values.questions, answerable(values)))
        return found if len(found) < len(questions) else []  # nothing could be compared without them

    def _result(self, questions: pl.DataFrame, replies: pl.DataFrame) -> Result:
        rag = self._pipeline.experiment.rag
        assert rag is not None
        return evaluated(
            questions,
            replies,
            rag.k,
            ranked=self._ranked(questions),
            costs=self._costs(),
            failed=self._pipeline.graph.failed,
            settings=self._settings,
        )

    def _ranked(self, questions: pl.DataFrame) -> pl.DataFrame:
        """Documents of the passages that systems found, by question."""
        frames = []
        for one in self._answering.searched:
            run = _frame(self._artifact(one.run).table())
            rank = pl.int_range(1, pl.len() + 1).over("query_id")
            document = pl.col("doc_id").str.replace(r"#\d+$", "")  # ids of passages are DOC#N
            frames.append(
                run.select(
                    pl.col("query_id").alias("question_id"),
                    pl.lit(one.system.name).alias("system"),
                    rank.alias("rank"),
                    document.alias("doc_id"),
                )
            )
        return pl.concat(frames).filter(pl.col("question_id").is_in(questions["id"].to_list()))

    def _costs(self) -> pl.DataFrame:
        rows = []
        for one in self._answering.searched:
            artifact = self._artifact(one.searched)
            receipts = [*artifact.receipts(), *filter(None, [artifact.manifest.reduced])]
            seconds = sum(receipt.seconds for receipt in receipts)
            passages = self._artifact(one.passages).rows
            rows.append((one.system.name, passages, _dimension(artifact), seconds))
        schema = {"system": pl.String, "passages": pl.Int64, "dimension": pl.Int64, "seconds": pl.Float64}
        return pl.DataFrame(rows, schema, orient="row")

    def _contexts(self) -> pl.DataFrame:
        """The passages of all replies, by identifier and system."""
        plans = (self._artifact(self._answering.plans[llm]) for llm in self._llms)
        frame = pl.concat([_passages(plan) for plan in plans])
        return frame.unique(["system", "id"], maintain_order=True).select(
            pl.format("{} ({})", "id", "system").alias("id"),
            pl.col("id").str.replace(r"#\d+$", "").alias("doc_id"),
            "text",
        )

    def _conditions(self) -> Iterator[str]:
        """What k and an answer are, where they are not what they usually are."""
        rag = self._pipeline.experiment.rag
        assert rag is not None
        if rag.passages.budget:
            yield (
                f"k stands for k x {counted(rag.passages.budget, 'token')} of the answering "
                "LLM, in whole passages."
            )
        for one in rag.answers:
            if one.open:
                yield (
                    f"{one.called} answered without seeing the options, and then linked its answer to one; "
                    "what says none of them is invalid."
                )

    def _savings(self) -> Iterator[str]:
        for llm in self._llms:
            receipts = self._artifact(self._answering.plans[llm]).receipts()
            naive, distinct = (
                sum(receipt.counts.get(f"requests, {name}", 0) for receipt in receipts)
                for name in ("naive", "distinct")
            )
            if naive:
                yield (
                    f"{llm} was asked {counted(distinct, 'distinct prompt', 'distinct prompts')} in place "
                    f"of {naive:,} "
                    f"({1 - distinct / naive:.0%} saved)."
                )

    def _refusals(self) -> Iterator[str]:
        node = self._answering.generated
        if node is None:
            return
        counts: dict[str, int] = {}
        for receipt in self._artifact(node).receipts():
            for name, number in receipt.counts.items():
                if name.startswith("refused: "):
                    counts[name.removeprefix("refused: ")] = number
        made = self._artifact(node).parts[0].rows
        why = ", ".join(f"{name} {number:,}" for name, number in counts.items())
        yield f"{counted(made, 'question was', 'questions were')} made; " + (
            f"refused attempts: {why}." if why else "none was refused."
        )


def _removed(whole: Result, number: int) -> Iterator[str]:
    """What the comparison would be with the questions that were removed."""
    yield (
        f"Removed: {counted(number, 'question')} that most models answer rightly without any passage, some "
        "by chance. With them:"
    )
    for setup, one in whole.found.items():
        if setup.k in (0, whole.k):
            who = f"{setup.system or 'no passages'}, k = {setup.k}, {setup.llm}"
            yield f"{who}: accuracy {one.value:.3f} [{one.low:.3f}, {one.high:.3f}] of {one.questions:,}."


def _passages(plan: Artifact) -> pl.DataFrame:
    """System, id and text of the passages that a plan refers to.

    A context that several systems have is asked, and kept, as that of one of them: the others' passages are
    those that stand in the same places of it.
    """
    asked, texts, references = (
        _frame(table)
        for table in (
            pa.concat_tables(prompts_of(plan)),
            pa.concat_tables(contexts_of(plan)),
            references_of(plan),
        )
    )
    kept = asked.select("prompt", pl.col("system").alias("of"), pl.col("context").alias("as"))
    told = references.filter(pl.col("context").list.len() > 0).select("prompt", "system", "context")
    places = told.join(kept, on="prompt", maintain_order="left").explode("context", "as")
    unlike = places.select("system", pl.col("context").alias("id"), "of", "as").unique(maintain_order=True)
    found = unlike.join(texts, left_on=["of", "as"], right_on=["system", "id"], maintain_order="left")
    return found.select("system", "id", "text")


def _by_system(replies: pl.DataFrame) -> pl.DataFrame:
    """Replies whose passages are named with their system: each may have passages of its own."""
    frames = [
        some.with_columns(pl.col("context").list.eval(pl.concat_str(pl.element(), pl.lit(f" ({system})"))))
        for (system,), some in replies.group_by("system", maintain_order=True)
    ]
    return pl.concat(frames) if frames else replies


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _dimension(vectors: Artifact) -> int | None:
    """How many numbers a vector has; None for an index, and for vectors of tokens."""
    first = vectors.path(vectors.parts[0]) if vectors.parts else None
    if first is None or first.suffix != ".parquet":
        return None
    schema = pq.read_schema(first)
    return schema.field("vector").type.list_size if "vector" in schema.names else None
