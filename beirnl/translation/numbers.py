"""Numbers and addresses that a translation must keep.

A good translator rewrites some numbers: miles become kilometres, 3 p.m. becomes 15 uur, the 1980s become de
jaren 80, and small numbers become words. Those are left out of the comparison.
"""

import re

#: Web and mail addresses, without the punctuation that ends a sentence.
_ADDRESS = re.compile(r"https?://[^\s<>\"')\]]*[\w/]|www\.[^\s<>\"')\]]*[\w/]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_THOUSANDS = re.compile(r"(?<=\d)[.,'’\u00a0\u202f\u2009 ](?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d+")

_LIST = r"\d[\d.,/]*(?:\s*(?:-|–|to|and|or)\s*\d[\d.,/]*)*"  # 5, 2.5, 2-3, 1 to 4
_UNITS = (
    r"miles?|mi|mph|feet|foot|ft|inch(?:es)?|yards?|yds?|acres?|pounds?|lbs?|ounces?|oz|stones?|gallons?|pints?"
    r"|degrees?|fahrenheit|knots?"
)
_REWRITTEN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_LIST}[\s-]*(?:square |cubic |sq\.? )?(?:{_UNITS})\b(?:[\s-]*\d+)?",  # also 6-foot-6
        rf"{_LIST}\s*(?:°\s*F?|['′\"″](?!\w))",
        r"\d{1,2}(?:[:.]\d\d)?(?:\s*(?:-|–|to)\s*\d{1,2}(?:[:.]\d\d)?)?\s*(?:[ap]\.?\s?m\b\.?|o['’]clock|noon)",
        r"\b\d{1,2}:\d\d\b",
        r"\b(?:in (?:his|her|their) )?(?:early |mid-?|late )?['’]?\d*\d0['’]?s\b",  # 1980s, '90s
    )
)


def changed(source: str, translation: str) -> bool:
    """Whether a number or an address of the source is replaced or lost.

    A number counts as replaced if the translation lacks it and has one that the source lacks, and as lost if
    it has three digits or more; a shorter one may have become a word.
    """
    if any(address not in translation for address in _ADDRESS.findall(source)):
        return True
    source, translation = _ADDRESS.sub(" ", source), _ADDRESS.sub(" ", translation)
    before, after = _numbers(source), _numbers(translation)
    if before <= after:
        return False
    missing = _numbers(_without_rewritten(source)) - after
    return bool(missing) and (bool(after - before) or any(len(number) > 2 for number in missing))


def _without_rewritten(text: str) -> str:
    for pattern in _REWRITTEN:
        text = pattern.sub(" ", text)
    return text


def _numbers(text: str) -> set[str]:
    """Runs of digits, without thousands separators and leading zeros; decimals are a run of their own."""
    return {number.lstrip("0") or "0" for number in _NUMBER.findall(_THOUSANDS.sub("", text))}
