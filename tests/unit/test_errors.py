"""The one helper that knows what a wrong name was meant to be."""

import pytest

from beirnl import registry
from beirnl.errors import nearest

MANY = [f"stage-{number}" for number in range(20)]


@pytest.mark.parametrize(
    ("name", "valid", "expected"),
    [
        ("vlm", ["mock", "vllm"], "did you mean 'vllm'? (there are: mock, vllm)"),
        ("VLLM", ["mock", "vllm"], "did you mean 'vllm'? (there are: mock, vllm)"),
        ("stage-1x", MANY, "did you mean 'stage-1'?"),
        ("zzz", ["mock", "vllm"], "use one of: mock, vllm"),
        ("zzz", MANY, f"use one of: {', '.join(MANY)}"),
        ("zzz", MANY * 2, f"use one of: {', '.join((MANY * 2)[:30])}, ... (40 in all)"),
        ("modle", ["model"], "did you mean 'model'?"),
        ("x", [], "none exists"),
    ],
)
def test_the_nearest_name_and_all_where_they_are_few(name, valid, expected):
    assert nearest(name, valid) == expected
    assert str(registry.unknown("thing", name, valid)) == f"unknown thing {name!r}; {expected}"
