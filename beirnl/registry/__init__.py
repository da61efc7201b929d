"""Facts about models, datasets, languages, prices and prompts: files, and the one module that reads them.

Adding one is adding an entry to its TOML file, or a prompt file. A revision without a source stays empty and
is shown as ``unpinned``; it is never guessed.
"""

import csv
import datetime
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from beirnl.errors import ConfigError, PrerequisiteError, nearest
from beirnl.models.cache import folder_digest
from beirnl.registry.datasets import Counts as Counts
from beirnl.registry.datasets import DatasetEntry as DatasetEntry
from beirnl.registry.datasets import dataset as dataset
from beirnl.registry.datasets import datasets as datasets
from beirnl.registry.datasets import find_dataset as find_dataset
from beirnl.registry.datasets import near_datasets as near_datasets
from beirnl.registry.datasets import part_of as part_of
from beirnl.registry.datasets import unknown_dataset as unknown_dataset
from beirnl.registry.entries import FOLDER, Entry, read
from beirnl.registry.model_facts import Kind as Kind
from beirnl.registry.model_facts import ModelEntry as ModelEntry
from beirnl.registry.model_facts import Prompts as Prompts
from beirnl.registry.profiles import Bm25Entry as Bm25Entry
from beirnl.registry.profiles import ProfileEntry as ProfileEntry
from beirnl.registry.profiles import bm25_profiles as bm25_profiles
from beirnl.registry.profiles import profiles as profiles
from beirnl.specs import ModelRef
from beirnl.wording import near

_T = TypeVar("_T")

_FOLDER = FOLDER
_HUB_PATH = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


class LanguageEntry(Entry):
    """One language.

    Attributes:
        code: ISO 639-1, as experiment files name it.
        name: in English, as prompts spell it.
        iso3: ISO 639-3, of the macrolanguage where there is one.
        nllb: the code of NLLB-200 (*No Language Left Behind*, Table 1), or empty: NLLB-200 does not have it.
        identified: whether the identifier that checks translations knows it.
    """

    code: str
    name: str
    iso3: str
    nllb: str = ""
    identified: bool = False


class PriceEntry(Entry):
    """What a provider asks for a model.

    Attributes:
        name: what the provider calls the model.
        input, output: price of a million tokens.
        batch_discount: factor on both in batch mode.
        currency: ISO 4217.
        as_of: day on which the source shows the price.
        source: the provider's page, and who recorded what it said.
        note: what a user should know before relying on it.
    """

    name: str
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    batch_discount: float = Field(default=1.0, gt=0, le=1)
    currency: str = "USD"
    as_of: datetime.date
    source: str
    note: str = ""


@cache
def models() -> dict[str, ModelEntry]:
    """All models by name, in the file's order."""
    return {name: ModelEntry(name=name, **facts) for name, facts in read("models.toml").items()}


@cache
def languages() -> dict[str, LanguageEntry]:
    """All languages by ISO 639-1 code, in the file's order."""
    return {code: LanguageEntry(code=code, **facts) for code, facts in read("languages.toml").items()}


@cache
def prices() -> dict[str, PriceEntry]:
    """All prices by the provider's name of the model, in the file's order."""
    return {name: PriceEntry(name=name, **facts) for name, facts in read("prices.toml").items()}


def language(code: str) -> LanguageEntry:
    """The entry of a language.

    Raises:
        ConfigError: no such ISO 639-1 code; names that of the language that is meant, where it can be told.
    """
    if code in languages():
        return languages()[code]
    meant = language_meant(code)
    if meant:
        raise ConfigError(f"unknown language {code!r}", remedy=f"write {meant.code!r} for {meant.name}")
    raise ConfigError(f"unknown language {code!r}", remedy="write an ISO 639-1 code, such as 'nl' for Dutch")


def language_meant(text: str) -> LanguageEntry | None:
    """The language that is called ``text`` in another way than by its code: by its name (also misspelt), by
    its code of three letters, or by its code with a region (``nl-NL``)."""
    wanted = text.strip().lower()
    by_name = {entry.name.lower(): entry for entry in languages().values()}
    by_code = {entry.iso3: entry for entry in languages().values()} | languages()
    found = by_name.get(wanted) or by_code.get(re.split("[-_]", wanted)[0])
    return found or by_name.get(near(wanted, by_name))


def model(name: str) -> ModelEntry:
    """The entry of a model, by its name, hub path or alias.

    Raises:
        ConfigError: no such name; the nearest ones are named.
    """
    found = find_model(name)
    return found or _lookup("model", name, models())


def prompts() -> tuple[str, ...]:
    """Names of the prompt files."""
    return tuple(sorted(path.stem for path in (_FOLDER / "prompts").glob("*.txt")))


def prompt(name: str) -> str:
    """The text of a prompt, line ends normalised to LF.

    Raises:
        ConfigError: no such name; the nearest ones are named.
    """
    _lookup("prompt", name, dict.fromkeys(prompts()))
    return (_FOLDER / "prompts" / f"{name}.txt").read_text(encoding="utf-8")


def published(name: str) -> list[dict[str, str]]:
    """The rows of a table of published figures, ``published/NAME.csv``."""
    with (_FOLDER / "published" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def unknown(what: str, name: str, valid: Iterable[str]) -> ConfigError:
    """An error that names the valid name nearest to ``name``; see :func:`beirnl.errors.nearest`.

    Args:
        what: ``model``, ``dataset`` or ``prompt``.
        name: what the user wrote.
        valid: the names that exist.
    """
    return ConfigError(f"unknown {what} {name!r}", remedy=nearest(name, valid))


def find_model(name: str) -> ModelEntry | None:
    """The entry with this name, hub path or alias, or ``None``: a folder or a hub model without an entry."""
    return _models_by_name().get(name)


def model_like(hub: str) -> str:
    """The hub path of the registry that a hub path without an entry may be meant for, or empty."""
    return near(hub, [entry.hub for entry in models().values() if entry.hub])


def instruction(dataset: str, language: str) -> str:
    """The task of a dataset in words, as MTEB gives it to models that are instructed.

    Args:
        dataset: its name here, with or without the language at its end (``scifact-nl``).
        language: ISO 639-1; a translated set has MTEB's general instruction, if none of its own.
    """
    facts = read("instructions.toml")
    of_language = facts.get(language, {})
    return str(of_language.get(dataset.removesuffix(f"-{language}"), facts["default"]))


def resolve_model(name_or_path: str, kind: Kind) -> ModelRef:
    """What a user wrote as a model, pinned as far as its source allows.

    An existing folder, or what can only be one, is a path, pinned by the digest of its files. A registry name
    with a package is that package. Anything else is a hub path, pinned if the registry has its revision.

    Args:
        name_or_path: registry name, ``ORG/NAME`` on the hub, or folder.
        kind: what it is to be used as.

    Raises:
        ConfigError: the name is unknown, or names a model of another kind.
        PrerequisiteError: the folder does not exist.
    """
    if _is_path(name_or_path):
        return _folder_ref(name_or_path)
    entry = find_model(name_or_path)
    if entry is None:
        if not _HUB_PATH.fullmatch(name_or_path):
            raise ConfigError(
                f"unknown {kind} model {name_or_path!r}",
                remedy=nearest(name_or_path, _names(kind), "give a hub path ORG/NAME or a folder"),
            )
        return ModelRef(name=name_or_path, source=f"hub:{name_or_path}")
    if entry.kind != kind:
        raise ConfigError(
            f"model {name_or_path!r} is used as {kind} and is registered as {entry.kind}",
            remedy=f"use one of: {', '.join(_names(kind))}",
        )
    if entry.api:
        source, revision, recipe = f"api:{entry.api}", "unpinned", ""
    elif entry.package and name_or_path != entry.hub:
        source, revision, recipe = f"package:{entry.package}", entry.package.partition("==")[2], entry.recipe
    else:
        source, revision, recipe = f"hub:{entry.hub}", entry.revision or "unpinned", ""
    return ModelRef(
        name=entry.name if name_or_path in entry.aliases else name_or_path,
        source=source,
        revision=revision,
        recipe=recipe,
        trust_remote_code=entry.trust_remote_code,
        code=entry.code,
        pooling=entry.pooling,
    )


def _models_by_name() -> dict[str, ModelEntry]:
    """All models by everything that they can be called; a name of one comes before an alias of another."""
    called = {name: entry for entry in models().values() for name in entry.names}
    return called | models()


def _names(kind: Kind) -> list[str]:
    return [entry.name for entry in models().values() if entry.kind == kind]


def _is_path(text: str) -> bool:
    """Whether ``text`` names a folder: it exists, or it cannot be a registry name or a hub path."""
    if find_model(text):
        return False
    return Path(text).expanduser().is_dir() or text.startswith((".", "/", "~")) or text.count("/") > 1


def _folder_ref(text: str) -> ModelRef:
    folder = Path(text).expanduser().resolve()
    if not folder.is_dir():
        raise PrerequisiteError(
            "this model folder does not exist",
            where=text,
            remedy="give a folder written by save_pretrained, a hub path ORG/NAME or a registry name",
        )
    return ModelRef(name=text, source=f"path:{folder}", revision=folder_digest(folder))


def _lookup(what: str, name: str, entries: dict[str, _T]) -> _T:
    if name not in entries:
        raise unknown(what, name, entries)
    return entries[name]
