"""The checks on translations against professional ones: NTREX, 1,997 news sentences in three languages."""

import re
from collections import Counter

import pytest
from planted_faults import FAULTS, good_rows, plant
from support import shared

from beirnl.specs import CheckSpec
from beirnl.translation.checks import check_rows, needs_repair
from beirnl.translation.lengths import histogram, learn, ratios

FILES = {"en": "src.eng", "nl": "ref.nld", "it": "ref.ita"}


def sentences(language):
    path = shared("ntrex", f"newstest2019-{FILES[language]}.txt")
    return [("", line.strip()) for line in path.read_text(encoding="utf-8-sig").splitlines()]


def checked(sources, translations, languages=("en", "nl"), reason="stop"):
    reasons = [reason] * len(sources)
    bounds = learn(histogram(ratios(sources, translations, reasons)))
    return check_rows(sources, translations, reasons, *languages, CheckSpec(), None, bounds)


def dutch(translations):
    """Statuses of translations into Dutch, with the bounds that the good ones teach."""
    sources, reasons = sentences("en"), ["stop"] * 1997
    bounds = learn(histogram(ratios(sources, sentences("nl"), reasons)))
    return check_rows(sources, translations, reasons, "en", "nl", CheckSpec(), None, bounds)


def names(statuses):
    return Counter(name for status in statuses if status != "ok" for name in status.split(","))


@pytest.mark.parametrize("languages", [("en", "nl"), ("nl", "en"), ("en", "it"), ("it", "en"), ("it", "nl")])
def test_professional_translations_are_left_alone(languages):
    statuses = checked(*map(sentences, languages), languages)
    assert len(statuses) == 1997
    assert sum(map(needs_repair, statuses)) < 0.01 * len(statuses), names(statuses)
    assert sum(status != "ok" for status in statuses) < 0.03 * len(statuses), names(statuses)


@pytest.mark.parametrize("words", [4, 6, 8, 12])
def test_beginnings_of_them_are_not_taken_for_another_language(words):
    sources, translations = (
        [("", " ".join(text.split()[:words])) for _, text in sentences(language)] for language in ("en", "nl")
    )
    assert names(checked(sources, translations))["language"] < 0.005 * len(sources)


def test_thirty_planted_faults_are_all_caught_under_their_names():
    rows = good_rows(sentences("en"), sentences("nl"), 1000)
    spoilt, expected = plant(rows)
    assert len(expected) == len(FAULTS) >= 30
    sources, translations, reasons, problems = map(list, zip(*spoilt, strict=True))
    bounds = learn(histogram(ratios(sources, translations, reasons)))
    statuses = check_rows(sources, translations, reasons, "en", "nl", CheckSpec(), problems, bounds)
    missed = {
        place: (FAULTS[n].what, statuses[place], spoilt[place])
        for n, place in enumerate(expected)
        if FAULTS[n].name not in statuses[place].split(",")
    }
    assert not missed
    good = [status for place, status in enumerate(statuses) if place not in expected]
    assert sum(map(needs_repair, good)) < 0.01 * len(good), names(good)
    assert sum(status != "ok" for status in good) < 0.03 * len(good), names(good)


def test_the_planted_faults_are_of_all_kinds():
    kinds = {fault.name for fault in FAULTS}
    assert kinds >= {
        "error", "empty", "truncated", "malformed", "repetition", "refusal", "preamble", "instruction",
        "markup", "title-lost", "copied", "language", "length-ratio", "numbers",
    }  # fmt: skip


def test_english_and_italian_in_place_of_dutch_are_found():
    long_enough = [n for n, (_, text) in enumerate(sentences("en")) if len(text.split()) >= 8]
    copied, italian = dutch(sentences("en")), dutch(sentences("it"))
    assert sum("copied" in copied[n].split(",") for n in long_enough) > 0.99 * len(long_enough)
    assert sum("language" in italian[n].split(",") for n in long_enough) > 0.99 * len(long_enough)


def test_half_of_a_longer_text_is_found_missing_and_the_double_too_much():
    """Five sentences a document, as corpora have; single ones vary more."""
    sources, translations = (
        [("", " ".join(text for _, text in rows[n : n + 5])) for n in range(0, 1995, 5)]
        for rows in (sentences("en"), sentences("nl"))
    )
    bounds = learn(histogram(ratios(sources, translations, ["stop"] * len(sources))))
    for change in (lambda text: text[: len(text) // 2], lambda text: f"{text} {text[::-1]}"):
        changed = [("", change(text)) for _, text in translations]
        statuses = check_rows(
            sources, changed, ["stop"] * len(sources), "en", "nl", CheckSpec(language=False), None, bounds
        )
        assert names(statuses)["length-ratio"] > 0.95 * len(sources)


EVERYWHERE = {
    "empty": lambda text: " ",
    "repetition": lambda text: f"{text} " + "en nog een keer " * 12,
    "preamble": lambda text: f"Hier is de vertaling: {text}",
    "refusal": lambda text: "Het spijt me, maar ik kan deze tekst niet vertalen.",
    "markup": lambda text: f"{text} </body>",
}


@pytest.mark.parametrize("fault", EVERYWHERE)
def test_a_fault_planted_in_every_translation_is_found_under_its_name(fault):
    statuses = dutch([("", EVERYWHERE[fault](text)) for _, text in sentences("nl")])
    assert names(statuses)[fault] > 0.99 * len(statuses)


def test_a_changed_year_is_found_in_every_translation_that_has_one():
    year = re.compile(r"\b(?:19|20)\d\d\b")
    english, translated = sentences("en"), sentences("nl")
    with_year = [
        n
        for n, (_, text) in enumerate(translated)
        if set(year.findall(text)) & set(year.findall(english[n][1]))
    ]
    statuses = dutch([("", year.sub(lambda found: str(int(found[0]) + 7), text)) for _, text in translated])
    found = [n for n in with_year if "numbers" in statuses[n].split(",")]
    assert len(with_year) > 50
    assert len(found) >= 0.95 * len(with_year), [translated[n] for n in with_year if n not in found][:5]


def test_human_translations_of_a_manual_are_left_alone():
    """A quarter of LibreOffice's help, with headings, code and keys; some of it was left in English."""
    path = shared("libreoffice_help", "parallel_paragraphs.tsv")
    pairs = [line.split("\t")[3:5] for line in path.read_text(encoding="utf-8").splitlines()[1::4]]
    sources, translations = ([("", pair[side]) for pair in pairs] for side in (0, 1))
    statuses = checked(sources, translations)
    others = [status for status in statuses if "copied" not in status.split(",")]
    assert sum(map(needs_repair, others)) < 0.01 * len(others), names(others)
