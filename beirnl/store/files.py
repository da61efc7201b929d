"""Writing files so that they are there whole or not at all, and errors of the disk as one line."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beirnl.errors import BeirnlError, StoreError

_FULL = {errno.ENOSPC, errno.EDQUOT}


def fsync_path(path: Path) -> None:
    """Flush a file, or the entries of a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path`` by one rename; readers see the old file, none, or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _is_full(where: Path) -> bool:
    """Whether hardly anything fits: native libraries report a full disk as an error of their own kind."""
    folder = next((p for p in (where, *where.parents) if p.is_dir()), None)
    return folder is not None and shutil.disk_usage(folder).free < 1 << 20


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turn a full, read-only or failing disk into a :class:`StoreError` that says what to do."""
    try:
        yield
    except BeirnlError:
        raise
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in _FULL or (number is None and _is_full(where)):
            raise StoreError(
                "the disk is full",
                where=where,
                remedy="free space and run the same command again; finished units are kept",
            ) from error
        if number in {errno.EACCES, errno.EROFS, errno.EPERM}:
            raise StoreError(
                "cannot be written", where=where, remedy="choose another workspace or change its permissions"
            ) from error
        raise
