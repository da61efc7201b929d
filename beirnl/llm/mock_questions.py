"""What the stand-in engine asks about a text, and answers: a sentence with a gap, and words that may fill it.

The question is right to ask of retrieval: who has the sentence in a passage knows the word, who has not has
to guess.
"""

import json
import re
import zlib

from beirnl.llm.answer_key import read_prompt
from beirnl.llm.protocol import Request

GAP = "____"
_BETWEEN_LINES = re.compile(r"^-{5,}\n(.*)\n-{5,}$", re.MULTILINE | re.DOTALL)
_MATCH = re.compile(r"^Given answer: (.*)\n\nOptions:\n((?:\(\d+\) .*\n?)+)", re.MULTILINE)
_GAPPED = re.compile(rf"^Question: (.*{GAP}.*)$((?s:.*))", re.MULTILINE)
_LABEL = re.compile(r"^Text: (.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+")
_WORD = re.compile(r"\b[^\W\d_]{5,}\b")


def write_question(request: Request) -> str:
    """A question about the text in a prompt, as JSON; a refusal where the text has too few words for it.

    Args:
        request: with the schema of the question; the text stands between two lines of dashes, or behind the
            last ``Text:``.
    """
    options = json.loads(request.json_schema)["properties"]["options"]["maxItems"]
    shown = [*_LABEL.findall(request.last_text), *_BETWEEN_LINES.findall(request.last_text)]
    text = shown[-1] if shown else request.last_text
    for sentence in sorted(_SENTENCE.findall(text), key=len, reverse=True):
        inside = _WORD.findall(sentence)
        once = [word for word in inside if sentence.casefold().count(word.casefold()) == 1]
        known = " ".join(inside).casefold()
        others = {word.casefold(): word for word in _WORD.findall(text) if word.casefold() not in known}
        if once and len(others) >= options - 1:
            word = max(once, key=len)
            asked = " ".join(re.sub(rf"\b{word}\b", GAP, sentence).split())
            return _written(f"{asked}?", word, sorted(others.values())[: options - 1])
    return "This text is too short to ask something."


def _written(question: str, answer: str, others: list[str]) -> str:
    words = [(answer, True), *((word, False) for word in others)]
    options = [
        {"text": word, "is_correct": right, "explanation": f"{word}: {str(right).lower()}"}
        for word, right in words
    ]
    return json.dumps({"question": question, "options": options}, ensure_ascii=False)


def choose(request: Request) -> str:
    """The number of the option with which the question's sentence stands in a passage, or which stands there
    by itself; a guess that depends on the question alone, where none does. Where an answer is given: that of
    the option which says the same, else the last choice."""
    if matched := _MATCH.search(request.last_text):
        return _matching(matched[1], matched[2].splitlines(), request.choices)
    read = read_prompt(request.last_text)
    if read is None:
        return request.choices[0]
    question = read.questions[-1]
    for number, option in enumerate(read.options):
        sought = question.rstrip("?").replace(GAP, option) if GAP in question else option
        if read.shows(question, sought):
            return str(number)
    return request.choices[zlib.crc32(question.encode()) % len(request.choices)]


def _matching(answer: str, options: list[str], choices: tuple[str, ...]) -> str:
    said = [option.partition(" ")[2].casefold() for option in options]
    return str(said.index(answer.casefold())) if answer.casefold() in said else choices[-1]


def answer_openly(request: Request) -> str | None:
    """The word that fills the gap of a question where its sentence stands in a passage; None where the
    request asks for something else."""
    asked = _GAPPED.search(request.last_text)
    if asked is None:
        return None
    before, _, behind = asked[1].rstrip("?").partition(GAP)
    found = re.search(rf"{re.escape(before)}(\w+){re.escape(behind)}", " ".join(asked[2].split()))
    return found[1] if found else "I cannot tell."
