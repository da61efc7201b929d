"""Every field of every table: no value that cannot be is taken in silence."""

import json
import types
import typing
from typing import Any

import pytest

from beirnl.config import Experiment, load_experiment
from beirnl.config.loading import KINDS
from beirnl.config.sections import Section
from beirnl.errors import ConfigError

LIST, TABLE = {"dataset", "parallel", "system", "answers", "corpus"}, {"translation", "evaluation", "runtime"}
BASE: dict[str, Any] = {
    "name": "a",
    "dataset": [{"name": "sample"}],
    "parallel": [{"name": "p", "source": "s.txt", "reference": "r.txt"}],
    "translation": {
        "to": "nl",
        "price": {"input": 1, "output": 2},
        "server": {},
        "checks": {},
        "second": {"price": {"input": 1, "output": 2}, "server": {}},
    },
    "system": [
        {"kind": "bm25", "name": "s"},
        {"kind": "dense", "name": "d", "model": "m", "server": {}, "ann": {}},
        {"kind": "rerank", "name": "r", "model": "m", "first": "s"},
        {"kind": "late", "name": "l", "model": "m", "first": "s"},
        {"kind": "fusion", "name": "f", "of": ["s", "d"]},
        {"kind": "run", "name": "u", "path": "u.trec"},
    ],
    "evaluation": {},
    "runtime": {},
}
ENGINE: dict[str, Any] = {"price": {"input": 1, "output": 2}, "server": {}}
#: In place of datasets and a translation.
RAG = {
    "documents": "d",
    "passages": {},
    "questions": {"count": 2, **ENGINE},
    "answers": [{"name": "m", **ENGINE}],
}
#: In place of its only corpus.
CORPORA = {**RAG, "corpus": [{"name": "c", "documents": "d"}]}
del CORPORA["documents"]
#: Fields whose zero, or whose empty text, means something.
ZERO = {"input", "output", "temperature", "gpus", "retries", "min_words", "options"}
ZERO |= {"k1", "b", "k", "tie_breaker", "min_recall", "seed", "overlap", "budget", "count", "logprobs"}
EMPTY = {"api_key_env", "query_prompt", "document_prompt"}
#: Values that others of their type cannot have.
POSSIBLE: dict[str, list[Any]] = {
    "notes": [[""]],  # text of any kind
    "weights": [[], [1]],
    "fields": [[]],
    "ks": [[1]],
    "permutations": [1, True],
}

Place = tuple[str | int, ...]


def fields(model: type[Section], place: Place = ()) -> typing.Iterator[tuple[Place, str, Any]]:
    """Every leaf of the tables of ``BASE``: where it is, its name and its type."""
    for name, info in model.model_fields.items():
        here = (*place, name)
        if name == "system":
            for number, kind in enumerate(KINDS.values()):
                yield from fields(kind, (*here, number))
        elif inner := table(info.annotation):
            yield from fields(inner, (*here, 0) if name in LIST else here)
        elif name not in ("file", "kind") and here != ("model",):  # entries have tests of their own
            yield here, name, info


def table(annotation: Any) -> type[Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    if typing.get_origin(annotation) in (tuple, types.UnionType, typing.Union):
        return next(filter(None, map(table, typing.get_args(annotation))), None)
    return None


def kinds(annotation: Any) -> set[Any]:
    """The plain types in an annotation."""
    if typing.get_origin(annotation) is typing.Annotated:
        return kinds(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return set().union(*map(kinds, typing.get_args(annotation)))
    return {typing.get_origin(annotation) or annotation} - {types.NoneType}


def impossible(name: str, info: Any) -> list[Any]:
    """Values that no field of this type can have."""
    (kind,) = kinds(info.annotation)
    wrong: dict[Any, list[Any]] = {
        str: [1, True, ["x"], {}, *([] if name in EMPTY else ["", "  ", "a\nb"])],
        bool: ["yes", "true", 1, 0],
        int: ["3", True, 1.5, [3], -1, *([] if name in ZERO else [0])],
        float: ["25", True, [3.0], -0.5, float("inf"), float("nan"), *([] if name in ZERO else [0])],
        dict: ["x", 1, [], {"embed": 1}, {"rerank": {"workers": 0}}, {"embed": {"gpus": 1.5}}],
        tuple: ["x", 1, {}, [1], [""], *([] if name in ("stop", "repair", "notes") else [[]])],
        typing.Literal: ["nothing", 1, "", []],
    }
    return [value for value in wrong[kind] if value not in POSSIBLE.get(name, [])]


CASES = [
    pytest.param(place, value, id=f"{'.'.join(map(str, place))}={value!r}")
    for place, name, info in fields(Experiment)
    for value in impossible(name, info)
]


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value)


def written(folder, content: dict[str, Any]):
    path = folder / "e.toml"
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in content.items()))
    return path


def called(place: Place) -> str:
    """What a message calls a place of ``BASE``: a table among several by its name, or by its number."""
    numbers = [at for at, part in enumerate(place) if isinstance(part, int)]
    if not numbers:
        return ".".join(map(str, place))
    [at] = numbers
    above, number, keys = place[:at], int(place[at]), place[at + 1 :]
    several = {**BASE, "answers": RAG["answers"], "corpus": CORPORA["corpus"]}[above[-1]]
    by_name = f"number {number + 1}" if keys == ("name",) else repr(several[number]["name"])
    return f"{'.'.join(map(str, above))} {by_name}: {'.'.join(map(str, keys))}"


@pytest.mark.parametrize(("place", "value"), CASES)
def test_what_a_field_cannot_be_is_refused_with_its_place(tmp_path, place, value):
    asked = CORPORA if place[:2] == ("rag", "corpus") else RAG
    content = json.loads(json.dumps(BASE | {"rag": asked} if place[0] == "rag" else BASE))
    inner = content
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(ConfigError) as caught:
        load_experiment(written(tmp_path, content))
    line = str(caught.value)
    assert f"e.toml: {called(place)}" in line and "\n" not in line
    assert "Input should be" not in line and "pattern" not in line


def test_the_base_of_these_cases_is_itself_valid_and_every_table_is_among_them(tmp_path):
    loaded = load_experiment(written(tmp_path, BASE))
    assert len(loaded.system) == len(KINDS) and loaded.translation.second
    tables = {place[:-1] for place, *_ in fields(Experiment)}
    assert ("translation", "second", "server") in tables and ("translation", "checks") in tables
    assert len(CASES) > 400


def test_whole_numbers_are_numbers(tmp_path):
    content = json.loads(json.dumps(BASE))
    content["translation"] |= {"max_cost": 25, "temperature": 1, "repair": []}
    content["translation"]["checks"] = {"max_length_ratio": 3}
    content["runtime"] = {"gpus": 1}
    loaded = load_experiment(written(tmp_path, content))
    assert (loaded.translation.max_cost, loaded.translation.checks.max_length_ratio) == (25.0, 3.0)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"translation": {"to": "nl", "repair": ["room", "engine"]}}, "needs a [translation.second]"),
        (
            {"translation": {"to": "nl", "checks": {"min_length_ratio": 3}}},
            "translation.checks: min_length_ratio must be less",
        ),
        ({"name": "x" * 101}, "name: has 101 characters"),
        ({"dataset": [{"name": "é"}]}, "dataset 'é': name: may hold the letters a to z"),
        ({"dataset": {"name": "x"}}, "dataset: must be a list"),
        ({"file": "x"}, "unknown key 'file'"),
        ({"runtime": {"stages": {"rerank": {"gpu": 1}}}}, "unknown key 'runtime.stages.rerank.gpu'; did you"),
        ({"runtime": {"stages": {"dense": {"gpus": 1.5}}}}, "runtime.stages.dense.gpus: must be a fraction"),
        ({"runtime": {"gpus": 1.5}}, "runtime.gpus: must be a fraction of one GPU, or a whole number"),
        ({"translation": {"to": "nl", "server": {"base_url": "localhost:9"}}}, "'localhost:9' is not a URL"),
        ({"translation": {"to": "nl", "server": {"base_url": "http://h:99999/v1"}}}, "is not a URL"),
        (
            {"translation": {"to": "nl", "second": {"server": {"base_url": "https://"}}}},
            "second.server.base_url",
        ),
        ({"dataset": [{"name": "a", "language": "../up"}]}, "dataset 'a': language: must be the code"),
    ],
)
def test_what_does_not_fit_together_or_into_its_place(tmp_path, change, expected):
    with pytest.raises(ConfigError) as caught:
        load_experiment(written(tmp_path, BASE | change))
    assert expected in str(caught.value)


SYSTEMS = [{"kind": "bm25", "name": "one"}, {"kind": "bm25", "name": "two"}]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"system": [*SYSTEMS, {"kind": "bm25", "name": "B", "depth": 0}]}, "system 'B': depth: must be"),
        ({"system": [*SYSTEMS, {"kind": "bm25"}]}, "system number 3: name: is missing"),
        ({"system": [*SYSTEMS, {"kind": "bm25", "name": 3}]}, "system number 3: name: must be a text"),
        ({"system": [{"kind": "fusion", "name": "F", "of": ["one", 2]}]}, "system 'F': of number 2: must be"),
        (
            {"system": [{"kind": "bm25", "name": "B", "dept": 9}]},
            "system 'B': unknown key 'dept'; did you mean",
        ),
        (
            {"system": [*SYSTEMS, {"kind": "fusion", "name": "F", "of": ["one", "two"], "weights": [1.0]}]},
            "system 'F': 2 systems have 1 weight:",
        ),
        (
            {"system": [*SYSTEMS, {"kind": "fusion", "name": "F", "of": ["one", "two", "one"]}]},
            "system 'F': fuses 'one' with itself",
        ),
        ({"evaluation": {"profile": "beir"}}, "evaluation.profile: must be 'paper' or 'mteb', not 'beir'"),
        (
            {"translation": {"to": "nl", "server": {"base_urll": "x"}}},
            "unknown key 'translation.server.base_urll'",
        ),
    ],
)
def test_a_table_among_several_is_called_by_its_name(tmp_path, change, expected):
    with pytest.raises(ConfigError) as caught:
        load_experiment(written(tmp_path, BASE | change))
    assert f"e.toml: {expected}" in str(caught.value)


def test_a_key_in_place_of_its_variable_is_not_repeated(tmp_path):
    content = BASE | {"translation": {"to": "nl", "server": {"api_key_env": "sk-secret-1"}}}
    with pytest.raises(ConfigError, match="api_key_env: is not the name of an environment") as caught:
        load_experiment(written(tmp_path, content))
    assert "sk-secret" not in str(caught.value)
