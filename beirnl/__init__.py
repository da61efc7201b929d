"""beirnl: distributed batch processing for retrieval research, on Ray."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "evaluate"]


def __getattr__(name: str) -> Any:
    """``beirnl.evaluate``, which is imported when it is asked for; see :func:`beirnl.api.evaluate`."""
    if name == "evaluate":
        return import_module("beirnl.api").evaluate
    raise AttributeError(f"module 'beirnl' has no attribute {name!r}")
