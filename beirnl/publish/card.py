"""The dataset card: YAML front matter for the hub, and what a user must know, as Markdown."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from beirnl import __version__, registry
from beirnl.publish.find import Side, Translation
from beirnl.publish.folders import Tally
from beirnl.publish.proof import CLAIMS
from beirnl.specs import Rung, TranslationSpec
from beirnl.translation.checks import CHECKS, Check, keeps

UNKNOWN = "unknown"
_SIZES = {
    10**3: "n<1K",
    10**4: "1K<n<10K",
    10**5: "10K<n<100K",
    10**6: "100K<n<1M",
    10**7: "1M<n<10M",
    10**8: "10M<n<100M",
}
_KINDS = ("document", "query")


@dataclass(frozen=True)
class Facts:
    """What a card is made of.

    Attributes:
        name: what the published set is called.
        licence: SPDX identifier, or ``unknown``.
        translations: the parts of the set; one without a name where there are none.
        proofs: what :func:`beirnl.publish.proof.prove` found, per part.
        tallies: what was written, per part and kind.
    """

    name: str
    licence: str
    translations: Sequence[Translation]
    proofs: Sequence[dict[str, Any]]
    tallies: Sequence[dict[str, Tally]]


class CheckRow(NamedTuple):
    """A line of the table of checks: rows whose status holds the name."""

    name: str
    documents: int
    queries: int
    keeps: str


def licence_of(dataset: str, given: str | None = None) -> str:
    """The licence of a dataset: the registry's, which for BEIR's sets is that of BEIR-NL's appendix A.

    Args:
        dataset: its name.
        given: what the user says of a dataset that the registry does not know.
    """
    entry = registry.dataset(dataset)
    return entry.licence if entry else given or UNKNOWN


def size_category(rows: int) -> str:
    """The hub's class of size for a number of documents."""
    return next((name for bound, name in _SIZES.items() if rows < bound), "100M<n<1B")


def render(facts: Facts) -> str:
    """The card as ``README.md``: front matter and body."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=False, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["thousands"] = lambda number: f"{number:,}"
    environment.filters["fenced"] = _fenced
    environment.filters["cell"] = _cell
    template = environment.from_string(files(__package__).joinpath("card.jinja").read_text("utf-8"))
    body = template.render(
        facts=facts,
        first=facts.translations[0],
        entry=registry.dataset(facts.translations[0].dataset),
        statistics=_statistics(facts),
        checks=_check_rows(facts),
        repairs=_repairs(facts),
        rows={kind: sum(tally[kind].rows for tally in facts.tallies) for kind in _KINDS},
        kept={kind: _kept_source(facts, kind) for kind in _KINDS},
        missing=_found(facts, "documents_missing_in_source"),
        empty={kind: _found(facts, f"{kind}_without_text_in_source") for kind in ("documents", "queries")},
        specs=[side.spec for side in _sides(facts)],
        language=_language,
        model=_model,
        model_licence=_model_licence(facts.translations[0].documents.spec),
        configs=configs(facts.translations),
        claims=CLAIMS,
        version=__version__,
    )
    return f"---\n{_front_matter(facts)}\n---\n\n{body}"


def _front_matter(facts: Facts) -> str:
    from huggingface_hub import DatasetCardData

    first = facts.translations[0]
    entry = registry.dataset(first.dataset)
    documents = sum(proof["documents"] for proof in facts.proofs)
    data = DatasetCardData(
        pretty_name=facts.name,
        language=[first.language],
        license=facts.licence.lower(),
        language_creators=["machine-generated"],
        multilinguality=["translation"],
        size_categories=[size_category(documents)],
        source_datasets=[entry.hub if entry and entry.hub else first.dataset],
        task_categories=["text-retrieval"],
        tags=["beir", "text-retrieval", "machine-translated", "beirnl"],
        configs=configs(facts.translations),
    )
    return str(data.to_yaml()).rstrip()


def configs(translations: Sequence[Translation]) -> list[dict[str, Any]]:
    """The configurations of the hub's layout.

    A whole set has ``corpus``, ``queries`` and, as BEIR-NL's repositories have it, ``default`` for the
    judgements; a part has ``PART-corpus``, ``PART-queries`` and ``PART-qrels``, as MTEB reads them.
    """
    found = []
    for one in translations:
        folder, before = (f"{one.part}/", f"{one.part}-") if one.part else ("", "")
        split = re.sub(r"[^\w.]", "_", one.split)  # what the datasets library takes as a name
        files = (
            (f"{before}corpus", "corpus", f"{folder}corpus/*.parquet"),
            (f"{before}queries", "queries", f"{folder}queries/*.parquet"),
            (f"{before}qrels" if one.part else "default", split, f"{folder}qrels/{one.split}-*.parquet"),
        )
        found += [
            {"config_name": name, "data_files": [{"split": split, "path": path}]}
            for name, split, path in files
        ]
    return found


# Figures ----------------------------------------------------------------------------------------------------


def _statistics(facts: Facts) -> list[dict[str, Any]]:
    """Rows of the table of statistics (BEIR-NL, Table 1): each part, then all of them."""
    columns = ("queries", "documents", "relevant", "judgements")
    rows = [{"part": proof["part"], **{name: proof[name] for name in columns}} for proof in facts.proofs]
    if len(rows) > 1:
        rows.append({"part": "all", **{name: sum(row[name] for row in rows) for name in columns}})
    for row in rows:
        row["relevant_per_query"] = row["relevant"] / row["queries"]
    return rows


def _statuses(facts: Facts, kind: str) -> Counter[str]:
    return sum((tally[kind].statuses for tally in facts.tallies), Counter())


def _check_rows(facts: Facts) -> list[CheckRow]:
    """``ok``, then every check of this version with the rows that failed it, then names it does not know."""
    named: dict[str, Counter[str]] = {kind: Counter() for kind in _KINDS}
    for kind, counter in named.items():
        for status, rows in _statuses(facts, kind).items():
            for name in status.split(","):
                counter[name] += rows
    found = {name for counter in named.values() for name in counter}
    names = ["ok", *CHECKS, *sorted(found - CHECKS.keys() - {"ok"})]
    has = {name: _KEEPS[check.keeps] + _note(check) for name, check in CHECKS.items()}
    has |= {"ok": _KEEPS["answer"], "no-text": "no text, as its source"}
    return [
        CheckRow(name, named["document"][name], named["query"][name], has.get(name, "")) for name in names
    ]


_KEEPS = {
    "answer": "the translation",
    "source": "the source text",
    "title": "the translation, with the title of the source",
}


def _note(check: Check) -> str:
    return "" if check.repair else " (a note: not asked for again)"


def _found(facts: Facts, what: str) -> int:
    """A count of the proof, over all parts."""
    return sum(proof[what]["count"] for proof in facts.proofs)


def _kept_source(facts: Facts, kind: str) -> int:
    return sum(rows for status, rows in _statuses(facts, kind).items() if keeps(status) == "source")


def _repairs(facts: Facts) -> list[tuple[str, str, int, int]]:
    """Rows whose text a rung of the repair ladder gave: rung, what it does, documents, queries."""
    counts = {kind: sum((t[kind].repairs for t in facts.tallies), Counter[str]()) for kind in _KINDS}
    rungs: dict[str, Rung] = {}
    for rung in (rung for side in _sides(facts) for rung in side.rungs):
        rungs.setdefault(rung.name, rung)
    names = dict.fromkeys([*rungs, *counts["document"], *counts["query"]])
    return [(name, _rung(rungs.get(name)), counts["document"][name], counts["query"][name]) for name in names]


_RUNGS = {
    "room": "asked again, warmer and with more room",
    "prompt": "asked with another prompt",
    "pieces": "asked sentence by sentence",
    "engine": "asked of another engine",
}


def _rung(rung: Rung | None) -> str:
    if rung is None:
        return ""
    spec = rung.translation
    return f"{_RUNGS[rung.name]} ({spec.llm.engine}, {_model(spec)})"


def _sides(facts: Facts) -> tuple[Side, Side]:
    """Documents and queries of the first part; all parts were asked for in the same way."""
    return facts.translations[0].documents, facts.translations[0].queries


def _language(code: str) -> str:
    entry = registry.languages().get(code)
    return entry.name if entry else code


def _model(spec: TranslationSpec) -> str:
    """Model and revision in words; the folder of a local model stays where it is."""
    model = spec.llm.model
    if model is None:
        return "none"
    place, _, name = model.source.partition(":")
    shown = Path(name).name if place == "path" else name
    return f"{shown}, revision {model.revision}"


def _model_licence(spec: TranslationSpec) -> str:
    entry = registry.find_model(spec.llm.model.name) if spec.llm.model else None
    return entry.licence if entry else ""


def _cell(text: object) -> str:
    """Text that may stand in a cell of a Markdown table."""
    return " ".join(re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", str(text)).split())


def _fenced(text: str) -> str:
    """Text as it is, in a fence longer than any within it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"
