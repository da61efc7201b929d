"""What the registry says of languages is what the identifier knows."""

import pytest

from beirnl import registry
from beirnl.errors import ConfigError
from beirnl.translation.language import can_identify, identify, language_name


def test_the_registry_marks_the_languages_that_the_identifier_knows():
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    labels = set(LanguageIdentifier.from_model_file(MODEL_FILE).labels)
    assert {code for code in registry.languages() if can_identify(code)} == labels & set(registry.languages())
    assert can_identify("nl") and not can_identify("zz")


def test_a_language_is_found_among_the_candidates():
    assert identify("De kat zit op de mat en kijkt naar de maan.", ("en", "nl")) == "nl"


def test_an_unknown_language_names_the_nearest():
    assert language_name("fy").endswith("Frisian")
    with pytest.raises(ConfigError, match="unknown language"):
        language_name("ndl")
