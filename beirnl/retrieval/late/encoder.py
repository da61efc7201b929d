"""Texts to vectors of their tokens, and pairs to MaxSim."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from beirnl.errors import EngineError
from beirnl.retrieval.answers import Scored, check_finite, check_number, other_dtype
from beirnl.retrieval.batching import batches, clip, longer
from beirnl.retrieval.encoders import Tell, check_limit, nobody, token_counter, torch_device
from beirnl.retrieval.languages import has_adapters, set_language
from beirnl.retrieval.late.loading import LateSpec, load
from beirnl.retrieval.late.vectors import TokenVectors, maxsim

Kind = Literal["query", "document"]


class _Batch(NamedTuple):
    """Texts, their vectors [tokens, dimension] float32 each, and which of them are longer than is read."""

    texts: list[str]
    vectors: list[np.ndarray]
    cut: np.ndarray


class LateEncoder:
    """A vector per token.

    Args:
        spec: model, prompts, language, dtype, longest input and batch size.
        device: ``auto`` is the first CUDA device where there is one, else the CPU; or a torch device.
        threads: CPU threads; ``None`` leaves the library's choice.

    Raises:
        PrerequisiteError: the model's weights are not there.
        ConfigError: the model was not trained for late interaction, has no adapter for the language, cannot
            read this many tokens, or may not run its own code.
    """

    def __init__(self, spec: LateSpec, device: str = "auto", threads: int | None = None) -> None:
        self._spec = spec
        self._model = load(spec, torch_device(device, threads))
        if has_adapters(self._model):
            set_language(self._model, spec.language, spec.model.name)
        if spec.max_tokens:
            check_limit(self._model, spec.max_tokens, spec.model.name)
            self._model[0].document_length = spec.max_tokens
        self.dimension = int(self._model.get_embedding_dimension() or 0)
        self._count = token_counter(self._model.tokenizer)

    def encode(self, texts: Sequence[str], kind: Kind, tell: Tell = nobody) -> TokenVectors:
        """Vectors of texts in their order, float32; equal texts are encoded once.

        A text of which the model keeps no token has one vector of zeros. ``tell`` is told how many are done.

        Raises:
            EngineError: the model returned NaN, infinity, vectors of another dimension, or of fewer texts.
        """
        found: list[np.ndarray] = [np.empty(0)] * len(texts)
        places, truncated, done = _places(texts), 0, 0
        for batch in self.batches(list(places), kind):
            for text, vectors, cut in zip(*batch, strict=True):
                for place in places[text]:
                    found[place] = vectors
                truncated += len(places[text]) * bool(cut)
                done += len(places[text])
            tell(done)
        offsets = np.cumsum([0, *(len(vectors) for vectors in found)], dtype=np.int64)
        empty = np.empty((0, self.dimension), np.float32)
        return TokenVectors(np.concatenate([empty, *found]), offsets, truncated)

    def batches(self, texts: Sequence[str], kind: Kind) -> Iterator[_Batch]:
        """Distinct texts with their vectors, batch after batch, longest first; as :meth:`encode`."""
        limit = self._limit(kind)
        own = self._spec.query_prompt if kind == "query" else self._spec.document_prompt
        prompt = own or self._model.prompts.get(kind) or ""
        shorter = [clip(text, limit, self._count) for text in texts]
        lengths = self._count([prompt + text for text in shorter])
        cut = longer(lengths, limit)
        for batch in batches(lengths, shorter, self._spec.batch_size, limit=limit):
            vectors = self._embed([shorter[place] for place in batch], kind)
            yield _Batch([texts[place] for place in batch], vectors, cut[batch])

    def _embed(self, texts: list[str], kind: Kind) -> list[np.ndarray]:
        spec, model = self._spec, self._model
        encode = model.encode_query if kind == "query" else model.encode_document
        prompt = (spec.query_prompt if kind == "query" else spec.document_prompt) or None
        found = encode(
            texts, prompt=prompt, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True
        )
        found = [
            vectors.astype(np.float32, copy=False)
            if len(vectors)
            else np.zeros((1, self.dimension), np.float32)
            for vectors in found
        ]
        self._check(found, texts)
        return found

    def _check(self, found: list[np.ndarray], texts: list[str]) -> None:
        name = self._spec.model.name
        check_number(len(found), texts, name)
        sizes = {vectors.shape[1] for vectors in found} - {self.dimension}
        if sizes:
            raise EngineError(
                f"the model returned vectors of {min(sizes)} numbers where {self.dimension} were expected",
                where=name,
                remedy="its configuration does not fit its weights: get the model again",
            )
        finite = np.array([np.isfinite(vectors).all() for vectors in found], bool)
        check_finite(finite, texts, name, other_dtype(self._spec.dtype))

    def _limit(self, kind: Kind) -> int | None:
        """Most tokens that the model reads, marker and special tokens included; None: no limit.

        Queries that are expanded to a fixed length (ColBERT, section 3.2) are also cut to it.
        """
        first = self._model[0]
        own = first.query_length if kind == "query" else first.document_length
        expansion = first.query_expansion if kind == "query" else None
        if expansion:
            fixed, length = expansion["strategy"] == "fixed", expansion["length"]
            own = length if fixed else own and max(own, length)
        limit = own or self._model.max_seq_length
        return int(limit) if limit and limit < 1_000_000 else None


def _places(texts: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, []).append(place)
    return places


class LateReranker:
    """Scores pairs by MaxSim, as a second stage over any first stage.

    It holds the vectors of the queries of a call, and of one batch of documents.
    """

    def __init__(self, spec: LateSpec, device: str = "auto", threads: int | None = None) -> None:
        self._encoder = LateEncoder(spec, device, threads)

    def score(self, pairs: Sequence[tuple[str, str]], tell: Tell = nobody) -> Scored:
        """Scores of (query, document) pairs in their order; each text is encoded once."""
        scores, cut, done = np.empty(len(pairs), np.float32), np.zeros(len(pairs), bool), 0
        wanted = _places([document for _, document in pairs])
        queries = self._queries(list(dict.fromkeys(query for query, _ in pairs)))
        for batch in self._encoder.batches(list(wanted), "document"):
            for text, document, cut_text in zip(*batch, strict=True):
                for place in wanted[text]:
                    query, cut_query = queries[pairs[place][0]]
                    scores[place] = maxsim(query, document)
                    cut[place] = cut_text or cut_query
                done += len(wanted[text])
            tell(done)
        return Scored(scores, int(cut.sum()))

    def _queries(self, texts: Sequence[str]) -> dict[str, tuple[np.ndarray, bool]]:
        """Vectors of queries, and whether they were cut."""
        batches = self._encoder.batches(texts, "query")
        return {
            text: (vectors, bool(cut)) for batch in batches for text, vectors, cut in zip(*batch, strict=True)
        }
