"""Whether what was committed is still there, byte for byte.

A receipt holds a checksum of each part, and the size and modification time of each of its files. A file that
is missing or of another size is found by these alone. Contents are read once per process, and again when a
file has changed; those of a large part (an index, which is mapped and hardly read) only where a time differs
from that of the receipt, as git does it: after a copy, or when somebody has written there.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from beirnl.errors import StoreError
from beirnl.store.keys import file_sha256
from beirnl.store.places import Place, RemotePath

LARGE = 64 << 20  # bytes of a part that is trusted by the times of its files


class FileState(NamedTuple):
    """A file as it was committed.

    Attributes:
        name: relative to the part; ``.`` for a part that is a file.
        size: bytes.
        modified: time of its last modification, in nanoseconds.
    """

    name: str
    size: int
    modified: int


def states(part: Path) -> tuple[FileState, ...]:
    """The files of a part, which is one or a folder of some.

    Raises:
        FileNotFoundError: there is none.
    """
    files = sorted(p for p in part.rglob("*") if p.is_file()) if part.is_dir() else [part]
    return tuple(_state(part, file.relative_to(part).as_posix()) for file in files)


def verify(part: Path, sha256: str, committed: Sequence[FileState]) -> None:
    """Compare a part with its receipt.

    Args:
        part: file or folder in the directory of its artifact.
        sha256: its checksum.
        committed: its files; none in receipts of earlier versions.

    Raises:
        StoreError: a file is missing, or is not what was committed; names it, and how to make it again.
    """
    try:
        found = tuple(_state(part, file.name) for file in committed) or states(part)
    except OSError as error:
        raise damage("is missing", part, error.filename) from error
    for now, then in zip(found, committed, strict=False):
        if now.size != then.size:
            raise damage(f"has {now.size:,} bytes, its receipt says {then.size:,}", part, part / now.name)
    changed = [part / now.name for now, then in zip(found, committed, strict=False) if now != then]
    if committed and not changed and sum(file.size for file in found) >= LARGE:
        return
    if _sha256(str(part), found) != sha256:
        raise damage("has another checksum than its receipt", part, changed[0] if changed else part)


def damage(what: str, part: Place, where: object) -> StoreError:
    """An error that names the records without which the unit that made a part is pending again, and no other
    one."""
    directory, unit = part.parent, part.name.split("-")[1]
    records = ["manifest", f"receipts/{unit}"]
    if unit != "reduced" and (directory / "receipts" / "reduced.json").exists():
        records.append("receipts/reduced")
    if isinstance(directory, RemotePath):
        objects = ", ".join(f"{name}.json" for name in records)
        return StoreError(what, where=where, remedy=f"delete {objects} of {directory}, and run again")
    command = f"rm -f {quote(str(directory))}/{{{','.join(records)}}}.json; beirnl run EXP"
    return StoreError(what, where=where, remedy=f"delete its records and run again: {command}")


@lru_cache(maxsize=4096)
def _sha256(part: str, found: tuple[FileState, ...]) -> str:
    """The checksum of a part, for as long as its files are not written to."""
    return file_sha256(Path(part), [file.name for file in found])


def _state(part: Path, name: str) -> FileState:
    status = (part / name).stat()
    return FileState(name, status.st_size, status.st_mtime_ns)
