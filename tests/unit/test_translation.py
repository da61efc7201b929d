import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl import registry
from beirnl.errors import ConfigError
from beirnl.llm.mock import FAULTS, MockLlm
from beirnl.llm.protocol import Answer
from beirnl.schema import ANSWERS, CORPUS, TRANSLATED
from beirnl.specs import CheckSpec, LlmSpec, TranslationSpec
from beirnl.translation import answers_table, checked_table, requests_for
from beirnl.translation.parsing import parse
from beirnl.translation.prompts import read_template, render

MOCK = LlmSpec(engine="mock")
TAGS = "Translate to {target_language}: <title> {title} </title> <body> {text} </body>"
LINE = 'form = "completion"\nstop = ["\\n"]\n---\nEnglish: {title} | {text}\nDutch:\n'
PROMPTS = ["paper-document", "few-shot-nl"]


def spec(prompt, kind="document", template=None, **fields):
    template = registry.prompt(prompt) if template is None else template
    values = {"source_language": "en", "target_language": "nl", "domain": "Scientific", "llm": MOCK} | fields
    return TranslationSpec(kind=kind, prompt=prompt, template=template, **values)


def table(*texts):
    """Rows out of (title, text) pairs."""
    rows = [(n, f"d{n}", title, text) for n, (title, text) in enumerate(texts)]
    return pa.table(list(zip(*rows, strict=True)), names=CORPUS.names).cast(CORPUS)


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


@given(st.text(), st.booleans(), st.sampled_from([TAGS, LINE]))
def test_any_answer_can_be_parsed(answer, titled, template):
    title, text, problems = parse(answer, read_template("own", template, "document"), titled=titled)
    assert set(problems) <= {"title-lost", "preamble"}
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
    return checked_table(
        answers_table(rows, MockLlm(MOCK).generate(requests_for(rows, settings))), settings, CheckSpec()
    )


@pytest.mark.parametrize("prompt", PROMPTS)
def test_as_many_rows_come_out_as_went_in_with_the_same_ids(prompt):
    rows = table(*ROWS)
    answers = answers_table(rows, MockLlm(MOCK).generate(requests_for(rows, spec(prompt))))
    result = checked_table(answers, spec(prompt), CheckSpec())
    assert answers.schema == ANSWERS
    assert result.schema == TRANSLATED
    for name in ("row", "id"):
        assert result[name].to_pylist() == rows[name].to_pylist()
    assert result["status"].to_pylist() == ["ok"] * len(ROWS)
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
    answers = [MockLlm(MOCK).generate(requests_for(rows, settings, attempt)) for attempt in (0, 1)]
    statuses = [
        checked_table(answers_table(rows, one), settings, CheckSpec())["status"][0].as_py() for one in answers
    ]
    assert statuses == ["empty", "ok"]


def test_answers_must_be_as_many_as_rows():
    with pytest.raises(ValueError, match="1 answers for 2 rows"):
        answers_table(table(*ROWS[:2]), [Answer("x", "stop")])


def test_missing_texts_are_empty_texts():
    rows = pa.table(
        [[0], ["d0"], pa.array([None], pa.string()), pa.array([None], pa.string())], schema=CORPUS
    )
    assert through_the_mock(rows, spec("paper-document")).to_pylist()[0]["text"] == ""
