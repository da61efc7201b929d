"""What the entries of the registry have in common: where they are, how they are read."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

FOLDER = Path(__file__).parent


class Entry(BaseModel):
    """Base of all entries: frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def read(file: str) -> dict[str, dict[str, Any]]:
    """The tables of a TOML file of the registry, in the file's order."""
    return tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))
