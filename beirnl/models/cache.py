"""The folder with a model's weights, wherever they come from; folders made from packages are kept in a cache.

A prepared folder is written under another name and renamed when it is whole, so a process that dies in the
middle leaves nothing that a later one takes for a model.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from beirnl.errors import PrerequisiteError
from beirnl.specs import ModelRef

#: Weights in formats that torch does not read.
_OTHER_FORMATS = ("*.onnx", "*.onnx_data", "*.h5", "*.ot", "*.msgpack", "*.tflite", "openvino/*", "coreml/*")


def cache_directory() -> Path:
    """Where prepared models are kept: ``BEIRNL_CACHE``, by default ``~/.cache/beirnl/models``."""
    return Path(os.environ.get("BEIRNL_CACHE") or "~/.cache/beirnl/models").expanduser()


def model_path(ref: ModelRef) -> Path:
    """The folder with a model's weights; prepared or downloaded if it is not there yet.

    Args:
        ref: the model; ``ref.source`` says where it comes from.

    Raises:
        PrerequisiteError: a package, a folder or the hub is missing; says how to get it.
    """
    origin, _, place = ref.source.partition(":")
    if origin == "package":
        return _prepared(ref, place)
    if origin == "hub":
        folder = _downloaded(place, None if ref.revision == "unpinned" else ref.revision)
        return _with_code(ref, folder) if ref.code else folder
    if origin == "path":
        return _checked(Path(place))
    raise ValueError(f"not a model source: {ref.source!r}")


def folder_at_hand(ref: ModelRef) -> Path | None:
    """The folder of a model that is on this machine; nothing is prepared or downloaded."""
    origin, _, place = ref.source.partition(":")
    if origin == "hub":
        from huggingface_hub import try_to_load_from_cache

        revision = None if ref.revision == "unpinned" else ref.revision
        found = try_to_load_from_cache(place, "config.json", revision=revision)
        return Path(found).parent if isinstance(found, str) and _code_at_hand(ref) else None
    folder = _prepared_folder(ref, place) if origin == "package" else Path(place)
    return folder if folder.is_dir() else None


def _code_at_hand(ref: ModelRef) -> bool:
    """Whether the code of a model is on this machine, where another repository has it."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    repository, _, revision = ref.code.partition("@")
    folder = repo_folder_name(repo_id=repository, repo_type="model") if repository else ""
    return not repository or (Path(constants.HF_HUB_CACHE) / folder / "snapshots" / revision).is_dir()


def folder_digest(folder: Path) -> str:
    """Digest of the names and contents of a folder's files, hidden ones left out.

    Digests of single files are remembered by path, size and modification time.
    """
    known, total = _read_digests(), hashlib.blake2b(digest_size=16)
    fresh = dict(known)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            total.update(f"{name.as_posix()}\0{_file_digest(path, fresh)}\n".encode())
    if fresh != known:
        _write_digests(fresh)
    return total.hexdigest()


def _file_digest(path: Path, known: dict[str, list[Any]]) -> str:
    status, key = path.stat(), str(path.resolve())
    *seen, digest = known.get(key, [""])
    if seen != [status.st_size, status.st_mtime_ns]:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        known[key] = [status.st_size, status.st_mtime_ns, digest]
    return str(digest)


def _read_digests() -> dict[str, list[Any]]:
    """What is remembered: size, modification time and digest by path."""
    try:
        known = json.loads((cache_directory() / "digests.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {path: facts for path, facts in known.items() if isinstance(facts, list) and len(facts) == 3}


def _write_digests(known: dict[str, list[Any]]) -> None:
    """Best effort: without a writable cache digests are computed again. Files that are gone are forgotten."""
    with contextlib.suppress(OSError):
        target = cache_directory() / "digests.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, encoding="utf-8") as file:
            json.dump({path: facts for path, facts in known.items() if Path(path).exists()}, file)
        Path(file.name).replace(target)


def _prepared_folder(ref: ModelRef, requirement: str) -> Path:
    return cache_directory() / f"{requirement.replace('==', '-')}-{ref.recipe}"


def _prepared(ref: ModelRef, requirement: str) -> Path:
    """The folder that a recipe made of a package; made now, once, if it is not there."""
    folder = _prepared_folder(ref, requirement)
    if folder.is_dir():
        return folder
    from beirnl.models.packages import require
    from beirnl.models.recipes import RECIPES

    if ref.recipe not in RECIPES:
        raise PrerequisiteError(
            f"this version of beirnl has no recipe {ref.recipe!r}",
            where=ref.name,
            remedy="resolve the model again with `beirnl plan`",
        )
    recipe = RECIPES[ref.recipe]
    require(recipe.packages, model=ref.name)
    return _made_once(folder, recipe.build)


def _with_code(ref: ModelRef, weights: Path) -> Path:
    """A folder of links to a model's files and to those of the repository that has its code."""
    from beirnl.models.assembling import assemble

    repository, _, revision = ref.code.partition("@")
    code = _downloaded(repository, revision)
    place = hashlib.blake2b(f"{weights}\0{code}".encode(), digest_size=8).hexdigest()
    folder = cache_directory() / f"{ref.source.rpartition('/')[2]}-{place}"
    return _made_once(folder, lambda unfinished: assemble(unfinished, weights, code, repository))


def _made_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """A folder that ``build`` fills, by whichever process comes first; the others wait for it."""
    from filelock import FileLock

    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            _remove_leftovers(folder)
            unfinished = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
            unfinished.mkdir()
            try:
                build(unfinished)
                unfinished.replace(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _remove_leftovers(folder: Path) -> None:
    """What earlier processes left when they were killed; nobody else writes while the lock is held."""
    for leftover in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)


@contextlib.contextmanager
def quiet_hub() -> Iterator[None]:
    """Without the lines in which the hub's client tells its retries: what it raises at last says enough."""
    from huggingface_hub.utils import logging as hub_logging

    before = hub_logging.get_verbosity()
    hub_logging.set_verbosity_error()
    try:
        yield
    finally:
        hub_logging.set_verbosity(before)


def _downloaded(repository: str, revision: str | None) -> Path:
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        with quiet_hub():
            return Path(
                snapshot_download(repository, revision=revision, ignore_patterns=list(_OTHER_FORMATS))
            )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, httpx.HTTPError, OSError) as error:
        pinned = f" --revision {revision}" if revision else ""
        raise PrerequisiteError(
            f"the model is neither in the hub cache nor can it be downloaded ({type(error).__name__})",
            where=repository,
            remedy=f"run `hf download {repository}{pinned}` where the hub can be reached and set HF_HOME to "
            "its cache, or give the path of a model folder",
        ) from error


def _checked(folder: Path) -> Path:
    if not folder.is_dir():
        raise PrerequisiteError(
            "this model folder does not exist",
            where=folder,
            remedy="mount it on every machine that runs the model",
        )
    if not any((folder / name).is_file() for name in ("config.json", "modules.json")):
        raise PrerequisiteError(
            "this folder holds neither config.json nor modules.json, so it is not a model",
            where=folder,
            remedy="give a folder written by save_pretrained",
        )
    return folder
