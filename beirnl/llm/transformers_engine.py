"""The transformers engine: runs wherever PyTorch does; batches of like length, left padding."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from beirnl.llm.local import cut_at_stop, model_folder, token_ids
from beirnl.llm.protocol import Answer, Request, too_long
from beirnl.specs import LlmSpec

BATCH_TOKENS = 32768  # prompt and answer tokens held at once; bounds the memory of keys and values
BATCH_ROWS = 64


class TransformersLlm:
    """A causal language model run by transformers, on a GPU where there is one.

    Args:
        spec: model, dtype and window.
        threads: CPU threads of PyTorch (of the whole process).

    Raises:
        PrerequisiteError: the model is not there.
    """

    def __init__(self, spec: LlmSpec, threads: int = 1) -> None:
        folder = model_folder(spec)
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(threads)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        code = bool(spec.model and spec.model.trust_remote_code)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=code)
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=getattr(torch, spec.dtype), trust_remote_code=code
        )
        self._model: Any = model.to(self._device).eval()
        self._window = spec.max_model_len
        self._ends = _end_tokens(self._model, self._tokenizer)
        pad = self._tokenizer.pad_token_id
        self._pad: int = self._ends[0] if pad is None else pad

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """One answer per request, in order; see :class:`beirnl.llm.protocol.LLM`."""
        prompts = [token_ids(self._tokenizer, request) for request in requests]
        answers: dict[int, Answer] = {}
        alike: dict[tuple[float, tuple[str, ...]], list[int]] = defaultdict(list)
        for place, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
            if len(prompt) >= self._window:
                answers[place] = too_long(len(prompt), self._window)
            else:
                alike[request.temperature, request.stop].append(place)
        for places in alike.values():
            for batch in _batches(places, prompts, requests):
                given = self._answer([prompts[n] for n in batch], [requests[n] for n in batch])
                answers.update(zip(batch, given, strict=True))
        return [answers[place] for place in range(len(requests))]

    def close(self) -> None:
        """Let go of the weights."""
        del self._model

    def _answer(self, prompts: list[list[int]], requests: list[Request]) -> list[Answer]:
        """Answers of one batch, whose requests agree in temperature and stop strings."""
        import torch

        width = max(len(prompt) for prompt in prompts)
        rooms = [
            min(request.max_tokens, self._window - len(prompt))
            for request, prompt in zip(requests, prompts, strict=True)
        ]
        ids = torch.tensor([[self._pad] * (width - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        sampling: dict[str, Any] = {"do_sample": False}
        if requests[0].temperature > 0:  # the whole distribution, whatever the model's own defaults are
            sampling = {"do_sample": True, "temperature": requests[0].temperature, "top_k": 0, "top_p": 1.0}
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=ids.to(self._device),
                attention_mask=mask.to(self._device),
                max_new_tokens=max(rooms),
                pad_token_id=self._pad,
                eos_token_id=self._ends,
                stopping_criteria=[_RowsDone(self._tokenizer, requests[0].stop, rooms, width)],
                **sampling,
            )
        rows = output[:, width:].tolist()
        return [self._read(*row) for row in zip(rows, prompts, rooms, requests, strict=True)]

    def _read(self, tokens: list[int], prompt: list[int], room: int, request: Request) -> Answer:
        """An answer out of the tokens of one row, which may run on in padding."""
        tokens = tokens[:room]
        last = next((n for n, token in enumerate(tokens) if token in (*self._ends, self._pad)), len(tokens))
        text, stopped = cut_at_stop(
            self._tokenizer.decode(tokens[:last], skip_special_tokens=True), request.stop
        )
        ended = last < len(tokens)
        return Answer(text, "stop" if stopped or ended else "length", len(prompt), min(last + ended, room))


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


def _batches(places: list[int], prompts: list[list[int]], requests: Sequence[Request]) -> list[list[int]]:
    """Places in batches of like length, longest first, so that what does not fit shows at once."""
    batches: list[list[int]] = []
    longest = 0
    for place in sorted(places, key=lambda n: (-len(prompts[n]), n)):
        if not batches or len(batches[-1]) == BATCH_ROWS or (len(batches[-1]) + 1) * longest > BATCH_TOKENS:
            batches.append([])
            longest = 0
        batches[-1].append(place)
        longest = max(longest, len(prompts[place]) + requests[place].max_tokens)
    return batches


def _end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Tokens that end an answer: those of the generation config and of the tokenizer."""
    configured = model.generation_config.eos_token_id
    ends = configured if isinstance(configured, list) else [configured]
    return sorted({token for token in (*ends, tokenizer.eos_token_id) if token is not None})
