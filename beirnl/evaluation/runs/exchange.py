"""Results as other tools write and read them: names of measures, and the shapes of their JSON.

    beir    {"ndcg": {"NDCG@10": .5}, "map": {"MAP@10": ..}, "recall": .., "precision": .., "mrr": ..}
    ranx    {"metrics": [..], "model_names": [..], MODEL: {"scores": {"ndcg@10": .5}}}
    mteb    {"task_name": .., "scores": {SPLIT: [{"ndcg_at_10": .5, "main_score": .5, ..}]}}

They are those of ``beir.util.save_results``, ``ranx.Report.save`` and ``mteb.TaskResult``.

Values are fractions of 1, rounded to six decimals, as MTEB rounds them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from beirnl.errors import DataError

Form = Literal["beir", "ranx", "mteb"]
Values = Mapping[str, float]

#: Families of measures, as each tool spells them; ``{k}`` is the cutoff. BEIR's also names the group.
_NAMES: Mapping[str, tuple[str, str, str]] = {
    "nDCG": ("ndcg NDCG@{k}", "ndcg@{k}", "ndcg_at_{k}"),
    "AP": ("map MAP@{k}", "map@{k}", "map_at_{k}"),
    "R": ("recall Recall@{k}", "recall@{k}", "recall_at_{k}"),
    "P": ("precision P@{k}", "precision@{k}", "precision_at_{k}"),
    "RR": ("mrr MRR@{k}", "mrr@{k}", "mrr_at_{k}"),
}
_COLUMN: Mapping[Form, int] = {"beir": 0, "ranx": 1, "mteb": 2}
#: Cutoffs that MTEB reports; those of BEIR are among them.
CUTOFFS = (1, 3, 5, 10, 20, 100, 1000)
_MAIN = "nDCG@10"
#: What MTEB writes in place of a model's revision that is not known.
NO_REVISION = "no_revision_available"
_DECIMALS = 6


def measures(depth: int) -> tuple[str, ...]:
    """The measures that these formats hold, as far as a run of so many hits a query can tell them."""
    return tuple(f"{family}@{k}" for family in _NAMES for k in CUTOFFS if k <= depth)


def beir_results(values: Values) -> dict[str, dict[str, float]]:
    """What ``beir.util.save_results`` writes."""
    found: dict[str, dict[str, float]] = {}
    for name, value in _spelt(values, "beir"):
        group, label = name.split()
        found.setdefault(group, {})[label] = value
    return found


def ranx_results(systems: Mapping[str, Values]) -> dict[str, Any]:
    """What ``ranx.Report.save`` writes of several systems on one set, without tests of significance."""
    spelt = {system: dict(_spelt(values, "ranx")) for system, values in systems.items()}
    names = list(dict.fromkeys(name for values in spelt.values() for name in values))
    head = {"stat_test": None, "metrics": names, "model_names": list(spelt)}
    return head | {system: {"scores": scores, "comparisons": {}} for system, scores in spelt.items()}


def mteb_scores(values: Values, languages: Sequence[str]) -> dict[str, Any]:
    """One entry of ``scores`` in a task's result of MTEB.

    Args:
        values: by our name of the measure.
        languages: ISO 639-3 and script, ``nld-Latn``.

    Raises:
        DataError: the main score is missing: the run has fewer than 10 hits a query.
    """
    if _MAIN not in values:
        raise DataError(f"MTEB's results need {_MAIN}", where="export", remedy="set depth to 10 or more")
    scores = dict(_spelt(values, "mteb"))
    return scores | {
        "main_score": round(values[_MAIN], _DECIMALS),
        "hf_subset": "default",
        "languages": list(languages),
    }


def _spelt(values: Values, form: Form) -> Iterator[tuple[str, float]]:
    """Measures with a cutoff that a format has, under its names."""
    for measure, value in values.items():
        family, _, cutoff = measure.partition("@")
        if cutoff and family in _NAMES:
            yield _NAMES[family][_COLUMN[form]].format(k=cutoff), round(value, _DECIMALS)


class Result(NamedTuple):
    """Figures of one system on one set, read from a file.

    Attributes:
        form: whose file it is.
        file: where it lies.
        system: name of the model, or empty if neither the file nor its place says it.
        revision: of the model, or empty.
        task: the set in the words of the file or, where it has none, of the file's name.
        version: of the data, or empty.
        values: by our name of the measure, by split; the split is empty if the file names none.
    """

    form: Form
    file: Path
    system: str
    revision: str
    task: str
    version: str
    values: Mapping[str, Values]


def read_results(path: Path) -> list[Result]:
    """Figures that somebody has published, in one of this module's three shapes.

    Raises:
        DataError: the file is not there, is in none of these shapes, or a value is not between 0 and 1.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise DataError("is not there", where=path, remedy="check the path") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not JSON ({error})", where=path, remedy="give a file of results") from error
    if isinstance(data, dict):
        for fits, reader in ((_is_mteb, _of_mteb), (_is_ranx, _of_ranx), (_is_beir, _of_beir)):
            if fits(data):
                return reader(data, path)
    raise DataError(
        "holds no results of MTEB, BEIR or ranx",
        where=path,
        remedy="give a task's JSON of MTEB, one that beir.util.save_results wrote, or a report of ranx",
    )


def _is_mteb(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("task_name"), str) and isinstance(data.get("scores"), dict)


def _of_mteb(data: Mapping[str, Any], path: Path) -> list[Result]:
    system, revision = _mteb_model(path)
    values = {}
    for split, entries in data["scores"].items():
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise DataError(f"scores of split {split!r} are no list of tables", where=path, remedy="mend it")
        whole = [entry for entry in entries if entry.get("hf_subset") == "default"] or entries
        if len(whole) == 1:
            values[split] = _values(whole[0], "mteb", path)
    version = str(data.get("dataset_revision") or "")
    return [Result("mteb", path, system, revision, data["task_name"], version, values)]


def _mteb_model(path: Path) -> tuple[str, str]:
    """Model and revision: as ``model_meta.json`` beside it says, else by ``MODEL/REVISION/TASK.json``."""
    meta = path.with_name("model_meta.json")
    try:
        said = json.loads(meta.read_text(encoding="utf-8")) if meta.is_file() else {}
    except ValueError as error:
        raise DataError(f"is not JSON ({error})", where=meta, remedy="mend or remove it") from error
    name = said.get("name") or path.resolve().parent.parent.name.replace("__", "/")
    revision = str(said.get("revision") or path.resolve().parent.name)
    return str(name), "" if revision == NO_REVISION else revision


def _is_ranx(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("metrics"), list) and isinstance(data.get("model_names"), list)


def _of_ranx(data: Mapping[str, Any], path: Path) -> list[Result]:
    found = []
    for name in data["model_names"]:
        table = data.get(name)
        scores = table.get("scores") if isinstance(table, dict) else None
        if not isinstance(scores, dict):
            raise DataError(f"has no scores of {name!r}", where=path, remedy="write the report again")
        values = {"": _values(scores, "ranx", path)}
        found.append(Result("ranx", path, str(name), "", path.stem, "", values))
    return found


def _is_beir(data: Mapping[str, Any]) -> bool:
    groups = {spellings[0].split()[0] for spellings in _NAMES.values()}
    tables = [value for name, value in data.items() if name in groups]
    return bool(tables) and all(isinstance(table, dict) for table in tables)


def _of_beir(data: Mapping[str, Any], path: Path) -> list[Result]:
    flat = {
        f"{group} {name}": value
        for group, table in data.items()
        if isinstance(table, dict)
        for name, value in table.items()
    }
    values = {"": _values(flat, "beir", path)}
    return [Result("beir", path, path.resolve().parent.name, "", path.stem, "", values)]


def _values(scores: Mapping[str, Any], form: Form, path: Path) -> dict[str, float]:
    """The values of a table that have a name here."""
    found = {}
    for name, value in scores.items():
        measure = _measure(name, form)
        if measure is None or value is None:
            continue
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not good or not 0 <= value <= 1:
            raise DataError(
                f"{name} is {value!r}, which is no fraction of 1", where=path, remedy="mend the file"
            )
        found[measure] = float(value)
    return found


def _measure(name: str, form: Form) -> str | None:
    """Our name of a measure with a cutoff that a tool calls ``name``; None where it has none here."""
    for family, spellings in _NAMES.items():
        pattern = re.escape(spellings[_COLUMN[form]]).replace(r"\{k\}", "([1-9][0-9]*)")
        if match := re.fullmatch(pattern, name):
            return f"{family}@{match[1]}"
    return None
