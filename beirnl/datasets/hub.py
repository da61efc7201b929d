"""Datasets of the Hugging Face hub, fetched once at a fixed revision and read as a folder.

A dataset is named ``ORG/NAME``, ``ORG/NAME@REVISION``, or, with judgements in a repository of their own,
``ORG/NAME@REVISION+ORG/QRELS@REVISION``; where a repository has none, those of ``ORG/NAME-qrels`` are
taken. Files come into the hub's own cache (``HF_HOME``), whole files are never fetched twice, and a
connection that breaks goes on where it stood. What is read is a folder of links to them in the hub's
layout.
"""

import errno
import logging
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from beirnl.datasets.files import suffix_of
from beirnl.datasets.repositories import Tables, tables
from beirnl.errors import DataError, PrerequisiteError
from beirnl.models.cache import cache_directory, quiet_hub

_LOG = logging.getLogger(__name__)
_CARD = "README.md"
_FIRST = (_CARD, ".gitattributes")  # every repository has the second: fetched for the listing beside them
_NEWEST = "main"
_FEW = 3
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
_QRELS = "-qrels"


class Snapshot(NamedTuple):
    """A repository at a revision.

    Attributes:
        repository: ``ORG/NAME``.
        commit: what the revision stands for.
        folder: of the cache; only files that were asked for are there.
        sets: its files by part.
    """

    repository: str
    commit: str
    folder: Path
    sets: dict[str, Tables]

    @property
    def name(self) -> str:
        """``ORG/NAME@COMMIT``."""
        return f"{self.repository}@{self.commit}"


def fetch(name: str) -> tuple[Path, str]:
    """A dataset of the hub as a folder, and what it is: ``hub:ORG/NAME@COMMIT``.

    Args:
        name: see the module.

    Raises:
        PrerequisiteError: files are missing and the hub is not reached; there is no such revision, or
            repository.
        DataError: the repository holds no retrieval set.
    """
    wanted = [_named(one) for one in name.split("+")]
    found = [_open(repository, revision) for repository, revision in wanted]
    if not any(files.qrels for one in found for files in one.sets.values()):
        found.append(_judgements_of(found[0]))
    source = "+".join(one.name for one in found)
    if not any(files.corpus for one in found for files in one.sets.values()):
        raise DataError(
            "holds no corpus, or another one for each split",
            where=f"hub:{source}",
            remedy="fetch it, and give a folder in BEIR's layout",
        )
    folder = _folder(source)
    if not _is_whole(folder):
        for one in found:
            _download(one, [name for files in one.sets.values() for name in files.names])
        _link(found, folder)
        _LOG.info("%s is in %s", source, folder)
    return folder, f"hub:{source}"


def _named(text: str) -> tuple[str, str]:
    repository, _, revision = text.partition("@")
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise PrerequisiteError(
            f"{text!r} is no dataset of the hub", where=f"hub:{text}", remedy="give hub:ORG/NAME@REVISION"
        )
    return repository, revision or _NEWEST


def _open(repository: str, revision: str) -> Snapshot:
    """Card and file names of a repository; nothing else is fetched."""
    from huggingface_hub import metadata_load

    folder = _snapshot(repository, revision, list(_FIRST))
    card = folder / _CARD
    sets = tables(_file_names(repository, folder), (metadata_load(card) if card.is_file() else None) or {})
    if not sets:
        raise DataError(
            "holds no files of a retrieval set (Parquet, JSON lines, TSV)",
            where=f"hub:{repository}@{folder.name}",
            remedy="give a repository in the layout of BEIR or MTEB, or fetch it and give a folder",
        )
    return Snapshot(repository, folder.name, folder, sets)


def _file_names(repository: str, folder: Path) -> list[str]:
    """All files of a repository: as its listing says, or, without one, those that are in the cache."""
    from huggingface_hub import get_cached_repo_tree
    from huggingface_hub.errors import CachedRepoTreeNotFoundError

    try:
        return [f.path for f in get_cached_repo_tree(repository, repo_type="dataset", revision=folder.name)]
    except CachedRepoTreeNotFoundError:
        return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]


def _judgements_of(snapshot: Snapshot) -> Snapshot:
    """The repository with the judgements of one that has none."""
    try:
        return _open(snapshot.repository + _QRELS, _NEWEST)
    except (PrerequisiteError, DataError) as error:
        raise DataError(
            f"holds no judgements, and {snapshot.repository}{_QRELS} cannot be had ({error.what})",
            where=f"hub:{snapshot.name}",
            remedy="name the repository that has them: hub:ORG/NAME+ORG/QRELS",
        ) from error


def _download(snapshot: Snapshot, names: list[str]) -> None:
    missing = [name for name in names if not (snapshot.folder / name).is_file()]
    if missing:
        _snapshot(snapshot.repository, snapshot.commit, missing)


def _snapshot(repository: str, revision: str, names: list[str]) -> Path:
    from huggingface_hub import snapshot_download

    with _hub_errors(repository, revision, names), quiet_hub():
        return Path(
            snapshot_download(repository, repo_type="dataset", revision=revision, allow_patterns=names)
        )


@contextmanager
def _hub_errors(repository: str, revision: str, names: list[str]) -> Iterator[None]:
    """Errors of the hub, or of the way to it, as one line."""
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HTTPError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
        XetDownloadError,
    )

    where = f"hub:{repository}@{revision}"
    try:
        yield
    except RevisionNotFoundError as error:
        raise PrerequisiteError(
            f"the repository has no revision {revision!r} (any more)",
            where=where,
            remedy=f"leave @{revision[:12]} out for the newest, or pin one of those that the hub lists",
        ) from error
    except RepositoryNotFoundError as error:
        raise PrerequisiteError(
            "the hub has no such dataset, or shows it only to some",
            where=where,
            remedy="check the name; for a private one export HF_TOKEN",
        ) from error
    except (HfHubHTTPError, HTTPError, XetDownloadError, OSError) as error:
        if getattr(error, "errno", None) in _DISK:
            raise  # nothing of the hub's: said as any error of a disk
        wanted = [name for name in names if name not in _FIRST]
        shown = ", ".join(wanted[:_FEW]) + (f" and {len(wanted) - _FEW} more" if len(wanted) > _FEW else "")
        pinned = "" if revision == _NEWEST else f" --revision {revision}"
        cache = Path(HF_HUB_CACHE) / f"datasets--{repository.replace('/', '--')}"
        raise PrerequisiteError(
            f"the hub is not reached, and {shown or 'the list of its files'} cannot be fetched "
            f"({type(error).__name__})",
            where=where,
            remedy="run the same command where the hub can be reached (what has come is kept), or there "
            f"`hf download {repository} --repo-type dataset{pinned}`, and copy its cache folder to {cache}",
        ) from error


# The folder of links ----------------------------------------------------------------------------------------


def _folder(source: str) -> Path:
    """Where the links to the files of a source lie."""
    return cache_directory().parent / "datasets" / "hub" / source.replace("/", "--")


def _is_whole(folder: Path) -> bool:
    """Whether there are links, and all lead to files: the hub's cache may have been cleared."""
    links = [path for path in folder.rglob("*") if path.is_symlink()]
    return bool(links) and all(link.exists() for link in links)


def _link(snapshots: list[Snapshot], folder: Path) -> None:
    """Write the links, under another name until they are all there."""
    made = folder.with_name(f".{folder.name}-{uuid.uuid4().hex[:8]}")
    try:
        for snapshot in snapshots:
            for part, files in snapshot.sets.items():
                _link_set(snapshot.folder, files, made / part)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not _is_whole(folder):  # nor has another process just made it
            raise


def _link_set(snapshot: Path, files: Tables, folder: Path) -> None:
    for name, listed in (("corpus", files.corpus), ("queries", files.queries)):
        for number, file in enumerate(listed):
            _link_file(snapshot / file, folder / name / f"{number:05d}")
    for split, listed in files.qrels.items():
        for number, file in enumerate(listed):
            _link_file(snapshot / file, folder / "qrels" / f"{split}-{number:05d}-of-{len(listed):05d}")


def _link_file(file: Path, link: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.with_name(link.name + suffix_of(file)).symlink_to(file.absolute())
