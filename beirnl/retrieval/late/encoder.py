"""Texts to vectors of their tokens, and pairs to MaxSim."""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from beirnl.errors import EngineError
from beirnl.retrieval.answers import check_finite, check_number, other_dtype
from beirnl.retrieval.encoders import batches, check_limit, clip, token_counter, torch_device
from beirnl.retrieval.languages import has_adapters, set_language
from beirnl.retrieval.late.loading import LateSpec, load
from beirnl.retrieval.late.vectors import TokenVectors, maxsim

Kind = Literal["query", "document"]


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

    def encode(self, texts: Sequence[str], kind: Kind) -> TokenVectors:
        """Vectors of texts in their order, float32; equal texts are encoded once.

        A text of which the model keeps no token has one vector of zeros.

        Raises:
            EngineError: the model returned NaN, infinity, vectors of another dimension, or of fewer texts.
        """
        found: list[np.ndarray] = [np.empty(0)] * len(texts)
        places = _places(texts)
        for batch, vectors in self.batches(list(places), kind):
            for text, of_text in zip(batch, vectors, strict=True):
                for place in places[text]:
                    found[place] = of_text
        offsets = np.cumsum([0, *(len(vectors) for vectors in found)], dtype=np.int64)
        empty = np.empty((0, self.dimension), np.float32)
        return TokenVectors(np.concatenate([empty, *found]), offsets, self._truncated(texts, kind))

    def batches(self, texts: Sequence[str], kind: Kind) -> Iterator[tuple[list[str], list[np.ndarray]]]:
        """Distinct texts with their vectors, batch after batch, longest first; as :meth:`encode`."""
        limit = self._limit(kind)
        shorter = [clip(text, limit, self._count) for text in texts]
        for batch in batches(self._count(shorter), shorter, self._spec.batch_size, limit=limit):
            vectors = self._embed([shorter[place] for place in batch], kind)
            yield [texts[place] for place in batch], vectors

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
        first = self._model[0]
        own = first.query_length if kind == "query" else first.document_length
        limit = own or self._model.max_seq_length
        return int(limit) if limit and limit < 1_000_000 else None

    def _truncated(self, texts: Sequence[str], kind: Kind) -> int:
        limit = self._limit(kind)
        if not limit:
            return 0
        own = self._spec.query_prompt if kind == "query" else self._spec.document_prompt
        prompt = own or self._model.prompts.get(kind) or ""
        return sum(
            length > limit
            for length in self._count([prompt + clip(text, limit, self._count) for text in texts])
        )


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

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Scores of (query, document) pairs in their order, float32 [n]; each text is encoded once."""
        scores = np.empty(len(pairs), np.float32)
        queries = list(dict.fromkeys(query for query, _ in pairs))
        number = {query: place for place, query in enumerate(queries)}
        wanted = _places([document for _, document in pairs])
        of_queries = self._encoder.encode(queries, "query")
        for texts, vectors in self._encoder.batches(list(wanted), "document"):
            for text, document in zip(texts, vectors, strict=True):
                for place in wanted[text]:
                    scores[place] = maxsim(of_queries.of(number[pairs[place][0]]), document)
        return scores
