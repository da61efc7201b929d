"""Questions that LLMs answer without any passage: they tell nothing about retrieval."""

import polars as pl
import pyarrow as pa


def closed_book(questions: pa.Table, replies: pa.Table) -> pl.DataFrame:
    """Which questions most models answer rightly with k = 0.

    A model answers rightly if it does so in more than half of the orders of the options in which it was
    asked; a question is ``answerable`` if more than half of the models that were asked answer it rightly.
    Invalid answers are not right.

    Args:
        questions: schema ``QUESTIONS``.
        replies: schema ``REPLIES``; those with other k do not matter.

    Returns:
        ``question_id``, ``models`` (that were asked with k = 0), ``right`` (how many answer rightly) and
        ``answerable``, a row per question, in their order; null where no model was asked.
    """
    asked = pl.DataFrame(pl.from_arrow(questions.select(["id", "answer"]))).rename(
        {"id": "question_id", "answer": "correct"}
    )
    given = pl.DataFrame(pl.from_arrow(replies.select(["question_id", "llm", "k", "answer"])))
    votes = (
        given.filter(pl.col("k") == 0)
        .join(asked, on="question_id")
        .group_by("question_id", "llm")
        .agg(right=(pl.col("answer") == pl.col("correct")).mean() > 0.5)
        .group_by("question_id")
        .agg(models=pl.len(), right=pl.col("right").sum())
    )
    return (
        asked.select("question_id")
        .join(votes, on="question_id", how="left", maintain_order="left")
        .with_columns(answerable=2 * pl.col("right") > pl.col("models"))
    )
