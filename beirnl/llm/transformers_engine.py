"""The transformers engine: runs wherever PyTorch does; causal and sequence-to-sequence models, in batches."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from beirnl.llm.local import (
    batches,
    cut_at_stop,
    end_tokens,
    load_config,
    load_tokenizer,
    load_weights,
    read_answer,
    sampling,
    token_ids,
)
from beirnl.llm.protocol import Answer, Enough, Request, Surroundings, never, too_long
from beirnl.llm.seq2seq import Seq2SeqModel
from beirnl.specs import LlmSpec


class Model(Protocol):
    """A model that answers a batch.

    Attributes:
        window: most tokens of a prompt.
        beams: answers that are followed at once for each request.
    """

    window: int
    beams: int

    def tokens(self, request: Request) -> list[int]:
        """The prompt's tokens."""
        ...

    def room(self, request: Request, prompt_tokens: int) -> int:
        """Most tokens that the answer may have; 0 or less: the prompt is too long."""
        ...

    def answer(self, prompts: list[list[int]], rooms: list[int], like: Request) -> list[Answer]:
        """Answers of one batch, whose requests have temperature, stop strings and choices of ``like``."""
        ...


class TransformersLlm:
    """A language model run by transformers, on a GPU where there is one.

    A sequence-to-sequence model (its configuration says what it is) gets the bare text; see
    :class:`beirnl.llm.seq2seq.Seq2SeqModel`.

    Args:
        spec: model, dtype, window, and the languages of a sequence-to-sequence model.
        surroundings: CPU threads of PyTorch (of the whole process).

    Raises:
        ConfigError: a sequence-to-sequence model without languages, or that does not know them.
        PrerequisiteError: the model is not there.
    """

    def __init__(self, spec: LlmSpec, surroundings: Surroundings) -> None:
        seq2seq = load_config(spec).is_encoder_decoder
        import torch

        torch.set_num_threads(max(surroundings.threads, 1))
        self._model: Model = Seq2SeqModel(spec) if seq2seq else CausalModel(spec)

    def generate(self, requests: Sequence[Request], enough: Enough = never) -> Iterator[tuple[int, Answer]]:
        """Answers batch by batch, longest first; see :class:`beirnl.llm.protocol.LLM`."""
        model = self._model
        prompts = [model.tokens(request) for request in requests]
        rooms = [model.room(request, len(p)) for request, p in zip(requests, prompts, strict=True)]
        alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for place, request in enumerate(requests):
            if rooms[place] <= 0:
                yield place, too_long(len(prompts[place]), model.window)
            else:
                alike[request.temperature, request.stop, request.choices, request.logprobs].append(place)
        for places in alike.values():
            for batch in batches(places, list(map(len, prompts)), [room * model.beams for room in rooms]):
                if enough():
                    return
                given = model.answer(
                    [prompts[n] for n in batch], [rooms[n] for n in batch], requests[batch[0]]
                )
                yield from zip(batch, given, strict=True)

    def close(self) -> None:
        """Let go of the weights."""
        del self._model


class CausalModel:
    """A causal language model; prompts are padded on the left.

    Args:
        spec: model, dtype and window.

    Raises:
        PrerequisiteError: the model is not there.
    """

    def __init__(self, spec: LlmSpec) -> None:
        from transformers import AutoModelForCausalLM

        self.window, self.beams = spec.max_model_len, 1
        self._tokenizer: Any = load_tokenizer(spec)
        self._model: Any = load_weights(AutoModelForCausalLM, spec)
        self._ends = end_tokens(self._model, self._tokenizer)
        pad = self._tokenizer.pad_token_id
        self._pad: int = self._ends[0] if pad is None else pad

    def tokens(self, request: Request) -> list[int]:
        """The prompt's tokens, or those of the messages in the model's chat template."""
        return token_ids(self._tokenizer, request)

    def room(self, request: Request, prompt_tokens: int) -> int:
        """What the window leaves."""
        return min(request.max_tokens, self.window - prompt_tokens)

    def answer(self, prompts: list[list[int]], rooms: list[int], like: Request) -> list[Answer]:
        """Answers of one batch; see :class:`Model`."""
        import torch
        from transformers import LogitsProcessorList

        width = max(map(len, prompts))
        first = _FirstToken(self._tokenizer, like, width, self._ends)
        ids = torch.tensor([[self._pad] * (width - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=ids.to(self._model.device),
                attention_mask=mask.to(self._model.device),
                max_new_tokens=max(rooms),
                pad_token_id=self._pad,
                eos_token_id=self._ends,
                stopping_criteria=[_RowsDone(self._tokenizer, like.stop, rooms, width)],
                logits_processor=LogitsProcessorList([first]),
                **sampling(like.temperature),
            )
        answers = [
            read_answer(self._decode, row[:room], (*self._ends, self._pad), like.stop, len(prompt))
            for row, prompt, room in zip(output[:, width:].tolist(), prompts, rooms, strict=True)
        ]
        told = zip(answers, first.told, strict=True) if first.told else ()
        return [dataclasses.replace(answer, logprobs=row) for answer, row in told] or answers

    def _decode(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))


class _FirstToken:
    """Logits processor: notes the likeliest first tokens, and then lets only the choices be written.

    Attributes:
        told: per row the likeliest first tokens and their log-probabilities; empty where none are asked for.
    """

    def __init__(self, tokenizer: Any, like: Request, width: int, ends: Sequence[int]) -> None:
        self._tokenizer, self._logprobs, self._width, self._ends = tokenizer, like.logprobs, width, list(ends)
        self._choices = [tokenizer(choice, add_special_tokens=False)["input_ids"] for choice in like.choices]
        self.told: list[tuple[tuple[str, float], ...]] = []

    def __call__(self, ids: Any, scores: Any) -> Any:
        if self._logprobs and ids.shape[1] == self._width:
            self._note(scores)
        if not self._choices:
            return scores
        allowed = scores.new_full(scores.shape, float("-inf"))
        for row, written in enumerate(ids[:, self._width :].tolist()):
            begun = [choice for choice in self._choices if choice[: len(written)] == written]
            following = [choice[len(written)] for choice in begun if len(choice) > len(written)] or self._ends
            allowed[row, following] = scores[row, following]
        return allowed

    def _note(self, scores: Any) -> None:
        best = scores.float().log_softmax(dim=-1).topk(self._logprobs)
        for tokens, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            texts = (str(self._tokenizer.decode([token])) for token in tokens)
            self.told.append(tuple(zip(texts, values, strict=True)))


class _RowsDone:
    """Stopping criterion: a row is done at a stop string, or when its own room is used up."""

    def __init__(self, tokenizer: Any, stop: Sequence[str], rooms: Sequence[int], width: int) -> None:
        self._tokenizer, self._stop, self._rooms, self._width = tokenizer, stop, rooms, width
        self._tail = (
            max((len(string.encode()) for string in stop), default=0) + 1
        )  # a token is a byte at least

    def __call__(self, ids: Any, scores: Any, **kwargs: Any) -> Any:
        import torch

        written = ids.shape[1] - self._width
        last = ids[:, max(self._width, ids.shape[1] - self._tail) :]
        tails = self._tokenizer.batch_decode(last, skip_special_tokens=True)
        done = [
            written >= room or cut_at_stop(tail, self._stop)[1]
            for room, tail in zip(self._rooms, tails, strict=True)
        ]
        return torch.tensor(done, device=ids.device)
