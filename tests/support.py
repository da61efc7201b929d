"""What several tests share: where the reference data is."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def shared(*parts: str) -> Path:
    """A path in the reference data (``BEIRNL_DATA``, or beside the checkout); skips where it is absent."""
    base = Path(os.environ.get("BEIRNL_DATA", ROOT.parent / "shared" / "data"))
    path = base.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"reference data {path} is not on this machine")
    return path
