"""The prompt of one question: its options in some order, and the passages in order of rank."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from beirnl.llm.protocol import Request
from beirnl.rag.prompts import Template, fill, read_answer_prompt, read_open_prompt
from beirnl.specs import AnswerSpec
from beirnl.translation.prompts import one_line

Passages = Mapping[str, Mapping[str, str]]  # system -> id of a passage -> its text


def rotations(options: int, permutations: int) -> list[int]:
    """By how many places options are rotated, for so many orders: evenly apart, each once.

    The option shown at place ``i`` is that with index ``(i + rotation) % options``.

    >>> rotations(4, 2)
    [0, 2]
    """
    return sorted({n * options // permutations for n in range(permutations)})


def rotated(options: Sequence[str], rotation: int) -> list[str]:
    """The options as they are shown."""
    return [*options[rotation:], *options[:rotation]]


def option_numbers(options: int) -> tuple[str, ...]:
    """What an answer can be: ``0`` to ``options`` - 1."""
    return tuple(map(str, range(options)))


def template_of(spec: AnswerSpec) -> Template:
    """The prompt of a question, with its options or without.

    Raises:
        ConfigError: the prompt file cannot be read.
    """
    read = read_open_prompt if spec.is_open else read_answer_prompt
    return read(spec.prompt, spec.template)


def passage_block(template: Template, rank: int, passage: str) -> str:
    """A passage as it stands in the prompt.

    Args:
        template: of the prompt.
        rank: from 1.
        passage: its text; on one line in a prompt that a base model continues.
    """
    shown = one_line(passage) if template.form == "completion" else passage.strip()
    return fill(template.passage, {"rank": str(rank), "passage": shown})


def request_for(
    question: str, options: Sequence[str], passages: Sequence[str], template: Template, spec: AnswerSpec
) -> Request:
    """The request for an answer.

    Args:
        question: its text.
        options: in the order in which they are shown.
        passages: texts in order of rank; none for k = 0.
        template: of the prompt.
        spec: decoding.
    """
    numbers = option_numbers(len(options))
    values = {
        "question": one_line(question),
        "passages": "".join(passage_block(template, n, text) for n, text in enumerate(passages, 1)),
        "options": option_lines(options, template),
        "last": numbers[-1],
    }
    return template.request(
        values,
        max_tokens=spec.max_tokens,
        temperature=spec.llm.temperature,
        stop=template.stop + spec.llm.stop,
        choices=() if spec.is_open else numbers,
        logprobs=0 if spec.is_open else spec.logprobs,
    )


def option_lines(options: Sequence[str], template: Template) -> str:
    """The options as they stand in a prompt, each on a line."""
    numbered = zip(option_numbers(len(options)), options, strict=True)
    return "\n".join(fill(template.option, {"number": n, "option": one_line(o)}) for n, o in numbered)


def requests_for(
    prompts: pa.Table, questions: pa.Table, passages: Passages, spec: AnswerSpec
) -> Iterator[Request]:
    """Requests of prompts, in their order.

    Args:
        prompts: schema ``PROMPTS``: a whole plan's, or a slice of them.
        questions: schema ``QUESTIONS``.
        passages: texts by system and id.
        spec: prompt file and decoding.

    Raises:
        ConfigError: the prompt file cannot be read.
    """
    template = template_of(spec)
    asked = texts_by_id(questions)
    for row in prompts.to_pylist():
        question, options = asked[row["question_id"]]
        texts = [passages[row["system"]][name] for name in row["context"]]
        yield request_for(question, rotated(options, row["permutation"]), texts, template, spec)


def texts_by_id(questions: pa.Table) -> dict[str, tuple[str, list[str]]]:
    """Question and options by id."""
    columns = (questions[name].to_pylist() for name in ("id", "question", "options"))
    return {name: (question, options) for name, question, options in zip(*columns, strict=True)}
