"""Bi-encoders: texts to unit vectors, whose dot product is their cosine.

Texts are encoded in batches of similar length and put back in input order. Equal texts are encoded once, and
the order within a call does not decide how batches are made up, so the same texts give the same vectors
whatever their order (with the same threads and batch size).
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from beirnl.errors import ConfigError, EngineError
from beirnl.models.cache import model_path
from beirnl.models.usem3 import UseM3, is_usem3
from beirnl.specs import EncoderSpec

#: A text longer than this many characters for each token of the limit is cut before it is tokenised.
CHARACTERS_PER_TOKEN = 16


class Encoded(NamedTuple):
    """Vectors of a call, and how many of its texts were longer than the model reads.

    Attributes:
        vectors: float32 [n, dimension], each of length 1 (a vector of zeros stays one).
        truncated: number of texts that were cut; prompt and special tokens count towards the limit.
    """

    vectors: np.ndarray
    truncated: int


class Encoder(Protocol):
    """One vector per text."""

    dimension: int

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> Encoded:
        """Vectors of ``texts`` in their order; ``kind`` decides which prompt stands in front."""
        ...


def load_encoder(spec: EncoderSpec, *, device: str = "auto", threads: int | None = None) -> Encoder:
    """Load an encoder with the conditions of its spec.

    Args:
        spec: model, prompts, dtype, longest input and batch size.
        device: ``auto`` is the first CUDA device where there is one, else the CPU; or a torch device.
        threads: CPU threads; ``None`` leaves the library's choice.

    Raises:
        PrerequisiteError: the model's weights are not there.
        ConfigError: the model cannot have this dtype or this many tokens.
    """
    folder = model_path(spec.model)
    backend: _Backend
    if is_usem3(folder):
        if spec.dtype != "float32":
            raise ConfigError(
                f"this model cannot run in {spec.dtype}",
                where=spec.model.name,
                remedy='set dtype = "float32"',
            )
        backend = UseM3(threads=threads, limit=spec.max_tokens or UseM3.guard)
    else:
        backend = _SentenceTransformer(spec, folder, device, threads)
    return _BatchingEncoder(spec, backend)


class _Backend(Protocol):
    """What differs between libraries: counting tokens, and the forward pass of one batch."""

    @property
    def dimension(self) -> int: ...

    @property
    def limit(self) -> int | None: ...

    def lengths(self, texts: Sequence[str]) -> list[int]: ...

    def embed(self, texts: Sequence[str], prompt: str) -> np.ndarray: ...


class _BatchingEncoder:
    def __init__(self, spec: EncoderSpec, backend: _Backend) -> None:
        self.dimension = backend.dimension
        self._spec, self._backend = spec, backend
        self._prompts = {"query": spec.query_prompt, "document": spec.document_prompt}

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> Encoded:
        """See :meth:`Encoder.encode`.

        Raises:
            EngineError: the model returned something other than one finite vector per text.
        """
        prompt, limit = self._prompts[kind], self._backend.limit
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        unique = [clip(text, limit, self._backend.lengths) for text in places]
        lengths = self._backend.lengths([prompt + text for text in unique])
        vectors = np.empty((len(unique), self.dimension), np.float32)
        for batch in batches(lengths, unique, self._spec.batch_size):
            vectors[batch] = self._embed([unique[place] for place in batch], prompt)
        order = [places[text] for text in texts]
        truncated = sum(lengths[place] > limit for place in order) if limit else 0
        return Encoded(vectors[order] if order else vectors, truncated)

    def _embed(self, texts: list[str], prompt: str) -> np.ndarray:
        vectors = self._backend.embed(texts, prompt)
        if vectors.shape != (len(texts), self.dimension):
            raise EngineError(
                f"the encoder returned an array of shape {vectors.shape} for {len(texts)} texts",
                where=self._spec.model.name,
                remedy=f"it must return {self.dimension} numbers for each text",
            )
        broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(broken):
            raise EngineError(
                f"the encoder returned NaN or infinity for {len(broken)} of {len(texts)} texts, "
                f"first {texts[broken[0]][:60]!r}",
                where=self._spec.model.name,
                remedy=f'dtype is {self._spec.dtype}: try dtype = "float32"',
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: np.ndarray = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
        return unit


class _SentenceTransformer:
    """A model that sentence-transformers loads."""

    def __init__(self, spec: EncoderSpec, folder: Path, device: str, threads: int | None) -> None:
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(
            str(folder),
            device=torch_device(device, threads),
            trust_remote_code=spec.model.trust_remote_code,
            local_files_only=True,
            model_kwargs={"dtype": spec.dtype},
        )
        if spec.max_tokens:
            check_limit(self._model, spec.max_tokens, spec.model.name)
            self._model.max_seq_length = spec.max_tokens
        self.limit = token_limit(self._model)
        self.dimension = int(self._model.get_embedding_dimension() or 0)
        self.lengths = token_counter(self._model.tokenizer)

    def embed(self, texts: Sequence[str], prompt: str) -> np.ndarray:
        vectors: np.ndarray = self._model.encode(
            list(texts), prompt=prompt, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True
        )
        return vectors.astype(np.float32, copy=False)


def batches(lengths: Sequence[int], texts: Sequence[Any], size: int) -> Iterator[list[int]]:
    """Places in batches of ``size``, longest first; equal lengths in the order of their texts."""
    order = sorted(range(len(lengths)), key=lambda place: (-lengths[place], texts[place]))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def clip(text: str, limit: int | None, lengths: Callable[[Sequence[str]], list[int]]) -> str:
    """Cut a very long text where the model would not read on, so that it is not tokenised whole.

    The cut is safe: what is kept has more than twice ``limit`` tokens, so the first ``limit`` are those of
    the whole text and it still counts as truncated. Text of few tokens, such as blanks, is kept longer.
    """
    if not limit:
        return text
    size = CHARACTERS_PER_TOKEN * limit
    while len(text) > size and lengths([text[:size]])[0] <= 2 * limit:
        size *= 4
    return text[:size]


def token_counter(tokenizer: Any) -> Callable[[Sequence[str]], list[int]]:
    """A function that counts tokens, special ones included, without a limit.

    A model without a tokenizer of transformers has no limit in tokens; its texts are counted in characters,
    which only orders the batches.
    """
    from transformers import PreTrainedTokenizerBase

    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return lambda texts: [len(text) for text in texts]

    def count(texts: Sequence[str]) -> list[int]:
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
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions and max_tokens > positions:
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
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"
