"""Second stages: a score for each pair of a query and a document of a first stage."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from beirnl.retrieval.answers import Scored, check_finite, check_number, other_dtype
from beirnl.retrieval.batching import batches, clip, longer
from beirnl.retrieval.checkpoints import settings, weights
from beirnl.retrieval.encoders import (
    Encoder,
    Tell,
    check_limit,
    load_encoder,
    nobody,
    token_counter,
    token_limit,
    torch_device,
)
from beirnl.retrieval.heads import check_cross_encoder
from beirnl.retrieval.late import LateReranker, LateSpec
from beirnl.retrieval.own_code import own_code, restore_buffers
from beirnl.specs import EncoderSpec, RerankerSpec

_PAIRS_AT_ONCE = 1024  # handed to the tokenizer
_T = TypeVar("_T", bound=Hashable)


class Reranker(Protocol):
    """One score per pair; higher is more relevant, and only the order within a query means anything."""

    def score(self, pairs: Sequence[tuple[str, str]], tell: Tell = ...) -> Scored:
        """Scores of (query, document) pairs in their order; ``tell`` is told how many are done."""
        ...


def load_reranker(
    spec: RerankerSpec | LateSpec, *, device: str = "auto", threads: int | None = None
) -> Reranker:
    """Load a reranker with the conditions of its spec.

    Args:
        spec: kind, model, prompts, dtype, longest input and batch size.
        device: ``auto`` is the first CUDA device where there is one, else the CPU; or a torch device.
        threads: CPU threads; ``None`` leaves the library's choice.

    Raises:
        PrerequisiteError: the model's weights are not there.
        ConfigError: the model has no head that scores a pair with one number, or may not run its own code.
    """
    if isinstance(spec, LateSpec):
        return LateReranker(spec, device, threads)
    if spec.kind == "cross-encoder":
        return _CrossEncoder(spec, device, threads)
    encoder = load_encoder(
        EncoderSpec(
            model=spec.model,
            query_prompt=spec.query_prompt,
            document_prompt=spec.document_prompt,
            dtype=spec.dtype,
            max_tokens=spec.max_tokens,
            batch_size=spec.batch_size,
        ),
        device=device,
        threads=threads,
    )
    return _BiEncoder(encoder)


class _BiEncoder:
    """Scores a pair by the cosine of its vectors, in [-1, 1]."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def score(self, pairs: Sequence[tuple[str, str]], tell: Tell = nobody) -> Scored:
        """See :meth:`Reranker.score`; each query and document is encoded once per call."""
        if not pairs:
            return Scored(np.empty(0, np.float32), 0)
        queries, query_of = _distinct([query for query, _ in pairs])
        documents, document_of = _distinct([document for _, document in pairs])
        left = self._encoder.encode(queries, "query")
        right = self._encoder.encode(
            documents, "document", lambda done: tell(done * len(pairs) // len(documents))
        )
        scores = np.empty(len(pairs), np.float32)
        for start in range(0, len(pairs), 4096):  # bounds the memory of the gathered vectors
            part = slice(start, start + 4096)
            gathered = left.vectors[query_of[part]], right.vectors[document_of[part]]
            scores[part] = np.einsum("nd,nd->n", *gathered)
        return Scored(scores, int((left.cut[query_of] | right.cut[document_of]).sum()))


class _Tokens(NamedTuple):
    """Tokenised pairs, not padded: one array of numbers per pair and name (``input_ids``, ...)."""

    columns: dict[str, list[np.ndarray]]

    @property
    def lengths(self) -> list[int]:
        return [len(tokens) for tokens in self.columns["input_ids"]]

    def batch(self, places: Sequence[int]) -> dict[str, list[list[int]]]:
        """The pairs at these places, as a tokenizer's ``pad`` takes them."""
        return {name: [column[place].tolist() for place in places] for name, column in self.columns.items()}


class _Prepared(NamedTuple):
    """Pairs ready for a model.

    Attributes:
        full: places of the pairs that fill the model's input, and may have been cut.
        lengths: what batches are made by.
        forward: scores of the pairs at some places.
    """

    full: Sequence[int]
    lengths: list[int]
    forward: Callable[[list[int]], np.ndarray]


class _CrossEncoder:
    """Scores a pair by reading query and document together; the score is the head's raw logit.

    A logit has the order of its sigmoid, but no ties where a sigmoid would have reached 1.0 in float32.
    Pairs are tokenised once, and batches hold pairs of nearly as many tokens, whatever query they belong to.
    """

    def __init__(self, spec: RerankerSpec, device: str, threads: int | None) -> None:
        from sentence_transformers import CrossEncoder
        from torch.nn import Identity

        folder = weights(spec.model)
        check_cross_encoder(folder, spec.model.name)
        self._spec = spec
        with own_code(spec.model):
            self._model = CrossEncoder(
                str(folder),
                device=torch_device(device, threads),
                activation_fn=Identity(),
                **settings(spec.model, spec.dtype),
            )
        if spec.model.trust_remote_code:
            restore_buffers(self._model)
        if spec.max_tokens:
            check_limit(self._model, spec.max_tokens, spec.model.name)
            self._model.max_seq_length = spec.max_tokens
        self._limit = token_limit(self._model)
        self._lengths = token_counter(self._model.tokenizer)

    def score(self, pairs: Sequence[tuple[str, str]], tell: Tell = nobody) -> Scored:
        """See :meth:`Reranker.score`; equal pairs are scored once.

        Raises:
            EngineError: the model returned something other than one finite number per pair.
        """
        unique, place_of = _distinct([(query, document) for query, document in pairs])
        if not unique:
            return Scored(np.empty(0, np.float32), 0)
        prompted = [(self._prompted(*pair)) for pair in unique]
        scores, done = np.empty(len(prompted), np.float32), 0
        full, lengths, forward = self._prepared(prompted)
        for batch in batches(lengths, prompted, self._spec.batch_size):
            scores[batch] = self._checked(forward(batch), [prompted[place] for place in batch])
            done += len(batch)
            tell(done * len(pairs) // len(unique))
        cut = np.zeros(len(prompted), bool)
        cut[full] = longer(self._lengths([prompted[place] for place in full]), self._limit)
        return Scored(scores[place_of], int(cut[place_of].sum()))

    def _prepared(self, pairs: list[tuple[str, str]]) -> _Prepared:
        if _reads_plain_text(self._model):
            tokens = self._tokenised(pairs)
            lengths, limit = tokens.lengths, self._limit or np.inf
            full = [place for place, length in enumerate(lengths) if length >= limit]
            return _Prepared(full, lengths, lambda batch: self._forward(tokens.batch(batch)))
        # A chat template makes its tokens, so the library has to; they are counted without it.
        lengths = [len(query) + len(document) for query, document in pairs]
        return _Prepared(
            range(len(pairs)), lengths, lambda batch: self._predict([pairs[place] for place in batch])
        )

    def _prompted(self, query: str, document: str) -> tuple[str, str]:
        spec = self._spec
        cut = [clip(text, self._limit, self._lengths) for text in (query, document)]
        return spec.query_prompt + cut[0], spec.document_prompt + cut[1]

    def _tokenised(self, pairs: list[tuple[str, str]]) -> _Tokens:
        """Pairs as the model's own preprocessing cuts them, before padding."""
        unpadded = {"text": {"padding": False}, "common": {"return_tensors": None}}
        columns: dict[str, list[np.ndarray]] = {}
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            some = pairs[start : start + _PAIRS_AT_ONCE]
            features = self._model.preprocess(some, prompt="", processing_kwargs=unpadded)
            for name, column in features.items():
                if isinstance(column, list) and name != "attention_mask":  # padding makes the mask
                    columns.setdefault(name, []).extend(np.asarray(ids, np.int32) for ids in column)
        return _Tokens(columns)

    def _forward(self, tokens: dict[str, list[list[int]]]) -> np.ndarray:
        import torch

        with torch.inference_mode():
            padded = self._model.tokenizer.pad(tokens, return_tensors="pt").to(self._model.device)
            scores = self._model({**padded, "modality": "text"})["scores"]
            result: np.ndarray = scores.float().squeeze(-1).cpu().numpy()
        return result

    def _predict(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        result: np.ndarray = self._model.predict(
            pairs, prompt="", batch_size=len(pairs), show_progress_bar=False
        )
        return result

    def _checked(self, scores: np.ndarray, pairs: list[tuple[str, str]]) -> np.ndarray:
        name = self._spec.model.name
        check_number(scores.size, pairs, name, "scores")
        check_finite(np.isfinite(scores), pairs, name, other_dtype(self._spec.dtype))
        return scores


def _reads_plain_text(model: Any) -> bool:
    """Whether pairs become tokens by the tokenizer alone, each pair a row that padding completes."""
    first = model[0]
    text = "text" in getattr(first, "modality_config", {}) and "message" not in first.modality_config
    return text and not first.can_flatten_inputs and first.transformer_task == "sequence-classification"


def _distinct(items: Sequence[_T]) -> tuple[list[_T], np.ndarray]:
    places = {item: place for place, item in enumerate(dict.fromkeys(items))}
    return list(places), np.array([places[item] for item in items], np.int64)
