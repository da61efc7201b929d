"""The one helper that knows what a wrong name was meant to be."""

import pytest

from beirnl import registry
from beirnl.errors import nearest

MANY = [f"stage-{number}" for number in range(20)]


def test_what_else_can_be_done_follows_as_a_sentence():
    assert nearest("modle", ["model"], "give a folder") == "did you mean 'model'? If not, give a folder"
    both = "did you mean 'vllm'? (there are: mock, vllm) If not, give a folder"
    assert nearest("vlm", ["mock", "vllm"], "give a folder") == both
    assert nearest("zzz", ["mock", "vllm"], "give a folder") == "use one of: mock, vllm; or give a folder"


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
