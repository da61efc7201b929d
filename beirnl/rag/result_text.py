"""A result in sentences: what was found, and what a reader must know before trusting it."""

from collections.abc import Iterator

from beirnl.rag.diagnostics import one_number
from beirnl.rag.result import Result
from beirnl.rag.result_tables import named
from beirnl.rag.selection import Choice
from beirnl.wording import counted


def notes(result: Result) -> list[str]:
    """The best system for each LLM, those not shown to differ, and whether a held-out half confirms."""
    found = [f"At k = {result.k}, answered by {llm}: {_choice(c)}" for llm, c in result.choices.items()]
    for llm, one in result.confirmations.items():
        found.append(
            f"Chosen with its k on one half of the documents, answered by {llm}: {named(one.chosen)} at "
            f"k = {one.chosen.k}, accuracy {one.first.value:.3f} there and {one.held.value:.3f} "
            f"[{one.held.low:.3f}, {one.held.high:.3f}] on the held-out half."
        )
    if result.answerable:
        total = len(result.marks.questions)
        found.append(
            f"{counted(result.answerable, 'question is', 'questions are', of=total)} answered rightly by "
            "most LLMs without any passage, some by chance; accuracies are given with and without them."
        )
    return found


def _choice(choice: Choice) -> str:
    best = choice.best.system
    if not choice.comparisons:
        return f"only {best} has answers to every question."
    equals = ", ".join(setup.system for setup in choice.equals)
    beside = [choice.against_best(setup) for setup in choice.equals]
    shown = [one.smallest for one in beside if one and one.smallest]
    said = f"{best} has the highest accuracy; "
    said += f"not shown to differ from it: {equals}." if equals else "every other system is below it."
    if shown:
        said += (
            f" That is not the same as equal: with these questions a difference of less than "
            f"{100 * max(shown):.1f} points could well have been missed."
        )
    return said


def warnings(result: Result) -> list[str]:
    """Systems that failed or lack answers, position bias, and prompts that were cut."""
    return list(_warnings(result))


def _warnings(result: Result) -> Iterator[str]:
    for system, why in result.failed.items():
        yield f"{system} failed and is not compared: {why}"
    for setup, one in result.found.items():
        if not one.complete:
            yield (
                f"{named(setup)} at k = {setup.k} with {setup.llm} has answers to "
                f"{counted(one.questions, 'question', of=one.of)} and is not compared."
            )
    for llm, (number, share) in one_number(result.positions).items():
        yield (
            f"{llm} says {number} in {share:.1%} of its valid answers, whatever the options: position bias, "
            "so that its accuracy says nothing of systems."
        )
    if result.cut:
        what = "too long and lacks passages: its", "too long and lack passages: their"
        said = counted(result.cut, f"prompt was {what[0]}", f"prompts were {what[1]}")
        yield f"{said} k is less than it says."
