"""A reader that is right exactly when the answer's text is in its prompt: for tests of retrieval, no model.

Its "model" is a folder with ``config.json``: ``{"answers": [{"question", "options", "answer"}, ...]}``, where
``answer`` is an index, or ``{"always": 0}``, a reader that says one number whatever it is asked. It reads
prompts in the layout of ``registry/prompts/answer.txt``.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from beirnl.errors import ConfigError, DataError
from beirnl.llm.protocol import Answer, Enough, Request, Surroundings, never
from beirnl.models import model_path
from beirnl.specs import LlmSpec

FILE = "config.json"
_QUESTION = re.compile(r"^Question: (.*)$", re.MULTILINE)
_PASSAGE = re.compile(r"^(?:\[(\d+)\]|Passage:) ", re.MULTILINE)
_OPTIONS = re.compile(r"^Options:\n((?:\(\d\) .*\n?)+)", re.MULTILINE)


class AnswerKeyLlm:
    """The reader. It is right if any passage in the prompt :func:`holds` the text of the correct option;
    else, and where the key lacks the question, it says the option after the correct one, or ``0``.

    Args:
        spec: ``model`` is the folder with the key.
        surroundings: not looked at.

    Raises:
        ConfigError: no model is named.
        DataError: its ``config.json`` is no key.
        PrerequisiteError: the folder does not exist.
    """

    def __init__(self, spec: LlmSpec, surroundings: Surroundings | None = None) -> None:
        if spec.model is None:
            raise ConfigError("engine 'answer-key' needs a model", remedy=f"name a folder with {FILE}")
        key = _read(model_path(spec.model) / FILE)
        self._always: int | None = key.get("always")
        self._answers = {
            _name(one["question"], one["options"]): one["options"][one["answer"]]
            for one in key.get("answers", ())
        }

    def generate(self, requests: Sequence[Request], enough: Enough = never) -> Iterator[tuple[int, Answer]]:
        """Answers in order; see :class:`beirnl.llm.protocol.LLM`."""
        for place, request in enumerate(requests):
            if enough():
                return
            yield (
                place,
                Answer(str(self._option(request.last_text)), "stop", len(request.last_text.split()), 1),
            )

    def _option(self, prompt: str) -> int:
        if self._always is not None:
            return self._always
        read = read_prompt(prompt)
        asked = (
            next((q for q in read.questions if _name(q, read.options) in self._answers), "") if read else ""
        )
        if read is None or not asked:
            return 0
        answer = self._answers[_name(asked, read.options)]
        right = [_one_line(option) for option in read.options].index(_one_line(answer))
        return right if read.shows(asked, answer) else (right + 1) % len(read.options)


class Read(NamedTuple):
    """A prompt, taken apart.

    Attributes:
        prompt: as it is.
        questions: what stands behind ``Question:``: those of examples and of passages may be among them.
        options: in the order in which they are shown.
    """

    prompt: str
    questions: list[str]
    options: list[str]

    def shows(self, question: str, text: str) -> bool:
        """Whether a passage between a question and the options :func:`holds` a text."""
        behind = self.prompt.partition(f"Question: {question}\n")[2]
        return any(holds(passage, text) for passage in _passages(behind[: behind.rindex("Options:\n")]))


def _passages(context: str) -> list[str]:
    """Passages without their labels (``[1]``, ``[2]``, or ``Passage:``), which an answer could equal."""
    passages, begin = list[str](), 0
    for label in _PASSAGE.finditer(context):
        if label[1] is None or int(label[1]) == len(passages) + 1:
            passages.append(context[begin : label.start()])
            begin = label.end()
    return [*passages, context[begin:]]


def read_prompt(prompt: str) -> Read | None:
    """Take a prompt for an answer apart; None where it has another layout."""
    questions, listed = _QUESTION.findall(prompt), _OPTIONS.findall(prompt)
    if not questions or not listed:
        return None
    return Read(prompt, questions, [line.partition(" ")[2] for line in listed[-1].splitlines()])


def holds(passage: str, answer: str) -> bool:
    """Whether a passage has the text of an answer; letter case and the kind of white space do not count."""
    return _one_line(answer).casefold() in _one_line(passage).casefold()


def write_key(folder: Path, questions: Sequence[dict[str, Any]]) -> Path:
    """Write a folder that can be named as the model of the engine ``answer-key``.

    Args:
        folder: made if it does not exist.
        questions: with ``question``, ``options`` and the index ``answer`` of the correct one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = [{name: one[name] for name in ("question", "options", "answer")} for one in questions]
    (folder / FILE).write_text(json.dumps({"answers": kept}, ensure_ascii=False), encoding="utf-8")
    return folder


def _read(path: Path) -> dict[str, Any]:
    try:
        key = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"no key of answers ({error})", where=path, remedy='write {"answers": [...]}'
        ) from error
    if not isinstance(key, dict):
        raise DataError("is no JSON object", where=path, remedy='write {"answers": [...]}')
    return key


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _name(question: str, options: Sequence[str]) -> tuple[str, ...]:
    """A question and its options in any order."""
    return (_one_line(question), *sorted(map(_one_line, options)))
