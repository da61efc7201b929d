"""Documents cut into passages: windows of tokens, as long as every model that reads them allows.

Windows are counted in the tokens of the document as a whole, and what comes out is counted again as the model
will read it, prefix and description in front: no passage is longer than its readers allow. A passage is a
slice of the document from the beginning of a word (or sentence) to the end of one; where not even one word
fits, words are cut at a token's end. What lies between passages is white space. (BES4RAG, section 3.3, cuts
at the model's limit by its own tokenizer; overlap, sentences and common passages are ours.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from beirnl.errors import ConfigError, DataError
from beirnl.rag.tables import PASSAGES
from beirnl.rag.tokenizers import BLOCK, Ends, Tokenizer, token_counts, token_ends
from beirnl.rag.windows import Span, Windows

_BATCH = 256  # documents whose tokens are in memory at once
_SHARE = 2  # a description may take one part in so many of a window


@dataclass(frozen=True)
class Reader:
    """Who reads passages, and how much of them.

    Attributes:
        name: of the model, for messages.
        tokenizer: of the model.
        limit: most tokens of prefix, description and text together, special tokens not counted.
        prefix: what the model puts before a passage, such as ``passage: ``.
    """

    name: str
    tokenizer: Tokenizer
    limit: int
    prefix: str = ""

    @cached_property
    def prefix_tokens(self) -> int:
        """Tokens of the prefix where a word follows it."""
        word, prefixed = self.tokenizer.counts(["a", f"{self.prefix}a"])
        return prefixed - word


def reader(
    name: str, tokenizer: Tokenizer, max_tokens: int | None, prefix: str = "", size: int | None = None
) -> Reader:
    """A reader by the window of its model.

    Args:
        name: of the model.
        tokenizer: of the model; its ``special`` tokens are part of the window.
        max_tokens: the window: most tokens that the model reads; None: it has no limit.
        prefix: what the model puts before a passage; part of the window.
        size: most tokens of a passage, description included, where they are to be fewer than the window has.

    Raises:
        ConfigError: there is neither window nor size, or no room is left for text.
    """
    before = Reader(name, tokenizer, 0, prefix).prefix_tokens
    limits = [max_tokens - tokenizer.special] if max_tokens is not None else []
    limits += [before + size] if size is not None else []
    if not limits:
        raise ConfigError("reads texts of any length", where=name, remedy="set the size of its passages")
    if min(limits) <= before:
        raise ConfigError(
            f"its window of {max_tokens} tokens has no room for text beside prefix and special tokens",
            where=name,
            remedy="set a larger window or size",
        )
    return Reader(name, tokenizer, min(limits), prefix)


@dataclass(frozen=True)
class Cut:
    """How documents are cut.

    Attributes:
        readers: every passage is within the limits of all. One: passages of its own; all the models of an
            experiment: passages that they have in common. ``tokens`` of a passage are those of the first.
        overlap: most tokens (of any reader) that a passage repeats of the one before it, in whole words, or
            sentences where these are kept.
        sentences: passages begin and end at sentence ends, wherever a sentence fits.

    Raises:
        ConfigError: the overlap is as long as a passage.
    """

    readers: Sequence[Reader]
    overlap: int = 0
    sentences: bool = False

    def __post_init__(self) -> None:
        for one in self.readers:
            room = one.limit - one.prefix_tokens
            if not 0 <= self.overlap < room:
                raise ConfigError(
                    f"overlap {self.overlap} is not less than its passages of {room} tokens",
                    where=one.name,
                    remedy="set a smaller overlap",
                )


def passages(documents: pa.Table, cut: Cut) -> pa.Table:
    """The passages of documents, in their order.

    Args:
        documents: schema :data:`beirnl.rag.tables.DOCUMENTS`.
        cut: how.

    Returns:
        Schema :data:`beirnl.rag.tables.PASSAGES`; a document without text has none.

    Raises:
        DataError: a description leaves less than half of a window to the text.
    """
    batches = documents.select(["id", "text", "description"]).to_batches(max_chunksize=_BATCH)
    return pa.Table.from_batches(
        [made for batch in batches if (made := _passages(batch, cut)) is not None], PASSAGES
    )


def _passages(batch: pa.RecordBatch, cut: Cut) -> pa.RecordBatch | None:
    """Passages of a few documents; what is longer than its readers allow is cut anew with less room."""
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    documents = [document for document in (_Document(*row) for row in rows) if document.body]
    _tokenise(documents, cut)
    pending = [document for document in documents if not document.whole]
    while pending:
        unsure = [document for document in pending if not document.cut(cut)]
        pending = _too_long(unsure, cut)
    found = [row for document in documents for row in document.rows()]
    columns = [list(column) for column in zip(*found, strict=True)]
    return pa.record_batch(columns, schema=PASSAGES) if columns else None


class _Document:
    """A document while it is cut.

    Attributes:
        body: its text without the white space around it.
        head: what stands before each passage.
        ends: per reader, where its tokens of the body end.
        rooms: per reader, most tokens of the body in a passage.
        whole: it is one passage, whose tokens are known.
        spans: of its passages in the body.
        tokens: of its passages, head included.
    """

    def __init__(self, name: str, text: str, description: str) -> None:
        self.name, self.body = name, text.strip()
        self._offset = len(text) - len(text.lstrip())
        self.head = f"{description}\n" if description else ""
        self.head_tokens = 0
        self.ends: list[Ends] = []
        self.rooms: list[int] = []
        self.whole = False
        self.spans: list[Span] = [Span(0, len(self.body))]
        self.tokens: list[int] = []

    def cut(self, cut: Cut) -> bool:
        """Make the passages anew, within ``rooms``; whether their tokens are known without counting again."""
        windows = Windows(self.body, self.ends, cut.sentences)
        self.spans = windows.spans(self.rooms, cut.overlap)
        self.tokens = [self.head_tokens + windows.tokens(span) for span in self.spans]
        apart = all(
            one.tokenizer.by_word and not (one.prefix + self.head)[-1:].strip() for one in cut.readers
        )
        return apart and all(map(windows.between_words, self.spans))

    def texts(self) -> list[str]:
        """The passages, as they are shown and embedded."""
        return [self.head + self.body[start:end] for start, end in self.spans]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of its passages."""
        for n, (span, text, tokens) in enumerate(zip(self.spans, self.texts(), self.tokens, strict=True)):
            start, end = (self._offset + place for place in span)
            yield f"{self.name}#{n}", self.name, text, start, end, tokens


def _tokenise(documents: Sequence[_Document], cut: Cut) -> None:
    """Count each document as every reader will read it; one that fits all of them is whole."""
    for reader in cut.readers:
        before = reader.prefix_tokens
        heads = [reader.prefix + document.head for document in documents]
        texts = [head + document.body for head, document in zip(heads, documents, strict=True)]
        for document, head, ends in zip(documents, heads, token_ends(reader.tokenizer, texts), strict=True):
            of_head = int(np.searchsorted(ends, len(head), "right"))
            document.ends.append(ends[of_head:] - np.int32(len(head)))
            document.rooms.append(reader.limit - of_head)
            if document.head and _SHARE * (of_head - before) > reader.limit - before:
                raise DataError(
                    f"its description of {of_head - before} tokens takes more than half of a passage",
                    where=f"{document.name} ({reader.name})",
                    remedy="shorten the description, or set larger passages",
                )
            if reader is cut.readers[0]:
                document.head_tokens = of_head - before
                document.tokens = [len(ends) - before]
    for document in documents:
        fitting = (len(ends) <= room for ends, room in zip(document.ends, document.rooms, strict=True))
        document.whole = len(document.head + document.body) < BLOCK // 2 and all(fitting)


def _too_long(documents: Sequence[_Document], cut: Cut) -> list[_Document]:
    """Count the passages of documents; those with a passage that is too long lose room by what it exceeds.

    Alone, a passage may have other tokens than within its document: where a word is cut, or where a
    tokenizer joins blanks with words.
    """
    excess = [0] * len(documents)
    for place, reader in enumerate(cut.readers):
        texts = [reader.prefix + text for document in documents for text in document.texts()]
        counted = iter(token_counts(reader.tokenizer, texts))
        for n, document in enumerate(documents):
            counts = list(islice(counted, len(document.spans)))
            over = max(counts) - reader.limit
            if over > 0:
                excess[n] = over
                document.rooms[place] -= over
            if place == 0:
                document.tokens = [count - reader.prefix_tokens for count in counts]
    for document in documents:
        if min(document.rooms) < 1:
            raise DataError(
                "cannot be cut to so few tokens", where=document.name, remedy="set larger passages"
            )
    return [document for document, over in zip(documents, excess, strict=True) if over]
