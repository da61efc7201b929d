"""Keys, artifacts, the journal and the lease."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest

from beirnl.errors import StoreError
from beirnl.schema import QRELS
from beirnl.specs import Bm25Spec, EncoderSpec, ModelRef
from beirnl.store import lease as lease_module
from beirnl.store.artifacts import REDUCE, Artifact, Manifest, close_artifact, content_digest
from beirnl.store.files import disk_errors, write_atomically
from beirnl.store.journal import Entry, Journal, Totals, bucket_range, totals
from beirnl.store.keys import FileDigests, artifact_key, file_sha256
from beirnl.store.lease import Lease, alive_here
from beirnl.store.writing import PartWriter

ROWS = pa.table([["q"], ["d"], [1]], schema=QRELS)


def written(folder, unit=0, table=ROWS):
    out = PartWriter(folder, unit, "run")
    out.write(table, QRELS)
    return out.commit()


def closed(folder, *receipts):
    manifest = Manifest(
        stage="s",
        label="l",
        key="k",
        spec={},
        inputs={},
        versions={},
        content=content_digest(list(receipts), None),
        receipts=receipts,
    )
    close_artifact(folder, manifest)
    return Artifact(folder)


def test_defaults_are_not_in_the_key():
    model = ModelRef(name="m", source="path:/m")
    plain = EncoderSpec(model=model)
    assert artifact_key("embed", 1, plain, {}) == artifact_key(
        "embed", 1, EncoderSpec(model=model, dtype="float32"), {}
    )
    others = [
        artifact_key("embed", 1, EncoderSpec(model=model, dtype="float16"), {}),
        artifact_key("embed", 2, plain, {}),
        artifact_key("embed", 1, plain, {"rows": "x"}),
        artifact_key("search", 1, plain, {}),
        artifact_key("embed", 1, Bm25Spec(), {}),
    ]
    assert len({artifact_key("embed", 1, plain, {}), *others}) == 6


def test_a_part_without_a_receipt_is_not_read_and_is_removed_at_the_end(tmp_path):
    zombie = PartWriter(tmp_path, 0, "run")
    zombie.write(ROWS, QRELS)
    assert Artifact(tmp_path).receipts() == []
    receipt = written(tmp_path)
    artifact = closed(tmp_path, receipt)
    assert [p.name for p in tmp_path.glob("part-*")] == [receipt.parts[0].file]
    assert artifact.table().equals(ROWS) and artifact.rows == 1


def test_files_that_a_killed_writer_has_left_are_removed_at_the_end(tmp_path):
    receipt = written(tmp_path)
    unfinished = [tmp_path / ".manifest.json.0123abcd", tmp_path / "receipts" / ".00000.json.4567cdef"]
    for path in unfinished:
        path.write_bytes(b'{"unit":')
    assert closed(tmp_path, receipt).receipts() == [receipt]
    assert not any(path.exists() for path in unfinished)


def test_a_zombie_that_commits_late_leaves_a_readable_part(tmp_path):
    zombie = PartWriter(tmp_path, 0, "run")
    zombie.write(ROWS, QRELS)
    written(tmp_path)
    zombie.commit()
    receipts = Artifact(tmp_path).receipts()
    assert len(receipts) == 1 and closed(tmp_path, *receipts).table().equals(ROWS)


def test_a_changed_or_missing_part_is_named(tmp_path):
    receipt = written(tmp_path / "a")
    artifact = closed(tmp_path / "a", receipt)
    part = tmp_path / "a" / receipt.parts[0].file
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match="another checksum"):
        artifact.table()
    part.unlink()
    with pytest.raises(StoreError, match=f"{part.name}: is missing"):
        Artifact(tmp_path / "a").table()


def test_a_manifest_of_a_newer_version_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(StoreError, match="newer version"):
        Artifact(tmp_path).find_manifest()


@pytest.mark.parametrize("content", ["{}", "[]", "cut", ""])
def test_damaged_records_are_named(tmp_path, content):
    written(tmp_path)
    (tmp_path / "receipts" / "foo.json").write_text(content)
    assert Artifact(tmp_path).committed() == {"00000.json"}
    (tmp_path / "receipts" / "00000.json").write_text(content)
    with pytest.raises(StoreError, match=r"00000\.json: is damaged"):
        Artifact(tmp_path).receipts()
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=r"manifest\.json: is damaged"):
        Artifact(tmp_path).find_manifest()


def test_the_reduction_is_not_a_unit(tmp_path):
    receipt, reduced = written(tmp_path), written(tmp_path, REDUCE)
    assert [r.unit for r in Artifact(tmp_path).receipts()] == [0]
    assert Artifact(tmp_path).receipt(REDUCE) == reduced
    assert content_digest([receipt], reduced) != content_digest([receipt], None)


def test_a_directory_has_a_checksum_of_all_its_files(tmp_path):
    (tmp_path / "a").write_text("x")
    before = file_sha256(tmp_path)
    (tmp_path / "b").write_text("")
    assert file_sha256(tmp_path) != before


def test_file_digests_notice_a_change(tmp_path):
    path, memory = tmp_path / "f", tmp_path / "memory.json"
    path.write_text("one")
    first = FileDigests(memory).sha256(path)
    assert FileDigests(memory).sha256(path) == first
    path.write_text("other")
    assert FileDigests(memory).sha256(path) == file_sha256(path) != first


def test_errors_of_the_disk_are_one_line(tmp_path):
    with pytest.raises(StoreError, match="the disk is full; free space"), disk_errors(tmp_path):
        raise OSError(28, "No space left on device")
    with pytest.raises(StoreError, match="cannot be written"), disk_errors(tmp_path):
        raise PermissionError(13, "Permission denied")
    with pytest.raises(KeyError), disk_errors(tmp_path):
        raise KeyError


def test_a_file_is_whole_or_absent(tmp_path, monkeypatch):
    target = tmp_path / "f"
    write_atomically(target, b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["f"]


# Journal ----------------------------------------------------------------------------------------------------


def entry(key: str) -> Entry:
    return Entry(key=key, text=f"text of {key}", finish_reason="stop")


def known(folder, shard: int, shards: int) -> dict[str, Entry]:
    return Journal(folder, *bucket_range(shard, shards), "reader").known({"1", "2", "3", "4"})


def test_the_journal_remembers_and_ignores_a_torn_tail(tmp_path):
    with Journal(tmp_path, *bucket_range(0, 1), "a") as journal:
        journal.append(entry("1"))
        journal.append(entry("2"))
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:-10])
    assert known(tmp_path, 0, 1) == {"1": entry("1")}


def test_an_answer_is_in_the_file_before_the_journal_is_closed(tmp_path):
    journal = Journal(tmp_path, *bucket_range(0, 1), "a")
    journal.append(entry("1"))  # a SIGKILL now loses nothing
    assert known(tmp_path, 0, 1) == {"1": entry("1")}


def test_logprobs_are_kept_and_entries_without_them_are_written_as_before(tmp_path):
    told = Entry("2", "3", "stop", 9, 1, logprobs=(("3", -0.25), (" 1", -1.5)))
    with Journal(tmp_path, *bucket_range(0, 1), "a") as journal:
        journal.append(entry("1"))
        journal.append(told)
    assert known(tmp_path, 0, 1)["2"] == told
    (path,) = tmp_path.glob("*.jsonl")
    first, second = map(json.loads, path.read_bytes().splitlines())
    assert "logprobs" not in first and second["logprobs"] == [["3", -0.25], [" 1", -1.5]]


def test_only_the_answers_that_are_wanted_are_kept_in_memory(tmp_path):
    with Journal(tmp_path, *bucket_range(0, 1), "a") as journal:
        for key in "123":
            journal.append(entry(key))
        assert journal.known({"2", "4"}).keys() == {"2"}


def test_totals_are_sums_over_all_files_and_grow_with_them(tmp_path):
    def append(writer, *keys):
        with Journal(tmp_path, *bucket_range(0, 1), writer) as journal:
            for key in keys:
                journal.append(Entry(key, "text", "stop", prompt_tokens=10, completion_tokens=3))

    assert totals(tmp_path / "none").answers == 0
    append("a", "1", "2")
    append("b", "3")
    assert totals(tmp_path) == Totals(3, 30, 9)
    append("b", "4")
    assert totals(tmp_path) == Totals(4, 40, 12) == totals(tmp_path)


def test_shards_of_other_datasets_find_answers_where_their_ranges_meet(tmp_path):
    with Journal(tmp_path, *bucket_range(3, 8), "a") as journal:
        journal.append(entry("1"))
    for shard, shards in ((0, 1), (1, 4), (7, 16)):
        assert known(tmp_path, shard, shards).keys() == {"1"}
    assert not known(tmp_path, 2, 8) and not known(tmp_path, 4, 8)


# Lease ------------------------------------------------------------------------------------------------------


def test_a_second_holder_is_refused_by_name(tmp_path):
    path = tmp_path / "lease.json"
    with Lease(path):
        assert alive_here(Lease.holder(path))
        with pytest.raises(StoreError, match=f"process {os.getpid()} on "), Lease(path):
            pass
    assert not path.exists() and Lease.holder(path) is None


def test_a_killed_holder_on_this_host_is_taken_over_at_once(tmp_path):
    path = tmp_path / "lease.json"
    program = (
        f"import os, signal, pathlib; from beirnl.store.lease import Lease; "
        f"Lease(pathlib.Path({str(path)!r})).__enter__(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert path.exists() and alive_here(Lease.holder(path)) is False
    with Lease(path):
        assert Lease.holder(path)["pid"] == os.getpid()


def test_a_holder_elsewhere_is_watched_until_its_counter_stands_still(tmp_path, monkeypatch):
    path = tmp_path / "lease.json"
    monkeypatch.setattr(lease_module, "STALE", 0.5)
    path.write_text(json.dumps({"host": "another-host", "pid": 1, "token": "t", "counter": 3}))
    said = []
    with Lease(path, said.append):
        assert Lease.holder(path)["pid"] == os.getpid()
    assert "another-host" in said[0]


@pytest.mark.parametrize("content", ["", "[1]", "{}"])
def test_a_damaged_lease_is_watched_like_any_other(tmp_path, monkeypatch, content):
    path = tmp_path / "lease.json"
    monkeypatch.setattr(lease_module, "STALE", 0.3)
    path.write_text(content)
    with Lease(path):
        assert Lease.holder(path)["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_holder_elsewhere_that_renews_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "lease.json"
    holder = {"host": "another-host", "pid": 1, "token": "t", "counter": 3}
    path.write_text(json.dumps(holder))
    monkeypatch.setattr(lease_module, "STALE", 30.0)
    monkeypatch.setattr(
        lease_module.time, "sleep", lambda _: path.write_text(json.dumps({**holder, "counter": 4}))
    )
    with pytest.raises(StoreError, match="another-host"), Lease(path):
        pass


def test_the_first_receipt_of_a_unit_stays_and_who_comes_second_leaves_nothing(tmp_path):
    first, second = (PartWriter(tmp_path, 0, run) for run in ("one", "two"))
    for writer in (first, second):
        writer.write(pa.table({"n": [1]}), pa.schema([("n", pa.int64())]))
        writer.open(suffix=".folder").path.mkdir()
    receipt = first.commit()
    before = (tmp_path / "receipts" / "00000.json").stat()
    assert second.commit() == receipt
    after = (tmp_path / "receipts" / "00000.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert {path.name for path in tmp_path.iterdir()} == {
        "receipts",
        "attempts",
        *(p.file for p in receipt.parts),
    }
    assert not list((tmp_path / "attempts").iterdir()) and len(list((tmp_path / "receipts").iterdir())) == 1
