"""Experiments as text: the tables of a file, written so that they are read back as they were."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


def to_toml(data: Mapping[str, Any]) -> str:
    """Tables as TOML, in their order.

    Args:
        data: texts, numbers, booleans, lists of these, tables, and lists of tables. None is left out.
    """
    return "\n".join(_lines(data)).strip() + "\n"


def _lines(data: Mapping[str, Any], above: str = "") -> Iterator[str]:
    later = []
    for key, value in data.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            later.append((f"[{name}]", name, value))
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            later += [(f"[[{name}]]", name, one) for one in value]
        elif value is not None:
            yield f"{key} = {_value(value)}"
    for heading, name, table in later:
        yield from ("", heading, *_lines(table, f"{name}."))


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    # TOML's basic strings are JSON's, but for DEL, which it wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
