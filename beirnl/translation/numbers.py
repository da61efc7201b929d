"""Numbers and addresses that a translation must keep.

A good translator rewrites some numbers, in either direction: miles become kilometres, 3 p.m. becomes 15 uur,
the 1980s become de jaren 80, 1.5 million becomes 1,500,000, and small or round numbers become words. Those
are left out of the comparison.
"""

import re

#: Web and mail addresses, without the punctuation that ends a sentence.
_ADDRESS = re.compile(r"https?://[^\s<>\"')\]]*[\w/]|www\.[^\s<>\"')\]]*[\w/]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS_SIGNS = ("://", "www.", "@")
_THOUSANDS = re.compile(r"(?<=\d)[.,'’٬\u00a0\u202f\u2009 ](?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d+")
_ONLY_DIGITS = bytes(byte if byte in b"0123456789" else 32 for byte in range(256))
_ROUND = re.compile(r"10{2,}")  # a hundred, a thousand, a million
#: Digits of other scripts (Arabic, Persian, Devanagari, Bengali, Thai, full width) as ours.
_DIGITS = str.maketrans(
    {
        chr(zero + digit): str(digit)
        for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xFF10)
        for digit in range(10)
    }
)

_LIST = r"\d[\d.,/]*(?:\s*(?:-|–|to|and|or|tot|en|of|a|e|à|et|bis|und|y)\s*\d[\d.,/]*)*"  # 2.5, 2-3, 1 to 4
_IMPERIAL = (
    r"miles?|mi|mph|feet|foot|ft|inch(?:es)?|yards?|yds?|acres?|pounds?|lbs?|ounces?|oz|stones?|gallons?|pints?"
    r"|mijl(?:en)?|voet|duim|pond|ons|miglia|piedi|pollici|iarde|libbre|meilen?|fuß|zoll|pfund"
    r"|milles|pieds?|pouces?|livres|millas?|pies|pulgadas?|libras?"
)
_METRIC = (
    r"[kcm]?m|km/h|km/u|kmh|kg|ha|l|kilo(?:['’]?s)?|(?:kilo|centi|milli)?met(?:er|re|ro|ri|ros)s?|chilomet\w+|centimet\w+"
    r"|kilom[eèé]t\w+|cent[ií]m[eèé]t\w+|m[eèé]tres?|kilogram\w*|hect?ares?|ettari|lit(?:er|re|ro|ri)s?|ton(?:s|nes?|nen)?"
)
_EITHER = r"degrees?|fahrenheit|graden|gradi|grad|degrés?|grados|graus|knots?|knopen|nodi|nœuds"
_HOUR = r"\d{1,2}(?:[:.]\d\d)?"


def _with_unit(units: str) -> re.Pattern[str]:
    tail = r"(?:[\s-]*\d+)?"  # also 6-foot-6
    return re.compile(
        rf"{_LIST}[\s-]*(?:square |cubic |sq\.? |vierkante |kubieke )?(?:{units})\b{tail}", re.I
    )


_IMPERIAL_MEASURE, _METRIC_MEASURE = _with_unit(_IMPERIAL), _with_unit(_METRIC)
_ALWAYS_REWRITTEN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_LIST}[\s-]*(?:{_EITHER})\b",
        rf"{_LIST}\s*(?:°\s*[FC]?|º\s*[FC]?|['′\"″](?!\w))",
        rf"{_HOUR}(?:\s*(?:-|–|to)\s*\d{{1,2}}(?:[:.]\d\d)?)?\s*(?:[ap]\.?\s?m\b\.?|o['’]clock|noon)",
        rf"{_HOUR}(?:\s*(?:-|–|tot|bis|à)\s*{_HOUR})?\s*(?:uur|u\b|uhr\b|h\d{{0,2}}\b|heures?)",
        rf"\b(?:alle|ore|las)\s+{_HOUR}",
        r"\b\d{1,2}:\d\d\b",
        r"\b(?:in (?:his|her|their) )?(?:early |mid-?|late )?['’]?\d*\d0['’]?s\b",  # 1980s, '90s
        r"\b(?:jaren|anni|années|años|anos)\s+['’‘]?\d*\d0\b|\b\d*\d0er\b",
    )
)
_MAGNITUDES = {
    3: "thousand duizend tausend mila mille mil",
    4: "万 萬",
    6: "million millions miljoen milione milioni millionen mio mln millón millones milhão milhões",
    8: "亿 億",
    9: "billion billions miljard miliardo miliardi milliarde milliarden milliard milliards mrd mld bn",
    12: "trillion trillions biljoen bilioni billionen",
}
_ZEROS = {word: zeros for zeros, words in _MAGNITUDES.items() for word in words.split()}
_ZEROS["mil millones"] = 9
_MAGNITUDE = re.compile(
    rf"(\d+)(?:[.,](\d{{1,2}}))?[\s-]*({'|'.join(sorted(_ZEROS, key=len, reverse=True))})(?![a-z])", re.I
)


def changed(source: str, translation: str) -> bool:
    """Whether a number or an address of the source is replaced or lost.

    A number counts as replaced if the translation lacks it and has one that the source lacks, and as lost if
    it has three digits or more; a shorter or a round one may have become a word.
    """
    if any(sign in source for sign in _ADDRESS_SIGNS):
        if any(address not in translation for address in _ADDRESS.findall(source)):
            return True
        source, translation = _ADDRESS.sub(" ", source), _ADDRESS.sub(" ", translation)
    found = set(_runs(source)) if source.isascii() else {run.encode() for run in _NUMBER.findall(source)}
    return bool(found) and not found.issubset(_runs(translation)) and _changed(source, translation)


def _runs(text: str) -> list[bytes]:
    """Runs of ASCII digits; a quick first look."""
    return text.encode(errors="replace").translate(_ONLY_DIGITS).split()


def _changed(source: str, translation: str) -> bool:
    source, translation = (_THOUSANDS.sub("", text.translate(_DIGITS)) for text in (source, translation))
    before, after = _numbers(source), _numbers(translation)
    if before <= after:
        return False
    after |= {_expanded(found) for found in _MAGNITUDE.finditer(translation)}
    source = _MAGNITUDE.sub(lambda found: " " if _expanded(found) in after else found[0], source)
    missing = _numbers(_without_rewritten(source, translation)) - after
    if not missing:
        return False
    replaced = not _numbers(translation) <= before
    return replaced or any(len(number) > 2 and not _ROUND.fullmatch(number) for number in missing)


def _without_rewritten(text: str, other: str) -> str:
    """A text without what its translation ``other`` may give in other numbers."""
    patterns = list(_ALWAYS_REWRITTEN)
    if _METRIC_MEASURE.search(other):
        patterns.insert(0, _IMPERIAL_MEASURE)
    if _IMPERIAL_MEASURE.search(other):
        patterns.insert(0, _METRIC_MEASURE)
    for pattern in patterns:
        text = pattern.sub(" ", text)
    return text


def _numbers(text: str) -> set[str]:
    """Runs of digits, without leading zeros; decimals are a run of their own."""
    return {number.lstrip("0") or "0" for number in _NUMBER.findall(text)}


def _expanded(found: re.Match[str]) -> str:
    """A number with its magnitude in digits: 1.5 million is 1500000."""
    decimals, zeros = found[2] or "", _ZEROS.get(found[3].casefold(), 0)  # letters like ı match, and are no i
    return (found[1] + decimals).lstrip("0") + "0" * (zeros - len(decimals))
