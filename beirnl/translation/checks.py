"""Checks on translations: one table, one name per fault.

A row's status is ``ok`` or the names of the checks that failed, joined by ``,``. The checks are meant to find
what must be asked again, so they keep quiet where a good translator would be in doubt: on professional
translations (NTREX, English to Dutch) fewer than one in a hundred is flagged.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from beirnl.specs import CheckSpec
from beirnl.translation import numbers
from beirnl.translation.language import can_identify, identify

Texts = Sequence[tuple[str, str]]  # (title, text) per row


class Row(NamedTuple):
    """One source, its translation, and how the answer ended."""

    source_title: str
    source: str
    title: str
    text: str
    finish_reason: str
    problems: tuple[str, ...]
    source_language: str
    target_language: str

    @property
    def before(self) -> str:
        """All of the source."""
        return f"{self.source_title}\n{self.source}".strip()

    @property
    def after(self) -> str:
        """All of the translation."""
        return f"{self.title}\n{self.text}".strip()


class Check(NamedTuple):
    """A fault that a translation can have.

    Attributes:
        failed: whether a row has it.
        keeps: what stands in the result if no attempt is better: the ``answer``, the ``source``, or the
            answer with the source's ``title``.
        weight: how bad it is; the attempt with the smallest sum is kept.
        final: whether nothing else can be said of such a row.
    """

    failed: Callable[[Row, CheckSpec], bool]
    keeps: Literal["answer", "title", "source"] = "answer"
    weight: int = 1
    final: bool = False


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PUNCTUATION = ".,;:!?()[]\"'‘’“”„«»…–—"
_SLACK = 20  # characters by which any two lengths may differ
_DEGENERATE_RUN = re.compile(r"([^\s\d])\1{9,}")
_PHRASE_WORDS = 12  # longest phrase whose repetition at the end is looked for
_MARKUP = re.compile(
    r"</?\s*(?:title|body|query|document|text|source|translation)\s*[/\\]?\s*>"
    r"|\b(?:QUERY|DOCUMENT|English|Dutch|Title|Translation|Vertaling|Nederlands|Engels):(?=\s|$)"
    r"|```|<\|\w+\|>|<(?:start|end)_of_turn>|\[/?INST\]"
)
_PREAMBLE = re.compile(
    r"\W*(?:(?:sure|certainly|of course|okay|natuurlijk|zeker|uiteraard)\s*[,!.:]+\s*)?"
    r"(?:(?:here(?:['’]s| is| are)|below is|this is|hier(?:onder)? (?:is|volgt|vind je|vindt u)|dit is"
    r"|the|de|my|een)\s+(?:\w+\s+){0,3}?)?"
    r"(?:translation|translated (?:text|query|document|version)|vertaling|vertaalde \w+)\b[^.!?\n]{0,60}:"
    r"|\W*(?:sure|certainly|of course|natuurlijk|zeker|uiteraard)\s*[!,:]\s+(?:here|i |hier|ik )",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]?m|i am) (?:very )?(?:sorry|afraid|unable|not able)\b"
    r"|i (?:cannot|can['’]?t|can not|won['’]?t)\b|as an? (?:ai|(?:large )?language model)\b"
    r"|(?:sorry|my apologies|i apologi[sz]e)\b[^.]{0,40}\b(?:i|but)\b"
    r"|(?:het )?(?:spijt me|sorry|excuses|helaas)\b[^.]{0,40}\b(?:kan|mag|ben) ik\b[^.]{0,40}\bniet\b"
    r"|(?:het )?spijt me[^.]{0,30}\b(?:maar|dat) ik\b"
    r"|ik kan (?:u|je|deze|dit|hier|niet)\b[^.]{0,60}\b(?:niet|vertal)"
    r"|als (?:een )?(?:ai|taalmodel|ai-\w+)\b)",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,40}\b(?:instructions?|prompts?|rules|directions)\b",
    re.IGNORECASE,
)
_COMMAND_TRANSLATED = re.compile(
    r"instruct|aanwijzing|opdracht|regels|prompt|voorschrift|richtlijn|anweisung|istruzion|consigne",
    re.IGNORECASE,
)


def check_rows(
    sources: Texts,
    translations: Texts,
    finish_reasons: Sequence[str],
    source_language: str,
    target_language: str,
    spec: CheckSpec,
    problems: Sequence[tuple[str, ...]] | None = None,
) -> list[str]:
    """Statuses of rows, in their order.

    Args:
        sources, translations: title and text of each row.
        finish_reasons: how each answer ended: ``stop``, ``length`` or ``error``.
        source_language, target_language: ISO 639-1 codes.
        spec: thresholds.
        problems: names of checks that failed while the answer was parsed.
    """
    problems = problems or [()] * len(sources)
    columns = zip(sources, translations, finish_reasons, problems, strict=True)
    return [
        status(Row(*source, *translation, reason, found, source_language, target_language), spec)
        for source, translation, reason, found in columns
    ]


def status(row: Row, spec: CheckSpec) -> str:
    """``ok``, or the names of failed checks joined by ``,``."""
    if not _says_something(row.before):
        return "error" if row.finish_reason == "error" else "ok"
    failed = []
    for name, check in CHECKS.items():
        if name in row.problems or check.failed(row, spec):
            failed.append(name)
            if check.final:
                break
    return ",".join(failed) or "ok"


def accept(row_status: str, source: tuple[str, str], translation: tuple[str, str]) -> tuple[str, str]:
    """Title and text that stand in the result: the translation as far as it is usable, else the source.

    No part is empty whose source was not, and none is invented where the source has none.

    Args:
        row_status: as :func:`status` gives it.
        source, translation: title and text.
    """
    keeps = {CHECKS[name].keeps for name in row_status.split(",") if name != "ok"}
    if "source" in keeps:
        return source
    title, text = ("", translation[1]) if "title" in keeps else translation
    return (title or source[0]) if source[0] else "", (text or source[1]) if source[1] else ""


def badness(row_status: str) -> int:
    """Sum of the weights of failed checks; of several attempts the one with the smallest is the best."""
    return sum(CHECKS[name].weight for name in row_status.split(",") if name != "ok")


# The checks -------------------------------------------------------------------------------------------------


def _says_something(text: str) -> bool:
    return _WORD.search(text) is not None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _is_prose(text: str, spec: CheckSpec) -> bool:
    """Whether a text has enough plain words to be in a language: names, numbers and code have not."""
    found = 0
    for token in text.split():
        word = token.strip(_PUNCTUATION).replace("-", "")
        found += len(word) > 1 and word.isalpha() and word.islower()
        if found == spec.min_words:
            return True
    return found >= spec.min_words


def _empty(row: Row, spec: CheckSpec) -> bool:
    return not row.text.strip() and bool(row.source.strip() or not row.title.strip())


def _repetition(row: Row, spec: CheckSpec) -> bool:
    """Only punctuation, one character over and over, or phrases that come back more than in the source."""
    before, after = row.before, row.after
    if not _says_something(row.text or row.title):
        return True
    if _DEGENERATE_RUN.search(after) and not _DEGENERATE_RUN.search(before):
        return True
    words = _words(after)
    repeated, loop = _repeated_share(words), _ends_in_a_loop(words)
    if repeated <= spec.max_repetition and not loop:
        return False
    source_words = _words(before)  # a source may be repetitive itself
    return repeated > max(spec.max_repetition, _repeated_share(source_words) + 0.2) or (
        loop and not _ends_in_a_loop(source_words)
    )


def _repeated_share(words: list[str]) -> float:
    """Share of three-word phrases that have occurred before."""
    phrases = list(zip(words, words[1:], words[2:], strict=False))
    return 1 - len(set(phrases)) / len(phrases) if phrases else 0.0


def _ends_in_a_loop(words: list[str]) -> bool:
    """Whether the text ends with one phrase four times, or one word six times."""
    for length in range(1, _PHRASE_WORDS + 1):
        times = 6 if length == 1 else 4
        phrase = words[-length:]
        if len(words) >= length * times and words[-length * times :] == phrase * times:
            return True
    return False


def _copied(row: Row, spec: CheckSpec) -> bool:
    before, after = (row.source, row.text) if row.source.strip() else (row.source_title, row.title)
    if row.source_language == row.target_language or _words(before[:200])[:-1] != _words(after[:200])[:-1]:
        return False
    return (
        _words(before) == _words(after)
        and _is_prose(row.before, spec)
        and (
            _identified(row.before, row, spec) == row.source_language or not can_identify(row.source_language)
        )
    )


def _language(row: Row, spec: CheckSpec) -> bool:
    """Another language than the target, unless the source is not recognisably in its own either."""
    text = row.text or row.title
    if not _is_prose(text, spec) or not can_identify(row.target_language) or _copied(row, spec):
        return False
    found = _identified(text, row, spec)
    if found == row.target_language:
        return False
    return found == row.source_language or _identified(row.before, row, spec) != found


def _identified(text: str, row: Row, spec: CheckSpec) -> str:
    """The language of the text's first words."""
    beginning = " ".join(text.split(maxsplit=spec.language_words)[: spec.language_words])
    return identify(beginning, (row.source_language, row.target_language))


def _length_ratio(row: Row, spec: CheckSpec) -> bool:
    if not row.source.strip():
        return False
    before, after = len(row.source), len(row.text)
    too_short = after + _SLACK < spec.min_length_ratio * before
    return too_short or after > spec.max_length_ratio * before + _SLACK


def _new(pattern: re.Pattern[str], row: Row) -> bool:
    """Whether the translation has what the source has not."""
    return pattern.search(row.after) is not None and pattern.search(row.before) is None


def _new_at_start(pattern: re.Pattern[str], row: Row) -> bool:
    """Whether title or text begin so, and the source does not."""
    after, before = (row.title, row.text), (row.source_title, row.source)
    return any(map(pattern.match, after)) and not any(map(pattern.match, before))


def _title_lost(row: Row, spec: CheckSpec) -> bool:
    return _says_something(row.source_title) and not _says_something(row.title)


def _obeyed(row: Row, spec: CheckSpec) -> bool:
    """A document's own instruction was followed: the source gives one, and the translation does not."""
    return bool(_COMMAND.search(row.before)) and not _COMMAND_TRANSLATED.search(row.after)


#: Checks by the name that stands in a status, in the order in which they are made and named.
CHECKS: dict[str, Check] = {
    "error": Check(lambda row, _: row.finish_reason == "error", "source", 100, final=True),
    "empty": Check(_empty, "source", 90, final=True),
    "truncated": Check(lambda row, _: row.finish_reason == "length", "answer", 10),
    "repetition": Check(_repetition, "source", 50),
    "refusal": Check(lambda row, _: _new_at_start(_REFUSAL, row), "source", 50),
    "preamble": Check(lambda row, _: _new_at_start(_PREAMBLE, row), "answer", 3),
    "instruction": Check(_obeyed, "source", 50),
    "markup": Check(lambda row, _: _new(_MARKUP, row), "answer", 3),
    "title-lost": Check(_title_lost, "title", 5),
    "copied": Check(_copied, "source", 40),
    "language": Check(_language, "source", 30),
    "length-ratio": Check(_length_ratio, "answer", 10),
    "numbers": Check(lambda row, _: numbers.changed(row.before, row.after), "answer", 5),
}
