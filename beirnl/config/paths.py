"""Paths of an experiment file."""

import os
import re
from pathlib import Path

from beirnl.errors import ConfigError

PACKAGE = Path(__file__).resolve().parents[1]
_DEFAULTS = {"BEIRNL_DATA": str(PACKAGE.parents[1] / "shared" / "data")}


def expand(text: str, file: Path) -> str:
    """Replace ``${VARIABLE}``; ConfigError where the environment has none of that name."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        found = os.environ.get(name, _DEFAULTS.get(name))
        if found is None:
            raise ConfigError(
                f"environment variable {name} is not set", where=file, remedy=f"export {name}=..."
            )
        return found

    return re.sub(r"\$\{(\w+)\}", value, text)


def resolve_path(text: str, file: Path) -> Path:
    """A path of the file: variables replaced, relative to the file's folder."""
    return (file.parent / Path(expand(text, file)).expanduser()).resolve()
