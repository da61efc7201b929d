"""How right answers are: a value per question and setup, and its accuracy with an interval.

A setup is an answering LLM, a retrieval system and k. The value of a question is the share of its rotations
of the options that were answered rightly; invalid answers are wrong. Questions on one document are not
independent, so that what is resampled is documents; a question without a document stands for itself.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from beirnl.errors import DataError
from beirnl.evaluation.uncertainty import Resampling, resampling

_KEY = ("llm", "system", "k")


class Setup(NamedTuple):
    """An answering LLM, a retrieval system (empty for k = 0, which all share), and how many passages."""

    llm: str
    system: str
    k: int


class Estimate(NamedTuple):
    """An accuracy.

    Attributes:
        value: mean over questions, as a fraction.
        low, high: 95 % interval of it.
        questions: answered ones, which it is over.
        of: number of all questions.
    """

    value: float
    low: float
    high: float
    questions: int
    of: int

    @property
    def complete(self) -> bool:
        """Whether every question was answered."""
        return self.questions == self.of


class Marks(NamedTuple):
    """Values of questions under setups.

    Attributes:
        questions: ids.
        documents: number of the document of each question, from 0, shape (questions,).
        setups: in order of first appearance, k ascending.
        values: shape (questions, setups), from 0 to 1; NaN where an answer is missing.
    """

    questions: Sequence[str]
    documents: np.ndarray
    setups: Sequence[Setup]
    values: np.ndarray

    @property
    def plain(self) -> bool:
        """Whether all values are 0 or 1 and no document has two questions: what binomial methods assume."""
        known = self.values[~np.isnan(self.values)]
        return len(np.unique(self.documents)) == len(self.documents) and bool(np.isin(known, (0, 1)).all())

    @property
    def complete(self) -> list[Setup]:
        """Setups with a value for every question."""
        whole = ~np.isnan(self.values).any(axis=0)
        return [setup for setup, known in zip(self.setups, whole, strict=True) if known]

    def of(self, setups: Sequence[Setup]) -> np.ndarray:
        """Values of some setups, shape (questions, len(setups))."""
        return self.values[:, [list(self.setups).index(setup) for setup in setups]]

    def only(self, kept: np.ndarray) -> "Marks":
        """The same for the questions of which ``kept``, shape (questions,), is true."""
        questions = [name for name, keep in zip(self.questions, kept, strict=True) if keep]
        numbers = np.unique(self.documents[kept], return_inverse=True)[1]
        return Marks(questions, numbers, self.setups, self.values[kept])


def marked(questions: pl.DataFrame, replies: pl.DataFrame) -> pl.DataFrame:
    """Replies with what is known of their question, checked.

    Args:
        questions: as :data:`.tables.QUESTIONS`.
        replies: as :data:`.tables.REPLIES`.

    Returns:
        Replies with the columns ``correct`` (index of the correct option), ``options`` (number of them),
        ``right`` and ``valid``.

    Raises:
        DataError: two questions with one id; a reply to an unknown question, of an option that it has not,
            with a system at k = 0 or without one elsewhere; or two replies to the same.
    """
    known = questions.select(
        pl.col("id").alias("question_id"),
        pl.col("answer").alias("correct"),
        pl.col("options").list.len().cast(pl.Int64),
    )
    _refuse(known.filter(known["question_id"].is_duplicated()), "two questions with this id")
    joined = replies.join(known, on="question_id", how="left", maintain_order="left")
    _refuse(joined.filter(pl.col("correct").is_null()), "a reply to a question that is not there")
    outside = ~pl.col("answer").is_between(-1, pl.col("options") - 1)
    _refuse(joined.filter(outside), "a reply of an option that the question has not")
    named = (pl.col("k") > 0) == (pl.col("system") != "")
    _refuse(joined.filter(~named), "a reply needs a system where k > 0, and none at k = 0")
    once = joined.select("question_id", *_KEY, "permutation").is_duplicated()
    _refuse(joined.filter(once), "two replies of one LLM under the same setup")
    return joined.with_columns(right=pl.col("answer") == pl.col("correct"), valid=pl.col("answer") >= 0)


def _refuse(wrong: pl.DataFrame, what: str) -> None:
    if len(wrong):
        raise DataError(what, where=f"question {wrong['question_id'][0]}", remedy="run the experiment anew")


def marks(questions: pl.DataFrame, replies: pl.DataFrame) -> Marks:
    """Values of all questions; one that lacks a rotation which others of as many options have is missing.

    Args:
        questions: as :data:`.tables.QUESTIONS`.
        replies: as :data:`.tables.REPLIES`.

    Raises:
        DataError: as :func:`marked`.
    """
    whole = pl.col("permutation").n_unique().over("options")
    known = marked(questions, replies).with_columns(whole=whole)
    groups = known.group_by("question_id", *_KEY, maintain_order=True)
    values = groups.agg(pl.col("right").mean(), pl.len().alias("rotations"), pl.col("whole").first())
    setups = sorted(dict.fromkeys(Setup(*row) for row in values.select(_KEY).iter_rows()), key=lambda s: s.k)
    rows = {name: at for at, name in enumerate(questions["id"])}
    columns = {setup: at for at, setup in enumerate(setups)}
    matrix = np.full((len(rows), len(columns)), np.nan)
    for question, *setup, right, rotations, wanted in values.iter_rows():
        if rotations == wanted:
            matrix[rows[question], columns[Setup(*setup)]] = right
    return Marks(list(rows), documents(questions), setups, matrix)


def documents(questions: pl.DataFrame) -> np.ndarray:
    """Number of the document of each question, from 0; a question without one has a number of its own."""
    own = pl.when(pl.col("doc_id") == "").then(pl.lit("\0") + pl.col("id")).otherwise("doc_id")
    return questions.select(own.rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()


def by_document(marks: Marks, setups: Sequence[Setup]) -> tuple[np.ndarray, np.ndarray]:
    """Sums of values, and numbers of known values, of the questions of each document.

    Returns:
        Two arrays of shape (documents, len(setups)).
    """
    values = marks.of(setups)
    shape = (int(marks.documents.max(initial=-1)) + 1, len(setups))
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, marks.documents, np.nan_to_num(values))
    np.add.at(counts, marks.documents, ~np.isnan(values))
    return sums, counts


def resampled(marks: Marks, setups: Sequence[Setup], settings: Resampling) -> np.ndarray:
    """Accuracies under bootstrap resamples of documents, the same for all setups.

    Returns:
        Shape (resamples, len(setups)); NaN where a resample has no value.
    """
    drawn = resampling.resampled_sums(
        np.hstack(by_document(marks, setups)), settings.bootstrap, [0, settings.seed]
    )
    sums, counts = drawn[:, : len(setups)], drawn[:, len(setups) :]
    return np.asarray(np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0))


def accuracies(marks: Marks, settings: Resampling) -> dict[Setup, Estimate]:
    """Accuracy of every setup that answered something, with a 95 % interval.

    The interval is Wilson's where values are 0 or 1 and no document has two questions; else that of the
    bootstrap by document. Where that has no spread (all right, or all wrong) it is Wilson's over documents.
    """
    setups = [
        s for s, known in zip(marks.setups, (~np.isnan(marks.values)).any(axis=0), strict=True) if known
    ]
    drawn = None if marks.plain or not setups else resampled(marks, setups, settings)
    found = {}
    for at, setup in enumerate(setups):
        values = marks.of([setup])[:, 0]
        known = ~np.isnan(values)
        value, units = float(values[known].mean()), len(np.unique(marks.documents[known]))
        if drawn is None or np.ptp(values[known]) == 0:
            ends = resampling.wilson(round(value * units), units)
        else:
            ends = resampling.interval(drawn[~np.isnan(drawn[:, at]), at])
        found[setup] = Estimate(value, *ends, int(known.sum()), len(values))
    return found


def answerable(marks: Marks, llms: Collection[str] | None = None) -> np.ndarray:
    """Which questions most LLMs answer rightly without any passage (k = 0): they tell nothing of retrieval.

    An LLM does if it is right under more than half of the rotations; most are more than half of the LLMs
    whose answers are known. Invalid answers are not right.

    Args:
        marks: of all setups.
        llms: which count; all by default.

    Returns:
        Shape (questions,), bool; false where nobody was asked at k = 0.
    """
    bare = [setup for setup in marks.setups if setup.k == 0 and (llms is None or setup.llm in llms)]
    values = marks.of(bare)
    return np.asarray(2 * (values > 0.5).sum(axis=1) > (~np.isnan(values)).sum(axis=1))
