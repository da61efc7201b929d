"""Parts on their way between a node and an object store: one object each, a folder packed as one tar."""

import shutil
import tarfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beirnl.store.cache import Cache, cache
from beirnl.store.files import disk_errors
from beirnl.store.keys import file_sha256
from beirnl.store.places import RemotePath
from beirnl.store.verification import damage

if TYPE_CHECKING:
    from beirnl.store.artifacts import Part

#: Extracted as data: nothing outside the folder, no devices. Python before 3.11.4 cannot say so.
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
_BLOCK = 16 << 20  # bytes that are copied at once


def object_name(part: "Part") -> str:
    """Name of the object that holds a part."""
    return f"{part.file}.tar" if _is_folder(part) else part.file


def deliver(made: Path, directory: RemotePath, part: "Part") -> None:
    """Put a part that was made on this node, and keep it here for whoever reads it next.

    Args:
        made: file or folder, in a scratch folder of the cache; moved from there.
        directory: of the artifact.
        part: what its receipt will say.
    """
    with (directory / object_name(part)).writing() as stream:
        if made.is_dir():
            with tarfile.open(fileobj=stream, mode="w|", bufsize=_BLOCK) as packed:
                for name in sorted(file.name for file in part.files):
                    packed.add(made / name, name)
        else:
            with made.open("rb") as source:
                shutil.copyfileobj(source, stream, _BLOCK)
    cache().keep(made, _entry(part))


def fetch(directory: RemotePath, part: "Part") -> Path:
    """A part as file or folder of this node; fetched and verified if it is not here.

    Raises:
        StoreError: it is missing, or is not what was committed; names it, and how to make it again.
    """
    store, name = cache(), _entry(part)
    path = store.use(name)
    if _is_intact(path, part):
        return path
    with disk_errors(directory), store.fetching(name):
        if not _is_intact(path, part):  # by now
            _download(store, directory, part, name)
    return path


def _download(store: Cache, directory: RemotePath, part: "Part", name: str) -> None:
    place = directory / part.file
    source = directory / object_name(part)
    with store.scratch(uuid.uuid4().hex) as folder:
        new = folder / part.file
        try:
            with source.reading() as stream:
                if _is_folder(part):
                    with tarfile.open(fileobj=stream, mode="r|", bufsize=_BLOCK) as packed:
                        packed.extractall(new, **_FILTER)
                else:
                    with new.open("wb") as file:
                        shutil.copyfileobj(stream, file, _BLOCK)
        except FileNotFoundError as error:
            raise damage("is missing", place, source) from error
        except tarfile.TarError as error:
            raise damage(f"cannot be unpacked ({error})", place, source) from error
        if not new.exists() or file_sha256(new, [file.name for file in part.files]) != part.sha256:
            raise damage("has another checksum than its receipt", place, source)
        _clear(store.folder / name)
        store.keep(new, name)


def _clear(path: Path) -> None:
    """Remove what somebody has damaged."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def _entry(part: "Part") -> str:
    """Name of a part in the cache, with the extension of the part."""
    return f"{part.sha256[:32]}-{part.file}"


def _is_folder(part: "Part") -> bool:
    return [file.name for file in part.files] != ["."]


def _is_intact(path: Path, part: "Part") -> bool:
    """Whether all files are there in their sizes; contents were verified as they were fetched."""
    try:
        return all((path / file.name).stat().st_size == file.size for file in part.files)
    except OSError:
        return False
