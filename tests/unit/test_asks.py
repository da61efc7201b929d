"""A row becomes requests, and its answers become the row again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl.errors import ConfigError
from beirnl.registry import prompt
from beirnl.specs import LlmSpec, TranslationSpec
from beirnl.translation.asks import asks_in_pieces, asks_of, join, piece_budget
from beirnl.translation.prompts import read_template
from beirnl.translation.splitting import sentences


def spec(name="paper-document", kind="document", **llm) -> TranslationSpec:
    return TranslationSpec(
        llm=LlmSpec(engine="mock", **llm),
        kind=kind,
        prompt=name,
        template=prompt(name),
        source_language="en",
        target_language="nl",
    )


def answers(asks, template):
    """What a model that copies would say: the texts between the tags, or the text alone."""
    for ask in asks:
        said = ask.request.last_text
        begin = said.rfind("<title>") if template.tagged else 0
        yield said[begin : said.rfind("</body>") + 7] if template.tagged else said


def joined(title, text, asks, given_spec):
    template = read_template(given_spec.prompt, given_spec.template, given_spec.kind)
    said = list(answers(asks, template))
    return join((title, text), said, [ask.gap for ask in asks], template)


TEXT = st.text(st.sampled_from("ab .\n"), max_size=60).map(str.strip)


@given(title=TEXT, text=TEXT, most=st.integers(4, 80))
def test_whatever_is_split_comes_back_whole(title, text, most):
    for name in ("paper-document", "bare"):
        given_spec = spec(name)
        asks = asks_of(title, text, given_spec, lambda piece: len(piece) <= most)
        back = joined(title, text, asks, given_spec)
        assert (back.title, back.text.split()) == (title, text.split())


def test_the_title_goes_with_the_first_piece_and_leaves_it_room():
    asks = asks_of("A title", "One. Two. Three.", spec(), lambda piece: len(piece) <= 14)
    assert len(asks) > 1 and "A title" in asks[0].request.last_text
    assert not any("A title" in ask.request.last_text for ask in asks[1:])


def test_a_title_that_fills_the_window_is_asked_by_itself():
    asks = asks_of("t" * 50, "One. Two.", spec(), lambda piece: len(piece) <= 20)
    assert ["t" * 50 in ask.request.last_text for ask in asks] == [True, False]


def test_sentences_are_asked_one_by_one_with_the_title_apart():
    title, text = "A title", "One is here. Two is there.\n\nThree."
    asks = asks_in_pieces(title, sentences(text), spec(), 0)
    assert len(asks) == 4
    assert joined(title, text, asks, spec())[:2] == (title, text)


def test_a_row_without_text_asks_its_title_alone():
    (ask,) = asks_of("Only a title", "", spec("bare"), lambda piece: True)
    assert joined("Only a title", "", [ask], spec("bare"))[:2] == ("Only a title", "")


def test_prompt_text_and_answer_stay_within_the_window():
    fits = piece_budget(spec(max_model_len=600, max_tokens=400))
    assert fits("word " * 20) and not fits("word " * 400)


WINDOW, ANSWER = "max_model_len", "max_tokens"


@pytest.mark.parametrize(
    ("prompt", "window", "answer", "short"),
    [
        ("paper-document", 60, 2048, [WINDOW]),
        ("paper-document", 4096, 20, [ANSWER]),
        ("paper-document", 60, 51, [WINDOW, ANSWER]),
        ("bare", 40, 2048, [WINDOW]),
        ("bare", 40, 20, [WINDOW, ANSWER]),
        ("bare", 512, 20, [ANSWER]),
    ],
)
def test_the_side_that_is_short_is_named_with_what_suffices(monkeypatch, prompt, window, answer, short):
    if prompt == "bare":  # of a sequence-to-sequence model, whose answer has a window of its own
        monkeypatch.setattr("beirnl.llm.local.source_window", lambda llm: llm.max_model_len - 3)
    with pytest.raises(ConfigError, match=r"room for \d+ of a text; raise ") as caught:
        piece_budget(spec(prompt, max_model_len=window, max_tokens=answer))
    found = re.findall(r"(max_\w+) \(now \d+\) to at least (\d+)", str(caught.value))
    enough = {name: int(least) for name, least in found}
    assert list(enough) == short
    given = {WINDOW: window, ANSWER: answer, **enough}
    assert piece_budget(spec(prompt, **given))("word")
    for side in short:
        with pytest.raises(ConfigError):
            piece_budget(spec(prompt, **{**given, side: given[side] - 1}))


def test_a_sequence_to_sequence_model_has_a_window_for_the_source_alone(monkeypatch):
    monkeypatch.setattr("beirnl.llm.local.source_window", lambda llm: 96)
    fits = piece_budget(spec("bare", max_model_len=4096, max_tokens=2048))
    assert fits("word " * 20) and not fits("word " * 60)


def test_a_row_without_a_text_asks_nothing():
    for name in ("paper-document", "bare", "few-shot-nl", "json-document"):
        assert asks_of("", " ", spec(name), lambda piece: True) == []
        assert joined("", "", [], spec(name))[:2] == ("", "")
