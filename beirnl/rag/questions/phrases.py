"""How questions refer to the text that they were made from, in the languages that are looked at."""

import re

#: A reference is a preposition before one of the nouns, or one of the nouns before a verb of saying.
_WORDS: dict[str, tuple[str, str, str]] = {
    "en": (
        "in|according to|based on|as per|from|by|per",
        "(?:the|this) (?:above |given |following )?(?:text|article|passage|document|excerpt|author)",
        "says?|states?|mentions?|describes?|discusses?|suggests?|explains?|refers?",
    ),
    "nl": (
        "in|volgens|op basis van|uit|op grond van",
        "(?:de|het|deze|dit) (?:bovenstaande |gegeven )?(?:tekst|artikel|passage|document|fragment|auteur)",
        "zegt|stelt|noemt|vermeldt|beschrijft|bespreekt|suggereert|meldt",
    ),
    "it": (
        "secondo|in base a|da|in|nel|nello|nella|dal|dalla|sul|sulla",
        "(?:(?:il|questo|al|lo|la|questa|alla) |l'|all'|nell'|dell'|dall')?"
        "(?:testo|articolo|brano|documento|passaggio|autore)",
        "dice|afferma|menziona|descrive|parla|suggerisce|spiega|riporta",
    ),
    "de": (
        "in|im|laut|gemäß|nach|aufgrund",
        "(?:(?:dem|der|diesem|dieser|das|dieses) )?(?:text|artikel|abschnitt|dokument|auszug|autor)",
        "sagt|erwähnt|beschreibt|behandelt|nennt|erklärt",
    ),
    "fr": (
        "dans|selon|d'après|sur la base de",
        "(?:le |ce |cet |l')(?:texte|article|passage|document|extrait|auteur)",
        "dit|affirme|mentionne|décrit|parle|explique|évoque",
    ),
    "es": (
        "en|según|de acuerdo con|basado en",
        "(?:el|este) (?:texto|artículo|pasaje|documento|fragmento|autor)",
        "dice|afirma|menciona|describe|habla|explica",
    ),
}
_OF_SOMETHING = (
    r"(?! (?:of|van|di|del|della|dello|dei|des|der|du|de|d')\b)(?! \d)"  # "the text of the treaty"
)
_REFERENCES = re.compile(
    "|".join(
        rf"\b(?:(?:{before}) {noun}\b{_OF_SOMETHING}|{noun} (?:{verbs})\b)"
        for before, noun, verbs in _WORDS.values()
    ).replace("'", "['’]"),
    re.IGNORECASE,
)
# Italian and French prepositions that are written together with the noun.
_JOINED = re.compile(r"\b(?:nell|dall|all|sull)['’](?:articolo|autore)\b(?! \d)", re.IGNORECASE)


def refers_to_text(text: str) -> bool:
    """Whether a text speaks of "the text" or "the article" that it is about."""
    return bool(_REFERENCES.search(text) or _JOINED.search(text))
