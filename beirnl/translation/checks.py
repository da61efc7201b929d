"""Checks on translations: one table, one name per fault.

A row's status is ``ok`` or the names of the checks that failed, joined by ``,``. Most send a row to repair; a
note only stands in the status. The checks keep quiet where a good translator would be in doubt, and texts
that are too short or in no language ("COVID-19") are exempt from what cannot apply: of professional
translations (NTREX, English to Dutch and back, and to Italian) fewer than one in a hundred goes to repair.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from beirnl.specs import CheckSpec
from beirnl.translation import numbers, phrases
from beirnl.translation.language import can_identify, identify, identify_many, unspaced
from beirnl.translation.lengths import LEAST_CHARACTERS, Bounds, limits
from beirnl.translation.repetition import PASSAGE, passages, repeats

Texts = Sequence[tuple[str, str]]  # (title, text) per row
Kept = Literal["answer", "title", "source"]


class Row(NamedTuple):
    """One source, its translation, and what is known of them.

    Attributes:
        source_title, source, title, text: the row and its translation.
        finish_reason: how the answer ended.
        problems: names of checks that failed while the answer was parsed.
        before, after: title and text together.
        source_words, words: texts cut at white space; titles where there is no text.
        language: which language the translation is in; empty where that is not judged.
    """

    source_title: str
    source: str
    title: str
    text: str
    finish_reason: str
    problems: tuple[str, ...]
    before: str
    after: str
    source_words: list[str]
    words: list[str]
    language: str = ""


class Given(NamedTuple):
    """What holds for all rows: languages, thresholds, and between which factors lengths may differ."""

    source_language: str
    target_language: str
    spec: CheckSpec
    shortest: float
    longest: float


class Check(NamedTuple):
    """A fault that a translation can have.

    Attributes:
        failed: whether a row has it.
        keeps: what stands in the result if no attempt is better: the ``answer``, the ``source``, or the
            answer with the source's ``title``.
        weight: how bad it is; the attempt with the smallest sum is kept.
        final: whether nothing else can be said of such a row.
        repair: whether the row is asked for again; if not, the name is a note.
    """

    failed: Callable[[Row, Given], bool]
    keeps: Kept = "answer"
    weight: int = 1
    final: bool = False
    repair: bool = True


_WORD = re.compile(r"[^\W_]")
_PUNCTUATION = ".,;:!?()[]\"'‘’“”„«»…–—。、，：；！？「」『』（）"
_ROWS = 512  # rows whose words are held at once
_CHARACTERS_PER_WORD = 16  # the language is identified from at most that many characters per word
_SLACK, _SHORT_SLACK = 8, 20  # characters by which any two lengths may differ, and those of short sources
_COPIED = 0.9  # share of words that stand in the source, from which the whole is a copy


def check_rows(
    sources: Texts,
    translations: Texts,
    finish_reasons: Sequence[str],
    source_language: str,
    target_language: str,
    spec: CheckSpec,
    problems: Sequence[tuple[str, ...]] | None = None,
    bounds: Bounds | None = None,
) -> list[str]:
    """Statuses of rows, in their order; that of a row depends on no other row.

    Args:
        sources, translations: title and text of each row.
        finish_reasons: how each answer ended: ``stop``, ``length`` or ``error``.
        source_language, target_language: ISO 639-1 codes.
        spec: thresholds.
        problems: names of checks that failed while the answer was parsed.
        bounds: of the length ratio, learned from the dataset; see :func:`beirnl.translation.lengths.limits`.
    """
    given = Given(source_language, target_language, spec, *limits(bounds, spec))
    columns = zip(sources, translations, finish_reasons, problems or [()] * len(sources), strict=True)
    statuses: list[str] = []
    while some := list(islice(columns, _ROWS)):
        rows = [_row(*source, *translation, reason, found) for source, translation, reason, found in some]
        statuses += [_status(row, given) for row in _with_languages(rows, given)]
    return statuses


def accept(row_status: str, source: tuple[str, str], translation: tuple[str, str]) -> tuple[str, str]:
    """Title and text that stand in the result: the translation as far as it is usable, else the source.

    No part is empty whose source was not, and none is invented where the source has none.

    Args:
        row_status: as :func:`check_rows` gives it.
        source, translation: title and text.
    """
    kept = keeps(row_status)
    title, text = {"source": source, "title": ("", translation[1]), "answer": translation}[kept]
    return (title or source[0]) if source[0] else "", (text or source[1]) if source[1] else ""


def keeps(row_status: str) -> Kept:
    """What a row has: an ``answer``, an answer with the source's ``title``, or the ``source`` itself."""
    found = {check.keeps for check in _failed(row_status)}
    return "source" if "source" in found else "title" if "title" in found else "answer"


def badness(row_status: str) -> int:
    """Sum of the weights of failed checks; of several attempts the one with the smallest is the best."""
    return sum(check.weight for check in _failed(row_status))


def needs_repair(row_status: str) -> bool:
    """Whether a row is asked for again: a check failed that is more than a note."""
    return any(check.repair for check in _failed(row_status))


def _failed(row_status: str) -> Iterator[Check]:
    return (CHECKS[name] for name in row_status.split(",") if name in CHECKS)  # other versions have others


def _row(
    source_title: str, source: str, title: str, text: str, reason: str, problems: tuple[str, ...]
) -> Row:
    before = f"{source_title}\n{source}".strip() if source_title else source.strip()
    after = f"{title}\n{text}".strip() if title else text.strip()
    words = (text if text.strip() else title).split()
    source_words = (source if source.strip() else source_title).split()
    return Row(source_title, source, title, text, reason, problems, before, after, source_words, words)


def _with_languages(rows: list[Row], given: Given) -> list[Row]:
    """The rows with the language of those that are judged for it: all of them identified at once."""
    if not (given.spec.language and can_identify(given.target_language)):
        return rows
    judged = [n for n, row in enumerate(rows) if _is_prose(row.words, given.spec)]
    texts = [_beginning(rows[n].words, given.spec) for n in judged]
    for n, language in zip(judged, identify_many(texts, _languages(given)), strict=True):
        rows[n] = rows[n]._replace(language=language)
    return rows


def _status(row: Row, given: Given) -> str:
    judged = CHECKS if _says_something(row.before) else _OF_ANY_ROW
    failed = []
    for name, check in judged.items():
        if name in row.problems or check.failed(row, given):
            failed.append(name)
            if check.final:
                break
    return ",".join(failed) or "ok"


# What is known of texts -------------------------------------------------------------------------------------


def _says_something(text: str) -> bool:
    return _WORD.search(text) is not None


def _languages(given: Given) -> tuple[str, str]:
    return given.source_language, given.target_language


def _beginning(words: list[str], spec: CheckSpec) -> str:
    """The first words, from which the language is identified."""
    return " ".join(words[: spec.language_words])[: spec.language_words * _CHARACTERS_PER_WORD]


def _is_in(language: str, words: list[str], given: Given) -> bool:
    """Whether the words are in a language, as far as that can be said."""
    if not can_identify(language):
        return True
    return identify(_beginning(words, given.spec), _languages(given)) == language


def _is_prose(words: list[str], spec: CheckSpec) -> bool:
    """Whether a text has enough different plain words to be in a language; names, numbers, code have not."""
    found: set[str] = set()
    for token in words:
        word = token.strip(_PUNCTUATION).replace("-", "")
        if word.isascii():
            if len(word) > 1 and word.isalpha() and word.islower():
                found.add(word)
        elif word[0].isalpha() and word == word.lower():
            found.update((word[n : n + 2] for n in range(0, len(word), 2)) if unspaced(word) else (word,))
        if len(found) >= spec.min_words:
            return True
    return False


# The checks -------------------------------------------------------------------------------------------------


def _empty(row: Row, given: Given) -> bool:
    return not row.text.strip() and bool(row.source.strip() or not row.title.strip())


def _repetition(row: Row, given: Given) -> bool:
    """Only punctuation, one character over and over, or phrases that come back more than in the source."""
    if not _says_something(row.text or row.title):
        return True
    most = given.spec.max_repetition
    if row.text and repeats(row.source, row.text, row.words, most):
        return True
    return bool(row.title) and repeats(row.source_title, row.title, row.title.split(), most)


def _copied(row: Row, given: Given) -> bool:
    """(Almost) all of it stands in the source."""
    if row.language == given.target_language or given.source_language == given.target_language:
        return False
    if not _is_prose(row.words, given.spec):
        return False
    kept = sum(end - begin for begin, end in passages(row.source_words, row.words))
    return kept >= _COPIED * len(row.words) and _is_in(given.source_language, row.source_words, given)


def _untranslated(row: Row, given: Given) -> bool:
    """A passage stands in the source; a quotation or the title of a work may."""
    if given.source_language == given.target_language:
        return False
    return any(
        end - begin >= PASSAGE
        and _is_prose(row.words[begin:end], given.spec)
        and _is_in(given.source_language, row.words[begin:end], given)
        for begin, end in passages(row.source_words, row.words)
    ) and not _copied(row, given)


def _language(row: Row, given: Given) -> bool:
    """Another language than the target, unless the source is not recognisably in its own either."""
    if row.language in ("", given.target_language) or _copied(row, given):
        return False
    return row.language == given.source_language or not _is_in(row.language, row.source_words, given)


def _length_ratio(row: Row, given: Given) -> bool:
    before, after = len(row.source.strip()), len(row.text)
    slack = _SLACK if before >= LEAST_CHARACTERS else _SHORT_SLACK
    too_short = after + slack < given.shortest * before
    return before > 0 and (too_short or after > given.longest * before + slack)


def _starts_new(pattern: re.Pattern[str], row: Row) -> bool:
    """Whether title or text begin so, and the source does not."""
    if not (pattern.match(row.text) or pattern.match(row.title)):
        return False
    return not (pattern.match(row.source) or pattern.match(row.source_title))


def _preamble(row: Row, given: Given) -> bool:
    if _starts_new(phrases.PREAMBLE, row):
        return True
    end = row.after[-phrases.CLOSING_LENGTH :].casefold()
    hints = phrases.CLOSING_HINTS + phrases.NOTE_HINTS if ":" in end else phrases.CLOSING_HINTS
    if not any(hint in end for hint in hints):
        return False
    before = row.before[-phrases.CLOSING_LENGTH :]
    return bool(phrases.CLOSING.search(end)) and not phrases.CLOSING.search(before)


def _markup(row: Row, given: Given) -> bool:
    """Tags, labels, escapes or the prompt's brackets that the source has not."""
    before, after = row.before, row.after
    if any(trace in after and trace not in before for trace in phrases.TRACES):
        return True
    patterns = []
    if "<" in after:
        patterns.append(phrases.TAGS)
    if "&" in after:
        patterns.append(phrases.ENTITY)
    if ":" in after and any(label in after for label in phrases.LABELS):
        patterns.append(phrases.LABEL)
    if any(pattern.search(after) and not pattern.search(before) for pattern in patterns):
        return True
    return row.text.startswith(("['", "[’", "[‘")) and not row.source.startswith("[")


def _title_lost(row: Row, given: Given) -> bool:
    """No title, or one so long that it is the beginning of the text."""
    longest = given.spec.max_length_ratio * len(row.source_title) + _SHORT_SLACK
    found = _says_something(row.title) and len(row.title) <= longest
    return _says_something(row.source_title) and not found


def _obeyed(row: Row, given: Given) -> bool:
    """What the document asks its reader was done: its instruction followed, or its question answered."""
    stems = phrases.COMMAND_STEMS.get(given.target_language)
    if not stems:
        return False
    if row.before.endswith("?") and "?" not in row.after:
        first = row.before.split(maxsplit=1)[0].casefold().lstrip("¿\"'“‘")
        if first in phrases.QUESTION_WORDS.get(given.source_language, ()):
            return True
    before = row.before.casefold()
    if not any(hint in before for hint in phrases.COMMAND_HINTS):
        return False
    after = row.after.casefold()
    return bool(phrases.COMMAND.search(before)) and not any(stem in after for stem in stems)


#: Checks by the name that stands in a status, in the order in which they are made and named.
CHECKS: dict[str, Check] = {
    "no-text": Check(lambda row, _: not row.before, weight=0, final=True, repair=False),  # nor has its source
    "error": Check(lambda row, _: row.finish_reason == "error", "source", 100, final=True),
    "empty": Check(_empty, "source", 90, final=True),
    "truncated": Check(lambda row, _: row.finish_reason == "length", "answer", 10),
    "malformed": Check(lambda row, _: False, "source", 80, final=True),  # found while parsing
    "repetition": Check(_repetition, "source", 50),
    "refusal": Check(lambda row, _: _starts_new(phrases.REFUSAL, row), "source", 50),
    "preamble": Check(_preamble, "answer", 3),
    "instruction": Check(_obeyed, "source", 50),
    "markup": Check(_markup, "answer", 3),
    "title-lost": Check(_title_lost, "title", 5),
    "copied": Check(_copied, "source", 40),
    "language": Check(_language, "source", 30),
    "untranslated": Check(_untranslated, "answer", 2, repair=False),
    "length-ratio": Check(_length_ratio, "answer", 10),
    "numbers": Check(lambda row, _: numbers.changed(row.before, row.after), "answer", 5),
}
_OF_ANY_ROW = {name: CHECKS[name] for name in ("no-text", "error")}  # also of one that says nothing: "?"
