"""The tokenizer and the window of a model, as a row: written once, read by all who cut passages for it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beirnl.errors import ConfigError
from beirnl.rag.passages import Reader, reader
from beirnl.rag.tokenizers import BytePairs, Ends, FastTokenizer, Tokenizer, Words
from beirnl.retrieval.late import LateSpec
from beirnl.specs import EncoderSpec, Spec

#: Who reads passages. ``kind`` says how tokens are counted (a key of :data:`KINDS`), ``tokenizer`` is that of
#: transformers as JSON, ``window`` the most tokens that the model reads (null: no limit), ``prefix`` what it
#: puts before a passage.
READERS = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("tokenizer", pa.string()),
        ("window", pa.int32()),
        ("prefix", pa.string()),
    ]
)
#: Tokens (of BM25: words) of a passage for readers without a window, where the experiment says nothing.
SIZE = 200
_BYTES = 3  # of UTF-8 for a token, as texts for an API are cut


class ReaderSpec(Spec):
    """A model whose tokenizer and window are wanted; neither: words, for BM25."""

    encoder: EncoderSpec | None = None
    late: LateSpec | None = None


class Bytes:
    """A token for every three bytes of UTF-8: for an API whose tokenizer is not known."""

    special = 0
    by_word = False

    def ends(self, texts: Sequence[str]) -> list[Ends]:
        """As the protocol says; a token that ends within a character ends where the character does."""
        return [_every_third(text.encode("utf-8")) for text in texts]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """As the protocol says."""
        return [-(-len(text.encode("utf-8")) // _BYTES) for text in texts]


def _every_third(data: bytes) -> Ends:
    begun = np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
    last = np.minimum(np.arange(_BYTES - 1, len(data) + _BYTES - 1, _BYTES), len(data) - 1)
    return begun[last].astype(np.int32) if len(data) else np.zeros(0, np.int32)


class Sentencepieces:
    """USE's tokenizer. It tells how many tokens a word has, not where they end: they are taken to be as long
    as each other, which only matters for a word that is longer than a passage."""

    special = 2
    by_word = True

    def __init__(self) -> None:
        from beirnl.models.usem3 import load_tokenizer

        self._encode = load_tokenizer().encode

    def ends(self, texts: Sequence[str]) -> list[Ends]:
        """As the protocol says, for single words."""
        counted = zip(texts, self.counts(texts), strict=True)
        return [
            (np.arange(1, count + 1) * len(text) // max(1, count)).astype(np.int32) for text, count in counted
        ]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """As the protocol says."""
        return [len(self._encode(text)) - self.special for text in texts]


def _transformers(text: str) -> Tokenizer:
    from tokenizers import Tokenizer as Backend

    return FastTokenizer(Backend.from_str(text))


def _byte_pairs(text: str) -> Tokenizer:
    import tiktoken

    return BytePairs(tiktoken.get_encoding("cl100k_base"))


#: How tokens are counted, from the JSON of a tokenizer.
KINDS: dict[str, Callable[[str], Tokenizer]] = {
    "transformers": _transformers,
    "cl100k_base": _byte_pairs,
    "bytes": lambda text: Bytes(),
    "use": lambda text: Sentencepieces(),
    "words": lambda text: Words(),
}


def describe(spec: ReaderSpec) -> pa.Table:
    """The row of a model (schema ``READERS``); its weights are loaded for what it says of its window.

    Raises:
        ConfigError: its tokenizer is none of the library tokenizers.
        PrerequisiteError: it is not there.
    """
    if spec.late:
        row = _late(spec.late)
    elif spec.encoder:
        row = _api(spec.encoder) if spec.encoder.is_remote else _encoder(spec.encoder)
    else:
        row = {"name": "BM25", "kind": "words"}
    return pa.Table.from_pylist([{"tokenizer": "", "prefix": "", **row}], schema=READERS)


def reader_of(row: dict[str, Any], size: int | None = None) -> Reader:
    """The reader that a row describes.

    Args:
        row: of schema ``READERS``.
        size: most tokens of a passage; None: as the window allows, or :data:`SIZE` where there is none.

    Raises:
        ConfigError: the window leaves no room for text.
    """
    wanted = SIZE if size is None and row["window"] is None else size
    return reader(row["name"], KINDS[row["kind"]](row["tokenizer"]), row["window"], row["prefix"], wanted)


def _api(spec: EncoderSpec) -> dict[str, Any]:
    return {
        "name": spec.model.name,
        "kind": spec.tokenizer or "bytes",
        "window": spec.max_tokens,
        "prefix": spec.document_prompt,
    }


def _encoder(spec: EncoderSpec) -> dict[str, Any]:
    from beirnl.models.usem3 import UseM3, is_usem3
    from beirnl.retrieval.checkpoints import sentence_transformer, weights
    from beirnl.retrieval.encoders import check_limit, token_limit

    folder, name = weights(spec.model), spec.model.name
    shared = {"name": name, "prefix": spec.document_prompt}
    if is_usem3(folder):
        return {**shared, "kind": "use", "window": spec.max_tokens or UseM3.guard}
    model = sentence_transformer(spec.model, folder, "cpu", spec.dtype)
    if spec.max_tokens:
        check_limit(model, spec.max_tokens, name)
    return {**shared, **_of_transformers(model, name), "window": spec.max_tokens or token_limit(model)}


def _late(spec: LateSpec) -> dict[str, Any]:
    from beirnl.retrieval.encoders import token_limit
    from beirnl.retrieval.late.loading import load

    model = load(spec, "cpu")
    prefix = spec.document_prompt or model.prompts.get("document") or ""
    window = spec.max_tokens or model[0].document_length or token_limit(model)
    return {
        "name": spec.model.name,
        "prefix": prefix,
        **_of_transformers(model, spec.model.name),
        "window": window,
    }


def _of_transformers(model: Any, name: str) -> dict[str, str]:
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ConfigError(
            "its tokenizer does not tell where tokens end",
            where=name,
            remedy="use a model with a tokenizer.json",
        )
    return {"kind": "transformers", "tokenizer": backend.to_str()}
