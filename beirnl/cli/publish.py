"""The command that publishes: a translated set as a BEIR folder and in the hub's layout, proven, uploaded."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beirnl.cli.app import Exp, app, load_translation
from beirnl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beirnl.publish import Published


def _spdx(licence: str | None) -> str | None:
    """A licence that has the form of an identifier."""
    if licence is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]*", licence):
        raise ConfigError(
            f"{licence!r} is not an SPDX identifier",
            where="--licence",
            remedy="write one such as CC-BY-4.0 or MIT; other, for a licence that has none",
        )
    return licence


Target = Annotated[
    Path, typer.Option("--to", metavar="DIR", help="Folder for the published sets.", show_default=False)
]
Only = Annotated[
    list[str] | None, typer.Option("--dataset", metavar="NAME", help="Only this dataset (repeatable).")
]
Licence = Annotated[
    str | None,
    typer.Option(
        "--licence",
        metavar="SPDX",
        callback=_spdx,
        help="Licence of a dataset that the registry lacks, such as CC-BY-4.0.",
    ),
]
Push = Annotated[
    str | None,
    typer.Option(
        "--push",
        metavar="ORG/NAME",
        help="Upload to the hub (token in HF_TOKEN); of several sets each to ORG/NAME-DATASET.",
    ),
]


@app.command()
def publish(
    experiment: Exp,
    to: Target,
    dataset: Only = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    licence: Licence = None,
    push: Push = None,
    public: Annotated[bool, typer.Option("--public", help="Make a pushed set public.")] = False,
) -> None:
    """Write translated sets as BEIR folders and in the hub's layout, and prove them by reading them back.

    DIR/DATASET-LANGUAGE holds `beir` and `hub`; it appears only when the proof has succeeded. What is there
    already and was made from the same rows is proven again (under another licence it is written anew);
    anything else there, and what was altered, is refused without --force.
    """
    from beirnl import publish as publishing
    from beirnl.pipeline import Pipeline
    from beirnl.publish import hub

    if public and not push:
        raise ConfigError("makes public what is pushed", where="--public", remedy="add --push ORG/NAME")
    pipeline = Pipeline.of(load_translation(experiment))
    sets = publishing.sets(publishing.translations(pipeline, dataset or ()))
    names = {name: parts[0].dataset for name, parts in sets.items()}
    targets = hub.repositories(push, names) if push else {}
    _check_licences(names.values() if public else (), licence)
    done = []
    for name, parts in sets.items():
        made = publishing.publish(name, parts, to, force=force, licence=licence)
        _tell(name, made, licence)
        done.append(made)
    for name, made in zip(sets, done, strict=True):
        if name in targets:
            print(f"{name}: pushed to {hub.push(made.hub, targets[name], public)}")


def _check_licences(names: "Iterable[str]", licence: str | None) -> None:
    """Refuse to make a set public whose licence nobody knows."""
    from beirnl.publish import card

    for name in names:
        if card.licence_of(name, licence) == card.UNKNOWN:
            raise ConfigError(f"the licence of {name!r} is unknown", where="--public", remedy="add --licence")


def _tell(name: str, made: "Published", licence: str | None) -> None:
    """Say what was published, and what whoever passes it on must know."""
    from beirnl.publish.card import UNKNOWN

    counts = ", ".join(f"{made.total(what):,} {what}" for what in ("documents", "queries", "judgements"))
    done = "written and proven" if made.written else "proven again"
    print(f"{name}: {counts}; {done}: {made.folder}")
    if made.licence != UNKNOWN:
        print(f"{name}: licence {made.licence}, that of the source")
    ignored = licence is not None and licence != made.licence
    unused = [f"--licence is not used: the registry says {made.licence}"] if ignored else []
    for line in (*unused, *made.warnings):
        print(f"warning: {name}: {line}", file=sys.stderr)
