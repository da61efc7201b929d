import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl import registry
from beirnl.errors import ConfigError
from beirnl.llm.mock import FAULTS, MockLlm
from beirnl.llm.protocol import Answer, in_order
from beirnl.schema import ANSWERS, CORPUS, TRANSLATED
from beirnl.specs import CheckSpec, LlmSpec, TranslationSpec
from beirnl.translation import answers_table, asks_for, checked_table
from beirnl.translation.parsing import parse
from beirnl.translation.prompts import read_template, render

MOCK = LlmSpec(engine="mock")
TAGS = "Translate to {target_language}: <title> {title} </title> <body> {text} </body>"
LINE = 'form = "completion"\nstop = ["\\n"]\n---\nEnglish: {title} | {text}\nDutch:\n'
OBJECT = 'json = ["title", "text"]\n---\nTranslate to {target_language}: {"title": {title}, "text": {text}}\n'
PROMPTS = ["paper-document", "few-shot-nl"]


def spec(prompt, kind="document", template=None, **fields):
    template = registry.prompt(prompt) if template is None else template
    values = {"source_language": "en", "target_language": "nl", "domain": "Scientific", "llm": MOCK} | fields
    return TranslationSpec(kind=kind, prompt=prompt, template=template, **values)


def table(*texts):
    """Rows out of (title, text) pairs."""
    rows = [(n, f"d{n}", title, text) for n, (title, text) in enumerate(texts)]
    return pa.table(list(zip(*rows, strict=True)), names=CORPUS.names).cast(CORPUS)


def requests_for(rows, settings, attempt=0):
    return [one.request for asks in asks_for(rows, settings, lambda text: True, attempt) for one in asks]


def answered(rows, settings, attempt=0):
    asks = asks_for(rows, settings, lambda text: True, attempt)
    return answers_table(rows, asks, in_order(MockLlm(MOCK), [one.request for row in asks for one in row]))


def request(template, title="", text="", kind="document", **fields):
    values = {"domain": "Wikipedia", "source_language": "en", "target_language": "nl", "llm": MOCK} | fields
    return render(read_template("own", template, kind), title=title, text=text, **values)


# Prompts ----------------------------------------------------------------------------------------------------


def test_the_document_prompt_of_the_paper_with_the_target_language_filled_in():
    asked = requests_for(table(("Statins", "They lower cholesterol.")), spec("paper-document"))[0]
    assert asked.prompt is None
    assert asked.messages == (
        (
            "user",
            "Translate to Dutch the DOCUMENT from the Scientific domain. Provide only the translation. "
            "DOCUMENT:\n ['<title> Statins </title> <body> They lower cholesterol. </body>']",
        ),
    )


def test_the_query_prompt_of_the_paper():
    settings = spec("paper-query", "query", target_language="fy")
    asked = requests_for(table(("", "what are statins")), settings)[0]
    instruction = (
        "Translate to West Frisian the QUERY from the Scientific domain. Provide only the translation."
    )
    assert asked.messages == (("user", f"{instruction} QUERY:\n ['what are statins']"),)


def test_the_few_shot_prompt_ends_where_the_model_goes_on():
    asked = requests_for(table(("Statins", "They lower\ncholesterol.")), spec("few-shot-nl"))[0]
    assert asked.messages is None
    assert asked.prompt.endswith("\n\nEnglish: Statins | They lower cholesterol.\nDutch:")
    assert asked.stop == ("\n",)


def test_a_row_without_a_title_is_its_text_alone_on_one_line():
    assert request(LINE, text="what are statins").prompt == "English: what are statins\nDutch:"
    assert request(LINE, title="a | b", text="c | d").prompt == "English: a - b | c | d\nDutch:"


def test_a_json_prompt_shows_texts_as_json_strings():
    asked = request(OBJECT, title='say "hi"', text="a\n{title} \\ é")
    assert asked.json_fields == ("title", "text")
    shown = asked.messages[0][1].removeprefix("Translate to Dutch: ")
    assert json.loads(shown) == {"title": 'say "hi"', "text": "a\n{title} \\ é"}


@pytest.mark.parametrize(("prompt", "kind"), [("json-query", "query"), ("json-document", "document")])
def test_the_json_prompts_name_languages_and_domain(prompt, kind):
    asked = requests_for(table(("T", "x y")), spec(prompt, kind, target_language="fy"))[0]
    first = asked.messages[0][1].partition("\n")[0]
    assert all(name in first for name in ("from English to", "Frisian", "Scientific domain"))
    assert asked.json_fields == (("title", "text") if kind == "document" else ("text",))


def test_a_bare_source_is_the_text_alone_and_titles_are_asked_by_themselves():
    template = read_template("bare", registry.prompt("bare"), "document")
    assert not template.with_title and read_template("own", TAGS, "document").with_title
    asked = requests_for(table(("Statins", "They lower {title}.")), spec("bare"))
    assert [one.prompt for one in asked] == ["Statins", "They lower {title}."]
    assert all(one.messages is None for one in asked)


def test_a_bare_source_may_have_a_prefix():
    assert request('form = "source"\n---\n<2nl> {text}', text="cat").prompt == "<2nl> cat"


def test_braces_in_texts_are_text():
    asked = request(TAGS, title="{text}", text="{title} {0} {{x}} {domain} \\1 \\g<0>")
    assert asked.messages[0][1].endswith(
        "<title> {text} </title> <body> {title} {0} {{x}} {domain} \\1 \\g<0> </body>"
    )


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_of_prompt_and_text_do_not_matter(ends):
    assert request(LINE.replace("\n", ends)) == request(LINE)
    assert request(TAGS, text=f"a{ends}b") == request(TAGS, text="a\nb")


@pytest.mark.parametrize(
    ("template", "kind", "says"),
    [
        ("Translate {title}", "query", r"own\.txt: .*no \{text\}"),
        ("Translate {text}", "document", r"own\.txt: .*no \{title\}"),
        ("Translate {text} to {langauge}", "query", r"own\.txt: .*\{langauge\}.*\{target_language\}"),
        ('form = "poem"\n---\n{text}', "query", r"own\.txt: form: .*"),
        ("stops = []\n---\n{text}", "query", r"own\.txt: stops: .*use form, stop"),
        ("form = \n---\n{text}", "query", r"own\.txt: not TOML"),
        ('form = "source"\n---\n{title} {text}', "document", r"own\.txt: .*\{title\}; use \{text\}"),
        ('form = "source"\njson = ["text"]\n---\n{text}', "query", r"own\.txt: json: .*leave json out"),
        ('json = ["text"]\n---\n{title} {text}', "document", r"own\.txt: json: .*field 'title'"),
        ('json = ["body"]\n---\n{text}', "query", r"own\.txt: json\.0: "),
    ],
)
def test_a_prompt_file_with_a_mistake_is_named(template, kind, says):
    with pytest.raises(ConfigError, match=says):
        request(template, kind=kind)


def test_a_prompt_with_dutch_examples_refuses_another_target():
    with pytest.raises(ConfigError, match=r"few-shot-nl\.txt.*target_language 'nl', not 'fy'"):
        requests_for(table(("", "x")), spec("few-shot-nl", target_language="fy"))


def test_an_unknown_language_is_named():
    with pytest.raises(ConfigError, match="unknown language 'dutch'"):
        requests_for(table(("", "x")), spec("paper-document", target_language="dutch"))


def test_a_repair_is_warmer_and_has_more_room():
    rows = table(("Statins", "They lower cholesterol."))
    first, second = (requests_for(rows, spec("few-shot-nl"), attempt)[0] for attempt in (0, 1))
    assert first.temperature == 0 < second.temperature
    assert second.max_tokens == 2 * first.max_tokens
    assert first.key(None) != second.key(None)


def test_prompt_and_domain_enter_the_key_where_the_model_sees_them():
    rows = table(("Statins", "They lower cholesterol."))
    keys = {
        requests_for(rows, spec(prompt, domain=domain))[0].key(None)
        for prompt in PROMPTS
        for domain in ("Biomedical", "Scientific")
    }
    assert len(keys) == 3  # the few-shot prompt does not name the domain


# Parsing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("<title> T </title> <body> B </body>", ("T", "B", ())),
        ("['<title> T </title> <body> B </body>']", ("T", "B", ())),
        ("```xml\n<title>T</title>\n<body>B\nC</body>\n```", ("T", "B\nC", ())),
        ("<title> T <title\\> <body> B <body\\>", ("T", "B", ())),
        ("<TITLE>T</TITLE><Body>B", ("T", "B", ())),
        ("<title> T <body> B </body>", ("T", "B", ())),
        ("<title> T </title> B", ("T", "B", ())),
        ("<title>  </title> <body> B </body>", ("", "B", ("title-lost",))),
        ("<body> B </body>", ("", "B", ("title-lost",))),
        ("B", ("", "B", ("title-lost",))),
        ("Here it is: <title> T </title> <body> B </body>", ("T", "B", ("preamble",))),
        ("<title> T </title> <body> B </body> I hope this helps!", ("T", "B", ("preamble",))),
        (
            "<title> T </title> <body> use <title>x</title> here </body>",
            ("T", "use <title>x</title> here", ()),
        ),
        ("", ("", "", ())),
    ],
)
def test_title_and_body_come_back_apart(answer, expected):
    assert parse(answer, read_template("own", TAGS, "document"), titled=True) == expected


@pytest.mark.parametrize(
    ("answer", "titled", "expected"),
    [
        (" T | B", True, ("T", "B", ())),
        (" T | a | b", True, ("T", "a | b", ())),
        (" B", True, ("", "B", ("title-lost",))),
        (" a | b", False, ("", "a | b", ())),
    ],
)
def test_one_line_comes_back_apart(answer, titled, expected):
    assert parse(answer, read_template("own", LINE, "document"), titled=titled) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"title": "T", "text": "B"}', ("T", "B", ())),
        ('```json\n{"title": "T", "text": "B"}\n```', ("T", "B", ())),
        ('Here it is:\n{"title": "T", "text": "B"}\nAnything else?', ("T", "B", ())),
        ('{"title": "S", "text": "A"}\n{"title": "T", "text": "B"}', ("T", "B", ())),
        ('Set {a}: {"text": "B {1}", "title": " T ", "note": 3}', ("T", "B {1}", ())),
        ('{"title": "T", "text": "a\nb \\u00e9 \\ud83d\\ude00 \\"c\\""}', ("T", 'a\nb é 😀 "c"', ())),
        ('{"title": "T", "text": "half \\ud83d"}', ("T", "half �", ())),
        ('{"title": "", "text": "B"}', ("", "B", ("title-lost",))),
        ("", ("", "", ())),
    ],
)
def test_json_comes_back_apart(answer, expected):
    assert parse(answer, read_template("own", OBJECT, "document"), titled=True) == expected


@pytest.mark.parametrize(
    "answer",
    [
        '{"title": "T", "text": "cut sho',
        '{"title": "T"}',
        '{"title": "T", "text": 5}',
        '{"title": "T", "text": null}',
        '{"title": ["T"], "text": "B"}',
        '["T", "B"]',
        "T: B",
        "{" * 5000,
        '{"a":' * 5000,
        "__import__('os').getcwd()",
    ],
)
def test_malformed_json_is_named(answer):
    parsed = parse(answer, read_template("own", OBJECT, "document"), titled=True)
    assert parsed == ("", answer, ("malformed",))


def test_a_row_without_a_title_needs_none_in_json():
    template = read_template("own", OBJECT, "document")
    for answer in ('{"title": "", "text": "B"}', '{"title": null, "text": "B"}', '{"text": "B"}'):
        assert parse(answer, template, titled=False) == ("", "B", ())


ASKED = "Translate to Dutch the QUERY from the X domain. Provide only the translation. QUERY: kat"
EXAMPLE = (
    " Thee zetten | Kook het water en giet het op de bladeren. Wacht vier minuten voordat u de thee drinkt."
)
JSON_LINE = "Keep names, numbers and web addresses. Answer with one JSON object that has the field"


@pytest.mark.parametrize(
    ("prompt", "kind", "answer"),
    [
        ("paper-query", "query", ASKED),
        ("few-shot-nl", "document", EXAMPLE),
        ("json-query", "query", json.dumps({"text": f'{JSON_LINE} "text", and nothing else. kat'})),
    ],
)
def test_what_is_repeated_from_the_prompt_is_markup(prompt, kind, answer):
    template = read_template(prompt, registry.prompt(prompt), kind)
    assert "markup" in parse(answer, template, titled=False).problems


@given(st.text(), st.booleans(), st.sampled_from([TAGS, LINE, OBJECT]))
def test_any_answer_can_be_parsed(answer, titled, template):
    title, text, problems = parse(answer, read_template("own", template, "document"), titled=titled)
    assert set(problems) <= {"title-lost", "preamble", "malformed"}
    assert title == title.strip() and text == text.strip()


# Tables -----------------------------------------------------------------------------------------------------

ROWS = (
    ("Coffee and sleep", "Coffee keeps people awake for about 5 hours. The effect of tea on sleep is small."),
    ("", "The number of patients with a high risk of the disease was 120 in 2019."),
    ("No text", ""),
    ("", ""),
    ("Braces { | }", "What does {text} mean in the language of the computer, and is it still used today?"),
)


def through_the_mock(rows, settings):
    return checked_table(rows, answered(rows, settings), settings, CheckSpec())


@pytest.mark.parametrize("prompt", PROMPTS)
def test_as_many_rows_come_out_as_went_in_with_the_same_ids(prompt):
    rows = table(*ROWS)
    answers = answered(rows, spec(prompt))
    result = checked_table(rows, answers, spec(prompt), CheckSpec())
    assert answers.schema == ANSWERS
    assert result.schema == TRANSLATED
    for name in ("row", "id"):
        assert result[name].to_pylist() == rows[name].to_pylist()
    assert result["status"].to_pylist() == ["ok" if any(row) else "no-text" for row in ROWS]
    for (title, text), row in zip(ROWS, result.to_pylist(), strict=True):
        assert (bool(title), bool(text)) == (bool(row["title"]), bool(row["text"]))
        assert not text or row["text"] != text


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_in_its_status_and_never_in_an_empty_row(fault, prompt):
    title, text = ROWS[0]
    rows = table(ROWS[1], (title, f"{text} [[fault:{fault}]]"))
    fine, planted = through_the_mock(rows, spec(prompt)).to_pylist()
    assert fine["status"] == "ok"
    assert {"dots": "repetition"}.get(fault, fault) in planted["status"].split(",")
    assert planted["title"] and planted["text"]
    if fault in ("empty", "error", "dots", "refusal", "copied", "language"):
        assert planted["text"] == rows["text"][1].as_py()


def test_a_fault_planted_once_is_gone_on_the_second_attempt():
    rows, settings = table(("", f"{ROWS[1][1]} [[fault:empty:once]]")), spec("few-shot-nl")
    statuses = [
        checked_table(rows, answered(rows, settings, attempt), settings, CheckSpec())["status"][0].as_py()
        for attempt in (0, 1)
    ]
    assert statuses == ["empty", "ok"]


def test_answers_must_be_as_many_as_rows():
    rows = table(*ROWS[:2])
    with pytest.raises(ValueError, match="1 answers for 2 rows"):
        answers_table(rows, asks_for(rows, spec("paper-document"), lambda text: True), [Answer("x", "stop")])


def test_missing_texts_are_empty_texts():
    rows = pa.table(
        [[0], ["d0"], pa.array([None], pa.string()), pa.array([None], pa.string())], schema=CORPUS
    )
    assert through_the_mock(rows, spec("paper-document")).to_pylist()[0]["text"] == ""
