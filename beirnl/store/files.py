"""Writing files so that they are there whole or not at all, and errors of the disk as one line.

Of what is done in an object store only that which is kept on this machine meanwhile, in :func:`node_folder`,
can fill a disk.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from beirnl.errors import BeirnlError, StoreError
from beirnl.store.places import Place, RemotePath

_FULL = "the disk is full", "free space and run the same command again; finished units are kept"
_ELSEWHERE = "choose another place (workspace in the experiment file, or the option that names it)"
_CLOSED = "cannot be written", f"{_ELSEWHERE}, or change its permissions"

#: What errors of the disk mean, and what to do.
_ADVICE: dict[int, tuple[str, str]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.EROFS: _CLOSED,
    errno.ENOENT: ("cannot be made", _ELSEWHERE),
    errno.ENOTDIR: ("lies below a file", _ELSEWHERE),
    errno.EEXIST: ("is a file where a folder is needed", f"{_ELSEWHERE}, or move the file away"),
    errno.EISDIR: ("is a folder where a file is needed", "move the folder away, or name a file"),
    errno.ENAMETOOLONG: ("has too long a name", "use shorter names, or a workspace nearer to the root"),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n) and run the same command again"),
    errno.EIO: ("the disk fails", "see to the disk, and run the same command again"),
}


def fsync_path(path: Path) -> None:
    """Flush a file, or the entries of a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def node_folder() -> Path:
    """Where a node keeps what it has read from, or is to write to, an object store: in ``BEIRNL_CACHE``, by
    default in ``~/.cache/beirnl``."""
    return Path(os.environ.get("BEIRNL_CACHE") or "~/.cache/beirnl").expanduser() / "objects"


def on_disk(where: Place) -> Path:
    """The folder of this machine that is written to for a place: itself, or that of its copies."""
    return node_folder() if isinstance(where, RemotePath) else where


def write_atomically(path: Place, data: bytes) -> None:
    """Put ``data`` at ``path`` by one rename, or by one request; readers see the old file, none, or the new
    one."""
    if isinstance(path, RemotePath):
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # whose place the temporary one was to take
        raise
    finally:
        with suppress(OSError):  # most often it has been renamed
            temporary.unlink()


def write_once(path: Place, data: bytes) -> bool:
    """As :func:`write_atomically`, unless something is there already; whether it was put.

    An object store cannot say so: there the last one wins.
    """
    if isinstance(path, RemotePath):
        write_atomically(path, data)
        return True
    whole = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.whole")
    try:
        write_atomically(whole, data)
        path.hardlink_to(whole)
    except FileExistsError:
        return False
    finally:
        whole.unlink(missing_ok=True)
    return True


def free_bytes(where: Place) -> int:
    """What is free on the disk that a folder lies on, or will; or its copies on this node."""
    folder = on_disk(where).absolute()
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.is_dir())).free


def _is_full(where: Path) -> bool:
    """Whether hardly anything fits: native libraries report a full disk as an error of their own kind."""
    return free_bytes(where) < 1 << 20


def disk_error(error: OSError, where: object) -> StoreError:
    """An error of the operating system as a line that says what to do."""
    unknown = error.strerror or str(error), "see the traceback with --debug"
    what, remedy = _ADVICE.get(error.errno or 0, unknown)
    return StoreError(what, where=where, remedy=remedy)


def _place(error: OSError, where: Path) -> Path | None:
    """What an error is about, if that is ``where`` (as is what lies below it) or a folder above it."""
    if not isinstance(error.filename, str):
        return where if error.errno in _ADVICE else None
    path = Path(error.filename)
    return where if path.is_relative_to(where) else path if where.is_relative_to(path) else None


@contextmanager
def disk_errors(place: Place) -> Iterator[None]:
    """Turn what goes wrong in writing below a place (a full, read-only or failing disk, a place that can
    hold nothing) into a :class:`StoreError` that says what to do."""
    where = on_disk(place)
    try:
        yield
    except BeirnlError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            about = where if _ADVICE.get(error.errno) == _FULL else _place(error, where)
            if about:
                raise disk_error(error, about) from error
        elif _is_full(where):
            raise StoreError(_FULL[0], where=where, remedy=_FULL[1]) from error
        raise
