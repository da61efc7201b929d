"""Bi-encoders: texts to unit vectors, whose dot product is their cosine.

Texts are tokenised once, encoded in batches of similar length and put back in input order. Equal texts are
encoded once, and the order within a call does not decide how batches are made up, so the same texts give
the same vectors whatever their order (with the same threads and batch plan). A call holds its texts, their
ids and their vectors, and one batch in the model.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from beirnl.errors import ConfigError, EngineError
from beirnl.models.usem3 import UseM3, is_usem3
from beirnl.retrieval.answers import check_finite, check_number, other_dtype
from beirnl.retrieval.batching import batches, clip, longer
from beirnl.retrieval.checkpoints import sentence_transformer, weights
from beirnl.retrieval.heads import check_encoder
from beirnl.retrieval.languages import set_language
from beirnl.retrieval.task_adapters import TaskAdapters
from beirnl.retrieval.tokens import TOKENISED, Prepared, Tokens
from beirnl.specs import EncoderSpec
from beirnl.wording import counted

TextKind = Literal["query", "document"]

#: Is told how many texts (or pairs) are done.
Tell = Callable[[int], None]


class Encoded(NamedTuple):
    """Vectors of a call, and which of its texts were longer than the model reads.

    Attributes:
        vectors: float32 [n, dimension], each of length 1 (a vector of zeros stays one).
        cut: bool [n]; prompt and special tokens count towards the limit.
    """

    vectors: np.ndarray
    cut: np.ndarray

    @property
    def truncated(self) -> int:
        """Number of texts that were cut."""
        return int(self.cut.sum())


class Encoder(Protocol):
    """One vector per text."""

    dimension: int

    def encode(self, texts: Sequence[str], kind: TextKind, tell: Tell = ...) -> Encoded:
        """Vectors of ``texts`` in their order; ``kind`` decides which prompt stands in front, and ``tell`` is
        told how many are done."""
        ...


def nobody(done: int) -> None:
    """Who is told by default."""


def load_encoder(spec: EncoderSpec, *, device: str = "auto", threads: int | None = None) -> Encoder:
    """Load an encoder with the conditions of its spec.

    Args:
        spec: model, prompts, dtype, longest input and batch plan.
        device: ``auto`` is the first CUDA device where there is one, else the CPU; or a torch device.
        threads: CPU threads; ``None`` leaves the library's choice.

    Raises:
        PrerequisiteError: the model's weights are not there.
        ConfigError: the model cannot have this dtype, this many tokens or numbers, or this language.
    """
    folder = weights(spec.model)
    backend: _Backend
    if is_usem3(folder):
        if spec.dtype != "float32":
            raise ConfigError(
                f"this model cannot run in {spec.dtype}",
                where=spec.model.name,
                remedy='set dtype = "float32"',
            )
        backend = _Numpy(spec, UseM3(threads=threads, limit=spec.max_tokens or UseM3.guard))
    else:
        backend = _SentenceTransformer(spec, folder, device, threads)
    if spec.dimensions and spec.dimensions > backend.dimension:
        raise ConfigError(
            f"dimensions is {spec.dimensions} and the model's vectors have {backend.dimension} numbers",
            where=spec.model.name,
            remedy="leave it out, or lower it for a model that was trained to be cut",
        )
    return _BatchingEncoder(spec, backend)


class _Backend(Protocol):
    """What differs between libraries: making tokens, and the forward pass of one batch of them."""

    @property
    def dimension(self) -> int: ...

    @property
    def limit(self) -> int | None: ...

    def lengths(self, texts: Sequence[str]) -> list[int]: ...

    def prepare(self, texts: Sequence[str], kind: TextKind) -> Prepared: ...

    def embed(self, items: Sequence[Any], kind: TextKind) -> np.ndarray: ...


class _BatchingEncoder:
    def __init__(self, spec: EncoderSpec, backend: _Backend) -> None:
        self.dimension = spec.dimensions or backend.dimension
        self._spec, self._backend = spec, backend

    def encode(self, texts: Sequence[str], kind: TextKind, tell: Tell = nobody) -> Encoded:
        """See :meth:`Encoder.encode`.

        Raises:
            EngineError: the model returned something other than one finite vector per text, or the batch
                does not fit into the device.
        """
        limit = self._backend.limit
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        unique = [clip(text, limit, self._backend.lengths) for text in places]
        lengths, items = self._backend.prepare(unique, kind)
        vectors = np.empty((len(unique), self.dimension), np.float32)
        done = 0
        for batch in self._plan(lengths, unique):
            vectors[batch] = self._embed([items[n] for n in batch], [unique[n] for n in batch], kind)
            done += len(batch)
            tell(done * len(texts) // len(unique))
        order = np.array([places[text] for text in texts], np.int64)
        return Encoded(vectors[order], longer(lengths, limit)[order])

    def _plan(self, lengths: list[int], texts: list[str]) -> Iterator[list[int]]:
        spec = self._spec
        return batches(lengths, texts, spec.batch_size, spec.batch_tokens, self._backend.limit)

    def _embed(self, items: list[Any], texts: list[str], kind: TextKind) -> np.ndarray:
        vectors = self._backend.embed(items, kind)
        name = self._spec.model.name
        check_number(len(vectors), texts, name)
        if vectors.shape[1:] != (self._backend.dimension,):
            raise EngineError(
                f"the model returned an array of shape {vectors.shape} for {counted(len(texts), 'text')}",
                where=name,
                remedy=f"it must return {self._backend.dimension} numbers for each text",
            )
        check_finite(np.isfinite(vectors).all(axis=1), texts, name, other_dtype(self._spec.dtype))
        return unit_vectors(vectors[:, : self.dimension])


class _Numpy:
    """USE, which makes its tokens itself and remembers them."""

    def __init__(self, spec: EncoderSpec, model: UseM3) -> None:
        self._model, self._prompts = model, prompts_of(spec)
        self.dimension, self.limit, self.lengths = model.dimension, model.limit, model.lengths

    def prepare(self, texts: Sequence[str], kind: TextKind) -> Prepared:
        prompted = [self._prompts[kind] + text for text in texts]
        return Prepared(self.lengths(prompted), prompted)

    def embed(self, items: Sequence[Any], kind: TextKind) -> np.ndarray:
        return self._model.embed(items)


class _SentenceTransformer:
    """A model that sentence-transformers loads."""

    def __init__(self, spec: EncoderSpec, folder: Path, device: str, threads: int | None) -> None:
        check_encoder(folder, spec.model.name)
        self._model = sentence_transformer(spec.model, folder, torch_device(device, threads), spec.dtype)
        if spec.max_tokens:
            check_limit(self._model, spec.max_tokens, spec.model.name)
            self._model.max_seq_length = spec.max_tokens
        set_language(self._model, spec.language, spec.model.name)
        self._name = spec.model.name
        self.limit = token_limit(self._model)
        self.dimension = int(self._model.get_embedding_dimension() or 0)
        self.lengths = token_counter(self._model.tokenizer)
        self._prompts = prompts_of(spec)
        self._tasks: dict[TextKind, str] = {"query": spec.query_task, "document": spec.document_task}
        self._adapters = TaskAdapters.of(self._model, folder, self._tasks.values())
        named = {} if self._adapters else self._tasks
        self._options = {kind: _options(self._model, named.get(kind, ""), kind) for kind in self._prompts}
        self._tokens: dict[TextKind, Tokens | None] = {
            kind: Tokens.of(self._model, prompt, self.limit, self._options[kind])
            for kind, prompt in self._prompts.items()
        }

    def prepare(self, texts: Sequence[str], kind: TextKind) -> Prepared:
        if tokens := self._tokens[kind]:
            return tokens.prepare(texts)
        prompt = self._prompts[kind]
        lengths: list[int] = []
        for start in range(0, len(texts), TOKENISED):
            lengths.extend(self.lengths([prompt + text for text in texts[start : start + TOKENISED]]))
        return Prepared(lengths, list(texts))

    def embed(self, items: Sequence[Any], kind: TextKind) -> np.ndarray:
        import torch

        try:
            with torch.inference_mode():
                vectors: np.ndarray = self._forward(items, kind)["sentence_embedding"].float().cpu().numpy()
        except torch.OutOfMemoryError as error:
            raise EngineError(
                f"a batch of {counted(len(items), 'text')} does not fit into the device's memory",
                where=self._name,
                remedy="lower batch_size, batch_tokens or max_tokens, or give a worker a whole GPU",
            ) from error
        return vectors

    def _forward(self, items: Sequence[Any], kind: TextKind) -> Any:
        options = self._options[kind]
        if self._adapters:
            self._adapters.set(self._tasks[kind])
        if tokens := self._tokens[kind]:
            features = tokens.features(items)
        else:
            features = self._model.preprocess(list(items), prompt=self._prompts[kind], **options)
        moved = {n: f.to(self._model.device) if hasattr(f, "to") else f for n, f in features.items()}
        return self._model(moved, **options)


def _options(model: Any, named: str, kind: TextKind) -> dict[str, str]:
    """Which task the text is for, if the model asks: by its own name (jina-v3), or as ``query`` and
    ``document`` where modules of sentence-transformers itself decide (asymmetric models)."""
    own = type(model[0]).__module__.startswith("sentence_transformers.")
    task = named or (kind if own else "")
    return {"task": task} if task else {}


def prompts_of(spec: EncoderSpec) -> dict[TextKind, str]:
    """What stands in front of queries and of documents."""
    return {"query": spec.query_prompt, "document": spec.document_prompt}


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Vectors at length 1, float32; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: np.ndarray = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return unit


def token_counter(tokenizer: Any) -> Callable[[Sequence[Any]], list[int]]:
    """A function that counts tokens of texts, or of pairs of texts, special ones included, without a limit.

    A model without a tokenizer of transformers has no limit in tokens; its texts are counted in characters,
    which only orders the batches.
    """
    from transformers import PreTrainedTokenizerBase

    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return lambda texts: list(map(len, texts))

    def count(texts: Sequence[Any]) -> list[int]:
        if not texts:
            return []
        tokens = tokenizer(
            list(texts),
            truncation=False,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return [len(ids) for ids in tokens["input_ids"]]

    return count


def token_limit(model: Any) -> int | None:
    """The longest input of a sentence-transformers model in tokens; ``None`` where it states none."""
    limit = getattr(model, "max_seq_length", None)
    return int(limit) if limit and limit < 1_000_000 else None


def check_limit(model: Any, max_tokens: int, name: str) -> None:
    """Refuse a limit beyond the positions that the model has.

    Raises:
        ConfigError: ``max_tokens`` is larger than the number of positions.
    """
    if (positions := getattr(model.config, "max_position_embeddings", None)) and max_tokens > positions:
        raise ConfigError(
            f"max_tokens is {max_tokens} and the model has {positions} positions",
            where=name,
            remedy=f"set max_tokens to {positions} or less",
        )


def torch_device(device: str, threads: int | None) -> str:
    """The device to load on; sets torch's threads and silences its bars, as a worker's stdout is a log."""
    import torch
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    if threads:
        torch.set_num_threads(threads)
        os.environ.setdefault("RAYON_NUM_THREADS", str(threads))  # tokenizers, from their first batch on
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"
