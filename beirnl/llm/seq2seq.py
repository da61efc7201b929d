"""Sequence-to-sequence translation models (opus-mt, NLLB, M2M-100, mBART) and their language codes."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

from beirnl import registry
from beirnl.errors import ConfigError
from beirnl.llm.local import end_tokens, load_tokenizer, load_weights, positions, read_answer, sampling
from beirnl.llm.protocol import Answer, Request
from beirnl.registry import LanguageEntry
from beirnl.specs import LlmSpec

#: A language code of NLLB (``nld_Latn``) or mBART (``nl_XX``), as a token of the vocabulary.
_CODE = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")
_FORM_REMEDY = 'use a prompt with form = "source"'


class Seq2SeqModel:
    """A model that reads a text in one language and writes it in another; a request's prompt is that text.

    At temperature 0 the answer is found by beam search, as wide as the model's generation config says.

    Args:
        spec: model, dtype, window (of the source alone, and never more than the model has positions), and
            languages.

    Raises:
        ConfigError: no languages, or one that the model does not know.
        PrerequisiteError: the model is not there.
    """

    def __init__(self, spec: LlmSpec) -> None:
        from transformers import AutoModelForSeq2SeqLM

        name = spec.model.name if spec.model else ""
        if spec.languages is None:
            raise ConfigError(
                "a sequence-to-sequence model translates bare texts", where=name, remedy=_FORM_REMEDY
            )
        self._name = name
        self._tokenizer: Any = load_tokenizer(spec)
        source, target = (registry.language(code) for code in spec.languages)
        self._prefix, first = set_languages(self._tokenizer, name, source, target)
        self._first = [] if first is None else [first]
        self._model: Any = load_weights(AutoModelForSeq2SeqLM, spec)
        generation = self._model.generation_config
        generation.forced_eos_token_id = None  # it would end a cut answer as if it were whole
        self.beams: int = generation.num_beams or 1
        most = positions(self._model.config) or spec.max_model_len
        self.window = min(spec.max_model_len, most)
        self._most = most - 1 - len(self._first)  # besides the start and the language
        self._ends = (*end_tokens(self._model, self._tokenizer), self._tokenizer.pad_token_id)

    def tokens(self, request: Request) -> list[int]:
        """The source's tokens, with the language code where the model wants it.

        Raises:
            ConfigError: the request is a chat.
        """
        if request.prompt is None:
            raise ConfigError(
                "a sequence-to-sequence model has no use for a chat", where=self._name, remedy=_FORM_REMEDY
            )
        return list(self._tokenizer(self._prefix + request.prompt)["input_ids"])

    def room(self, request: Request, prompt_tokens: int) -> int:
        """What the decoder's positions leave: source and answer do not share a window."""
        return min(request.max_tokens, self._most) if prompt_tokens <= self.window else 0

    def answer(self, prompts: list[list[int]], rooms: list[int], like: Request) -> list[Answer]:
        """Answers of one batch; see :class:`beirnl.llm.transformers_engine.Model`."""
        import torch

        width, pad = max(map(len, prompts)), self._tokenizer.pad_token_id
        ids = torch.tensor([prompt + [pad] * (width - len(prompt)) for prompt in prompts])
        mask = torch.tensor([[1] * len(prompt) + [0] * (width - len(prompt)) for prompt in prompts])
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=ids.to(self._model.device),
                attention_mask=mask.to(self._model.device),
                max_new_tokens=max(rooms) + len(self._first),
                forced_bos_token_id=self._first[0] if self._first else None,
                num_beams=1 if like.temperature else self.beams,
                **sampling(like.temperature),
            )
        begin = 1 + len(self._first)
        return [
            read_answer(self._decode, row[begin : begin + room], self._ends, like.stop, len(prompt))
            for row, prompt, room in zip(output.tolist(), prompts, rooms, strict=True)
        ]

    def _decode(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))


def set_languages(
    tokenizer: Any, model: str, source: LanguageEntry, target: LanguageEntry
) -> tuple[str, int | None]:
    """Tell a tokenizer the languages, in the codes of its model.

    Args:
        tokenizer: of Marian, NLLB, M2M-100 or mBART.
        model: its name, for errors.
        source, target: the languages.

    Returns:
        What stands before each source, and the token with which each answer begins, if there is one.

    Raises:
        ConfigError: the model does not know one of the languages.
    """
    if hasattr(tokenizer, "supported_language_codes"):  # Marian: one pair, or a token for the target
        known = [token[2:-2] for token in tokenizer.supported_language_codes]
        _check_only(model, tokenizer.source_lang, source)
        if known:
            return f">>{_code(model, target, known)}<< ", None
        _check_only(model, tokenizer.target_lang, target)
        return "", None
    known = list(getattr(tokenizer, "lang_code_to_id", ()))
    known = known or [token for token in tokenizer.all_special_tokens if _CODE.fullmatch(token)]
    if not known:
        raise ConfigError(
            "this sequence-to-sequence model has no language codes",
            where=model,
            remedy="use one of the families opus-mt, NLLB, M2M-100, mBART",
        )
    tokenizer.src_lang = _code(model, source, known)
    code = _code(model, target, known)
    to_token = getattr(tokenizer, "get_lang_id", tokenizer.convert_tokens_to_ids)  # M2M-100 writes __nl__
    return "", int(to_token(code))


def _forms(language: LanguageEntry) -> list[str]:
    """The codes by which models call a language."""
    return [form for form in (language.nllb, language.iso3, language.nllb[:3], language.code) if form]


def _code(model: str, language: LanguageEntry, known: Sequence[str]) -> str:
    """The model's own code of a language.

    Raises:
        ConfigError: it has none; names those that look like it.
    """
    for form in _forms(language):
        if form in known:
            return form
    for code in known:
        if code.startswith(f"{language.code}_"):  # nl_XX, zh_CN
            return code
    near = [
        code for form in _forms(language) for code in difflib.get_close_matches(form, known, n=3, cutoff=0.5)
    ]
    listed = ", ".join(dict.fromkeys(near)) or ", ".join(known[:10])
    raise ConfigError(
        f"this model does not know {language.name} ({language.code})",
        where=model,
        remedy=f"choose another one; of the {len(known)} languages that it knows, the nearest are {listed}",
    )


def _check_only(model: str, only: str | None, language: LanguageEntry) -> None:
    """Refuse another language than the only one of a model; ``only`` may also name a group, or nothing."""
    if only in _forms(language) or not any(only in (e.code, e.iso3) for e in registry.languages().values()):
        return
    raise ConfigError(
        f"this model is for {only}, not for {language.name} ({language.code})",
        where=model,
        remedy="choose another model or language",
    )
