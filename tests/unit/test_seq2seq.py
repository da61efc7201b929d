"""Sequence-to-sequence models of the four families, with random weights and vocabularies made here.

What the engine answers is compared with the recipe of the family's own documentation, one text at a time.
"""

import importlib.util
import json

import pytest

from beirnl import registry
from beirnl.errors import ConfigError
from beirnl.llm import load_llm
from beirnl.llm.local import source_window
from beirnl.llm.protocol import Request, in_order
from beirnl.specs import LlmSpec, ModelRef

needs_sentencepiece = pytest.mark.skipif(
    not importlib.util.find_spec("sentencepiece"), reason="sentencepiece is not installed"
)

TEXTS = [
    "the cat sleeps on the mat",
    "water",
    "a long day in the old city by the sea and a short night in the small house on the hill",
    "the sun is a star",
    "we drink water and we eat bread every day of the year",
]
SMALL = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "init_std": 0.6,
    "max_position_embeddings": 128,
}  # fmt: skip


def pieces(folder, name):
    """A sentencepiece model of the texts; its path and its pieces."""
    import sentencepiece

    (folder / "text.txt").write_text("\n".join(TEXTS * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / name), vocab_size=44, minloglevel=2
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.model"))
    return folder / f"{name}.model", [processor.id_to_piece(n) for n in range(len(processor))]


def saved(folder, config, model_class, tokenizer):
    import torch

    torch.manual_seed(7)
    model = model_class(config)
    model.generation_config.num_beams = 3
    model.generation_config.forced_eos_token_id = tokenizer.eos_token_id
    target = folder / "model"
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target


def marian(folder, codes=(), **languages):
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    path, found = pieces(folder, "marian")
    words = ["</s>", "<unk>", *codes, *(piece for piece in found if not piece.startswith("<")), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: n for n, word in enumerate(words)}))
    tokenizer = MarianTokenizer(str(path), str(path), str(folder / "vocab.json"), **languages)
    pad = words.index("<pad>")
    config = MarianConfig(
        vocab_size=len(words), pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0, bos_token_id=0,
        **SMALL,
    )  # fmt: skip
    return saved(folder, config, MarianMTModel, tokenizer)


def m2m100(folder):
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

    path, found = pieces(folder, "m2m")
    words = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece in found if not piece.startswith("<"))]
    (folder / "vocab.json").write_text(json.dumps({word: n for n, word in enumerate(words)}))
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    tokens = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]
    tokenizer = M2M100Tokenizer(
        str(folder / "vocab.json"), str(path), additional_special_tokens=tokens, num_madeup_words=0
    )
    config = M2M100Config(vocab_size=len(words) + len(tokens), decoder_start_token_id=2, **SMALL)
    return saved(folder, config, M2M100ForConditionalGeneration, tokenizer)


def nllb(folder):
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    letters = sorted({*"".join(TEXTS).replace(" ", ""), "▁"})
    words = ["<s>", "<pad>", "</s>", "<unk>", *letters]
    codes = ["eng_Latn", "nld_Latn", "fra_Latn", "deu_Latn", "lim_Latn"]
    tokenizer = NllbTokenizer(
        vocab={word: n for n, word in enumerate(words)}, merges=[], extra_special_tokens=codes
    )
    config = M2M100Config(vocab_size=len(tokenizer), decoder_start_token_id=2, **SMALL)
    return saved(folder, config, M2M100ForConditionalGeneration, tokenizer)


def mbart50(folder):
    from transformers import MBart50Tokenizer, MBartConfig, MBartForConditionalGeneration

    letters = sorted({*"".join(TEXTS).replace(" ", ""), "▁"})
    rows = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *((letter, -1.0) for letter in letters)]
    tokenizer = MBart50Tokenizer(vocab=rows)
    config = MBartConfig(vocab_size=len(tokenizer), decoder_start_token_id=2, **SMALL)
    return saved(folder, config, MBartForConditionalGeneration, tokenizer)


#: Families, with the codes by which they know English, Dutch and French.
FAMILIES = {
    "marian": (lambda folder: marian(folder, (">>nld<<", ">>fra<<")), "", ">>nld<<", ">>fra<<"),
    "m2m100": (m2m100, "en", "nl", "fr"),
    "nllb": (nllb, "eng_Latn", "nld_Latn", "fra_Latn"),
    "mbart50": (mbart50, "en_XX", "nl_XX", "fr_XX"),
}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory):
    if request.param in ("marian", "m2m100") and not importlib.util.find_spec("sentencepiece"):
        pytest.skip("sentencepiece is not installed")
    make, *codes = FAMILIES[request.param]
    return make(tmp_path_factory.mktemp(request.param)), *codes


def engine(folder, languages=("en", "nl"), **fields):
    ref = ModelRef(name="tiny", source=f"path:{folder}")
    return load_llm(LlmSpec(engine="transformers", model=ref, dtype="float32", languages=languages, **fields))


def requests(max_tokens=16, **fields):
    return [Request(prompt=text, max_tokens=max_tokens, **fields) for text in TEXTS]


def by_the_book(folder, source, target, texts, **settings):
    """Answers of transformers, text by text, as the documentation of each family shows it; token ids."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
    if target.startswith(">>"):
        texts, first = [f"{target} {text}" for text in texts], None
    else:
        tokenizer.src_lang = source
        lookup = getattr(tokenizer, "get_lang_id", tokenizer.convert_tokens_to_ids)
        first = lookup(target)
    outputs = [
        model.generate(
            **tokenizer(text, return_tensors="pt"),
            forced_bos_token_id=first,
            forced_eos_token_id=None,
            max_new_tokens=16 + (first is not None),
            **settings,
        )[0]
        for text in texts
    ]
    assert first is None or all(output[1] == first for output in outputs)
    return [tokenizer.decode(output, skip_special_tokens=True) for output in outputs]


def test_answers_are_those_of_the_familys_own_recipe(family):
    folder, source, dutch, french = family
    answers = in_order(engine(folder), requests())
    assert [answer.text for answer in answers] == by_the_book(folder, source, dutch, TEXTS)
    other = in_order(engine(folder, ("en", "fr")), requests())
    assert [answer.text for answer in other] == by_the_book(folder, source, french, TEXTS)
    assert [answer.text for answer in answers] != [answer.text for answer in other]


def test_the_source_language_reaches_a_model_that_has_a_code_for_it(family):
    folder, source, *_ = family
    dutch, german = (in_order(engine(folder, (code, "fr")), requests()) for code in ("nl", "de"))
    differs = [answer.text for answer in dutch] != [answer.text for answer in german]
    assert differs == bool(source)  # Marian has no token for the source


def test_a_cut_answer_says_so_and_keeps_its_own_room(family):
    llm = engine(family[0])
    rooms = [3, 40, 5, 40, 1]
    asked = [Request(prompt=text, max_tokens=n) for text, n in zip(TEXTS, rooms, strict=True)]
    for answer, room in zip(in_order(llm, asked), rooms, strict=True):
        assert 0 < answer.completion_tokens <= room
        assert answer.finish_reason in ("stop", "length")
        assert (answer.finish_reason == "length") <= (answer.completion_tokens == room)
    shortest = in_order(llm, requests(max_tokens=1))
    assert {answer.finish_reason for answer in shortest} == {"length"}
    long = in_order(llm, requests(max_tokens=4000))
    assert all(answer.completion_tokens < SMALL["max_position_embeddings"] for answer in long)


def test_a_source_longer_than_the_models_positions_is_an_error_of_its_row_alone(family):
    asked = [Request(prompt=text, max_tokens=4) for text in ("water", "w a t e r " * 80, "sun")]
    answers = in_order(engine(family[0]), asked)
    assert [answer.finish_reason == "error" for answer in answers] == [False, True, False]
    assert "the window is 128" in answers[1].error and answers[1].prompt_tokens > 128
    spec = LlmSpec(engine="transformers", model=ModelRef(name="tiny", source=f"path:{family[0]}"))
    assert source_window(spec) == 128 - 3
    narrow = in_order(engine(family[0], max_model_len=8), [Request(prompt=TEXTS[2])])
    assert "the window is 8" in narrow[0].error


def test_temperature_samples_without_beams(family):
    import torch

    llm = engine(family[0])
    torch.manual_seed(1)
    warm = [in_order(llm, requests(temperature=3.0)) for _ in range(2)]
    assert warm[0] != warm[1]
    assert in_order(llm, requests()) == in_order(llm, requests())


@pytest.mark.parametrize("languages", [None, ("en", "nl")])
def test_a_model_for_bare_texts_says_which_prompt_it_needs(family, languages):
    with pytest.raises(ConfigError, match='use a prompt with form = "source"'):
        in_order(engine(family[0], languages), [Request(messages=(("user", "water"),))])


def test_a_language_that_the_model_does_not_know_names_near_ones(family):
    folder, source, *_ = family
    code, name = ("fy", "West Frisian") if source == "eng_Latn" else ("qu", "Quechua")
    said = rf"^tiny: this model does not know {name} \({code}\); .* it knows, the nearest are \w+"
    with pytest.raises(ConfigError, match=said):
        engine(folder, ("en", code))


def test_a_language_that_nobody_knows(family):
    with pytest.raises(ConfigError, match="unknown language 'dutch'"):
        engine(family[0], ("en", "dutch"))


@needs_sentencepiece
def test_a_marian_model_of_one_pair_wants_no_code_and_no_other_language(tmp_path):
    folder = marian(tmp_path, source_lang="eng", target_lang="nl")
    assert all(answer.text for answer in in_order(engine(folder), requests()))
    for languages, named in ((("en", "fr"), "nl, not for French"), (("nl", "nl"), "eng, not for Dutch")):
        with pytest.raises(ConfigError, match=f"this model is for {named}"):
            engine(folder, languages)


@needs_sentencepiece
def test_a_marian_model_from_a_group_of_languages_takes_any_of_them(tmp_path):
    folder = marian(tmp_path, source_lang="gem", target_lang="eng")
    assert len(in_order(engine(folder, ("nl", "en")), requests())) == len(TEXTS)


def test_codes_of_the_registry_are_those_of_the_standards():
    entries = registry.languages()
    codes = pytest.importorskip("transformers.models.nllb.tokenization_nllb").FAIRSEQ_LANGUAGE_CODES
    assert {entry.nllb for entry in entries.values() if entry.nllb} <= set(codes)
    standard = pytest.importorskip("pycountry").languages
    for code, entry in entries.items():
        assert standard.get(alpha_2=code).alpha_3 == entry.iso3
    assert len({entry.name for entry in entries.values()}) == len(entries)
