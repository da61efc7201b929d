"""A translation that is killed at random moments, against a server that counts what it is asked.

python benchmarks/kills.py [--kills 20] [--documents 600] [--in-flight 8] [--seed 7]

Shows that the result, sorted by id, is equal byte for byte to that of an undisturbed run, and that a kill
costs no more than the requests that were in flight: at most distinct requests + kills x requests in flight.
Exits with 1 where that does not hold.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from setting import ROOT, FaultServer, answer, sentences, write_set

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline

EXPERIMENT = """
name = "kills"
workspace = "{folder}/workspace"
[[dataset]]
name = "set"
path = "{set}"
shard_documents = {shard}
[translation]
to = "nl"
engine = "openai"
model = "mock"
price = {{ input = 0, output = 0 }}
[translation.server]
base_url = "{url}/v1"
api_key_env = ""
in_flight = {in_flight}
"""


def documents(number: int, seed: int) -> list[tuple[str, str]]:
    """Documents of three sentences; one in ten repeats the text of another."""
    draw, known = random.Random(seed), sentences()
    made: list[tuple[str, str]] = []
    for n in range(number):
        if made and draw.random() < 0.1:
            made.append(draw.choice(made))
        else:
            made.append((f"Document {n}", " ".join(draw.sample(known, 3))))
    return made


def command(file: Path) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-m", "beirnl.cli", "run", str(file), "--only", "repair"]
    return subprocess.Popen(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def finish(file: Path) -> None:
    process = command(file)
    _, errors = process.communicate()
    if process.returncode:
        sys.exit(errors)


def result(file: Path) -> bytes:
    """All translated rows sorted by id, as one canonical text."""
    pipeline = Pipeline.of(load_experiment(file))
    rows = [
        row
        for translation in pipeline.graph.translations
        for table in translation.final.artifact(pipeline.workspace).tables()
        for row in table.to_pylist()
    ]
    return "\n".join(json.dumps(row, sort_keys=True) for row in sorted(rows, key=lambda r: r["id"])).encode()


def write(folder: Path, place: Path, url: str, arguments: argparse.Namespace) -> Path:
    folder.mkdir()
    file = folder / "experiment.toml"
    shard = max(10, arguments.documents // 8)
    text = EXPERIMENT.format(folder=folder, set=place, url=url, shard=shard, in_flight=arguments.in_flight)
    file.write_text(text)
    return file


def killed(file: Path, server: FaultServer, kills: int, moments: random.Random) -> int:
    """Start the run again and again and kill it soon after an answer; how many kills there were."""
    done = 0
    while done < kills:
        before = server.counts.prompts.total()
        process = command(file)
        while process.poll() is None and server.counts.prompts.total() == before:
            time.sleep(0.01)
        try:
            process.wait(moments.uniform(0.0, 0.5))
            break  # it has finished
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            done += 1
    return done


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--documents", type=int, default=600)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds that the server takes to answer")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = write_set(folder / "set", documents(arguments.documents, arguments.seed))
        with FaultServer(answer=answer) as server:
            whole = write(folder / "whole", place, server.url, arguments)
            finish(whole)
            distinct = server.counts.prompts.total()
        with FaultServer(answer=answer, latency=arguments.latency) as server:
            broken = write(folder / "broken", place, server.url, arguments)
            kills = killed(broken, server, arguments.kills, random.Random(arguments.seed))
            finish(broken)
            asked = server.counts.prompts.total()
        ours, theirs = result(broken), result(whole)
    bound = distinct + kills * arguments.in_flight
    print(f"{kills} kills, {distinct} distinct requests, {asked} asked (at most {bound} allowed)")
    print(f"results {'equal' if ours == theirs else 'DIFFER'}: {hashlib.sha256(ours).hexdigest()[:16]}")
    sys.exit(0 if ours == theirs and asked <= bound and kills == arguments.kills else 1)


if __name__ == "__main__":
    main()
