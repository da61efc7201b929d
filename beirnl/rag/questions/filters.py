"""Filters on questions: one table, one name per fault.

A question's status is ``ok`` or the names of the filters that it failed, joined by ``,``.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from beirnl.rag.questions.phrases import refers_to_text
from beirnl.rag.questions.reading import Draft
from beirnl.specs import QuestionSpec
from beirnl.translation.language import can_identify, identify

_WORD = re.compile(r"\w+")
_FEW = 6  # words of question and options from which their language is judged
_LETTERS = 4  # that an answer has at least to be given away by the question
_ENDS = " .,;:!?\"'’“”«»()"


class Given(NamedTuple):
    """What a question was made from.

    Attributes:
        spec: how many options, and which language.
        text: what was shown to the LLM.
    """

    spec: QuestionSpec
    text: str


def plain(text: str) -> str:
    """A text as it is compared: letter case, white space and punctuation at its ends do not count."""
    return " ".join(text.casefold().split()).strip(_ENDS)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _has_empty(draft: Draft, given: Given) -> bool:
    return not plain(draft.question) or not all(map(plain, draft.options))


def _has_equal(draft: Draft, given: Given) -> bool:
    """The case of the first letter does not count; that of others can tell options apart (``Aa``, ``AA``)."""
    texts = (" ".join(option.split()).strip(_ENDS) for option in draft.options)
    return len({text[:1].casefold() + text[1:] for text in texts}) < len(draft.options)


def _refers(draft: Draft, given: Given) -> bool:
    return any(map(refers_to_text, (draft.question, *draft.options)))


def _is_in_another_language(draft: Draft, given: Given) -> bool:
    """Judged on question and options together; texts in no known language are not judged."""
    asked = " ".join((draft.question, *draft.options))
    language = given.spec.language or identify(given.text, ())
    if len(asked.split()) < _FEW or not can_identify(language):
        return False
    return identify(asked, (language,)) != language


def _gives_away(draft: Draft, given: Given) -> bool:
    """The question has all words of the correct option, and of no other one."""
    if len(draft.correct) != 1:
        return False
    question = _words(draft.question)
    told = [place for place, option in enumerate(draft.options) if _words(option) <= question]
    answer = draft.options[draft.correct[0]]
    return told == list(draft.correct) and sum(map(str.isalnum, answer)) >= _LETTERS


#: Filters that look at one question.
FILTERS: dict[str, Callable[[Draft, Given], bool]] = {
    "number of options": lambda draft, given: len(draft.options) != given.spec.options,
    "not exactly one correct": lambda draft, given: len(draft.correct) != 1,
    "empty": _has_empty,
    "equal options": _has_equal,
    "refers to the text": _refers,
    "language": _is_in_another_language,
    "answer given away": _gives_away,
}
DUPLICATE = "near-duplicate"
#: The engine gave no answer.
ERROR = "error"
#: What an answer can be that is no question at all.
NO_QUESTION = (ERROR, "cut short", "malformed")


def judge(draft: Draft, given: Given, seen: "Seen") -> str:
    """The status of a question.

    Args:
        draft: as it was read.
        given: what it was made from.
        seen: questions that were accepted before it.
    """
    failed = [name for name, fails in FILTERS.items() if fails(draft, given)]
    if not failed and seen.is_near(draft.question):
        failed = [DUPLICATE]
    return ",".join(failed) or "ok"


class Seen:
    """Questions that were accepted.

    Two are near-duplicates if they share so many of their words (Jaccard) and name the same things: the
    numbers and the words with a capital inside the question are equal ("... the cup in 1998?" and "... the
    cup in 2002?" are two questions).

    Args:
        similarity: share of all their words that two questions have in common.
    """

    def __init__(self, similarity: float) -> None:
        self._similarity = similarity
        self._by_names: dict[frozenset[str], list[frozenset[str]]] = defaultdict(list)

    def is_near(self, question: str) -> bool:
        """Whether a question is a near-duplicate of one of them."""
        words = _words(question)
        return any(
            len(words & other) >= self._similarity * len(words | other)
            for other in self._by_names[_named(question)]
        )

    def add(self, question: str) -> None:
        """Accept one."""
        self._by_names[_named(question)].append(_words(question))


def _named(question: str) -> frozenset[str]:
    """Numbers, and words with a capital that do not stand first."""
    words = _WORD.findall(question)
    capital = (word for word in words[1:] if word[0].isupper())
    return frozenset((*(word for word in words if any(map(str.isdigit, word))), *capital))
