"""Tables of a result: which system is best, accuracies, tests, and what lies behind them."""

from collections.abc import Mapping, Sequence

from beirnl.evaluation.tables import NOT_BELOW, Cell, Column, Table, number
from beirnl.rag import agreement_tables
from beirnl.rag.diagnostics import DEPTHS
from beirnl.rag.marks import Estimate, Setup
from beirnl.rag.result import Result
from beirnl.rag.selection import Choice, Comparison
from beirnl.wording import counted

BARE = "no passages"  # what k = 0 is called
_CHOICE, _ACCURACY, _BEHIND = "Which system", "Accuracy", "Behind the accuracies"
_NONE = "–"
_BEST_K = "*"
NOT_SHOWN = "not shown to differ from the best, which is not the same as equal to it"


def tables(result: Result) -> list[Table]:
    """All tables, in reading order; those without rows are left out."""
    made = [*(_systems(result, llm) for llm in result.llms), _confirmed(result), _held_out(result)]
    made += [_accuracies(result, llm, result.found, "") for llm in result.llms]
    if result.answerable:
        made += [_accuracies(result, llm, result.rest, _hard(result)) for llm in result.llms]
    made += [_pairs(result, choice, llm) for llm, choice in result.choices.items()]
    made += [_pairs(result, result.across, "all LLMs")] if result.across else []
    made += [_recall(result), _costs(result), _confidence(result), _positions(result), _invalid(result)]
    made += [table for one in result.agreements for table in agreement_tables.tables(one)]
    return [table for table in made if table.rows]


def table(
    section: str, title: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]]
) -> Table:
    """A table of plain heads."""
    return Table(section, title, caption, [Column(head) for head in heads], rows)


def share(value: float | None) -> Cell:
    """A fraction with three decimals; a dash for None."""
    return Cell(_NONE) if value is None else Cell(f"{value:.3f}", value)


def between(value: float, low: float, high: float, digits: int = 3) -> Cell:
    """A value with its interval."""
    return Cell(f"{value:z.{digits}f} [{low:z.{digits}f}, {high:z.{digits}f}]", value)


def estimate(one: Estimate | None) -> Cell:
    """An accuracy with its interval, or that it lacks questions; a dash for None."""
    if one is None:
        return Cell(_NONE)
    if not one.complete:
        return Cell(f"incomplete ({counted(one.questions, 'question', of=one.of)})")
    return between(*one[:3])


def named(setup: Setup) -> str:
    """A system as tables call it."""
    return setup.system or BARE


def _systems(result: Result, llm: str) -> Table:
    choice = result.choices.get(llm)
    setups = [Setup(llm, system, result.k) for system in result.systems]
    setups.sort(key=lambda one: -result.found[one].value if one in result.found else 0.0)
    rows = [_system(result, choice, setup) for setup in setups]
    rows += [
        [Cell(system), Cell(f"failed: {why}"), *[Cell(_NONE)] * 5] for system, why in result.failed.items()
    ]
    heads = (
        "system",
        "accuracy",
        "less the best",
        "p",
        "p (Holm)",
        "wins / losses / ties",
        "could have shown",
    )
    caption = (
        f"{_how(result)} Differences are paired on the same questions; p is corrected over all pairs of "
        "systems. Could have shown: the smallest difference from the best that the test would have found "
        "with a power of 0.8."
    )
    title = f"Systems at k = {result.k}, answered by {llm}"
    made = table(_CHOICE, title, caption, heads, rows)
    return made._replace(footnotes=[(NOT_BELOW, NOT_SHOWN)] if choice and choice.equals else [])


def _system(result: Result, choice: Choice | None, setup: Setup) -> list[Cell]:
    best = choice is not None and choice.best == setup
    note = NOT_BELOW if choice and setup in choice.equals else ""
    cells = [Cell(setup.system), estimate(result.found.get(setup))._replace(best=best, notes=note)]
    beside = choice.against_best(setup) if choice else None
    if beside is None:
        return [*cells, *[Cell(_NONE)] * 5]
    return [*cells, *tested(beside), _smallest(beside)]


def tested(one: Comparison) -> list[Cell]:
    """Difference, p, corrected p, and wins, losses and ties."""
    difference = between(one.difference, one.low, one.high)
    counts = Cell(f"{one.wins:,} / {one.losses:,} / {one.ties:,}")
    return [difference, Cell(_p(one.p), one.p), Cell(_p(one.p_holm), one.p_holm), counts]


def _smallest(one: Comparison) -> Cell:
    return share(one.smallest)


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def _how(result: Result) -> str:
    """How intervals and p values are made."""
    questions, plain = len(result.marks.questions), result.marks.plain
    said = f"Share of {counted(questions, 'question')} answered rightly; invalid answers are wrong. "
    if plain:
        return said + "95 % Wilson intervals; exact McNemar tests."
    documents = int(result.marks.documents.max()) + 1
    return said + (
        f"Averaged within the question over rotations; "
        f"{counted(documents, 'document')}, of which a question without one counts as one, are resampled: "
        "intervals are of the bootstrap and p of the randomisation test by document "
        f"({result.settings.bootstrap:,} resamples, {result.settings.randomisation:,} assignments, "
        f"seed {result.settings.seed})."
    )


def _hard(result: Result) -> str:
    total = len(result.marks.questions)
    return (
        f", without the {counted(result.answerable, 'question', of=total)} that most "
        "LLMs answer rightly at k = 0"
    )


def _accuracies(result: Result, llm: str, found: Mapping[Setup, Estimate], what: str) -> Table:
    columns = [[found.get(Setup(llm, s if k else "", k)) for s in result.systems] for k in result.ks]
    tops = [max((one.value for one in column if one and one.complete), default=None) for column in columns]
    best = result.best.get(llm, {})
    rows = []
    for at, system in enumerate(result.systems):
        cells = [Cell(system)]
        for k, column, top in zip(result.ks, columns, tops, strict=True):
            one, own = column[at], best.get(system)
            is_best = bool(k and one and one.value == top)
            mark = _BEST_K if not what and own and own.k == k else ""
            cells.append(estimate(one)._replace(best=is_best, notes=mark))
        rows.append(cells)
    caption = f"{_how(result) if not what else 'As above.'} k = 0 is asked once for all systems."
    title = f"Accuracy by k, answered by {llm}{what}"
    made = table(_ACCURACY, title, caption, ["system", *(f"k = {k}" for k in result.ks)], rows)
    return made if what else made._replace(footnotes=[(_BEST_K, "the best k of the system (above 0)")])


def _pairs(result: Result, choice: Choice, name: str) -> Table:
    across = choice is result.across

    def called(setup: Setup) -> str:
        return f"{setup.system} ({setup.llm})" if across else setup.system

    rows = [
        [Cell(called(one.setup)), Cell(called(one.other)), *tested(one), _smallest(one)]
        for one in choice.comparisons
    ]
    heads = ("system", "over", "difference", "p", "p (Holm)", "wins / losses / ties", "could have shown")
    caption = (
        f"Holm's correction over the {counted(len(rows), 'pair')} of this table, "
        "which were declared beforehand."
    )
    return table(_ACCURACY, f"All pairs at k = {result.k}: {name}", caption, heads, rows)


def _confirmed(result: Result) -> Table:
    rows = [
        [Cell(llm), Cell(named(one.chosen)), number(one.chosen.k), estimate(one.first), estimate(one.held)]
        for llm, one in result.confirmations.items()
    ]
    heads = ("LLM", "system", "k", "accuracy where it was chosen", "accuracy on the held-out half")
    caption = (
        f"System and k chosen together on one half of the documents (seed {result.settings.seed}), where the "
        "accuracy of the choice flatters it, and judged on the other half."
    )
    return table(_CHOICE, "System and k, confirmed on a held-out half", caption, heads, rows)


def _held_out(result: Result) -> Table:
    rows = [
        [Cell(llm), Cell(f"{named(other.other)}, k = {other.other.k}"), *tested(other), _smallest(other)]
        for llm, one in result.confirmations.items()
        for other in one.comparisons
    ]
    heads = ("LLM", "choice over", "difference", "p", "p (Holm)", "wins / losses / ties", "could have shown")
    caption = (
        "Every other system at the k that was best for it on the first half; tested on the held-out half."
    )
    return table(_CHOICE, "The choice beside other systems, on the held-out half", caption, heads, rows)


def _recall(result: Result) -> Table:
    rows = [
        [Cell(system), *(estimate(result.recall.get((system, depth))) for depth in DEPTHS)]
        for system in dict.fromkeys(system for system, _ in result.recall)
    ]
    caption = "Share of the questions with a known document of which a passage is among the first."
    heads = ["system", *(f"first {depth}" for depth in DEPTHS)]
    return table(_BEHIND, "Recall of the source document", caption, heads, rows)


def _costs(result: Result) -> Table:
    rows = [
        [
            Cell(row["llm"]),
            Cell(row["system"]),
            share(row["accuracy"]),
            *(_plain(row[name], digits) for name, digits in _COSTS.values()),
        ]
        for row in result.costs.iter_rows(named=True)
    ]
    caption = f"At k = {result.k}; prompt tokens are the mean of a prompt; {_NONE}: none, or not known."
    return table(_BEHIND, "Accuracy against cost", caption, ["LLM", "system", "accuracy", *_COSTS], rows)


#: Head -> column of :func:`.diagnostics.against_cost`, decimals.
_COSTS: Mapping[str, tuple[str, int]] = {
    "prompt tokens": ("prompt_tokens", 0),
    "passages": ("passages", 0),
    "dimension": ("dimension", 0),
    "seconds of encoding": ("seconds", 1),
}


def _plain(value: float | None, digits: int) -> Cell:
    return Cell(_NONE) if value is None else Cell(f"{value:,.{digits}f}", value)


def _confidence(result: Result) -> Table:
    rows = [
        [Cell(row["llm"]), Cell(row["system"] or BARE), number(row["k"])]
        + [share(row[name]) for name in ("chosen", "when_right", "when_wrong", "correct")]
        for row in result.confidence.sort("llm", "k", maintain_order=True).iter_rows(named=True)
        if row["k"] in (0, result.k)
    ]
    heads = (
        "LLM",
        "system",
        "k",
        "of the chosen option",
        "where right",
        "where wrong",
        "of the correct option",
    )
    caption = "Mean probability by the LLM's log-probabilities, scaled to 1 over the options; valid answers."
    return table(_BEHIND, "Confidence of the LLM", caption, heads, rows)


def _positions(result: Result) -> Table:
    rows = [
        [Cell(llm), Cell("invalid" if at < 0 else str(at), at), number(answers), share(given), share(right)]
        for llm, at, answers, given, right in result.positions.iter_rows()
    ]
    heads = ("LLM", "number", "answers", "share of answers", "share of right ones")
    caption = (
        "Option numbers as the prompt showed them. An LLM without a bias gives each as often as it is right."
    )
    return table(_BEHIND, "Option numbers given", caption, heads, rows)


def _invalid(result: Result) -> Table:
    def rate(llm: str, system: str, k: int) -> Cell:
        return share(result.invalid.get(Setup(llm, system if k else "", k)))

    rows = [
        [Cell(llm), Cell(system), *(rate(llm, system, k) for k in result.ks)]
        for llm in result.llms
        for system in result.systems
        if any(result.invalid.values())
    ]
    caption = "Share of answers that name no option; they count as wrong."
    heads = ["LLM", "system", *(f"k = {k}" for k in result.ks)]
    return table(_BEHIND, "Invalid answers", caption, heads, rows)
