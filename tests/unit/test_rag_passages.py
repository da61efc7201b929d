import json
from functools import cache
from itertools import pairwise

import pyarrow as pa
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from beirnl.errors import ConfigError, DataError
from beirnl.rag.budget import beginning, fill
from beirnl.rag.passages import Cut, Reader, passages, reader
from beirnl.rag.tables import DOCUMENTS, PASSAGES
from beirnl.rag.tokenizers import BytePairs, FastTokenizer, Words, _by_blocks, token_counts, token_ends
from beirnl.translation.splitting import sentences

SAMPLE = [json.loads(line)["text"] for line in (ROOT / "beirnl/sample/corpus.jsonl").read_text().splitlines()]
KINDS = ["bert", "xlmr", "gpt2", "gemma", "tiktoken", "words"]
SPECIAL = ["[UNK]", "[CLS]", "[SEP]"]


def trained(model, normalizer, splitter, kind, **options):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    trainer = kind(vocab_size=400, special_tokens=SPECIAL, show_progress=False, **options)
    tokenizer.train_from_iterator(SAMPLE, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer.enable_truncation(8)  # as saved tokenizers often have it
    tokenizer.enable_padding()
    return FastTokenizer(tokenizer)


@cache
def tokenizer(kind):
    """Small tokenizers of the makes that encoders and LLMs have."""
    if kind == "words":
        return Words()
    if kind == "tiktoken":
        ranks = {bytes([n]): n for n in range(256)} | {
            b"th": 256,
            b" th": 257,
            b" the": 258,
            "é".encode(): 259,
        }
        return BytePairs(
            tiktoken.Encoding("small", pat_str=r" ?\S+|\s+", mergeable_ranks=ranks, special_tokens={})
        )
    if kind == "bert":
        split = pre_tokenizers.BertPreTokenizer()
        bert = normalizers.BertNormalizer()
        return trained(models.WordPiece(unk_token="[UNK]"), bert, split, trainers.WordPieceTrainer)
    if kind == "xlmr":
        spaces = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
        split = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
        return trained(models.Unigram(), spaces, split, trainers.UnigramTrainer, unk_token="[UNK]")
    if kind == "gemma":
        split = pre_tokenizers.Split(" ", "merged_with_previous")
        return trained(
            models.BPE(unk_token="[UNK]"), normalizers.Replace(" ", "▁"), split, trainers.BpeTrainer
        )
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return trained(models.BPE(), None, split, trainers.BpeTrainer, initial_alphabet=alphabet)


def documents(*texts, description=""):
    names = [f"d{n}" for n in range(len(texts))]
    empty = [""] * len(texts)
    return pa.table([names, empty, list(texts), [description] * len(texts), empty], schema=DOCUMENTS)


def rows(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def spans(text, cut):
    return [(row["start"], row["end"]) for row in passages(documents(text), cut).to_pylist()]


def words(limit, **options):
    return Cut([Reader("words", Words(), limit)], **options)


def test_windows_of_words():
    text = "  one two\tthree\n\nfour five "
    assert rows(passages(documents(text, "", "six"), words(2))) == [
        ("d0#0", "d0", "one two", 2, 9, 2),
        ("d0#1", "d0", "three\n\nfour", 10, 21, 2),
        ("d0#2", "d0", "five", 22, 26, 1),
        ("d2#0", "d2", "six", 0, 3, 1),
    ]
    assert passages(documents("", " \n"), words(2)).schema == PASSAGES
    assert passages(documents("", " \n"), words(2)).num_rows == passages(documents(), words(2)).num_rows == 0


@pytest.mark.parametrize(
    ("limit", "overlap", "expected"),
    [
        (3, 0, ["a b c", "d e f", "g"]),
        (3, 1, ["a b c", "c d e", "e f g"]),
        (3, 2, ["a b c", "b c d", "c d e", "d e f", "e f g"]),
        (7, 3, ["a b c d e f g"]),
    ],
)
def test_overlap(limit, overlap, expected):
    assert passages(documents("a b c d e f g"), words(limit, overlap=overlap))["text"].to_pylist() == expected


@pytest.mark.parametrize(
    ("limit", "overlap", "expected"),
    [
        (5, 0, ["One two. Three.", "Four five six seven eight.", "Nine."]),
        (4, 0, ["One two. Three.", "Four five six seven", "eight. Nine."]),
        (5, 1, ["One two. Three.", "Four five six seven eight.", "Nine."]),
        (6, 1, ["One two. Three.", "Three. Four five six seven eight.", "Nine."]),
    ],
)
def test_whole_sentences(limit, overlap, expected):
    text = "One two. Three. Four five six seven eight. Nine."
    cut = words(limit, overlap=overlap, sentences=True)
    assert passages(documents(text), cut)["text"].to_pylist() == expected


def test_the_description_stands_before_each_passage_and_counts():
    made = passages(documents("a b c d e", description="Of two"), words(4))
    assert made["text"].to_pylist() == ["Of two\na b", "Of two\nc d", "Of two\ne"]
    assert made["tokens"].to_pylist() == [4, 4, 3]
    assert [(row["start"], row["end"]) for row in made.to_pylist()] == [(0, 3), (4, 7), (8, 9)]
    with pytest.raises(DataError, match=r"d0 \(words\): its description of 3 tokens takes more than half"):
        passages(documents("a", description="one too many"), words(4))


def test_the_window_of_a_model():
    bert = tokenizer("bert")
    assert bert.special == 2
    assert reader("m", bert, 20).limit == 18
    assert reader("m", bert, 20, size=16).limit == 16
    assert reader("m", bert, 20, size=30).limit == 18
    prefixed = reader("m", bert, 20, "passage: ", size=5)
    assert prefixed.prefix_tokens == len(bert.ends(["passage:"])[0])
    assert prefixed.limit == prefixed.prefix_tokens + 5
    assert reader("bm25", Words(), None, size=100).limit == 100
    with pytest.raises(ConfigError, match="bm25: reads texts of any length; set the size"):
        reader("bm25", Words(), None)
    with pytest.raises(ConfigError, match="m: its window of 4 tokens has no room"):
        reader("m", bert, 4, "passage: ")
    with pytest.raises(ConfigError, match="words: overlap 3 is not less than its passages of 3 tokens"):
        words(3, overlap=3)


def test_a_model_of_transformers_and_of_sentence_transformers():
    from transformers import PreTrainedTokenizerFast

    inner = tokenizer("bert")._backend
    wrapped = PreTrainedTokenizerFast(tokenizer_object=inner)
    for given_one in (wrapped, type("Model", (), {"tokenizer": wrapped})()):
        assert FastTokenizer(given_one).counts(SAMPLE) == tokenizer("bert").counts(SAMPLE)
    with pytest.raises(TypeError, match="str has no fast tokenizer"):
        FastTokenizer("name")


def test_what_is_switched_off_for_counting_stays_on_for_the_model():
    inner = Tokenizer.from_str(tokenizer("bert")._backend.to_str())
    inner.enable_truncation(3)
    assert max(FastTokenizer(inner).counts(SAMPLE)) > 3
    assert len(inner.encode(SAMPLE[0]).ids) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_end_where_they_do(kind):
    one = tokenizer(kind)
    for text in [*SAMPLE[:20], "héé  \t日本語 the 😀😀", "a", ""]:
        (ends,) = one.ends([text])
        assert len(ends) == one.counts([text])[0]
        assert list(ends) == sorted(ends)
        assert len(ends) == 0 or ends[-1] == len(text)
    if kind == "gemma":  # so few texts teach it tokens of several words, which real ones have not
        return
    (ends,) = one.ends(["the the 日"])
    assert {3, 7, 9} <= set(ends.tolist())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "gemma"])
def test_long_texts_have_the_same_tokens_in_blocks(kind):
    one = tokenizer(kind)
    text = "\n\n".join("\n".join(SAMPLE[n : n + 3]) for n in range(0, 60, 3))
    (whole,) = one.ends([text])
    for block in (100, 1000, 4000):
        assert token_ends(one, [text, "", text[:50]], block)[0].tolist() == whole.tolist()
        assert _by_blocks(one, [text, ""], block)[0].tolist() == whole.tolist()
    assert token_counts(one, [text, ""]) == [len(whole), 0]


def test_which_tokenizers_take_words_alone():
    assert [kind for kind in KINDS if tokenizer(kind).by_word] == ["bert", "xlmr", "words"]
    inner = Tokenizer.from_str(tokenizer("xlmr")._backend.to_str())
    first = pre_tokenizers.Metaspace(prepend_scheme="first")
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), first])
    assert not FastTokenizer(inner).by_word  # the first word of a text has other tokens than later ones
    inner = Tokenizer.from_str(tokenizer("bert")._backend.to_str())
    inner.add_tokens(["two words"])
    assert not FastTokenizer(inner).by_word


def test_a_text_without_blanks_is_tokenised_in_blocks_too():
    one = tokenizer("bert")
    text = "字" * 1000
    assert _by_blocks(one, [text], 64)[0].tolist() == one.ends([text])[0].tolist()


PIECES = [
    "thé",
    "日本語。",
    "第一句话。第二",
    "e\u0301",
    "😀",
    "\n\n",
    " ",
    "\t",
    "\x0c",
    "\xa0",
    "\u200b",
    ". ",
]
PIECES += ["Dr.", "x" * 40, "[CLS]", "\x1c", "\x85", "´a", *SAMPLE[3].split()]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
TEXTS |= st.lists(st.text(max_size=8), max_size=20).map(" ".join)


def test_a_word_that_the_tokenizer_does_not_know_is_cut_like_any_other():
    """WordPiece takes a word for one token, and its parts for many."""
    readers = [Reader("bert", tokenizer("bert"), 16), Reader("xlmr", tokenizer("xlmr"), 16)]
    text = "mRNAmRNAforforrecognise😀"
    made = passages(documents(text), Cut(readers))["text"].to_pylist()
    assert tokenizer("bert").counts([text]) == [1]
    assert "".join(made) == text
    assert all(max(one.tokenizer.counts(made)) <= 16 for one in readers)


@settings(max_examples=150, deadline=None)
@given(
    text=TEXTS,
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True),
    room=st.integers(8, 40),
    overlap=st.integers(0, 7),
    whole=st.booleans(),
    head=st.sampled_from([("", ""), ("passage: ", ""), ("", "the"), (">", "a")]),
)
def test_no_character_is_lost_and_no_passage_is_too_long(text, kinds, room, overlap, whole, head):
    prefix, description = head
    readers = []
    for kind in kinds:
        before = Reader(kind, tokenizer(kind), 0, prefix).prefix_tokens
        readers.append(Reader(kind, tokenizer(kind), 2 * before + 2 * room, prefix))
    made = passages(documents(text, description=description), Cut(readers, overlap, whole)).to_pylist()
    covered = 0
    for row in made:
        start, end = row["start"], row["end"]
        assert row["text"] == (f"{description}\n" if description else "") + text[start:end]
        assert text[start:end] == text[start:end].strip() != ""
        assert text[covered:start].strip() == ""  # empty where passages overlap
        assert end > covered
        covered = end
        for one in readers:
            assert one.tokenizer.counts([prefix + row["text"]])[0] <= one.limit
        first = readers[0]
        assert row["tokens"] == first.tokenizer.counts([prefix + row["text"]])[0] - first.prefix_tokens
    assert text[covered:].strip() == ""
    for before, after in pairwise(made):
        repeated = text[after["start"] : before["end"]]
        assert before["start"] < after["start"]
        if repeated and all(one.tokenizer.by_word for one in readers) and not whole:
            assert all(one.tokenizer.counts([repeated])[0] <= overlap + 1 for one in readers)


@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_full(kind):
    """Not one more word would fit."""
    one = Reader(kind, tokenizer(kind), 50)
    text = " ".join(SAMPLE)
    made = spans(text, Cut([one]))
    assert len(made) > 20
    for (start, end), (after, _) in pairwise(made):
        word = text[after:].split(maxsplit=1)[0]
        longer = text[start : after + len(word)]
        slack = 0 if one.tokenizer.by_word else 3  # alone, their first word has other tokens
        assert one.tokenizer.counts([longer])[0] > one.limit - slack
        assert end < after


def test_common_passages_are_within_the_limits_of_all_models():
    kinds = {"bert": 44, "xlmr": 52, "words": 20}
    readers = [Reader(kind, tokenizer(kind), limit) for kind, limit in kinds.items()]
    text = " ".join(SAMPLE)
    common = spans(text, Cut(readers))
    texts = [text[start:end] for start, end in common]
    for one in readers:
        assert max(one.tokenizer.counts(texts)) <= one.limit
        assert spans(text, Cut([one])) != common
    reached = [max(one.tokenizer.counts(texts)) for one in readers]
    assert sum(full > one.limit - 3 for full, one in zip(reached, readers, strict=True)) >= 2
    assert common == spans(text, Cut(readers[::-1]))


def test_a_long_text_is_cut_like_a_short_one():
    """Blocks of tokenisation do not show in the windows."""
    text = "\n".join(SAMPLE * 9)
    assert len(text) > 60_000
    one = Reader("bert", tokenizer("bert"), 50)
    (whole,) = one.tokenizer.ends([text])
    from beirnl.rag.windows import Windows

    assert spans(text, Cut([one])) == Windows(text, [whole]).spans([50])


def test_sentences_stay_whole():
    text = " ".join(SAMPLE)
    starts, place = set(), 0
    for gap, sentence in sentences(text):
        starts.add(place + len(gap))
        place += len(gap) + len(sentence)
    made = spans(text, Cut([Reader("bert", tokenizer("bert"), 120)], sentences=True))
    assert {start for start, _ in made} <= starts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [0, 1, 10, 77, 10_000])
def test_equal_budgets_of_tokens(kind, budget):
    one = tokenizer(kind)
    ranked = SAMPLE[:6]
    filled = fill(ranked, one, budget, between=2)
    counts = one.counts(filled.texts)
    assert filled.tokens == sum(counts) + 2 * len(counts) <= budget
    full = filled.texts[:-1] if filled.cut else filled.texts
    assert full == ranked[: len(full)]
    if filled.cut:
        assert ranked[len(full)].startswith(filled.texts[-1]) and filled.texts[-1]
        assert budget - filled.tokens < max(one.counts([f"x {word}" for word in " ".join(ranked).split()]))
    whole = fill(ranked, one, budget, between=2, counts=one.counts(ranked), whole=True)
    assert whole.texts == full and not whole.cut
    if budget == 10_000:
        assert filled.texts == ranked


def test_the_beginning_of_a_text():
    assert beginning(" one two three", Words(), 2) == ("one two", 2)
    assert beginning("one", Words(), 0) == beginning(" ", Words(), 3) == ("", 0)
    text, tokens = beginning("x" * 500, tokenizer("gpt2"), 7)
    assert 0 < tokens <= 7 and tokenizer("gpt2").counts([text]) == [tokens]
