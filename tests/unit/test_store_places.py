"""The store on a local path and on a real S3 server: the same tests."""

import json
import multiprocessing
import os
import queue
import threading
import time
import uuid

import pyarrow as pa
import pytest

from beirnl.config import Runtime
from beirnl.errors import StoreError
from beirnl.specs import Spec
from beirnl.stages.base import Stage, Task, execute
from beirnl.store import claims, lease, segments
from beirnl.store.artifacts import REDUCE, Artifact, Manifest, close_artifact, content_digest
from beirnl.store.attempts import attempts_in_run, killed_units
from beirnl.store.cache import cache, pinned
from beirnl.store.journal import Entry, Journal, Totals, totals
from beirnl.store.places import RemotePath, names, place_of
from beirnl.store.remote_errors import again_if_cut
from beirnl.store.workspace import Workspace
from beirnl.store.writing import PartWriter

SCHEMA = pa.schema([("id", pa.string())])


@pytest.fixture(params=["local", "s3"])
def root(request, tmp_path):
    """Where a workspace is to lie."""
    if request.param == "local":
        return tmp_path / "workspace"
    request.getfixturevalue("bucket")
    return place_of(f"s3://bucket/{uuid.uuid4().hex}")


@pytest.fixture
def remote(bucket):
    return place_of(f"s3://bucket/{uuid.uuid4().hex}")


def table(unit):
    return pa.table({"id": [f"{unit}-{number}" for number in range(3)]})


def write(directory, unit, run="run"):
    """A unit with a file, and a folder of two files."""
    out = PartWriter(directory, unit, run)
    out.write(table(unit), SCHEMA)
    folder = out.open(suffix="", rows=1).path
    (folder / "below").mkdir(parents=True)
    (folder / "one.bin").write_bytes(b"1" * 1000)
    (folder / "below" / "two.bin").write_bytes(bytes([unit % 256]))
    return out.commit()


def close(directory):
    artifact = Artifact(directory)
    receipts = artifact.receipts()
    close_artifact(directory, manifest(receipts, artifact.receipt(REDUCE)))


def manifest(receipts=(), reduced=None):
    content = content_digest(list(receipts), reduced)
    return Manifest(
        stage="s", label="l", key="k", spec={}, inputs={}, versions={}, content=content,
        receipts=tuple(receipts), reduced=reduced,
    )  # fmt: skip


def test_parts_come_back_as_they_were_written(root):
    artifact = Workspace(root).artifact("stage", "set/nl", "key")
    assert artifact.receipts() == [] and artifact.find_manifest() is None
    receipts = [write(artifact.directory, unit) for unit in (1, 0)]
    assert artifact.committed() == {"00000.json", "00001.json"}
    assert artifact.receipt(0) == receipts[1] and artifact.receipt(7) is None
    close(artifact.directory)
    again = Artifact(artifact.directory)
    assert again.manifest.receipts == (receipts[1], receipts[0])
    assert again.read(0).equals(table(0)) and again.read(2).equals(table(1))
    folder = again.path(again.parts[3])
    assert (folder / "one.bin").read_bytes() == b"1" * 1000 and (
        folder / "below/two.bin"
    ).read_bytes() == b"\1"


def test_contents_are_the_same_wherever_they_lie(bucket, tmp_path):
    digests = set()
    for root in (tmp_path / "here", place_of(f"s3://bucket/{uuid.uuid4().hex}")):
        digests.add(content_digest([write(root / "a", unit) for unit in range(2)], None))
    assert len(digests) == 1


def test_a_part_without_a_receipt_is_never_read_and_goes_when_the_artifact_is_closed(root, monkeypatch):
    directory = root / "a"
    write(directory, 0)
    monkeypatch.setenv("BEIRNL_FAILPOINT", "after-part:1:raise")
    with pytest.raises(RuntimeError):
        write(directory, 1)
    monkeypatch.delenv("BEIRNL_FAILPOINT")
    assert sum(name.startswith("part-") for name in names(directory)) == 4
    assert Artifact(directory).committed() == {"00000.json"}
    close(directory)
    assert sorted(names(directory)) == sorted(
        [*(name for name in names(directory) if name.startswith("part-00000")), "manifest.json", "receipts"]
    )


def test_attempts_are_counted_per_run_until_the_unit_is_done(root):
    directory = root / "a"
    for run in ("one", "one", "two"):
        PartWriter(directory, 4, run)
    PartWriter(directory, 14, "one").abandon()
    assert [attempts_in_run(directory, 4, run) for run in ("one", "two", "three")] == [2, 1, 0]
    assert attempts_in_run(directory, 14, "one") == 0
    assert killed_units(Artifact(directory)) == [4]
    write(directory, 4)
    assert killed_units(Artifact(directory)) == []


def test_a_newer_workspace_is_refused(root):
    artifact = Artifact(root / "a")
    (root / "a").mkdir(parents=True)
    (root / "a" / "manifest.json").write_text(json.dumps({"format": 99, "new": True}), encoding="utf-8")
    with pytest.raises(StoreError, match=r"newer version.*upgrade"):
        artifact.find_manifest()


def test_what_a_workspace_remembers(root, tmp_path):
    workspace = Workspace(root)
    assert workspace.failures("e") == {} and not workspace.is_running()
    workspace.record_failures("e", {"bm25": "why"})
    workspace.lock("e", {"a": "b"})
    assert workspace.failures("e") == {"bm25": "why"}
    assert json.loads((root / "experiments" / "e.lock.json").read_bytes()) == {"a": "b"}
    file = tmp_path / "input"
    file.write_text("text", encoding="utf-8")
    once = workspace.digests().sha256(file)
    assert json.loads((root / "digests.json").read_bytes()) and workspace.digests().sha256(file) == once
    write(workspace.artifact("s", "l", "k").directory, 0)
    workspace.discard(workspace.artifact("s", "l", "k"))
    assert workspace.artifact("s", "l", "k").committed() == set()


def copy(unit):
    unit.out.write(unit.inputs["rows"].read(unit.number), SCHEMA)


def test_a_unit_takes_few_requests(remote, bucket):
    for number in range(4):
        out = PartWriter(remote / "a", number, "run")
        out.write(table(number), SCHEMA)
        out.commit()
    close(remote / "a")
    empty_cache()
    stage = Stage("copy", 1, copy)
    before = len(bucket.requests())
    for number in range(4):
        inputs = {"rows": remote / "a"}
        task = Task("copy", "l", Spec(), remote / "b", inputs, number, "run", remote, Runtime(), alone=True)
        assert execute(stage, task).rows_out == 3
    manifest_of_inputs = 2
    assert len(bucket.requests()) - before == manifest_of_inputs + 4 * 7
    assert Artifact(remote / "b").receipts() and Artifact(remote / "b").committed() == {
        f"0000{number}.json" for number in range(4)
    }


def empty_cache():
    store = cache()
    store.limit, limit = 0, store.limit
    store.shrink()
    store.limit = limit


def entry(key, finish="stop"):
    return Entry(key, f"answer to {key}", finish, 10, 3)


def test_the_journal_gives_back_what_was_answered(root):
    folder = root / "journal" / "spec"
    with Journal(folder, 0, 16, "a") as journal:
        assert journal.known({"x"}) == {}
        journal.append(entry("x"))
        journal.append(entry("y", "error"))
    with Journal(folder, 64, 80, "b") as journal:
        assert journal.known({"x"}) == {}, "of other buckets"
        journal.append(entry("z"))
    with Journal(folder, 8, 100, "c") as journal:
        assert journal.known({"x", "y", "z"}) == {"x": entry("x"), "z": entry("z")}
    assert totals(folder) == Totals(2, 20, 6) == totals(folder)


def test_a_segment_is_sealed_in_time_and_by_size(remote, monkeypatch):
    folder = remote / "journal"
    monkeypatch.setattr(segments, "SEAL_SECONDS", 0.2)
    journal = Journal(folder, 0, 16, "a")
    journal.append(entry("x"))
    assert names(folder) == []
    until(lambda: names(folder) == ["000-010-a.jsonl"])
    monkeypatch.setattr(segments, "SEAL_SECONDS", 60.0)
    monkeypatch.setattr(segments, "SEAL_BYTES", 200)
    for number in range(4):
        journal.append(entry(f"y{number}"))
    assert names(folder) == ["000-010-a-001.jsonl", "000-010-a-002.jsonl", "000-010-a.jsonl"]
    with journal:
        journal.append(entry("z"))
    assert len(names(folder)) == 4
    assert len(Journal(folder, 0, 16, "b").known({"x", "y0", "y1", "y2", "y3", "z"})) == 6


def die_after_an_answer(folder):
    Journal(folder, 0, 16, "dead").append(entry("x"))
    os._exit(9)


def test_answers_of_a_process_that_died_are_sealed_by_the_next_one_on_its_node(remote):
    process = multiprocessing.get_context("spawn").Process(target=die_after_an_answer, args=(remote / "j",))
    process.start()
    process.join()
    assert process.exitcode == 9 and names(remote / "j") == []
    live = Journal(remote / "j", 0, 16, "live")
    live.append(entry("y"))
    assert Journal(remote / "j", 0, 16, "b").known({"x", "y"}) == {"x": entry("x")}, "one is still at work"
    live.sync()
    assert len(Journal(remote / "j", 0, 16, "b").known({"x", "y"})) == 2


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_part_is_fetched_once_per_node_and_verified(remote, bucket):
    write(remote / "a", 0)
    empty_cache()
    artifact = Artifact(remote / "a")
    (file, folder) = artifact.receipt(0).parts
    before = len(bucket.requests())
    assert [artifact.path(part).exists() for _ in range(3) for part in (file, folder)] == [True] * 6
    assert sum(line.startswith("GET") for line in bucket.requests()[before:]) == 2
    (artifact.path(folder) / "one.bin").write_bytes(b"short")
    assert len((artifact.path(folder) / "one.bin").read_bytes()) == 1000, "a damaged copy is fetched again"
    artifact.path(file).unlink()
    (remote / "a" / file.file).write_bytes(b"something else")
    with pytest.raises(
        StoreError, match=r"another checksum.*delete manifest.json, receipts/00000.json of s3://"
    ):
        artifact.path(file)
    (remote / "a" / file.file).unlink()
    with pytest.raises(StoreError, match="is missing"):
        artifact.path(file)


def test_the_cache_is_bounded_and_keeps_what_is_in_use(remote):
    parts = []
    for unit in range(4):
        out = PartWriter(remote / "a", unit, "run")
        out.open(suffix=".bin").path.write_bytes(bytes([unit]) * 1000)
        parts.append(out.commit().parts[0])
    store = cache()
    store.limit = 0
    store.shrink()
    artifact = Artifact(remote / "a")
    store.limit = 2500
    with pinned():
        first = artifact.path(parts[0])
        for part in parts[1:]:
            with pinned():
                last = artifact.path(part)
        store.shrink()
        kept = {path.name for path in store.folder.iterdir() if path.suffix == ".bin"}
        assert kept == {first.name, last.name}, "what is in use, and what was used last"
        other = multiprocessing.get_context("spawn").Process(target=shrink_to_nothing)
        other.start()
        other.join()
        assert other.exitcode == 0 and first.exists() and not last.exists()
    store.limit = 0
    store.shrink()
    assert not first.exists()


def shrink_to_nothing():
    store = cache()
    store.limit = 0
    store.shrink()


def test_what_a_dead_process_was_fetching_is_removed(remote):
    begun = cache().begin("mine")
    (cache().folder / ".dead").mkdir()
    cache().shrink()
    assert begun.is_dir() and not (cache().folder / ".dead").exists()
    cache().end(begun)


def contend(folder, gate, results, hold):
    """One of several that want the workspace at the same moment."""
    gate.wait()
    try:
        with claims.Claim(folder):
            results.put(("held", time.monotonic()))
            time.sleep(hold)
            results.put(("left", time.monotonic()))
    except StoreError as error:
        results.put(("refused", str(error)))


def test_of_contenders_never_two_hold_the_workspace(remote):
    gate, results = threading.Barrier(3), queue.SimpleQueue()
    runs = [
        threading.Thread(target=contend, args=(remote / "lease", gate, results, 1.0), daemon=True)
        for _ in range(3)
    ]
    for run in runs:
        run.start()
    found = []
    while sum(kind in ("refused", "left") for kind, _ in found) < 3:
        found.append(results.get(timeout=120))
    moments = sorted((when, kind) for kind, when in found if kind != "refused")
    assert [kind for _, kind in moments] == ["held", "left"] * (len(moments) // 2) and moments
    assert all(
        "another run holds this workspace: process" in text for kind, text in found if kind == "refused"
    )
    assert claims.holder(remote / "lease") is None


def test_a_held_workspace_is_refused_with_its_holder_and_freed_at_the_end(root):
    workspace = Workspace(root)
    with workspace.lease(print):
        assert workspace.is_running() and workspace.holder()["pid"] == os.getpid()
        with pytest.raises(StoreError, match=f"process {os.getpid()} on"), Workspace(root).lease(print):
            pass
        assert workspace.is_running()
    assert not workspace.is_running() and workspace.holder() is None


def put_claim(folder, **fields):
    claim = {"host": "elsewhere", "pid": 1, "token": "0", "held": True, "counter": 5, **fields}
    (folder / f"{claim['token']}.json").write_bytes(json.dumps(claim).encode())


def test_claims_of_the_dead_are_removed(remote, monkeypatch):
    monkeypatch.setattr(lease, "STALE", 1.0)
    said = []
    put_claim(remote, token="0", host=lease.this_process()["host"], pid=2**22 + 1, start="1")
    put_claim(remote, token="1")
    put_claim(remote, token="2", held=False)
    with claims.Claim(remote, said.append):
        assert len(names(remote)) == 1
    assert len(said) == 2 and "elsewhere" in said[0]


def test_the_claim_of_another_host_that_moves_is_respected(remote, monkeypatch):
    monkeypatch.setattr(lease, "STALE", 5.0)
    put_claim(remote)
    with pytest.raises(StoreError, match="process 1 on elsewhere"):
        claims.Claim(remote, lambda line: put_claim(remote, counter=6)).__enter__()
    assert names(remote) == ["0.json"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (("503 Slow Down", "SlowDown"), "was busy or failed at every attempt.*wait until"),
        (
            ("403 Forbidden", "InvalidAccessKeyId"),
            "credentials are missing or refused; set AWS_ACCESS_KEY",
        ),
        (("403 Forbidden", "AccessDenied"), "credentials are missing or refused"),
        (("404 Not Found", "NoSuchBucket"), "the bucket is not there; create it"),
    ],
)
def test_refusals_are_one_line_with_a_remedy(remote, bucket, monkeypatch, answer, message):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    with bucket.failing(*answer), pytest.raises(StoreError, match=message) as caught:
        (remote / "x").write_bytes(b"1")
    assert str(remote) in str(caught.value) and "\n" not in str(caught.value)


def test_a_bucket_that_is_not_there_and_a_server_that_is_not_there(bucket, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(StoreError, match="the bucket is not there"), Workspace("s3://none/w").lease(print):
        pass
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match="cannot be reached; check the network, AWS_ENDPOINT_URL"):
        names(place_of("s3://bucket/w"))


def test_a_store_that_is_busy_for_a_while_is_asked_again(remote, bucket):
    with bucket.failing():
        before = len(bucket.requests())
        result = []
        thread = threading.Thread(target=lambda: result.append((remote / "x").write_bytes(b"1")))
        thread.start()
        until(lambda: len(bucket.requests()) > before)
    thread.join()
    assert result == [None] and (remote / "x").read_bytes() == b"1"


@pytest.mark.parametrize("text", ["s3://bucket/a/b", "gs://bucket/a"])
def test_an_address_stays_what_it_is(text):
    place = place_of(text + "/")
    assert str(place) == text and isinstance(place, RemotePath) and str(place / "c") == f"{text}/c"
    assert (place / "c.json").name == "c.json" and (place / "c").parent == place
    with pytest.raises(TypeError):
        open(place)  # noqa: PTH123, SIM115


def test_an_answer_that_breaks_off_is_asked_for_again_and_nothing_else():
    cut = OSError("AWS Error INTERNAL_FAILURE during GetObject operation: Failed to flush response stream")
    failures = [cut, cut]

    def read():
        if failures:
            raise failures.pop()
        return b"whole"

    assert again_if_cut(read) == b"whole" and not failures
    for error in (FileNotFoundError(2, "gone"), OSError("AWS Error ACCESS_DENIED")):
        failures[:] = [cut, error]
        with pytest.raises(type(error)):
            again_if_cut(read)
        assert failures == [cut]
    failures[:] = [cut] * 9
    with pytest.raises(OSError, match="response stream"):
        again_if_cut(read)
