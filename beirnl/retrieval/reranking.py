"""Second stages: a score for each pair of a query and a document of a first stage."""

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from beirnl.errors import ConfigError, EngineError
from beirnl.models.cache import model_path
from beirnl.retrieval.encoders import (
    Encoder,
    batches,
    check_limit,
    clip,
    load_encoder,
    token_counter,
    token_limit,
    torch_device,
)
from beirnl.specs import EncoderSpec, RerankerSpec

_T = TypeVar("_T", bound=Hashable)


class Reranker(Protocol):
    """One score per pair; higher is more relevant, and only the order within a query means anything."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Scores of (query, document) pairs in their order, float32 [n]."""
        ...


def load_reranker(spec: RerankerSpec, *, device: str = "auto", threads: int | None = None) -> Reranker:
    """Load a reranker with the conditions of its spec.

    Args:
        spec: kind, model, prompts, dtype, longest input and batch size.
        device: ``auto`` is the first CUDA device where there is one, else the CPU; or a torch device.
        threads: CPU threads; ``None`` leaves the library's choice.

    Raises:
        PrerequisiteError: the model's weights are not there.
        ConfigError: the model has no head that scores a pair with one number.
    """
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

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """See :meth:`Reranker.score`; each query and document is encoded once per call."""
        if not pairs:
            return np.empty(0, np.float32)
        queries, query_of = _distinct([query for query, _ in pairs])
        documents, document_of = _distinct([document for _, document in pairs])
        left = self._encoder.encode(queries, "query").vectors
        right = self._encoder.encode(documents, "document").vectors
        scores = np.empty(len(pairs), np.float32)
        for start in range(0, len(pairs), 4096):  # bounds the memory of the gathered vectors
            part = slice(start, start + 4096)
            scores[part] = np.einsum("nd,nd->n", left[query_of[part]], right[document_of[part]])
        return scores


class _CrossEncoder:
    """Scores a pair by reading query and document together; the score is the head's raw logit.

    A logit has the order of its sigmoid, but no ties where a sigmoid would have reached 1.0 in float32.
    """

    def __init__(self, spec: RerankerSpec, device: str, threads: int | None) -> None:
        from sentence_transformers import CrossEncoder
        from torch.nn import Identity

        folder = model_path(spec.model)
        _check_head(folder, spec.model.name)
        self._spec = spec
        self._model = CrossEncoder(
            str(folder),
            device=torch_device(device, threads),
            activation_fn=Identity(),
            trust_remote_code=spec.model.trust_remote_code,
            local_files_only=True,
            model_kwargs={"dtype": spec.dtype},
        )
        if spec.max_tokens:
            check_limit(self._model, spec.max_tokens, spec.model.name)
            self._model.max_seq_length = spec.max_tokens
        self._limit = token_limit(self._model)
        self._lengths = token_counter(self._model.tokenizer)

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """See :meth:`Reranker.score`; equal pairs are scored once.

        Raises:
            EngineError: the model returned something other than one finite number per pair.
        """
        unique, place_of = _distinct([(query, document) for query, document in pairs])
        prompted = [(self._prompted(*pair)) for pair in unique]
        lengths = [len(query) + len(document) for query, document in prompted]
        scores = np.empty(len(prompted), np.float32)
        for batch in batches(lengths, prompted, self._spec.batch_size):
            scores[batch] = self._predict([prompted[place] for place in batch])
        result: np.ndarray = scores[place_of]
        return result

    def _prompted(self, query: str, document: str) -> tuple[str, str]:
        spec = self._spec
        cut = [clip(text, self._limit, self._lengths) for text in (query, document)]
        return spec.query_prompt + cut[0], spec.document_prompt + cut[1]

    def _predict(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        scores = self._model.predict(pairs, prompt="", batch_size=len(pairs), show_progress_bar=False)
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise EngineError(
                f"the reranker returned NaN, infinity or the wrong number of scores for {len(pairs)} pairs",
                where=self._spec.model.name,
                remedy=f'dtype is {self._spec.dtype}: try dtype = "float32"',
            )
        result: np.ndarray = scores.astype(np.float32, copy=False)
        return result


def _check_head(folder: Path, name: str) -> None:
    """Refuse a model without a trained head: libraries would give it a random one and score with that."""
    config = folder / "config.json"
    if not config.is_file():
        return
    facts = json.loads(config.read_text(encoding="utf-8"))
    modular = (folder / "modules.json").is_file() and not _is_encoder(folder)
    headed = any("ForSequenceClassification" in kind for kind in facts.get("architectures") or ())
    labels = facts.get("num_labels", len(facts.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}))
    if not modular and not headed:
        raise ConfigError(
            "this model has no classification head, so it is not a cross-encoder",
            where=name,
            remedy='use kind = "bi-encoder", or a model trained for reranking',
        )
    if headed and labels != 1:
        raise ConfigError(
            f"this model gives {labels} numbers for a pair, not one score",
            where=name,
            remedy="use a model trained for reranking",
        )


def _is_encoder(folder: Path) -> bool:
    """Whether the folder's modules pool token vectors into one, as a bi-encoder's do."""
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    return any(module["type"].endswith(".Pooling") for module in modules)


def _distinct(items: Sequence[_T]) -> tuple[list[_T], np.ndarray]:
    places = {item: place for place, item in enumerate(dict.fromkeys(items))}
    return list(places), np.array([places[item] for item in items], np.int64)
