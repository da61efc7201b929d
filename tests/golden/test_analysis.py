"""The analyzers emit what Lucene 9's DutchAnalyzer and EnglishAnalyzer emit."""

import gzip

import pytest
from running import beirnl
from support import shared

from beirnl.errors import ConfigError
from beirnl.retrieval import analysis
from beirnl.retrieval.analysis import ANALYZERS, analyzer, for_language


@pytest.mark.parametrize("name", ["dutch", "english"])
def test_every_line_of_the_reference_is_equal(name):
    with gzip.open(shared("lucene", f"{name}_analyzer.ntrex.tsv.gz"), "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    found = [" ".join(terms) for terms in analyzer(name).batch([text for text, _ in lines])]
    assert len(lines) == 1997
    assert [(text, terms) for (text, terms), mine in zip(lines, found, strict=True) if terms != mine] == []


@pytest.mark.parametrize(("language", "name"), [("nl", "dutch"), ("en", "english")])
def test_the_command_line_prints_the_same(language, name):
    with gzip.open(shared("lucene", f"{name}_analyzer.ntrex.tsv.gz"), "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    text = "".join(text + "\n" for text, _ in lines)
    done = beirnl("analyze", "--language", language, input=text)
    assert done.stdout.split("\n") == [*(terms for _, terms in lines), ""]


# Words with Lucene 9.9.1's tokens: emoji and symbols, scripts without blanks, joiners, marks, lower case.
WORDS = {
    "a😀b": ["😀", "b"],
    "👍👍🏽🏽": ["👍", "👍🏽🏽"],
    "☝️🏽": ["☝️", "🏽"],
    "👨‍👩‍👧 ❤️‍🔥": ["👨‍👩‍👧", "❤️‍🔥"],
    "🇳🇱🇧🇪 🇳": ["🇳🇱", "🇧🇪"],
    "#️⃣ 1⃣ 1️⃣2 # *": ["#️⃣", "1⃣", "1️⃣2"],
    "© ™ ★ ✔✅ → ② € ½": ["©", "™", "★", "✔", "✅"],
    "ไทย1": ["ไทย", "1"],
    "日本語テキストです": ["日", "本", "語", "テキスト", "で", "す"],
    "한국어 ｶﾞ": ["한국어", "ｶﾞ"],
    "שלום\"ח ש'": ['שלום"ח', "ש'"],
    "_ __ toe_ __b": ["toe_", "__b"],
    "x:y x.y 1,2 1.x x‐y l·l ¸": ["x:y", "x.y", "1,2", "1", "x", "x", "y", "l·l"],
    "x\u202fy x\u00ady x\u200by": ["x\u202fy", "x\u00ady", "x", "y"],
    "ΑΣ İI ǅ Ⅷ": ["ασ", "ii", "ǆ", "ⅷ"],
    "१२ １２３": ["१२", "１２３"],
}


@pytest.mark.parametrize("text", WORDS)
def test_words_that_need_care(text):
    assert analyzer("english").terms(text) == WORDS[text]


# Stems of Lucene 9.9.1 where its Porter stemmer and Snowball's differ, and their neighbours.
ENGLISH = {
    "possibly nobly usably": "possibl nobli usabl",
    "analogy technologies logy ologied": "analog technolog logi ologi",
    "trekking blocked hopping falling": "trek block hop fall",
    "as us 's x's cat’s CAT'S": "us s x cat cat",
}


@pytest.mark.parametrize("text", ENGLISH)
def test_english_stems(text):
    assert analyzer("english").terms(text) == ENGLISH[text].split()


def test_dutch_overrides_and_stop_words():
    assert analyzer("dutch").terms("De fiets, het ei en 't kind") == ["fiets", "eier", "t", "kinder"]


def test_a_word_of_more_than_255_characters_is_cut():
    assert [len(term) for term in analyzer("dutch").terms("1" * 600 + " " + "2" * 255)] == [255, 255, 90, 255]


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(analysis, "MAX_CACHE", 1000)
    fresh = analyzer.__wrapped__("dutch")
    for start in range(0, 10_000, 500):
        assert fresh.terms(" ".join(map(str, range(start, start + 500)))) == list(
            map(str, range(start, start + 500))
        )
        assert len(fresh._pieces) <= 1500


def test_names():
    assert [for_language(facts.language) for facts in ANALYZERS.values()] == list(ANALYZERS)
    with pytest.raises(ConfigError, match="did you mean 'dutch'"):
        analyzer("duch")
    with pytest.raises(ConfigError, match="language 'xx'"):
        for_language("xx")
