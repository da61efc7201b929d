"""Questions made by an LLM from documents (BES4RAG, section 3.2), and how many of them were refused why."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa

from beirnl.errors import ConfigError
from beirnl.llm.protocol import Answer, Request
from beirnl.rag.prompts import Template, fill, read_question_prompt
from beirnl.rag.questions.drawing import dice, draw, window
from beirnl.rag.questions.filters import ERROR, Given, Seen, judge
from beirnl.rag.questions.reading import Draft, answer_schema, read_draft
from beirnl.rag.tables import QUESTIONS
from beirnl.specs import QuestionSpec
from beirnl.translation.prompts import WARMER, one_line
from beirnl.translation.repair import Asks
from beirnl.wording import counted

#: What became of each attempt at a question: ``ok``, or names of filters joined by ``,``.
ATTEMPTS = pa.schema([("doc_id", pa.string()), ("attempt", pa.int32()), ("status", pa.string())])

_SLACK = 32  # tokens of a chat template
_WARMEST = 2  # steps of temperature
_LEAST = 64  # tokens of a text that make a question

Count = Callable[[str], int]


@dataclass(frozen=True)
class Generated:
    """What a generation gave.

    Attributes:
        questions: schema ``QUESTIONS``, in the order of the draw.
        attempts: schema ``ATTEMPTS``: everything that was asked.
        wanted: questions that were asked for.
        documents: how many there are.
        short: of these, too short to be asked.
    """

    questions: pa.Table
    attempts: pa.Table
    wanted: int
    documents: int
    short: int

    @property
    def refused(self) -> dict[str, int]:
        """How many attempts failed each filter, most first; an attempt can fail several."""
        failed = Counter(name for status in self.attempts["status"].to_pylist() for name in status.split(","))
        del failed["ok"]
        return dict(sorted(failed.items(), key=lambda item: (-item[1], item[0])))

    @property
    def failed(self) -> int:
        """Attempts that ended in an error of the engine, where questions are missing; worth another run."""
        return self.refused.get(ERROR, 0) if self.questions.num_rows < self.wanted else 0

    @property
    def shortage(self) -> str:
        """Why there are fewer questions than were asked for, as one line; empty where there are enough."""
        made = self.questions.num_rows
        if made >= self.wanted:
            return ""
        asked = set(self.attempts["doc_id"].to_pylist())
        without = len(asked - set(self.questions["doc_id"].to_pylist()))
        reasons = ", ".join(f"{name} {count}" for name, count in self.refused.items())
        refusals = f"; refused attempts: {reasons}" if reasons else ""
        return (
            f"{counted(made, 'question', of=self.wanted)}: of {counted(self.documents, 'document')} "
            f"{self.short:,} {'is' if self.short == 1 else 'are'} too short to be asked and {without:,} gave "
            f"no question{refusals}"
        )


def generate(documents: pa.Table, spec: QuestionSpec, asker: Asks, count: Count) -> Generated:
    """Ask for questions until there are enough, or every document has been asked.

    Documents are drawn without replacement. One whose answers are all refused makes room for the next one; a
    second question is asked of a document only when all have been asked for the first.

    Args:
        documents: schema ``DOCUMENTS``.
        spec: how many, from which, by whom.
        asker: :class:`beirnl.llm.asking.Asker`, or what answers like it.
        count: tokens of a text, as the LLM counts them (:func:`beirnl.llm.local.counter`).

    Raises:
        ConfigError: the prompt cannot be read, or leaves no room for a text in the model's window.
    """
    maker = _Maker(documents, spec, asker, count)
    order = draw(documents, spec)
    for number in range(spec.per_document):
        rest = iter(order)
        while batch := list(islice(rest, spec.count - len(maker.made))):
            maker.ask(batch, number)
    return Generated(
        pa.Table.from_pylist(maker.made, schema=QUESTIONS),
        pa.Table.from_pylist(maker.attempts, schema=ATTEMPTS),
        spec.count,
        documents.num_rows,
        documents.num_rows - len(order),
    )


def first_requests(
    documents: pa.Table, spec: QuestionSpec, count: Count, most: int
) -> list[tuple[str, Request]]:
    """Texts and requests with which documents are asked first, in the order of the draw.

    Args:
        documents: schema ``DOCUMENTS``.
        spec: how many, from which, by whom.
        count: as of :func:`generate`.
        most: of them that are wanted.

    Raises:
        ConfigError: as :func:`generate`.
    """
    template = read_question_prompt(spec.prompt, spec.template)
    budget = text_budget(spec, template, count)
    asked = documents.select(["id", "text"]).take(draw(documents, spec)[: min(most, spec.count)])
    texts = [_window(row["id"], row["text"], 0, spec, budget, count) for row in asked.to_pylist()]
    return [(text, request_for(text, spec, template, 0)) for text in texts]


def _window(name: str, text: str, attempt: int, spec: QuestionSpec, budget: int, count: Count) -> str:
    """What is shown of a document at an attempt."""
    return window(text, budget, count, dice(spec.seed, name, "window", attempt))


def text_budget(spec: QuestionSpec, template: Template, count: Count) -> int:
    """Tokens that the text of a document may have beside the prompt and the answer.

    Raises:
        ConfigError: the window leaves none.
    """
    taken = count(fill(template.text, {"text": ""})) + min(spec.llm.max_tokens, spec.llm.max_model_len // 2)
    budget = spec.llm.max_model_len - taken - _SLACK
    if budget < _LEAST:
        raise ConfigError(
            f"a window of {spec.llm.max_model_len} tokens leaves no room for a document's text",
            where=f"{spec.prompt}.txt",
            remedy="set max_model_len higher or max_tokens lower, or shorten the prompt",
        )
    return budget


def request_for(text: str, spec: QuestionSpec, template: Template, attempt: int) -> Request:
    """The request for a question about a text; the second attempt is warmer, later ones still warmer."""
    shown = one_line(text) if template.form == "completion" else text
    return template.request(
        {"text": shown, "options": str(spec.options), "wrong": str(spec.options - 1)},
        max_tokens=min(spec.llm.max_tokens, spec.llm.max_model_len // 2),
        temperature=round(spec.llm.temperature + min(attempt, _WARMEST) * WARMER, 3),
        stop=template.stop + spec.llm.stop,
        json_schema=answer_schema(spec.options),
    )


@dataclass
class _Maker:
    """Questions on their way."""

    documents: pa.Table
    spec: QuestionSpec
    asker: Asks
    count: Count
    made: list[dict] = field(default_factory=list)
    attempts: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._template = read_question_prompt(self.spec.prompt, self.spec.template)
        self._budget = text_budget(self.spec, self._template, self.count)
        self._seen = Seen(self.spec.similarity)
        self._ids, self._texts = (self.documents[name].to_pylist() for name in ("id", "text"))

    def ask(self, rows: Sequence[int], number: int) -> None:
        """Ask each document for its question with this number, and those that fail again."""
        for attempt in range(number * self.spec.attempts, (number + 1) * self.spec.attempts):
            if not rows:
                return
            texts = [self._shown(row, attempt) for row in rows]
            requests = [request_for(text, self.spec, self._template, attempt) for text in texts]
            answers = self.asker.ask(requests, attempt)
            asked = zip(rows, texts, answers, strict=True)
            rows = [row for row, text, answer in asked if not self._take(row, number, attempt, text, answer)]

    def _shown(self, row: int, attempt: int) -> str:
        return _window(self._ids[row], self._texts[row], attempt, self.spec, self._budget, self.count)

    def _take(self, row: int, number: int, attempt: int, text: str, answer: Answer) -> bool:
        draft = read_draft(answer.text)
        status = judge(draft, Given(self.spec, text), self._seen) if draft else _no_question(answer)
        self.attempts.append({"doc_id": self._ids[row], "attempt": attempt, "status": status})
        if draft is None or status != "ok":
            return False
        self._seen.add(draft.question)
        self.made.append(_question(self._ids[row], number, _shuffled(draft, self.spec.seed, self._ids[row])))
        return True


def _no_question(answer: Answer) -> str:
    return {"error": ERROR, "length": "cut short"}.get(answer.finish_reason, "malformed")


def _shuffled(draft: Draft, seed: int, document: str) -> Draft:
    """With the options in an order drawn by seed: models like to put the correct one first."""
    order = list(range(len(draft.options)))
    dice(seed, document, draft.question).shuffle(order)
    return draft.reordered(order)


def _question(document: str, number: int, draft: Draft) -> dict:
    return {
        "id": f"{document}#q{number}",
        "doc_id": document,
        "question": draft.question,
        "options": draft.options,
        "answer": draft.correct[0],
        "explanations": draft.explanations,
        "origin": "generated",
    }
