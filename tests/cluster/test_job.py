"""A job reaches a cluster as users start it: two ``ray start``, then ``ray job submit --working-dir``."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from running import beirnl

ROOT = Path(__file__).resolve().parents[2]
RAY = str(Path(sys.executable).with_name("ray"))
WHERE = """
import json, os, ray
ray.init(log_to_driver=False)

@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def where():
    import time, beirnl
    time.sleep(1)
    return ray.get_runtime_context().get_node_id(), os.path.relpath(beirnl.__file__)

print("FOUND " + json.dumps(ray.get([where.remote() for _ in range(8)])))
"""
#: What makes an interpreter one that the project is not installed into, even if it is.
BARE = f"""
import sys
sys.path[:] = [path for path in sys.path if path != {str(ROOT)!r}]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
"""
FILES = "import os; print('FILES', *sorted(os.path.join(d, f) for d, _, fs in os.walk('.') for f in fs))"


class Machines:
    """A head with its job server and a second node, each a ``ray start --block`` that owns its processes."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # short: it is part of socket names
        (self.folder / "sitecustomize.py").write_text(BARE)
        self.environment = {k: v for k, v in os.environ.items() if k != "RAY_TMPDIR"}
        self.environment["PYTHONPATH"] = str(self.folder)
        self.started: list[subprocess.Popen] = []
        self.gcs, self.dashboard, self.client = free_ports(3)
        self.jobs = f"http://127.0.0.1:{self.dashboard}"

    def start_both(self) -> None:
        head = ["--head", f"--port={self.gcs}", f"--ray-client-server-port={self.client}"]
        self.start(*head, f"--dashboard-port={self.dashboard}", "--dashboard-host=127.0.0.1")
        # The head lives at the machine's own address: 127.0.0.1 would be replaced, and then not match.
        self.start(f"--address={self.head_address()}:{self.gcs}")
        self.wait(lambda: self.alive() == 2, "two nodes")

    def start(self, *options: str) -> None:
        command = [RAY, "start", "--block", "--num-cpus=1", "--object-store-memory=100000000"]
        agents = zip(
            ("dashboard-agent-listen", "dashboard-agent-grpc", "metrics-export"), free_ports(3), strict=True
        )
        ports = [f"--{name}-port={port}" for name, port in agents]
        log = self.log(len(self.started)).open("wb")
        started = subprocess.Popen(
            [*command, *ports, f"--temp-dir={self.folder}", *options],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=self.environment,
            start_new_session=True,
        )
        self.started.append(started)

    def log(self, number: int) -> Path:
        return self.folder / f"start-{number}.log"

    def head_address(self) -> str:
        found: list[str] = []

        def known() -> bool:
            found[:] = re.findall(r"ray start --address='([0-9.]+):", self.log(0).read_text())
            return bool(found)

        self.wait(known, "the head")
        return found[0]

    def alive(self) -> int:
        try:
            answer = httpx.get(f"{self.jobs}/nodes?view=summary", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return 0
        return sum(node["raylet"].get("state") == "ALIVE" for node in answer["data"]["summary"])

    def wait(self, ready, what: str, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            dead = [process.args for process in self.started if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                logs = [self.log(i).read_text() for i in range(len(self.started))]
                raise RuntimeError(f"no {what}: {dead} ended; {logs}")
            time.sleep(0.25)

    def submit(self, folder: Path, *command: str, ship: bool = True) -> subprocess.CompletedProcess:
        """``ray job submit`` from a folder, with this interpreter; waits for the job to end."""
        shipped = ["--working-dir", "."] if ship else []
        return subprocess.run(
            [RAY, "job", "submit", *shipped, "--", sys.executable, *command],
            cwd=folder,
            env=self.environment | {"RAY_ADDRESS": self.jobs},
            capture_output=True,
            text=True,
            timeout=300,
        )

    def processes(self) -> list[psutil.Process]:
        """What runs of the sessions started here, and of jobs, which have a session of their own."""
        sessions = {process.pid for process in self.started}
        return [p for p in psutil.process_iter() if belongs(p, sessions, self.folder)]

    def stop(self) -> None:
        """End what was started here, and nothing else: SIGTERM to each ``ray start``, then what remains."""
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.processes():
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def belongs(process: psutil.Process, sessions: set[int], folder: Path) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return os.getsid(process.pid) in sessions or folder in Path(process.cwd()).parents
    except (psutil.Error, OSError):
        return False


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    both = Machines()
    try:
        both.start_both()
        yield both
    finally:
        both.stop()
    assert both.processes() == []


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """What a user submits: the project's files, and beside them what git ignores."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("beirnl", "jobs"):
        shutil.copytree(ROOT / name, folder / name)
    for name in (".gitignore", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in (
        ".venv/bin/x",
        "workspace/artifacts/x",
        "experiments/workspaces/x",
        ".git/objects/x",
        "dist/x",
    ):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("must stay here")
    return folder


def test_the_upload_has_the_project_and_not_what_git_ignores(machines, checkout):
    done = machines.submit(checkout, "-c", FILES)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = re.findall(r"^FILES (.*)$", done.stdout, re.MULTILINE)
    files = line.split()
    assert "./jobs/run.py" in files
    assert "./beirnl/errors.py" in files
    ignored = {".venv", "workspace", "workspaces", ".git", "dist", "__pycache__"}
    assert [file for file in files if ignored & set(file.split("/"))] == []


def test_the_nodes_do_not_have_the_project_but_for_what_is_shipped(machines, checkout):
    done = machines.submit(checkout, "-c", WHERE, ship=False)
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'beirnl'" in done.stdout + done.stderr


def test_tasks_on_both_nodes_import_the_project_that_was_shipped(machines, checkout):
    done = machines.submit(checkout, "-c", WHERE)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = re.findall(r"^FOUND (.*)$", done.stdout, re.MULTILINE)
    found = json.loads(line)
    assert len({node for node, _ in found}) == 2
    assert {file for _, file in found} == {"beirnl/__init__.py"}


def test_the_entry_point_explains_itself(machines, checkout):
    done = machines.submit(checkout, "jobs/run.py", "--help")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--only" in done.stdout
    assert "--address" in done.stdout


def test_a_job_that_fails_fails_the_submission(machines, checkout):
    done = machines.submit(checkout, "-c", "import sys; sys.exit(3)")
    assert done.returncode == 1
    assert "exit code 3" in done.stdout + done.stderr


EXPERIMENT = """
name = "job"
workspace = "{workspace}"
[runtime]
workers = {workers}
[[dataset]]
name = "sample"
shard_documents = 16
remove_self_matches = true
[translation]
to = "nl"
engine = "mock"
[[system]]
name = "BM25"
kind = "bm25"
"""


def experiment(checkout: Path, workspace: Path | str, workers: int) -> str:
    (checkout / "experiments").mkdir(exist_ok=True)
    (checkout / "experiments" / "job.toml").write_text(
        EXPERIMENT.format(workspace=workspace, workers=workers)
    )
    return "experiments/job.toml"


def test_an_experiment_runs_on_both_nodes_and_gives_what_one_machine_gives(machines, checkout, tmp_path):
    name = experiment(checkout, tmp_path / "cluster", workers=2)
    done = machines.submit(checkout, "jobs/run.py", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nDCG@10" in done.stdout
    records = [json.loads(beirnl("report", checkout / name, "--format", "json").stdout)]
    name = experiment(checkout, tmp_path / "alone", workers=1)
    beirnl("run", checkout / name)
    records.append(json.loads(beirnl("report", checkout / name, "--format", "json").stdout))
    assert records[0] == records[1] and len(records[0]) == 4


def test_a_relative_workspace_on_two_nodes_is_refused(machines, checkout):
    done = machines.submit(checkout, "jobs/run.py", experiment(checkout, "../workspace/job", workers=1))
    assert done.returncode != 0
    assert (
        "workspace '../workspace/job' is relative, and the cluster has 2 nodes" in done.stdout + done.stderr
    )
