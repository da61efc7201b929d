"""Commands about models: which there are, what is known about one, and fetching them."""

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from beirnl.cli.app import console, models_app

if TYPE_CHECKING:
    from beirnl.registry import Kind, ModelEntry

Shown = Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="How to show it.")]

#: A system with a model of each kind, for an experiment file.
_SYSTEMS: dict["Kind", dict[str, str]] = {
    "encoder": {"kind": "dense"},
    "reranker": {"kind": "rerank", "first": "BM25"},
    "late-interaction": {"kind": "late", "first": "BM25"},
}


@models_app.command("list")
def list_models(
    kind: Annotated[
        Literal["encoder", "reranker", "late-interaction", "llm"] | None,
        typer.Option("--kind", "-k", help="Only models of this kind."),
    ] = None,
    format: Shown = "table",
) -> None:
    """List the models of the registry."""
    from rich.table import Table

    from beirnl import registry

    entries = [entry for entry in registry.models().values() if kind in (None, entry.kind)]
    if format == "json":
        print(json.dumps([_facts(entry) for entry in entries], indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("name", "kind", "parameters", "dimension", "input", "licence", "source", "own code"):
        side: Any = "right" if column in ("parameters", "dimension", "input") else "left"
        table.add_column(column, justify=side, no_wrap=column == "name")
    for entry in entries:
        table.add_row(
            entry.name,
            entry.kind,
            _millions(entry),
            str(entry.dimension or ""),
            f"{entry.max_tokens:,}" if entry.max_tokens else "",
            entry.licence,
            _source(entry),
            "yes" if entry.trust_remote_code else "",
        )
    console().print(table)


@models_app.command("show")
def show_model(
    name: Annotated[str, typer.Argument(help="Name, hub path or alias of a model of the registry; or BM25.")],
    format: Shown = "table",
) -> None:
    """Show all that is known about a model, and a system with it for an experiment file."""
    from rich.table import Table

    from beirnl import registry

    if name.lower() == "bm25":
        _show_bm25(format)
        return
    entry = registry.model(name)
    if format == "json":
        print(json.dumps(_facts(entry), indent=2, ensure_ascii=False))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for field, value in _facts(entry).items():
        if said := _text(value):
            table.add_row(field.replace("_", " "), said)
    if not entry.training_source and entry.kind != "llm":
        table.add_row("training", "nobody says on what")
    console().print(table, markup=False)
    if snippet := _snippet(entry):
        print(f"\nIn an experiment file:\n\n{snippet}")


@models_app.command("prepare")
def prepare_models(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Models of the registry.")],
) -> None:
    """Fetch or convert models into the cache now, so that a run finds them there."""
    from beirnl import registry
    from beirnl.models import model_path

    for name in names:
        print(model_path(registry.resolve_model(name, registry.model(name).kind)))


def _show_bm25(format: Literal["table", "json"]) -> None:
    """BM25 is no model of the registry and needs no weights: the conditions under which it is run."""
    from rich.table import Table

    from beirnl import registry

    entries = list(registry.bm25_profiles().values())
    if format == "json":
        print(json.dumps([entry.model_dump(mode="json") for entry in entries], indent=2, ensure_ascii=False))
        return
    table = Table("profile", "fields", "analyzer", "k1", "b", "tie breaker", box=None, pad_edge=False)
    for entry in entries:
        flat = entry.fields == "flat"
        fields = "title and text as one" if flat else "title, text"
        tie_breaker = "" if flat else f"{entry.tie_breaker:g}"
        analyzer = entry.analyzer or "of the language"
        table.add_row(entry.name, fields, analyzer, f"{entry.k1:g}", f"{entry.b:g}", tie_breaker)
    print(
        "BM25 is an index of terms, not a model: there is nothing to fetch. It is run as its profile says:\n"
    )
    console().print(table, markup=False)
    system = {"name": "BM25", "kind": "bm25", "profile": entries[0].name}
    print(f"\nIn an experiment file:\n\n{_toml(system)}")


def _facts(entry: "ModelEntry") -> dict[str, Any]:
    """What the registry says; a revision that it does not say is ``unpinned``."""
    unpinned = {"revision": "unpinned"} if entry.hub and not entry.revision else {}
    return {**entry.model_dump(mode="json"), **unpinned}


def _millions(entry: "ModelEntry") -> str:
    if entry.parameters is None:
        return ""
    return f"{entry.parameters:g}M" + (f" ({entry.active_parameters:g}M)" if entry.active_parameters else "")


def _source(entry: "ModelEntry") -> str:
    if entry.api:
        return f"API {entry.api}"
    return entry.package or f"{entry.hub}@{entry.revision[:12] or 'unpinned'}"


def _text(value: Any) -> str:
    """A fact in a line: prompts with their blanks and line ends; nothing for what is not so or not known."""
    if isinstance(value, dict):
        said = {name: json.dumps(part, ensure_ascii=False) for name, part in value.items() if part}
        return ", ".join(f"{name}: {part}" for name, part in said.items())
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, bool) or value is None:
        return "yes" if value else ""
    return f"{value:g} million" if isinstance(value, float) else str(value)


def _snippet(entry: "ModelEntry") -> str:
    """A system as TOML; a second stage stands on a system called BM25. Nothing for an LLM."""
    if entry.kind not in _SYSTEMS:
        return ""
    system = {"name": entry.name, **_SYSTEMS[entry.kind], "model": entry.name}
    return _toml(system)


def _toml(system: dict[str, str]) -> str:
    return "\n".join(["[[system]]", *(f"{key} = {json.dumps(value)}" for key, value in system.items())])
