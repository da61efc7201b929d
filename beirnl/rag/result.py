"""The result of a question answering experiment: everything that its tables, plots and page show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from beirnl.errors import ConfigError
from beirnl.evaluation.uncertainty import Resampling
from beirnl.rag.agreement import Agreement, agreement
from beirnl.rag.diagnostics import against_cost, confidence, positions, source_recall
from beirnl.rag.marks import Estimate, Marks, Setup, accuracies, answerable, marks
from beirnl.rag.selection import Choice, Confirmation, best_k, choose, confirm
from beirnl.wording import counted

_NO_COSTS = {"system": pl.String, "passages": pl.Int64, "dimension": pl.Int64, "seconds": pl.Float64}


@dataclass(frozen=True)
class Result:
    """What replies say of systems.

    Attributes:
        k: declared before the answers were seen; tests and choices are at it.
        settings: of resampling.
        marks: values of all questions.
        found: accuracy by setup.
        rest: the same over the questions that most LLMs do not answer without passages.
        answerable: number of those that they do.
        choices: by LLM, over its systems; a family of tests each.
        across: over all pairs of LLM and system; None with one LLM.
        best: by LLM and system the setup with the best k.
        confirmations: by LLM.
        positions: see :func:`.diagnostics.positions`.
        confidence: see :func:`.diagnostics.confidence`.
        recall: of the source document, by system and depth.
        costs: see :func:`.diagnostics.against_cost`.
        agreements: of manual and generated questions, one for each LLM, where there are both.
        invalid: share of invalid answers by setup.
        cut: number of replies whose prompt lacks passages because it was too long.
        failed: reason by system of those that gave nothing.
    """

    k: int
    settings: Resampling
    marks: Marks
    found: Mapping[Setup, Estimate]
    rest: Mapping[Setup, Estimate]
    answerable: int
    choices: Mapping[str, Choice]
    across: Choice | None
    best: Mapping[str, Mapping[str, Setup]]
    confirmations: Mapping[str, Confirmation]
    positions: pl.DataFrame
    confidence: pl.DataFrame
    recall: Mapping[tuple[str, int], Estimate]
    costs: pl.DataFrame
    agreements: Sequence[Agreement]
    invalid: Mapping[Setup, float]
    cut: int
    failed: Mapping[str, str]

    @property
    def llms(self) -> list[str]:
        """Answering LLMs, in order of first appearance."""
        return list(dict.fromkeys(setup.llm for setup in self.marks.setups))

    @property
    def systems(self) -> list[str]:
        """Retrieval systems that have answers, in order of first appearance."""
        return list(dict.fromkeys(setup.system for setup in self.marks.setups if setup.k))

    @property
    def ks(self) -> list[int]:
        """Numbers of passages that were asked with, ascending."""
        return sorted({setup.k for setup in self.marks.setups})


def result(
    questions: pl.DataFrame,
    replies: pl.DataFrame,
    k: int,
    *,
    ranked: pl.DataFrame | None = None,
    costs: pl.DataFrame | None = None,
    failed: Mapping[str, str] | None = None,
    settings: Resampling | None = None,
) -> Result:
    """Evaluates replies.

    Args:
        questions: as :data:`.tables.QUESTIONS`; all that were asked.
        replies: as :data:`.tables.REPLIES`.
        k: number of passages at which systems are compared, declared before the answers were seen.
        ranked: passages by question, see :func:`.diagnostics.source_recall`; without it no recall is told.
        costs: per system, see :func:`.diagnostics.against_cost`.
        failed: reason by system of those that gave nothing.
        settings: of resampling.

    Raises:
        DataError: as :func:`.marks.marked`.
        ConfigError: nothing was asked with ``k`` passages.
    """
    settings = settings or Resampling()
    values = marks(questions, replies)
    _check_asked(values, k)
    found, open_book = accuracies(values, settings), answerable(values)
    at_k = [setup for setup in values.setups if setup.k == k]
    llms = list(dict.fromkeys(setup.llm for setup in values.setups))
    chosen = {llm: choose(values, [s for s in at_k if s.llm == llm], settings) for llm in llms}
    confirmed = {llm: confirm(values, llm, settings) for llm in llms}
    return Result(
        k=k,
        settings=settings,
        marks=values,
        found=found,
        rest={} if open_book.all() else accuracies(values.only(~open_book), settings),
        answerable=int(open_book.sum()),
        choices={llm: one for llm, one in chosen.items() if one},
        across=choose(values, at_k, settings) if len(llms) > 1 else None,
        best={llm: best_k(found, llm) for llm in llms},
        confirmations={llm: one for llm, one in confirmed.items() if one},
        positions=positions(questions, replies),
        confidence=confidence(questions, replies),
        recall={} if ranked is None else source_recall(questions, ranked, settings),
        costs=against_cost(found, replies, pl.DataFrame(schema=_NO_COSTS) if costs is None else costs, k),
        agreements=list(_agreements(questions, values, llms, settings)),
        invalid=_invalid(replies),
        cut=len(replies.filter(pl.col("cut") > 0)),
        failed=failed or {},
    )


def _check_asked(values: Marks, k: int) -> None:
    """Refuse to compare systems where nothing was asked with so many passages."""
    asked = sorted({setup.k for setup in values.setups if setup.k})
    if k not in asked:
        listed = ", ".join(map(str, asked))
        raise ConfigError(
            f"no question was asked with {counted(k, 'passage')}", remedy=f"compare at one of {listed}"
        )


def _agreements(
    questions: pl.DataFrame, values: Marks, llms: Sequence[str], settings: Resampling
) -> Iterator[Agreement]:
    manual = (questions["origin"] == "user").to_numpy()
    if manual.any() and not manual.all():
        for llm in llms:
            if one := agreement(values.only(manual), values.only(~manual), llm, settings):
                yield one


def _invalid(replies: pl.DataFrame) -> dict[Setup, float]:
    shares = replies.group_by("llm", "system", "k", maintain_order=True).agg((pl.col("answer") < 0).mean())
    return {Setup(*setup): float(share) for *setup, share in shares.iter_rows()}
