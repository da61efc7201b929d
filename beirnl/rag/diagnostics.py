"""What lies behind accuracies: option numbers, confidence, recall of the source document, and cost."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from beirnl.evaluation.uncertainty import Resampling
from beirnl.rag.marks import Estimate, Marks, Setup, accuracies, documents, marked

DEPTHS = (1, 5, 10)  # at which the recall of the source document is told
#: An LLM that gives one option number in more than this share of its valid answers shows position bias.
ONE_NUMBER = 0.9


def positions(questions: pl.DataFrame, replies: pl.DataFrame) -> pl.DataFrame:
    """How often each LLM gives which option number, as shown, beside how often that is the right one.

    A rotation r shows option (i + r) mod n at number i, so that option a stands at (a - r) mod n.

    Args:
        questions: as :data:`.tables.QUESTIONS`.
        replies: as :data:`.tables.REPLIES`.

    Returns:
        Columns llm, number (-1: invalid), answers (count), share (of all answers of the LLM), and right
        (share of its prompts in which that number is the correct one).

    Raises:
        DataError: as :func:`.marks.marked`.
    """
    shown = marked(questions, replies).with_columns(
        number=pl.when("valid").then(_number("answer")).otherwise(-1), right_number=_number("correct")
    )
    total = pl.col("answers").sum().over("llm")
    given = shown.group_by("llm", "number").agg(answers=pl.len())
    right = shown.group_by("llm", pl.col("right_number").alias("number")).agg(expected=pl.len())
    both = given.join(right, on=["llm", "number"], how="full", coalesce=True).fill_null(0)
    both = both.with_columns(
        share=pl.col("answers") / total, right=pl.col("expected") / pl.col("expected").sum().over("llm")
    )
    return both.select("llm", "number", "answers", "share", "right").sort("llm", "number")


def _number(option: str) -> pl.Expr:
    at, by, of = pl.col(option).cast(pl.Int64), pl.col("permutation").cast(pl.Int64), pl.col("options")
    return (at - by + of * (by // of + 1)) % of


def one_number(found: pl.DataFrame) -> dict[str, tuple[int, float]]:
    """LLMs that give nearly always the same option number, although it is not nearly always right.

    Args:
        found: by :func:`positions`.

    Returns:
        The number, and its share of the valid answers, by LLM.
    """
    valid = found.filter(pl.col("number") >= 0)
    valid = valid.with_columns(of_valid=pl.col("answers") / pl.col("answers").sum().over("llm"))
    flagged = valid.filter((pl.col("of_valid") > ONE_NUMBER) & (pl.col("right") < ONE_NUMBER))
    return {llm: (number, share) for llm, number, share in flagged.select("llm", "number", "of_valid").rows()}


def confidence(questions: pl.DataFrame, replies: pl.DataFrame) -> pl.DataFrame:
    """How sure LLMs are of their answers, by setup, from the log-probabilities of the options.

    They are scaled to sum to 1 over the options: what the LLM gave to other tokens is left out.

    Args:
        questions: as :data:`.tables.QUESTIONS`.
        replies: as :data:`.tables.REPLIES`; those without log-probabilities, or with an invalid answer, do
            not count.

    Returns:
        Columns llm, system, k, replies (that count), chosen (mean probability of the chosen option),
        when_right and when_wrong (the same where it is right or wrong), and correct (mean probability of the
        correct option).

    Raises:
        DataError: as :func:`.marks.marked`.
    """
    told = marked(questions, replies).filter("valid", pl.col("logprobs").list.len() == pl.col("options"))
    top = pl.col("logprobs").list.max()
    scale = pl.col("logprobs").list.eval((pl.element() - pl.element().max()).exp()).list.sum()

    def probability(option: str) -> pl.Expr:
        return (pl.col("logprobs").list.get(pl.col(option)).cast(pl.Float64) - top).exp() / scale

    told = told.with_columns(chosen=probability("answer"), of_correct=probability("correct"))
    return told.group_by("llm", "system", "k", maintain_order=True).agg(
        replies=pl.len(),
        chosen=pl.col("chosen").mean(),
        when_right=pl.col("chosen").filter("right").mean(),
        when_wrong=pl.col("chosen").filter(~pl.col("right")).mean(),
        correct=pl.col("of_correct").mean(),
    )


def retrieved(replies: pl.DataFrame, passages: pl.DataFrame) -> pl.DataFrame:
    """Ranked passages of each question and system, from the longest context that was asked.

    Args:
        replies: as :data:`.tables.REPLIES`; contexts are in order of rank.
        passages: columns id and doc_id, of all passages of the contexts.

    Returns:
        Columns question_id, system, rank (from 1), doc_id; and depth, to which ranks are known: k, or the
        number of passages in the prompt where it was cut.
    """
    longest = replies.filter(pl.col("k") > 0).with_columns(
        depth=pl.when(pl.col("cut") > 0).then(pl.col("context").list.len()).otherwise("k")
    )
    longest = longest.sort("depth", descending=True, maintain_order=True)
    longest = longest.unique(["question_id", "system"], keep="first", maintain_order=True)
    ranked = longest.with_columns(
        rank=pl.int_ranges(1, pl.col("context").list.len() + 1).cast(pl.List(pl.Int64))
    )
    ranked = ranked.select("question_id", "system", "depth", "rank", pl.col("context").alias("id"))
    found = ranked.explode("rank", "id").drop_nulls("id")
    found = found.join(passages.select("id", "doc_id"), on="id", how="left", maintain_order="left")
    return found.select("question_id", "system", "rank", "doc_id", "depth")


def source_recall(
    questions: pl.DataFrame, ranked: pl.DataFrame, settings: Resampling, depths: Sequence[int] = DEPTHS
) -> dict[tuple[str, int], Estimate]:
    """Share of questions whose own document is among the first passages, by system and depth.

    Args:
        questions: as :data:`.tables.QUESTIONS`; those without a document do not count.
        ranked: columns question_id, system, rank (from 1), doc_id (of the passage), and ``depth`` where ranks
            are known only so far.
        settings: of resampling.
        depths: at which it is told; a system whose ranks are not known so far for every question has none.
    """
    known = questions.filter(pl.col("doc_id") != "")
    own = known.select(pl.col("id").alias("question_id"), pl.col("doc_id").alias("source"))
    joined = ranked.join(own, on="question_id")
    rank = pl.col("rank").filter(pl.col("doc_id") == pl.col("source")).min()
    depth = pl.col("depth").min() if "depth" in ranked.columns else pl.lit(max(depths))
    first = joined.group_by("question_id", "system", maintain_order=True).agg(rank.alias("rank"), depth=depth)
    values = {
        Setup("", system, at): dict(zip(rows["question_id"], _found(rows, at), strict=True))
        for (system,), rows in first.group_by("system", maintain_order=True)
        for at in depths
    }
    matrix = np.array([[column.get(name, np.nan) for column in values.values()] for name in known["id"]])
    matrix = matrix.reshape(len(known), len(values))
    found = accuracies(Marks(known["id"].to_list(), documents(known), list(values), matrix), settings)
    return {(setup.system, setup.k): one for setup, one in found.items() if one.complete}


def _found(rows: pl.DataFrame, at: int) -> list[float]:
    """1 or 0 by question; NaN where ranks are not known so far and the document is not seen before."""
    seen, far = rows["rank"].fill_null(at + 1) <= at, rows["depth"] >= at
    return [1.0 if hit else 0.0 if known else np.nan for hit, known in zip(seen, far, strict=True)]


def against_cost(
    found: Mapping[Setup, Estimate], replies: pl.DataFrame, costs: pl.DataFrame, k: int
) -> pl.DataFrame:
    """Accuracy at one k beside what it takes.

    Args:
        found: accuracies by setup.
        replies: as :data:`.tables.REPLIES`; their prompts are counted.
        costs: per system: passages (number of them), dimension (null: none) and seconds (of encoding or
            indexing); a system may be absent.
        k: of the accuracies.

    Returns:
        Columns llm, system, accuracy, low, high, prompt_tokens (mean per prompt), passages, dimension,
        seconds.
    """
    rows = [(s.llm, s.system, e.value, e.low, e.high) for s, e in found.items() if s.k == k and e.complete]
    schema = {
        "llm": pl.String,
        "system": pl.String,
        "accuracy": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
    }
    table = pl.DataFrame(rows, schema, orient="row")
    tokens = replies.filter(pl.col("k") == k).group_by("llm", "system").agg(pl.col("prompt_tokens").mean())
    table = table.join(tokens, on=["llm", "system"], how="left", maintain_order="left")
    costs = costs.select("system", "passages", "dimension", "seconds")
    return table.join(costs, on="system", how="left", maintain_order="left")
