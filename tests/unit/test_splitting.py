import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl.translation.splitting import Piece, sentences, split

PARAGRAPHS = "One two three. Four five.\n\nSix seven eight nine. Ten.\n\nEleven twelve."


def joined(pieces):
    return "".join(gap + text for gap, text in pieces)


def at_most(limit):
    return lambda text: len(text) <= limit


def words(limit):
    return lambda text: len(text.split()) <= limit


def texts(pieces):
    return [piece.text for piece in pieces]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met J. R. R. Tolkien.", ["Dr. Smith met J. R. R. Tolkien."]),
        ("It cost $3.5 million. Prices rose.", ["It cost $3.5 million.", "Prices rose."]),
        ("Some, e.g. Ann, i.e. Anna. Others left.", ["Some, e.g. Ann, i.e. Anna.", "Others left."]),
        ("Bijv. prof. dr. Jansen kwam. Hij bleef.", ["Bijv. prof. dr. Jansen kwam.", "Hij bleef."]),
        ("See Fig. 2 of Li et al. (2019). It works.", ["See Fig. 2 of Li et al. (2019).", "It works."]),
        ("1. Boil water. 2. Wait.", ["1. Boil water.", "2. Wait."]),
        ('"Really?" he said. "Yes." She left.', ['"Really?" he said.', '"Yes."', "She left."]),
        ("He said no... and left. Well.", ["He said no... and left.", "Well."]),
        ("第一句话。第二句话！“第三句？”好", ["第一句话。", "第二句话！", "“第三句？”", "好"]),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है।", "यह दूसरा है।"]),
        ("A title\nThe text goes\non here.\n- item", ["A title", "The text goes\non here.", "- item"]),
        ("no stop here\n\nbut two paragraphs", ["no stop here", "but two paragraphs"]),
    ],
)  # fmt: skip
def test_sentences(text, expected):
    assert texts(sentences(text)) == expected
    assert joined(sentences(text)) == text


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (100, [PARAGRAPHS]),
        (11, ["One two three. Four five.\n\nSix seven eight nine. Ten.", "Eleven twelve."]),
        (7, ["One two three. Four five.", "Six seven eight nine. Ten.\n\nEleven twelve."]),
        (6, ["One two three. Four five.", "Six seven eight nine. Ten.", "Eleven twelve."]),
        (4, ["One two three.", "Four five.", "Six seven eight nine.", "Ten.\n\nEleven twelve."]),
        (3, ["One two three.", "Four five.", "Six seven eight", "nine. Ten.", "Eleven twelve."]),
    ],
)
def test_paragraph_ends_before_sentence_ends_before_blanks(limit, expected):
    pieces = split(PARAGRAPHS, words(limit))
    assert texts(pieces) == expected
    assert joined(pieces) == PARAGRAPHS


def test_a_short_paragraph_does_not_stand_alone_before_a_long_one():
    text = "A heading.\n\n" + "A sentence of five words. " * 6
    first, *_ = split(text, words(17))
    assert first.text == "A heading." + "\n\n" + " ".join(["A sentence of five words."] * 3)


def test_a_word_that_does_not_fit_is_cut_anywhere():
    assert texts(split("aaaaaaa bb", at_most(3))) == ["aaa", "aaa", "a", "bb"]


def test_what_fits_stays_whole_and_nothing_has_no_pieces():
    assert split(" a\n", at_most(3)) == [Piece("", " a\n")]
    assert split("", at_most(3)) == []
    assert sentences("") == []
    assert joined(sentences(" \n")) == " \n"


def test_a_window_for_not_even_one_character_is_an_error():
    with pytest.raises(ValueError, match="not even one character fits"):
        split("abc", at_most(0))


PROSE = st.lists(
    st.sampled_from(
        ["One", "two", "3.5", "e.g.", "end.", "End!", "。", "“x”?", "\n", "\n\n", " ", "\t", "é", "語"]
    ),
    max_size=60,
).map(" ".join)


@given(st.one_of(st.text(), PROSE), st.integers(1, 30))
def test_no_text_is_lost_and_every_piece_fits(text, limit):
    pieces = split(text, at_most(limit))
    assert joined(pieces) == text
    assert all(at_most(limit)(piece.text.rstrip()) for piece in pieces)
    assert all(not piece.gap.strip() for piece in pieces)
    assert all(piece.text.strip() for piece in pieces) or not text.strip()
    assert pieces == split(text, at_most(limit))


@given(st.one_of(st.text(), PROSE))
def test_sentences_are_the_text(text):
    pieces = sentences(text)
    assert joined(pieces) == text
    assert all(not piece.gap.strip() for piece in pieces)


@pytest.mark.parametrize("unit", ["This is a sentence of nine words in all. ", "word ", "x"])
def test_the_cost_is_proportional_to_the_length(unit):
    """Characters that were measured, per character of a text: the same for a text four times as long."""

    def measured(text):
        seen = 0

        def fits(piece):
            nonlocal seen
            seen += len(piece)
            return len(piece) <= 1000

        split(text, fits)
        return seen / len(text)

    short, long = measured(unit * (40_000 // len(unit))), measured(unit * (160_000 // len(unit)))
    assert long < 1.3 * short < 40
