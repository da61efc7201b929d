"""Prompts of a user's own: what is accepted comes back apart into title and text, all else is refused."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl.errors import ConfigError
from beirnl.llm.protocol import Answer
from beirnl.schema import CORPUS
from beirnl.specs import CheckSpec, LlmSpec, TranslationSpec
from beirnl.translation import answers_table, asks_for, checked_table
from beirnl.translation.parsing import parse
from beirnl.translation.prompts import read_template, render

ASK = "Translate to {target_language}.\n\n"
LINES = ASK + "{title}\n\n{text}\n"
LAID_OUT = ASK + "<title>{title}</title>\n<body>{text}</body>"
#: Prompts, and what a model answers that keeps the layout.
ACCEPTED = {
    LINES: "T: een\n\nB",
    ASK + "{title}\n{text}": "T: een\nB",
    ASK + "{title} \n \n{text}\n\nTranslation:": "T: een\n\nB",
    'form = "completion"\nstop = ["\\n\\n\\n"]\n---\n{title}\n\n{text}\n\n': "T: een\n\nB",
    ASK + "{title} | {text}": "T: een | B",
    ASK + "{title} || {text}": "T: een || B",
    ASK + "{title}\t#\t{text}": "T: een # B",
    LAID_OUT: "<title>T: een</title>\n<body>B</body>",
    ASK + "<title> {title} <title\\> <body> {text} <body\\>": "<title> T: een <title\\> <body> B <body\\>",
    ASK + "<title>{title}</title> {text}": "<title>T: een</title> B",
    'json = ["title", "text"]\n---\n{"title": {title}, "text": {text}}': '{"title": "T: een", "text": "B"}',
}
REFUSED = [
    ASK + "Title: {title}\nText: {text}",
    ASK + "Title: {title}\n\n{text}",
    ASK + "{title}\n\nText:\n{text}",
    ASK + "{title} {text}",
    ASK + "{title}: {text}",
    ASK + "{title} - {text}",
    ASK + "{title} Text: {text}",
    ASK + "{title}{text}",
    ASK + "{text}\n\n{title}",
    ASK + "{title} in the {domain} domain: {text}",
    "Keep tags such as <title>. {title} {text}",
    ASK + "<body>{text}</body> <title>{title}</title>",
    'form = "completion"\nstop = ["\\n"]\n---\n{title}\n\n{text}\n\n',
]


def request(template, title="A title", text="A text."):
    return render(
        read_template("own", template, "document"),
        title=title,
        text=text,
        domain="Wikipedia",
        source_language="en",
        target_language="nl",
        llm=LlmSpec(engine="mock"),
    )


@pytest.mark.parametrize("template", ACCEPTED)
def test_every_accepted_layout_comes_back_apart(template):
    found = parse(ACCEPTED[template], read_template("own", template, "document"), titled=True)
    assert found == ("T: een", "B", ())


@pytest.mark.parametrize("template", REFUSED)
def test_a_layout_whose_answers_would_not_come_apart_is_refused_in_one_line(template):
    with pytest.raises(ConfigError, match=r"own\.txt: .*; write \{title\} \| \{text\} on one line") as caught:
        read_template("own", template, "document")
    assert "\n" not in str(caught.value)


ORDINARY = (
    st.text(st.sampled_from("ab .,:;-'?\""), min_size=1, max_size=20)
    .map(" ".join)
    .map(str.strip)
    .filter(bool)
)


@given(between=st.text(st.sampled_from("\n\n |#:-.ab\t"), max_size=6), title=ORDINARY, text=ORDINARY)
def test_whatever_stands_between_is_refused_or_comes_apart(between, title, text):
    try:
        template = read_template("own", f"Translate.\n{{title}}{between}{{text}}", "document")
    except ConfigError:
        return
    assert parse(f"{title}{between}{text}", template, titled=True) == (title, text, ())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("De titel\n\nEen tekst.\n\nNog een alinea.", ("De titel", "Een tekst.\n\nNog een alinea.", ())),
        ("De titel\r\nEen tekst.", ("De titel", "Een tekst.", ())),
        ("```\nDe titel\n\nEen tekst.\n```", ("De titel", "Een tekst.", ())),
        ("Een tekst zonder titel.", ("", "Een tekst zonder titel.", ("title-lost",))),
        ("", ("", "", ())),
    ],
)
def test_a_title_on_the_first_line(answer, expected):
    assert parse(answer, read_template("own", LINES, "document"), titled=True) == expected


def test_without_a_title_the_answer_is_the_text_and_so_is_the_prompt():
    assert request(LINES, title="", text="a\n\nb").messages[0][1] == "Translate to Dutch.\n\na\n\nb"
    assert request(LINES, title="a\n b", text=" c\nd ").messages[0][1].endswith("\n\na b\n\nc\nd")
    assert parse("a\n\nb", read_template("own", LINES, "document"), titled=False) == ("", "a\n\nb", ())


# From rows to rows ------------------------------------------------------------------------------------------

ROWS = [
    ("Coffee and sleep", "Coffee keeps people awake for hours.\n\nTea has less of an effect on them."),
    ("", "The heart beats about seventy times in a minute."),
    ("Only a title that is here", ""),
    (" ", "\n"),
]
DUTCH = {
    "Coffee and sleep": "Koffie en slaap",
    "Coffee keeps people awake for hours.": "Koffie houdt mensen urenlang wakker.",
    "Tea has less of an effect on them.": "Thee heeft minder effect op hen.",
    "The heart beats about seventy times in a minute.": "Het hart klopt ongeveer zeventig keer per minuut.",
    "Only a title that is here": "Alleen een titel die hier staat",
}


@pytest.mark.parametrize(
    "template", [LINES, ASK + "{title} | {text}", ASK + "<title>{title}</title>\n<body>{text}</body>"]
)
def test_rows_of_every_shape_are_ok_with_a_model_that_keeps_the_layout(template):
    rows = pa.table([[0, 1, 2, 3], list("abcd"), *map(list, zip(*ROWS, strict=True))], schema=CORPUS)
    spec = TranslationSpec(
        llm=LlmSpec(engine="mock"),
        kind="document",
        prompt="own",
        template=template,
        source_language="en",
        target_language="nl",
    )
    asks = asks_for(rows, spec, lambda text: True)
    answers = [Answer(said(ask.request.last_text), "stop") for row in asks for ask in row]
    found = checked_table(rows, answers_table(rows, asks, answers), spec, CheckSpec()).to_pylist()
    assert [row["status"] for row in found] == ["ok", "ok", "ok", "no-text"]
    assert [(row["title"], " ".join(row["text"].split())) for row in found[:3]] == [
        ("Koffie en slaap", "Koffie houdt mensen urenlang wakker. Thee heeft minder effect op hen."),
        ("", "Het hart klopt ongeveer zeventig keer per minuut."),
        ("Alleen een titel die hier staat", ""),
    ]


def said(prompt):
    """The answer of a model that knows the sentences, and keeps what stands around them."""
    answer = prompt.partition("\n\n")[2]
    for english, dutch in DUTCH.items():
        answer = answer.replace(english, dutch)
    return answer
