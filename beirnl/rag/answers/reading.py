"""The option that an answer names, where that is unambiguous; and how sure the LLM was of each."""

import math
import re
import unicodedata
from collections.abc import Sequence

INVALID = -1

_WORDS = (
    "zero one two three four five six seven eight nine",
    "nul één twee drie vier vijf zes zeven acht negen",
    "zero uno due tre quattro cinque sei sette otto nove",
    "null eins zwei drei vier fünf sechs sieben acht neun",
    "zéro un deux trois quatre cinq six sept huit neuf",
    "cero uno dos tres cuatro cinco seis siete ocho nueve",
)
#: Numbers as words, in the languages of the prompts; those that languages share mean the same in all.
_NUMBERS = {word: number for words in _WORDS for number, word in enumerate(words.split())}
_NUMBERS["een"] = 1
# A whole number that is no part of a longer one, of a fraction or of a range, and not below 0.
_WHOLE = re.compile(r"(?<![\w.,/+−–-])(\d+)(?![\w/%]|[.,−–-]\d)")
_BEGIN = re.compile(r"[^\w.,/+−–-]*(\d{1,9})(?:[.:)\]}*]+(?!\d)|$|(?=\s))\s*")
_ALONE = re.compile(r"[\W_]*(\w+)[\W_]*")
_CUE = re.compile(
    r"\b(?:answer|option|choice|antwoord|optie|keuze|risposta|opzione|antwort|réponse|respuesta|opción)\b"
    r"(?:\s+(?:is|number|nummer|numero|è|ist|est|es)\b)*\W{0,8}?(?<![-−])\b(\w+)",
    re.IGNORECASE,
)


def read_option(answer: str, options: Sequence[str]) -> int:
    """The place, as it was shown, of the option that an answer names; -1 where it names none or several.

    Read are a number alone (``2``, ``2.``, ``(2)``), one in words (``two``), one behind a cue (``Answer: 2``)
    or before the option's own text (``2. Paris``), the only number in a sentence, and the text of one option.

    Args:
        answer: what the LLM wrote.
        options: texts in the order in which they were shown.
    """
    answer = unicodedata.normalize("NFKC", answer).strip()
    found = _numbers(answer, options)
    if not found:
        found = {place for place, option in enumerate(options) if _plain(option) == _plain(answer) != ""}
    place = found.pop() if len(found) == 1 else INVALID
    return place if 0 <= place < len(options) else INVALID


def _numbers(answer: str, options: Sequence[str]) -> set[int]:
    """Numbers that an answer can mean."""
    alone = _ALONE.fullmatch(answer)
    if alone and alone[1].lower() in _NUMBERS:
        return {_NUMBERS[alone[1].lower()]}
    cued = {number for word in _CUE.findall(answer) if (number := _number(word)) is not None}
    if cued:
        return cued
    begin = _BEGIN.match(answer)
    if begin is None or int(begin[1]) >= len(options):
        return set(map(int, _WHOLE.findall(answer)))
    rest = answer[begin.end() :].removeprefix(options[int(begin[1])].strip())
    others = (int(number) for number in _WHOLE.findall(rest))  # years, say
    return {int(begin[1]), *(number for number in others if number < len(options))}


def _number(word: str) -> int | None:
    return int(word) if word.isdecimal() else _NUMBERS.get(word.lower())


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .\"'")


def read_logprobs(told: Sequence[tuple[str, float]], options: int) -> list[float]:
    """Log-probabilities of the numbers of the options, in the order in which they were shown.

    Tokens that differ only in blanks are one number: their probabilities are added. A number that is not
    among the tokens that were told has ``-inf``; where none is, or nothing was told, the list is empty.

    Args:
        told: first tokens and their natural log-probabilities.
        options: how many there are.
    """
    mass = [0.0] * options
    for token, logprob in told:
        token = token.strip(" \u2581\u0120")  # SentencePiece and byte-level vocabularies mark blanks so
        if token.isdecimal() and token.isascii() and str(int(token)) == token and int(token) < options:
            mass[int(token)] += math.exp(logprob)
    return [math.log(one) if one else -math.inf for one in mass] if any(mass) else []
