"""Names of measures: those of ir_measures, and BEIR's own ``R_cap@k`` and ``hole@k``.

What trec_eval computes without options is read here, so that the usual names cost no import; everything else
is read by ir_measures itself, which also says whether one of its providers computes it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.wording import near

#: Name in ir_measures -> trec_eval's name without and with a cutoff (None: there is no such form).
_FAMILIES: Mapping[str, tuple[str | None, str | None]] = {
    "nDCG": ("ndcg", "ndcg_cut"),
    "AP": ("map", "map_cut"),
    "RR": ("recip_rank", "recip_rank"),
    "R": (None, "recall"),
    "P": (None, "P"),
    "Success": (None, "success"),
    "Rprec": ("Rprec", None),
}
#: Counted by :func:`beirnl.evaluation.measures.providers.counted`; True: a cutoff is needed
_COUNTED: Mapping[str, bool] = {"R_cap": True, "hole": True, "Judged": False}
_ALIASES = {
    "NDCG": "nDCG",
    "MAP": "AP",
    "MRR": "RR",
    "Recall": "R",
    "Precision": "P",
    "RPrec": "Rprec",
    "Hole": "hole",
}
_TREC = re.compile(r"(?:_cut)?_([1-9][0-9]*)$")  # a cutoff as trec_eval writes it
_PLAIN = re.compile(r"([A-Za-z_]+)(?:@([1-9][0-9]*))?")
#: What a mistyped name is likely to mean; the first of those that are as near is named.
_COMMON = (
    *("nDCG@10", "nDCG@100", "R@10", "R@100", "R@1000", "AP", "AP@10", "P@1", "P@5", "P@10", "RR", "RR@10"),
    *("R_cap@10", "R_cap@100", "hole@10", "Judged@10", "ERR@10", "RBP(rel=1)", "infAP", "Bpref", "Rprec"),
    *("Success@10", "SetP", "SetR", "SetF", "SetAP", "IPrec@0.1", "Accuracy", "Compat"),
    "nDCG(dcg='exp-log2')@10",
)
_BY_SUBTOPIC = "pyndeval"  # the provider of measures of diversity
_NUMBERS = ("NumQ", "NumRel", "NumRet")


class Measure(NamedTuple):
    """A measure as parsed from its name.

    Attributes:
        name: canonical name, ``nDCG@10``.
        trec: what trec_eval calls it, ``ndcg_cut_10``; empty if another provider computes it.
        cutoff: number of hits looked at, None for all.
        provider: trec_eval through pytrec_eval, counts of this package, or the providers of ir_measures.
    """

    name: str
    trec: str
    cutoff: int | None
    provider: Literal["trec_eval", "counted", "ir_measures"] = "trec_eval"


def parse(names: Iterable[str]) -> tuple[Measure, ...]:
    """Reads measures by the names of ir_measures: ``nDCG@10``, ``AP(rel=2)``, ``RBP(rel=1)``, ``ERR@5``.

    Args:
        names: names with or without parameters and a cutoff; repeated ones are dropped.

    Raises:
        ConfigError: a name is unknown, its cutoff or a parameter is missing, superfluous or impossible, or it
            needs judgements by subtopic.
        PrerequisiteError: what computes it is not installed.
    """
    return tuple(dict.fromkeys(_parse(name) for name in names))


def reported(names: Iterable[str]) -> tuple[Measure, ...]:
    """As :func:`parse`, for measures that a report averages: those with values from 0 to 1.

    Raises:
        ConfigError: also where one is a number of queries or documents.
    """
    measures = parse(names)
    for measure in measures:
        if measure.name.startswith(_NUMBERS):
            raise ConfigError(
                f"measure {measure.name!r} is a number of queries or documents",
                remedy="a report holds values from 0 to 1; use SetP, SetR or Judged",
            )
    return measures


def _parse(name: str) -> Measure:
    match = _PLAIN.fullmatch(name)
    family = _ALIASES.get(match[1], match[1]) if match else ""
    cutoff = int(match[2]) if match and match[2] else None
    if family in _FAMILIES:
        plain, cut = _FAMILIES[family]
        return _trec(name, family, plain, cut, cutoff)
    if family in _COUNTED:
        if cutoff is None and _COUNTED[family]:
            raise _needs_cutoff(name, family)
        return Measure(family if cutoff is None else f"{family}@{cutoff}", "", cutoff, "counted")
    return _of_library(name)


def _trec(name: str, family: str, plain: str | None, cut: str | None, cutoff: int | None) -> Measure:
    if cutoff is None:
        if plain is None:
            raise _needs_cutoff(name, family)
        return Measure(family, plain, None)
    if cut is None:
        raise ConfigError(f"measure {name!r} takes no cutoff", remedy=f"write {family}")
    return Measure(f"{family}@{cutoff}", cut if cut == "recip_rank" else f"{cut}_{cutoff}", cutoff)


def _needs_cutoff(name: str, family: str) -> ConfigError:
    return ConfigError(f"measure {name!r} needs a cutoff", remedy=f"write {family}@10")


def _of_library(name: str) -> Measure:
    """A name that ir_measures reads and one of its providers computes."""
    import ir_measures

    try:
        parsed: Any = ir_measures.parse_measure(name)
    except (ValueError, NameError, TypeError, SyntaxError, AttributeError) as error:
        raise ConfigError(f"unknown measure {name!r}", remedy=_meant(name)) from error
    try:
        parsed.validate_params()
    except AssertionError as error:
        raise ConfigError(f"measure {name!r}: {error}", remedy=_forms(parsed)) from error
    canonical = str(parsed)
    if canonical != name and _PLAIN.fullmatch(canonical):
        return _parse(canonical)
    cutoff = parsed.params.get("cutoff")
    if cutoff is not None and cutoff < 1:
        raise ConfigError(f"measure {name!r} has a cutoff below 1", remedy=_meant(name))
    _check_provider(name, parsed)
    return Measure(canonical, "", cutoff, "ir_measures")


def _check_provider(name: str, parsed: Any) -> None:
    """Refuses what no installed provider computes from judgements without subtopics."""
    import ir_measures

    able = [one for one in ir_measures.DefaultPipeline.providers if one.supports(parsed)]
    if not able:
        raise ConfigError(f"nothing computes measure {name!r} in this form", remedy=_forms(parsed))
    able = [one for one in able if one.NAME != _BY_SUBTOPIC]
    if not able:
        raise ConfigError(
            f"measure {name!r} needs judgements by subtopic",
            remedy="use one for plain judgements, as nDCG@10",
        )
    if not any(one.is_available() for one in able):
        raise PrerequisiteError(
            f"measure {name!r} needs {able[0].NAME}, which is not installed",
            remedy=able[0].install_instructions(),
        )


def _forms(parsed: Any) -> str:
    """What the parameters of a measure are, and which of them its providers need."""
    import ir_measures

    needed = {
        param
        for provider in ir_measures.DefaultPipeline.providers
        for one in provider.SUPPORTED_MEASURES
        if one.NAME == parsed.NAME
        for param, allowed in one.params.items()
        if getattr(allowed, "required", False)
    }
    needed |= {name for name, info in parsed.SUPPORTED_PARAMS.items() if info.required}
    given = ", ".join(sorted(parsed.SUPPORTED_PARAMS))
    told = f"; it needs {' and '.join(sorted(needed))}" if needed else ""
    return f"its parameters are {given}{told}" if given else "it takes no parameters"


def _meant(name: str) -> str:
    """The common name next to a mistyped one, with its cutoff, or how names are written."""
    by_name = {common: common for common in _COMMON}
    for alias, family in _ALIASES.items():
        starts = f"{family}@"
        by_name |= {
            common.replace(starts, f"{alias}@"): common for common in _COMMON if common.startswith(starts)
        }
    written = _TREC.sub(r"@\1", name)
    meant = by_name.get(near(re.sub(r"@[0-9]+$", "@10", written), by_name))
    if not meant:
        return "use a name of ir_measures, as nDCG@10, R@100 or AP"
    cutoff = re.search(r"@[1-9][0-9]*$", written)
    return f"did you mean {re.sub(r'@[0-9]+$', cutoff[0], meant) if cutoff else meant}?"
