"""What goes wrong on a disk: one line that names the place a user knows, and what to do."""

import errno
import os

import pytest

from beirnl.errors import StoreError
from beirnl.store.files import disk_errors, write_atomically
from beirnl.store.workspace import Workspace

KNOWN = {
    errno.ENOSPC: "the disk is full; free space",
    errno.EDQUOT: "the disk is full; free space",
    errno.EACCES: "cannot be written; choose another place",
    errno.EPERM: "cannot be written; choose another place",
    errno.EROFS: "cannot be written; choose another place",
    errno.ENOENT: "cannot be made; choose another place",
    errno.ENOTDIR: "lies below a file; choose another place",
    errno.EEXIST: "is a file where a folder is needed; choose another place",
    errno.ENAMETOOLONG: "has too long a name; use shorter names",
    errno.EIO: "the disk fails; see to the disk",
    errno.EMFILE: "too many files are open; raise the limit",
    errno.ESTALE: "see the traceback with --debug",
}


@pytest.mark.parametrize("number", KNOWN, ids=errno.errorcode.get)
def test_every_error_has_its_place_and_advice(tmp_path, number):
    with pytest.raises(StoreError) as caught, disk_errors(tmp_path):
        raise OSError(number, os.strerror(number), str(tmp_path / ".part.1234abcd"))
    line = str(caught.value)
    assert line.startswith(f"{tmp_path}: ") and KNOWN[number] in line and "1234abcd" not in line


def test_an_error_about_another_file_is_left_alone(tmp_path):
    with pytest.raises(FileNotFoundError), disk_errors(tmp_path / "workspace"):
        (tmp_path / "source.jsonl").read_bytes()
    with pytest.raises(ConnectionRefusedError), disk_errors(tmp_path):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")


def test_a_folder_above_that_is_no_folder_is_what_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    where = tmp_path / "file" / "workspace"
    with pytest.raises(StoreError, match=rf"^{tmp_path}/file"), disk_errors(where):
        where.mkdir(parents=True)
    for root in (tmp_path / "file", where, where / "deeper"):
        with pytest.raises(StoreError, match=rf"^{tmp_path}/file: is a file; set workspace"):
            Workspace(root)


@pytest.mark.parametrize("target", ["full/f", "a" * 300])
def test_an_atomic_write_names_its_target_not_its_temporary_file(tmp_path, target):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "f").mkdir()  # nothing can take its place
    with pytest.raises(OSError) as caught:
        write_atomically(tmp_path / target, b"x")
    assert caught.value.filename == str(tmp_path / target) and caught.value.filename2 is None
    assert [path.name for path in tmp_path.rglob(".*")] == []
