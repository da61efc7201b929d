"""The checks on translations against professional ones: NTREX, 1,997 news sentences in English and Dutch."""

from collections import Counter

import pytest
from support import shared

from beirnl.specs import CheckSpec
from beirnl.translation.checks import check_rows


def _sentences(file: str) -> list[tuple[str, str]]:
    path = shared("ntrex", f"newstest2019-{file}.txt")
    return [("", line.strip()) for line in path.read_text(encoding="utf-8-sig").splitlines()]


def _statuses(translations: list[tuple[str, str]], reason: str = "stop") -> list[str]:
    sources = _sentences("src.eng")
    return check_rows(sources, translations, [reason] * len(sources), "en", "nl", CheckSpec())


def test_under_one_percent_of_professional_translations_is_flagged():
    statuses = _statuses(_sentences("ref.nld"))
    flagged = Counter(name for status in statuses if status != "ok" for name in status.split(","))
    assert len(statuses) == 1997
    assert sum(status != "ok" for status in statuses) < 0.01 * len(statuses), flagged


def test_english_and_italian_in_place_of_dutch_are_found():
    long_enough = [n for n, (_, text) in enumerate(_sentences("src.eng")) if len(text.split()) >= 8]
    copied = _statuses(_sentences("src.eng"))
    italian = _statuses(_sentences("ref.ita"))
    assert sum("copied" in copied[n].split(",") for n in long_enough) > 0.99 * len(long_enough)
    assert sum("language" in italian[n].split(",") for n in long_enough) > 0.99 * len(long_enough)


FAULTS = {
    "empty": lambda text: " ",
    "repetition": lambda text: f"{text} " + "en nog een keer " * 12,
    "preamble": lambda text: f"Hier is de vertaling: {text}",
    "refusal": lambda text: "Het spijt me, maar ik kan deze tekst niet vertalen.",
    "markup": lambda text: f"{text} </body>",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_planted_in_every_translation_is_found_under_its_name(fault):
    statuses = _statuses([("", FAULTS[fault](text)) for _, text in _sentences("ref.nld")])
    assert sum(fault in status.split(",") for status in statuses) > 0.99 * len(statuses)


def test_a_changed_year_is_found_in_every_translation_that_has_one():
    import re

    dutch = _sentences("ref.nld")
    year = re.compile(r"\b(?:19|20)\d\d\b")
    english = _sentences("src.eng")
    with_year = [
        n for n, (_, text) in enumerate(dutch) if set(year.findall(text)) & set(year.findall(english[n][1]))
    ]
    statuses = _statuses([("", year.sub(lambda found: str(int(found[0]) + 7), text)) for _, text in dutch])
    found = [n for n in with_year if "numbers" in statuses[n].split(",")]
    assert len(with_year) > 50
    assert len(found) >= 0.95 * len(with_year), [dutch[n] for n in with_year if n not in found][:5]
