"""Languages: their names in prompts, and which one a text is in."""

import copy
from functools import cache
from typing import Any

from beirnl.registry import unknown

#: English names by ISO 639-1 code, as prompts spell them.
NAMES: dict[str, str] = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fi": "Finnish", "fr": "French",
    "fy": "West Frisian", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lb": "Luxembourgish",
    "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip

#: Languages that a model drifts into; source and target join them. The fewer there are, the surer the answer.
CANDIDATES = ("ar", "da", "de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru", "sv", "tr", "zh")


def language_name(code: str) -> str:
    """English name of a language.

    Raises:
        ConfigError: the code is not known; names the nearest.
    """
    if code not in NAMES:
        raise unknown("language", code, NAMES)
    return NAMES[code]


def identify(text: str, languages: tuple[str, ...]) -> str:
    """The language of ``text``, as an ISO 639-1 code: the likeliest of :data:`CANDIDATES` and ``languages``.

    Languages that the identifier does not know are left out.
    """
    identifier = _identifier(tuple(sorted({*CANDIDATES, *languages})))
    return str(identifier.classify(text)[0])


def can_identify(code: str) -> bool:
    """Whether texts in this language are recognised."""
    return code in _base().labels


@cache
def _identifier(languages: tuple[str, ...]) -> Any:
    """One identifier per set of languages; they share their tables."""
    identifier = copy.copy(_base())
    identifier.set_languages([code for code in languages if can_identify(code)])
    return identifier


@cache
def _base() -> Any:
    """An identifier of our own: the library's shared one has one setting for the whole process."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)
