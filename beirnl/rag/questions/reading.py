"""A question out of an LLM's answer, which is data: it is parsed, never evaluated."""

import json
from typing import Any, NamedTuple

from beirnl.translation.parsing import json_objects
from beirnl.translation.prompts import one_line

#: Names under which models give an option's text and its mark, besides those that they are asked for.
_TEXT = ("text", "option", "answer")
_MARK = ("is_correct", "correct")


class Draft(NamedTuple):
    """A question as an LLM wrote it, before any check.

    Attributes:
        question: on one line.
        options: each on one line.
        correct: indices of the options that are marked as correct.
        explanations: one per option; empty where there is none.
    """

    question: str
    options: tuple[str, ...]
    correct: tuple[int, ...]
    explanations: tuple[str, ...]

    def reordered(self, order: list[int]) -> "Draft":
        """With the options in another order: that with index ``order[0]`` first."""
        return Draft(
            self.question,
            tuple(self.options[n] for n in order),
            tuple(place for place, n in enumerate(order) if n in self.correct),
            tuple(self.explanations[n] for n in order),
        )


def answer_schema(options: int) -> str:
    """The JSON Schema, as text, of a question with this many options."""
    option = {
        "text": {"type": "string"},
        "is_correct": {"type": "boolean"},
        "explanation": {"type": "string"},
    }
    listed = {"type": "array", "items": _object(option), "minItems": options, "maxItems": options}
    return json.dumps(_object({"question": {"type": "string"}, "options": listed}))


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_draft(answer: str) -> Draft | None:
    """The last JSON object of an answer that is a question with options; None where there is none.

    A Markdown fence and words around it do not matter; ``"True"`` as text is true.
    """
    found = [draft for one in json_objects(answer) if (draft := _draft(one))]
    return found[-1] if found else None


def _draft(found: dict[str, Any]) -> Draft | None:
    question, options = found.get("question"), found.get("options")
    if not isinstance(question, str) or not isinstance(options, list):
        return None
    if not all(isinstance(option, dict) and isinstance(_first(option, _TEXT), str) for option in options):
        return None
    return Draft(
        one_line(question),
        tuple(one_line(_first(option, _TEXT)) for option in options),
        tuple(place for place, option in enumerate(options) if _is_true(_first(option, _MARK))),
        tuple(one_line(str(option.get("explanation") or "")) for option in options),
    )


def _first(option: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((option[name] for name in names if name in option), None)


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")
