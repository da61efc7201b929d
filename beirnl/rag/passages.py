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

_BATCH = 512  # documents whose tokens are in memory at once
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
    made = (_passages(batch, cut) for batch in batches)
    return pa.Table.from_batches([batch for batch in made if batch is not None], PASSAGES)


def _passages(batch: pa.RecordBatch, cut: Cut) -> pa.RecordBatch | None:
    """Passages of a few documents; what is longer than its readers allow is cut anew with less room."""
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    read = (_Document(*row, readers=len(cut.readers)) for row in rows)
    documents = [document for document in read if document.body]
    _tokenise(documents, cut)
    pending = [document for document in documents if not document.whole]
    while pending:
        unsure = [document for document in pending if not document.cut(cut)]
        _count(unsure, cut)
        pending = [document for document in unsure if document.long]
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
        long: places of passages that are longer than a reader allows.
    """

    def __init__(self, name: str, text: str, description: str, *, readers: int) -> None:
        self.name, self.body = name, text.strip()
        self._offset = len(text) - len(text.lstrip())
        self.head = f"{description}\n" if description else ""
        self.head_tokens = 0
        self.ends: list[Ends] = []
        self.rooms: list[int] = []
        self.whole = False
        self.spans: list[Span] = [Span(0, len(self.body))]
        self.tokens: list[int] = []
        self.long: set[int] = set()
        self._less: list[int] = [0] * readers  # room that is left out, per reader
        self._apart = False  # long passages are cut by themselves, since less room for all did not do

    def cut(self, cut: Cut) -> bool:
        """Make the passages anew; whether their tokens are known without counting them alone."""
        if self._apart:
            spans = enumerate(self.spans)
            parts = (self._divided(span, cut) if n in self.long else [span] for n, span in spans)
            self.spans = [part for some in parts for part in some]
            return False
        windows = Windows(self.body, self.ends, cut.sentences)
        rooms = [room - less for room, less in zip(self.rooms, self._less, strict=True)]
        self.spans = windows.spans(rooms, cut.overlap)
        self.tokens = [self.head_tokens + windows.tokens(span) for span in self.spans]
        return all(map(self._keeps_words, cut.readers)) and all(map(windows.between_words, self.spans))

    def _keeps_words(self, reader: Reader) -> bool:
        """Whether a reader finds the same tokens in whole words after the head as within the document."""
        return reader.tokenizer.by_word and not (reader.prefix + self.head)[-1:].strip()

    def _divided(self, span: Span, cut: Cut) -> list[Span]:
        """A passage in several, by the tokens that it has alone."""
        heads = [one.prefix + self.head for one in cut.readers]
        text = self.body[span.start : span.end]
        read = zip(cut.readers, heads, strict=True)
        ends = [_split(token_ends(one.tokenizer, [head + text])[0], head)[1] for one, head in read]
        parts = Windows(text, ends, cut.sentences).spans(self.rooms)
        if len(parts) < 2:
            raise DataError("cannot be cut to so few tokens", where=self.name, remedy="set larger passages")
        return [Span(span.start + start, span.start + end) for start, end in parts]

    def shorten(self, excess: Sequence[int]) -> None:
        """Leave less room for all passages; where half of it would go, cut the long ones by themselves.

        Args:
            excess: per reader the tokens by which the longest passage exceeds its limit; 0 or less: by none.
        """
        less = [one + max(0, over) for one, over in zip(self._less, excess, strict=True)]
        if all(2 * one < room for one, room in zip(less, self.rooms, strict=True)):
            self._less = less
        elif not self._apart:
            self._apart, self.spans, self.long = True, [Span(0, len(self.body))], {0}

    def texts(self) -> list[str]:
        """The passages, as they are shown and embedded."""
        return [self.head + self.body[start:end] for start, end in self.spans]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of its passages."""
        for n, (span, text, tokens) in enumerate(zip(self.spans, self.texts(), self.tokens, strict=True)):
            start, end = (self._offset + place for place in span)
            yield f"{self.name}#{n}", self.name, text, start, end, tokens


def _split(ends: Ends, head: str) -> tuple[int, Ends]:
    """Tokens of a head, and where those of the text after it end in that text."""
    of_head = int(np.searchsorted(ends, len(head), "right"))
    return of_head, ends[of_head:] - np.int32(len(head))


def _tokenise(documents: Sequence[_Document], cut: Cut) -> None:
    """Count each document as every reader will read it; one that fits all of them is whole."""
    for reader in cut.readers:
        before = reader.prefix_tokens
        texts = [reader.prefix + document.head + document.body for document in documents]
        for document, ends in zip(documents, token_ends(reader.tokenizer, texts), strict=True):
            of_head, of_body = _split(ends, reader.prefix + document.head)
            if document.head and _SHARE * (of_head - before) > reader.limit - before:
                raise DataError(
                    f"its description of {of_head - before} tokens takes more than half of a passage",
                    where=f"{document.name} ({reader.name})",
                    remedy="shorten the description, or set larger passages",
                )
            document.ends.append(of_body)
            document.rooms.append(reader.limit - of_head)
            if reader is cut.readers[0]:
                document.head_tokens = of_head - before
                document.tokens = [len(ends) - before]
    for document in documents:
        fitting = (len(ends) <= room for ends, room in zip(document.ends, document.rooms, strict=True))
        document.whole = len(document.head + document.body) < BLOCK // 2 and all(fitting)


def _count(documents: Sequence[_Document], cut: Cut) -> None:
    """Count passages as they will be read; documents with passages that are too long are to shorten them.

    Alone, a passage may have other tokens than within its document: where a word is cut, or where a
    tokenizer joins blanks with words.
    """
    counts: list[list[list[int]]] = [[] for _ in documents]
    for reader in cut.readers:
        texts = [reader.prefix + text for document in documents for text in document.texts()]
        counted = iter(token_counts(reader.tokenizer, texts))
        for document, known in zip(documents, counts, strict=True):
            known.append(list(islice(counted, len(document.spans))))
    limits = [reader.limit for reader in cut.readers]
    for document, known in zip(documents, counts, strict=True):
        document.tokens = [count - cut.readers[0].prefix_tokens for count in known[0]]
        long = (n for row, limit in zip(known, limits, strict=True) for n, c in enumerate(row) if c > limit)
        document.long = set(long)
        if document.long:
            document.shorten([max(row) - limit for row, limit in zip(known, limits, strict=True)])
