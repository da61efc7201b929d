"""Batch engines: answers ordered as jobs from a provider, which cost half and come within a day.

What is ordered is paid for, so :mod:`~beirnl.llm.batch.book` remembers every job before it exists and until
its answers are safe. :mod:`~beirnl.llm.batch.jobs` is the loop, the same for all providers;
:mod:`~beirnl.llm.batch.openai` and :mod:`~beirnl.llm.batch.gemini` are their adapters;
:mod:`~beirnl.llm.batch.files` is the file format, which also works without a provider.
"""

from beirnl.llm.batch.files import BatchFileWriter, Origin, custom_id, read_results, split_custom_id
from beirnl.llm.batch.gemini import GeminiProvider
from beirnl.llm.batch.jobs import BatchLlm
from beirnl.llm.batch.openai import OpenAiProvider
from beirnl.llm.protocol import Surroundings
from beirnl.specs import LlmSpec

__all__ = [
    "BatchFileWriter",
    "GeminiBatchLlm",
    "OpenAiBatchLlm",
    "Origin",
    "custom_id",
    "read_results",
    "split_custom_id",
]


class OpenAiBatchLlm(BatchLlm):
    """Batch jobs of OpenAI, or of a server with the same files and batches endpoints.

    Args:
        spec: model, and the server with its limits.
        surroundings: the folder in which jobs are remembered.

    Raises:
        PrerequisiteError: no key, no SDK, or no folder to remember jobs in.
        EngineError: the server cannot be reached, or refuses the key.
    """

    def __init__(self, spec: LlmSpec, surroundings: Surroundings) -> None:
        super().__init__(spec, surroundings, OpenAiProvider(spec))


class GeminiBatchLlm(BatchLlm):
    """Batch jobs of the Gemini API, through Google's SDK; arguments and errors as :class:`OpenAiBatchLlm`.

    A ``base_url`` or ``api_key_env`` that is left at its default means Google's own endpoint, and the
    variable ``GEMINI_API_KEY``.
    """

    def __init__(self, spec: LlmSpec, surroundings: Surroundings) -> None:
        super().__init__(spec, surroundings, GeminiProvider(spec))
