"""Where a workspace lies: a folder of this machine, or a prefix in an object store.

A :class:`RemotePath` is used as a :class:`~pathlib.Path` is, as far as an object store can do what it says:
objects are read and written whole, a folder is what the names of objects have in common, and there is no
renaming and no appending. Every object is there whole or not at all, and seen by all as soon as it is written
(strong consistency, as S3 and GCS give it), which is all that the store's commits lean on.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

from beirnl.store.remote_errors import again_if_cut, remote_errors

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

_BLOCK = 16 << 20  # bytes that are read or written at once
_AT_ONCE = 16  # requests under way
_ATTEMPTS = 8  # at one request; with the back-off between them about half a minute
_VARIABLES = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_MAX_ATTEMPTS",
)
_S3, _GCS = ("s3",), ("gs", "gcs")


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class RemotePath:
    """An object, or what the names of some objects begin with.

    Args:
        scheme: of its address, as ``s3``.
        key: bucket and name.
    """

    scheme: str
    key: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.key}"

    def __fspath__(self) -> str:
        raise TypeError(f"{self} is not a file of this machine")

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(self.scheme, f"{self.key}/{name}")

    @property
    def name(self) -> str:
        """What follows the last slash."""
        return PurePosixPath(self.key).name

    @property
    def suffix(self) -> str:
        """The last extension of the name."""
        return PurePosixPath(self.key).suffix

    @property
    def parent(self) -> "RemotePath":
        """The folder that it lies in."""
        return RemotePath(self.scheme, str(PurePosixPath(self.key).parent))

    def is_relative_to(self, other: "Place") -> bool:
        """Whether it is another place, or lies below it."""
        return f"{self}/".startswith(f"{other}/")

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a folder is there as soon as something lies in it."""

    def read_bytes(self) -> bytes:
        """The object; FileNotFoundError where there is none."""
        with remote_errors(self):
            return again_if_cut(self._read)

    def _read(self) -> bytes:
        with self._files.open_input_file(self.key) as stream:
            return bytes(stream.read())

    def read_text(self, encoding: str = "utf-8") -> str:
        """The object as text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: bytes) -> None:
        """Put the object, in one request where it is no larger than a part of an upload."""
        with remote_errors(self), self._files.open_output_stream(self.key) as stream:
            stream.write(data)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Put an object of text."""
        self.write_bytes(text.encode(encoding))

    @contextmanager
    def writing(self) -> "Iterator[IO[bytes]]":
        """Write the object; it is there at the end of the block, also of one that an error ends."""
        with remote_errors(self), self._files.open_output_stream(self.key) as stream:
            yield stream

    @contextmanager
    def reading(self) -> "Iterator[IO[bytes]]":
        """Read the object in large pieces; FileNotFoundError where there is none."""
        with remote_errors(self), self._files.open_input_stream(self.key, buffer_size=_BLOCK) as stream:
            yield stream

    def exists(self) -> bool:
        """Whether there is such an object, or a folder."""
        from pyarrow.fs import FileType

        with remote_errors(self):
            return bool(self._files.get_file_info(self.key).type != FileType.NotFound)

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the object."""
        try:
            with remote_errors(self):
                self._files.delete_file(self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove(self) -> None:
        """Delete the folder with all that lies in it, if anything does."""
        with suppress(FileNotFoundError), remote_errors(self):
            self._files.delete_dir(self.key)

    def entries(self, recursive: bool = False) -> "list[FileInfo]":
        """What lies in the folder, or below it: objects with their sizes, and folders, of which some are
        left of objects that have been deleted."""
        from pyarrow.fs import FileSelector

        with remote_errors(self):
            chosen = FileSelector(self.key, allow_not_found=True, recursive=recursive)
            return list(self._files.get_file_info(chosen))

    @property
    def _files(self) -> "FileSystem":
        settings = tuple(os.environ.get(name, "") for name in _VARIABLES)
        return _file_system(self.scheme, self.key.split("/")[0], os.getpid(), settings)


Place: TypeAlias = Path | RemotePath


def place_of(where: "str | os.PathLike[str] | RemotePath") -> Place:
    """The place with an address, or at a path."""
    if isinstance(where, RemotePath):
        return where
    text = os.fspath(where)
    if "://" not in text:
        return Path(text)
    scheme, _, key = text.partition("://")
    return Path(key) if scheme == "file" else RemotePath(scheme, key.strip("/"))


def names(folder: Place) -> list[str]:
    """Names of what lies in a folder, of which nothing need be there; one request for a thousand."""
    if isinstance(folder, RemotePath):
        return [entry.base_name for entry in folder.entries()]
    return os.listdir(folder) if folder.is_dir() else []


def sizes(folder: Place) -> dict[str, int]:
    """Bytes of what lies in a folder, by name; of folders in it 0."""
    if isinstance(folder, RemotePath):
        return {entry.base_name: entry.size or 0 for entry in folder.entries()}
    found = {name: folder / name for name in names(folder)}
    return {name: path.stat().st_size for name, path in found.items() if path.is_file()}


def in_parallel(read: Callable[[_Key], _Value], keys: Sequence[_Key], where: Place) -> list[_Value]:
    """What is read for each of some keys, in their order: many at once where each is a request, one after
    another on a disk."""
    if isinstance(where, Path) or len(keys) < 2:
        return [read(key) for key in keys]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="read") as threads:
        return list(threads.map(read, keys))


def remove(place: Place) -> None:
    """Delete an object, a file or a folder."""
    if isinstance(place, Path) and place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def remove_tree(folder: Place) -> None:
    """Delete a folder and all that lies in it, as far as that can be done."""
    if isinstance(folder, RemotePath):
        folder.remove()
    else:
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=16)
def _file_system(scheme: str, bucket: str, process: int, settings: tuple[str, ...]) -> "FileSystem":
    """The client of an address: one per process, since its threads do not survive a fork; and another one
    where the environment has changed."""
    from pyarrow import fs

    if scheme in _S3:
        return fs.S3FileSystem(**_s3_options())
    if scheme in _GCS:
        from datetime import timedelta

        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=60))
    with remote_errors(f"{scheme}://{bucket}"):
        return fs.FileSystem.from_uri(f"{scheme}://{bucket}")[0]


def _s3_options() -> dict[str, Any]:
    """What the environment says, by the names that the AWS tools use."""
    from pyarrow import fs

    attempts = int(os.environ.get("AWS_MAX_ATTEMPTS") or _ATTEMPTS)
    options: dict[str, Any] = {
        "allow_delayed_open": True,  # an object that fits into one part is one request
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=attempts),
    }
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        options["region"] = region
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        options["endpoint_override"] = endpoint
    return options
