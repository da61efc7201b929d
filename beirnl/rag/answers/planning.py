"""Which prompts have to be asked: equal ones once, in an order in which neighbours share their beginning."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import pyarrow as pa

from beirnl.errors import DataError
from beirnl.rag.answers.prompts import (
    Passages,
    passage_block,
    request_for,
    rotations,
    template_of,
    texts_by_id,
)
from beirnl.specs import AnswerSpec

#: Distinct prompts, in the order in which they are to be asked. ``context`` are ids of passages of
#: ``system``; others may have passages of the same texts. ``permutation`` is the rotation of the options.
PROMPTS = pa.schema(
    [
        ("prompt", pa.int64()),
        ("question_id", pa.string()),
        ("system", pa.string()),
        ("context", pa.list_(pa.string())),
        ("permutation", pa.int8()),
    ]
)
#: Which prompt answers a question with the first k passages of a system (empty for k = 0), the ids of these
#: passages, and how many were left out because the prompt would not fit the window.
REFERENCES = pa.schema(
    [
        ("question_id", pa.string()),
        ("system", pa.string()),
        ("k", pa.int32()),
        ("permutation", pa.int8()),
        ("prompt", pa.int64()),
        ("context", pa.list_(pa.string())),
        ("cut", pa.int32()),
    ]
)

_SLACK = 32  # tokens of a chat template, and of what a tokenizer does where parts of a prompt meet


class Plan(NamedTuple):
    """What is to be asked.

    Attributes:
        prompts: schema ``PROMPTS``, each once.
        references: schema ``REFERENCES``, by question, system, k and permutation.
        naive: requests of a loop over questions, systems, values of k and permutations.
    """

    prompts: pa.Table
    references: pa.Table
    naive: int

    @property
    def distinct(self) -> int:
        """Requests that are sent."""
        return len(self.prompts)

    @property
    def cut(self) -> int:
        """Replies whose prompt lacks passages, because it would not fit the window."""
        return sum(cut > 0 for cut in self.references["cut"].to_pylist())

    @property
    def saving(self) -> float:
        """Share of the naive requests that are not sent."""
        return 1 - self.distinct / self.naive if self.naive else 0.0


def plan_prompts(
    questions: pa.Table,
    runs: Mapping[str, pa.Table],
    passages: Passages,
    spec: AnswerSpec,
    count: Callable[[str], int],
) -> Plan:
    """Find the distinct prompts of all systems and values of k.

    Args:
        questions: schema ``QUESTIONS``.
        runs: by system; schema ``RUN``: of each question the passages, best first.
        passages: texts of the passages in the runs, by system and id.
        spec: values of k, permutations, prompt file and window.
        count: tokens of a text, as the LLM counts them (:func:`beirnl.llm.local.counter`).

    Raises:
        ConfigError: the prompt file cannot be read.
        DataError: a run names a passage without a text.
    """
    planner = _Planner(spec, count)
    asked = texts_by_id(questions)
    ranked = {system: _ranked(run, max(spec.ks, default=0), spec) for system, run in runs.items()}
    for question in asked:
        contexts = {
            system: [(name, _text(passages, system, name)) for name in found.get(question, ())]
            for system, found in ranked.items()
        }
        planner.add(question, *asked[question], contexts)
    orders = sum(len(rotations(len(options), spec.permutations)) for _, options in asked.values())
    return planner.plan(orders * len(runs) * len(spec.ks))


def _ranked(run: pa.Table, depth: int, spec: AnswerSpec) -> dict[str, list[str]]:
    """The first passages of each question; all of them where k is a budget of tokens."""
    found: dict[str, list[str]] = {}
    for question, name in zip(run["query_id"].to_pylist(), run["doc_id"].to_pylist(), strict=True):
        names = found.setdefault(question, [])
        if len(names) < depth or spec.tokens_per_passage:
            names.append(name)
    return found


def _text(passages: Passages, system: str, name: str) -> str:
    try:
        return passages[system][name]
    except KeyError:
        raise DataError(
            f"the run of {system} names a passage that has no text",
            where=name,
            remedy="search the passages that this run was made from",
        ) from None


_Key = tuple[int, tuple[int, ...], int]  # question and options, texts of the context, rotation


class _Shown(NamedTuple):
    """A passage as the prompt shows it: its id, the number of what is shown, and its tokens there."""

    name: str
    number: int
    tokens: int


@dataclass
class _Planner:
    """Collects references; what prompts show is numbered, so that what looks alike is one."""

    spec: AnswerSpec
    count: Callable[[str], int]
    prompts: dict[_Key, dict] = field(default_factory=dict)
    references: list[tuple[_Key, dict]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._template = template_of(self.spec)
        self._numbers: dict[bytes | str, int] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._tokens: dict[int, int] = {}

    def add(
        self, question: str, text: str, options: Sequence[str], contexts: Mapping[str, list[tuple[str, str]]]
    ) -> None:
        """The prompts of one question; ``contexts`` are ids and texts of passages in order of rank."""
        bare = request_for(text, options, (), self._template, self.spec).last_text
        content = self._number("\n".join([bare, *options]) if self.spec.is_open else bare)
        shown = {
            system: [_Shown(name, *self._look_at(passage)) for name, passage in ranked]
            for system, ranked in contexts.items()
        }
        for system, k, found, cut in self._contexts(shown, self._room(bare)):
            key = tuple(passage.number for passage in found)
            names = [passage.name for passage in found]
            for rotation in rotations(len(options), self.spec.permutations):
                row = {"question_id": question, "system": system, "permutation": rotation, "context": names}
                self.prompts.setdefault((content, key, rotation), row)
                self.references.append(((content, key, rotation), row | {"k": k, "cut": cut}))

    def _contexts(
        self, contexts: Mapping[str, list[_Shown]], room: int
    ) -> Iterator[tuple[str, int, list[_Shown], int]]:
        """System, k, passages, and how many were left out; k = 0 is nobody's."""
        if 0 in self.spec.ks:
            yield "", 0, [], 0
        for system, ranked in contexts.items():
            sizes = [passage.tokens for passage in ranked]
            for k in filter(None, self.spec.ks):
                wanted = self._wanted(k, sizes)
                fits = _fitting(sizes[:wanted], room)
                yield system, k, ranked[:fits], wanted - fits

    def _wanted(self, k: int, sizes: Sequence[int]) -> int:
        """How many passages k stands for."""
        if not self.spec.tokens_per_passage:
            return min(k, len(sizes))
        return _fitting(sizes, k * self.spec.tokens_per_passage)

    def _number(self, thing: bytes | str) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))

    def _look_at(self, passage: str) -> tuple[int, int]:
        """Number and tokens of a passage as the prompt shows it; each text is looked at once, and of what is
        shown only a digest is kept."""
        if passage not in self._seen:
            block = passage_block(self._template, 1, passage)
            number = self._number(blake2b(block.encode("utf-8", "surrogatepass"), digest_size=16).digest())
            if number not in self._tokens:
                self._tokens[number] = self.count(block)
            self._seen[passage] = number, self._tokens[number]
        return self._seen[passage]

    def _room(self, bare: str) -> int:
        """Tokens that the window leaves to passages, beside the prompt without any."""
        return self.spec.llm.max_model_len - self.spec.max_tokens - self.count(bare) - _SLACK

    def plan(self, naive: int) -> Plan:
        """Prompts by question and then by context, as a walk through the tree of contexts: each stands next
        to one with which it shares the longest beginning."""
        order = sorted(self.prompts)
        place = {key: n for n, key in enumerate(order)}
        prompts = [{"prompt": n, **self.prompts[key]} for n, key in enumerate(order)]
        references = [{"prompt": place[key], **row} for key, row in self.references]
        return Plan(
            pa.Table.from_pylist(prompts, schema=PROMPTS),
            pa.Table.from_pylist(references, schema=REFERENCES),
            naive,
        )


def _fitting(sizes: Sequence[int], room: int) -> int:
    """How many of the first passages fit."""
    for n, size in enumerate(sizes):
        room -= size
        if room < 0:
            return n
    return len(sizes)
