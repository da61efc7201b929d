"""The analyzers emit what Lucene 9's DutchAnalyzer and EnglishAnalyzer emit."""

import gzip
import json
import re
from importlib.resources import files as files_of

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


# A sentence of each language whose stemmer Lucene has from Snowball, with its analyzer's terms (9.9.1).
SENTENCES = {
    "sv": (
        "Riksdagen beslutade att kommunernas skolor skulle öppnas tidigare än planerat.",
        "riksdag beslut kommun skol öppn tid planer",
    ),
    "da": (
        "Regeringen besluttede, at kommunernes skoler åbnes tidligere end planlagt.",
        "regering beslutted kommun skol åbn tid planlag",
    ),
    "no": (
        "Stortinget vedtok at kommunenes skoler skulle åpnes tidligere enn planlagt.",
        "storting vedtok kommun skol åpn tidliger planlagt",
    ),
    "fi": (
        "Eduskunta päätti, että kuntien koulut avataan suunniteltua aikaisemmin.",
        "eduskun päät kunt koulu ava suunniteltu aikais",
    ),
    "ru": (
        "Правительство решило, что школы городов откроются раньше, чем планировалось.",
        "правительств реш школ город откроют раньш планирова",
    ),
    "hu": (
        "A kormány úgy döntött, hogy az iskolákat a tervezettnél korábban nyitják meg.",
        "kormány döntöt iskola tervezett koráb nyitja",
    ),
    "ro": (
        "Guvernul a hotărât ca școlile comunelor să fie deschise mai devreme decât era planificat.",
        "guvern a hotărât școl comun desch mai devrem decât era planific",
    ),
    "ca": (
        "El govern va decidir que l'escola d'Arenys s'obriria abans del previst.",
        "govern decid esc areny obr previst",
    ),
    "eu": (
        "Gobernuak erabaki zuen herrietako eskolak aurreikusitakoa baino lehenago irekitzea.",
        "gobernu eraba herri eskol aurreikusi bai leh irekitzea",
    ),
    "hy": (
        "Կառավարությունը որոշեց բացել համայնքների դպրոցները ավելի շուտ։",
        "կառավար որոշե բաց համայն դպրոցները ա շուտ",
    ),
    "ga": (
        "Shocraigh an rialtas go n-osclófaí scoileanna na mbailte d'fhonn cabhrú leo.",
        "socraigh rialtas osclófaí scoileanna bailte fonn cabhrú leo",
    ),
    "tr": (
        "Hükümet, İstanbul'daki okulların IŞIK vakfınca planlanandan önce açılmasına karar verdi.",
        "hükümet istanbul okul ışık vakfı planlana ö açılma karar ver",
    ),
    "lt": (
        "Vyriausybė nusprendė, kad savivaldybių mokyklos bus atidarytos anksčiau.",
        "vyriausyb nusprend savivaldyb mokykl atidar anksčiau",
    ),
    "et": (
        "Valitsus otsustas, et valdade koolid avatakse kavandatust varem.",
        "valitsu otsusta valda kooli ava kavanda vare",
    ),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_of_other_languages(language):
    sentence, terms = SENTENCES[language]
    assert " ".join(analyzer(for_language(language)).terms(sentence)) == terms


def test_elisions_accents_and_stop_words_of_languages_with_another_stemmer():
    assert analyzer("italian").terms("L'acqua dell’Etna, c'è") == ["acqua", "etna"]
    assert analyzer("french").terms("jusqu'aux villes d'Alsace: qu'il") == ["vill", "alsac"]
    assert analyzer("greek").terms("ΣΧΟΛΕΊΑ, σχολεία") == ["σχολει", "σχολει"]
    assert analyzer("polish").terms("Szkoły gminy będą i w szkole") == ["szkoł", "gmin", "szkol"]


def test_every_stemmer_of_snowball_has_an_entry():
    import Stemmer

    known = set(Stemmer.algorithms()) - {"dutch"}  # Lucene has dutch_porter
    assert {facts.stemmer for facts in ANALYZERS.values()} == known
    assert all(analyzer(name).terms("12345") == ["12345"] for name in ANALYZERS)


def test_every_stop_list_belongs_to_an_analyzer():
    files = sorted(file.name for file in files_of("beirnl").joinpath("registry", "stopwords").iterdir())
    assert files == sorted({facts.stopwords for facts in ANALYZERS.values() if facts.stopwords})
    for name, facts in ANALYZERS.items():
        if facts.stopwords:
            # Words that stand in a list as the analyzer has them before it looks.
            stop = sorted(analyzer(name)._stop)
            assert len(stop) > 30
            assert [word for word in stop if analyzer(name)._lower(word) != word] == []


def test_characters_that_are_not_looked_at_closely_are_letters_and_digits_of_words():
    plain = [chr(c) for c in range(0x10000) if not 0xD800 <= c < 0xE000 and re.match(analysis._PLAIN, chr(c))]
    assert len(plain) > 700
    assert [c for c in plain if analysis.words(f"a{c}1{c}{c}") != [f"a{c}1{c}{c}"]] == []


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
    meant = {name: facts.language for name, facts in ANALYZERS.items() if facts.language}
    assert list(map(for_language, meant.values())) == list(meant)
    with pytest.raises(ConfigError, match="did you mean 'dutch'"):
        analyzer("duch")
    with pytest.raises(ConfigError, match="language 'xx'"):
        for_language("xx")


def test_the_analysis_of_bm25s():
    """Words of two characters and more, of letters, digits and underscores; Porter's newer stemmer."""
    from Stemmer import Stemmer

    terms = analyzer("bm25s-english").terms("The X-ray's 3 fairly LIES: not T_1 café, run_time (DNA)!")
    assert terms == ["ray", "fair", "lie", "t_1", "café", "run_tim", "dna"]
    stop, stem = analyzer("english")._stop, Stemmer("english").stemWord
    lines = shared("scifact", "corpus.jsonl").read_text("utf-8").splitlines()[:1000]
    texts = [json.loads(line)["text"] for line in lines]
    expected = [
        [stem(word) for word in re.findall(r"(?u)\b\w\w+\b", text.lower()) if word not in stop]
        for text in texts
    ]
    assert analyzer("bm25s-english").batch(texts) == expected
