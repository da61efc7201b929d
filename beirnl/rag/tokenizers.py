"""Tokenizers as what cuts passages needs them: where tokens end in a text, and how many there are.

Where words have the same tokens wherever they stand, each distinct one is tokenised once for many texts.
Other texts that are long are tokenised in blocks that end at a paragraph or a blank, which changes no token
of tokenizers that do not join words, and bounds time and memory of all.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

BLOCK = 20_000  # most characters that are tokenised in one piece
_WORDS = 100_000  # distinct words in one call
_CALL = 1_000_000  # characters in one call, whose answer takes a hundred bytes and more a token
#: Every tokenizer takes these for white space; form feeds and the like some remove, which joins words.
BLANKS = " \t\n\xa0\u2003\u2009\u3000"
_WORD = re.compile(r"\S+")
_BETWEEN_BLANKS = re.compile(rf"[^{BLANKS}]+")
#: Where a block may end, the best place first: before the white space, which then begins the next block.
_BLOCK_ENDS = tuple(re.compile(pattern) for pattern in (r"\n[^\S\n]*\n", r"\n", r"\s", r"(?<=[。！？])"))

Ends = np.ndarray
"""Int32 [tokens]: character at which each token of a text ends, ascending."""


class Tokenizer(Protocol):
    """Splits texts into tokens, without special ones."""

    @property
    def special(self) -> int:
        """How many special tokens the model adds to a text."""
        ...

    @property
    def by_word(self) -> bool:
        """Whether words between blanks have the same tokens whatever stands before and after them."""
        ...

    def ends(self, texts: Sequence[str]) -> list[Ends]:
        """Where the tokens of each text end."""
        ...

    def counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""
        ...


class FastTokenizer:
    """A tokenizer of the library tokenizers, which models of transformers have.

    Args:
        tokenizer: a ``tokenizers.Tokenizer``, a fast tokenizer of transformers, or a sentence-transformers
            model that has one. It is copied, since truncation and padding are switched off.

    Raises:
        TypeError: it has none of these.
    """

    def __init__(self, tokenizer: Any) -> None:
        from tokenizers import Tokenizer as Backend

        inner = tokenizer if isinstance(tokenizer, Backend) else getattr(tokenizer, "tokenizer", tokenizer)
        inner = inner if isinstance(inner, Backend) else getattr(inner, "backend_tokenizer", None)
        if not isinstance(inner, Backend):
            raise TypeError(f"{type(tokenizer).__name__} has no fast tokenizer")
        self._backend = Backend.from_str(inner.to_str())
        self._backend.no_truncation()
        self._backend.no_padding()
        self.special = int(self._backend.num_special_tokens_to_add(is_pair=False))
        self.by_word = _is_by_word(json.loads(inner.to_str()))

    def ends(self, texts: Sequence[str]) -> list[Ends]:
        """As the protocol says."""
        encoded = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [_ascending([end for _, end in one.offsets]) for one in encoded]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """As the protocol says."""
        encoded = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(one) for one in encoded]


class BytePairs:
    """An encoding of tiktoken, such as those of OpenAI's models; text that names a special token is text.

    Args:
        encoding: a ``tiktoken.Encoding``.
    """

    special = 0
    by_word = False  # a blank belongs to the word after it

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def ends(self, texts: Sequence[str]) -> list[Ends]:
        """As the protocol says; a token that ends within a character ends where the character does."""
        length = self._encoding.decode_single_token_bytes
        found = []
        for text, ids in zip(texts, self._encode(texts), strict=True):
            octets = np.frombuffer(text.encode("utf-8"), np.uint8)
            begun = np.cumsum((octets & 0xC0) != 0x80)
            found.append(
                begun[np.cumsum([len(length(one)) for one in ids], dtype=np.int64) - 1].astype(np.int32)
            )
        return found

    def counts(self, texts: Sequence[str]) -> list[int]:
        """As the protocol says."""
        return [len(ids) for ids in self._encode(texts)]

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._encoding.encode_ordinary_batch(list(texts), num_threads=1))


class Words:
    """Words between white space, for BM25 and for encoders without a limit of their own."""

    special = 0
    by_word = True

    def ends(self, texts: Sequence[str]) -> list[Ends]:
        """As the protocol says."""
        return [np.array([match.end() for match in _WORD.finditer(text)], np.int32) for text in texts]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """As the protocol says."""
        return [len(text.split()) for text in texts]


def _is_by_word(tokenizer: dict[str, Any]) -> bool:
    """Whether blanks separate words before anything else happens, by the tokenizer's own description."""
    steps = [step for name in ("normalizer", "pre_tokenizer") for step in _steps(tokenizer[name])]
    split = any(step["type"] in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit") for step in steps)
    at_start = any(step["type"] == "Prepend" or step.get("prepend_scheme") == "first" for step in steps)
    added = any(set(BLANKS) & set(token["content"]) for token in tokenizer["added_tokens"])
    return split and not at_start and not added


def _steps(step: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer, sequences opened."""
    if step is None:
        return []
    inner = step.get("normalizers") or step.get("pretokenizers")
    return [step] if inner is None else [one for part in inner for one in _steps(part)]


def _ascending(ends: list[int]) -> Ends:
    return np.maximum.accumulate(np.array(ends, np.int32)) if ends else np.zeros(0, np.int32)


def token_ends(tokenizer: Tokenizer, texts: Sequence[str], block: int = BLOCK) -> list[Ends]:
    """Where the tokens of texts of any length end.

    Args:
        tokenizer: any.
        texts: of any length, any number.
        block: most characters that are tokenised in one piece.

    Returns:
        Per text int32 [tokens], ascending.
    """
    if tokenizer.by_word and not any(_has_long_word(text, block) for text in texts):
        return _by_words(tokenizer, texts)
    return _by_blocks(tokenizer, texts, block)


def _has_long_word(text: str, most: int) -> bool:
    return len(text) > most and max(map(len, _BETWEEN_BLANKS.findall(text)), default=0) > most


def _by_words(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Ends]:
    """Every distinct word is tokenised once."""
    numbers: dict[str, int] = {}
    words = [
        [
            (match.start(), numbers.setdefault(match[0], len(numbers)))
            for match in _BETWEEN_BLANKS.finditer(text)
        ]
        for text in texts
    ]
    parts = [part for some in _batches(list(numbers)) for part in tokenizer.ends(some)]
    ends = np.concatenate([np.zeros(0, np.int32), *parts])
    sizes = np.array([len(part) for part in parts], np.int64)
    first = np.cumsum(sizes) - sizes
    found = []
    for places in words:
        starts, ids = np.array(places, np.int64).reshape(-1, 2).T
        counts = sizes[ids]
        skipped = first[ids] - (
            np.cumsum(counts) - counts
        )  # from a token's place in the text to that in ends
        tokens = np.arange(counts.sum()) + np.repeat(skipped, counts)
        found.append((ends[tokens] + np.repeat(starts, counts)).astype(np.int32))
    return found


def _batches(words: list[str]) -> Iterator[list[str]]:
    yield from (words[n : n + _WORDS] for n in range(0, len(words), _WORDS))


def _by_blocks(tokenizer: Tokenizer, texts: Sequence[str], block: int) -> list[Ends]:
    spans = [(n, *span) for n, text in enumerate(texts) for span in _blocks(text, block)]
    parts: list[list[Ends]] = [[] for _ in texts]
    for call in _calls(spans):
        found = tokenizer.ends([texts[n][start:end] for n, start, end in call])
        for (n, start, _), ends in zip(call, found, strict=True):
            parts[n].append(ends + np.int32(start))
    return [part[0] if len(part) == 1 else np.concatenate([np.zeros(0, np.int32), *part]) for part in parts]


def token_counts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[int]:
    """How many tokens texts have, each tokenised in one piece."""
    calls = _calls([(n, 0, len(text)) for n, text in enumerate(texts)])
    return [count for call in calls for count in tokenizer.counts([texts[n] for n, _, _ in call])]


def _calls(spans: Sequence[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Spans in runs of about ``_CALL`` characters."""
    call: list[tuple[int, int, int]] = []
    size = 0
    for span in spans:
        call.append(span)
        size += span[2] - span[1]
        if size >= _CALL:
            yield call
            call, size = [], 0
    if call:
        yield call


def _blocks(text: str, most: int) -> Iterator[tuple[int, int]]:
    start = 0
    while len(text) - start > most:
        end = _block_end(text, start, start + most)
        yield start, end
        start = end
    yield start, len(text)


def _block_end(text: str, start: int, limit: int) -> int:
    """The last good place in the second half of the block; ``limit`` where there is none."""
    middle = (start + limit) // 2
    for pattern in _BLOCK_ENDS:
        places = [match.start() for match in pattern.finditer(text, middle, limit)]
        if places:
            return places[-1]
    return limit
