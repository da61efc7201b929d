"""Which files of a dataset repository are corpus, queries and judgements, by its card or by their names.

A card lists configurations, each with splits and the patterns of their files. The ones that matter:

    corpus, queries (or query)      documents and queries; one split each, whatever its name
    qrels, default, or any other    judgements, a split each
    PART-corpus, corpus-PART, ...   the same for each of several parts
    default                         with splits ``corpus`` and ``queries``, and judgements elsewhere

Where corpus, queries and judgements have the same several splits, these are parts and the configuration's
name is the split (BEIR-NL's CQADupStack: corpus, queries and ``test``, each with a split per forum).
Without configurations the same names are looked for among folders and files, as BEIR's repositories have
them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from beirnl.datasets.files import readable, split_of

#: File names by split, by configuration.
Configurations = dict[str, dict[str, list[str]]]

_ROLES = {"corpus": "corpus", "queries": "queries", "query": "queries", "qrels": "qrels", "default": "qrels"}
_NOT_OURS = ("top_ranked", "instruction", "instructions")
_USUAL = {"train", "dev", "validation", "test"}
_JUDGED = "test"


@dataclass
class Tables:
    """Names of the files of a set, or of a part of one: documents, queries, judgements by split."""

    corpus: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    qrels: dict[str, list[str]] = field(default_factory=dict)

    def add(self, role: str, split: str, names: list[str]) -> None:
        """Add the files of a split."""
        if role == "qrels":
            self.qrels.setdefault(split, []).extend(names)
        else:
            getattr(self, role).extend(names)

    @property
    def names(self) -> list[str]:
        """All files."""
        return [*self.corpus, *self.queries, *(name for files in self.qrels.values() for name in files)]


def tables(names: Iterable[str], card: Mapping[str, Any]) -> dict[str, Tables]:
    """The sets of a repository by part, ``""`` for a set without parts; judgements may be missing.

    Args:
        names: all files of the repository.
        card: the card's metadata; ``configs`` is what the hub's own loader goes by.

    Returns:
        Only parts that have something; of one whose corpus depends on the split, none is taken.
    """
    listed = sorted(name for name in names if readable(name))
    configurations = _listed(card, listed) or _by_name(listed)
    found: dict[str, Tables] = {}
    parts = _parts_by_split(configurations)
    judged = any(_ROLES.get(name) == "qrels" for name in configurations)
    for name, splits in configurations.items():
        role, part = _role(name)
        if not role or (role == "corpus" and not parts and len(_USUAL & set(splits)) > 1):
            continue
        if judged and not parts and role == "qrels" and "qrels" not in name and name != "default":
            continue  # triplets and other things beside the judgements
        for split, files in splits.items():
            if split in parts:
                found.setdefault(split, Tables()).add(role, _JUDGED if name in _ROLES else name, files)
            elif role == "qrels" and split in _ROLES:
                found.setdefault(part, Tables()).add(_ROLES[split], split, files)
            else:
                found.setdefault(part, Tables()).add(role, split, files)
    return found


def _listed(card: Mapping[str, Any], names: list[str]) -> Configurations:
    """The configurations of a card with the files that their patterns match."""
    found: Configurations = {}
    for configuration in card.get("configs") or []:
        patterns = configuration.get("data_files") or []
        if isinstance(patterns, str) or all(isinstance(pattern, str) for pattern in patterns):
            patterns = [{"split": "train", "path": patterns}]
        splits: dict[str, list[str]] = {}
        for entry in patterns:
            wanted = [entry["path"]] if isinstance(entry["path"], str) else entry["path"]
            matching = [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted)]
            if matching:
                splits.setdefault(str(entry["split"]), []).extend(matching)
        if splits:
            found[str(configuration["config_name"])] = splits
    return found


def _by_name(names: list[str]) -> Configurations:
    """Configurations as folders and files are called: ``corpus.jsonl``, ``qrels/test.tsv``."""
    found: Configurations = {}
    for name in names:
        path = PurePosixPath(name)
        split = split_of(path)
        role = next(
            (part for part in path.parts[:-1] if part in _ROLES), split if split in _ROLES else "qrels"
        )
        above = path.parts[: path.parts.index(role)] if role in path.parts else path.parts[:-1]
        part = "-".join(folder for folder in above if folder != "data")
        known = f"{part}-{role}" if part else role
        found.setdefault(known, {}).setdefault(split, []).append(name)
    return found


def _role(configuration: str) -> tuple[str, str]:
    """Role and part of a configuration: (``corpus``, ``gis``) for ``gis-corpus`` or ``corpus-gis``."""
    if configuration in _ROLES:
        return _ROLES[configuration], ""
    for name, role in _ROLES.items():
        if configuration.endswith(f"-{name}"):
            return role, configuration.removesuffix(f"-{name}")
        if configuration.startswith(f"{name}-"):
            return role, configuration.removeprefix(f"{name}-")
    return ("", "") if configuration.endswith(_NOT_OURS) else ("qrels", "")


def _parts_by_split(configurations: Configurations) -> set[str]:
    """The splits that are parts: several, the same for corpus and queries, and no usual names of splits."""
    splits = [set(splits) for name, splits in configurations.items() if name in ("corpus", "queries")]
    if len(splits) == 2 and splits[0] == splits[1] and len(splits[0]) > 1 and not splits[0] & _USUAL:
        return splits[0]
    return set()
