"""Every stage of retrieval, killed at random moments and resumed.

python benchmarks/retrieval_kills.py [--stage NAME ...] [--kills 10] [--workers 1 1 2] [--seed 7] [--size 1]

A process runs one stage, alone (one worker) or with workers on Ray, with one thread each. It is killed by
SIGKILL at a moment drawn uniformly over the time that the stage takes undisturbed. Another process resumes,
to be killed in turn; the numbers of workers take turns, too. On Ray either all processes are killed or only
the driver, whose workers must then end of themselves (Ray's own agents take a minute longer). Whenever a
stage has come to its end, it is compared with an undisturbed run, and begun anew until there were enough
kills.
Shows, of every stage:

- that each part is equal, byte for byte, to that of the undisturbed run, and each manifest but for what names
  an attempt: the names of parts, times, process numbers;
- that the receipt of a unit which was finished before a kill is the same file afterwards: not repeated;
- that nothing is left of killed attempts, and no worker.

Exits with 1 where that does not hold.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import setting  # noqa: F401  the modules below are the tests' own
from killing import Scene, drive, processes
from small_models import bi_encoder, cross_encoder, write_set

#: Sets with all systems, and a larger one for BM25 alone: documents, queries.
SETS = {"set-0": (600, 150), "set-1": (600, 150), "set-2": (600, 150), "large": (20_000, 2_500)}
HEAD = """
name = "kills"
workspace = "{folder}/workspace"
[runtime]
threads = 1
object_store_mb = 80
"""
DATASET = """
[[dataset]]
name = "{name}"
path = "{path}"
shard_documents = {shard}
"""
SYSTEMS = (
    {"name": "bm25", "kind": "bm25", "datasets": list(SETS)},
    {"name": "bm25-shards", "kind": "bm25", "datasets": list(SETS), "shards": 3},
    {"name": "dense", "kind": "dense", "model": "BI"},
    {"name": "ann", "kind": "dense", "model": "BI", "search": "ann", "depth": 10},
    {"name": "late", "kind": "late", "model": "BI", "depth": 10},
    {"name": "cross", "kind": "rerank", "first": "bm25", "model": "CROSS", "depth": 10},
    {"name": "second", "kind": "late", "first": "dense", "model": "BI", "depth": 10},
    {"name": "hybrid", "kind": "fusion", "of": ["bm25", "dense", "cross"]},
    {"name": "sum", "kind": "fusion", "of": ["bm25", "late"], "method": "z-score"},
)
PATIENCE = 30.0  # seconds in which workers of a killed driver must have ended
LOOK = 0.005


@dataclass
class Runner:
    """Starts processes that run a stage of a scene, and kills them."""

    scene: Scene
    log: Path
    orphans: list[psutil.Process] = field(default_factory=list)

    def run(self, stage: str, workers: int, moment: float | None = None, whole: bool = True) -> float | None:
        """Run a stage; the seconds from its first attempt to its end, or None if it was killed before that.

        Args:
            stage: which.
            workers: more than one: on Ray.
            moment: seconds after the first attempt at which it is killed; None: never.
            whole: kill the workers, too.
        """
        known = self.scene.markers(stage)
        process = processes().Process(target=drive, args=(self.scene.file, stage, workers, self.log, {}))
        process.start()
        while process.is_alive() and not self._begun(stage, known):
            time.sleep(LOOK)
        begin = time.monotonic()
        while process.is_alive() and not self.scene.is_done(stage):
            if moment is not None and time.monotonic() - begin >= moment:
                self._kill(process, whole)
                return None
            time.sleep(LOOK)
        seconds = time.monotonic() - begin
        process.join()
        if process.exitcode:
            sys.exit(f"{stage} has failed:\n{self.log.read_text(errors='replace')[-3000:]}")
        return seconds

    def _begun(self, stage: str, known: set[str]) -> bool:
        return bool(self.scene.markers(stage) - known) or self.scene.is_done(stage)

    def _kill(self, process: Any, whole: bool) -> None:
        others = psutil.Process(process.pid).children(recursive=True)
        self.orphans += [other for other in others if not _is_agent(other)]
        os.kill(process.pid, signal.SIGKILL)
        for other in others if whole else ():
            with contextlib.suppress(psutil.NoSuchProcess):
                other.kill()
        process.join()

    def living(self) -> int:
        """How many processes of killed runs do not end."""
        _, alive = psutil.wait_procs(self.orphans, timeout=PATIENCE)
        self.orphans = []
        return len(alive)


def _is_agent(process: psutil.Process) -> bool:
    """Whether it is one of Ray's agents, which run no units and outlive a killed head by a minute."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return "Agent" in " ".join(process.cmdline()[:1])
    return False


@dataclass
class Row:
    """What is shown of a stage."""

    stage: str
    units: int = 0
    seconds: dict[int, float] = field(default_factory=dict)  # undisturbed, by number of workers
    kills: int = 0
    ends: int = 0
    finished: int = 0
    repeated: int = 0
    differ: int = 0
    left: int = 0
    orphans: int = 0

    @property
    def holds(self) -> bool:
        return not (self.repeated or self.differ or self.left or self.orphans)

    def __str__(self) -> str:
        times = " / ".join(f"{one:.1f}" for one in self.seconds.values())
        equal = "yes" if not self.differ else f"NO: {self.differ}"
        return (
            f"{self.stage:15}{self.units:>6}{times:>13}{self.kills:>7}{self.ends:>6}{self.finished:>10}"
            f"{self.repeated:>10}{equal:>8}{self.left:>6}{self.orphans:>9}"
        )

    @staticmethod
    def heading() -> str:
        return (
            f"{'stage':15}{'units':>6}{'seconds':>13}{'kills':>7}{'ends':>6}{'finished':>10}"
            f"{'repeated':>10}{'equal':>8}{'left':>6}{'orphans':>9}"
        )


def killed(runner: Runner, whole: Scene, stage: str, given: argparse.Namespace) -> Row:
    """Kill a stage again and again."""
    scene, moments = runner.scene, random.Random(f"{given.seed} {stage}")
    expected, row = whole.contents(stage), Row(stage)
    kept: dict[str, tuple[int, int, bytes]] = {}

    def at_the_end() -> None:
        now = scene.receipts(stage)
        row.finished += len(kept)
        row.repeated += sum(now.get(name) != receipt for name, receipt in kept.items())
        found = scene.contents(stage)
        row.differ += sum(found.get(n) != expected.get(n) for n in found.keys() | expected.keys())
        row.left += len(scene.left(stage))
        row.ends += 1
        row.units = sum(len(artifact.receipts()) for artifact in scene.artifacts(stage))
        kept.clear()
        shutil.rmtree(scene.folder(stage))

    shutil.rmtree(scene.folder(stage))
    for workers in dict.fromkeys(given.workers):
        seconds = runner.run(stage, workers)
        assert seconds is not None
        row.seconds[workers] = seconds
        at_the_end()
    while row.kills < given.kills:
        workers = given.workers[row.kills % len(given.workers)]
        moment = moments.uniform(0.0, row.seconds[workers])
        if runner.run(stage, workers, moment, whole=moments.random() < 0.5) is None:
            row.kills += 1
            kept |= {name: receipt for name, receipt in scene.receipts(stage).items() if name not in kept}
        else:
            at_the_end()
    runner.run(stage, given.workers[0])
    row.orphans = runner.living()
    at_the_end()
    runner.run(stage, given.workers[0])  # for the stages that stand on it
    return row


def write(folder: Path, place: Path, given: argparse.Namespace) -> Scene:
    """An experiment over the sets and models of ``place``, with a workspace of its own."""
    folder.mkdir()
    text = [HEAD.format(folder=folder)]
    for name, (documents, _) in SETS.items():
        shard = max(1, round(documents * given.size) // 8)
        text.append(DATASET.format(name=name, path=place / name, shard=shard))
    models = {"BI": place / "bi" / "encoder", "CROSS": place / "cross"}
    small = [name for name in SETS if name != "large"]
    for system in SYSTEMS:
        settings = {"datasets": small, **system}
        if "model" in system:
            settings["model"] = str(models[str(system["model"])])
        text.append("[[system]]")
        text += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    file = folder / "experiment.toml"
    file.write_text("\n".join([*text, ""]))
    return Scene(file)


def prepared(place: Path, given: argparse.Namespace) -> tuple[Scene, Scene]:
    """An experiment that was run undisturbed, and one that begins as its copy."""
    for seed, (name, (documents, queries)) in enumerate(SETS.items()):
        write_set(place / name, round(documents * given.size), round(queries * given.size), seed)
    bi_encoder(place / "bi", 64, 2)
    cross_encoder(place / "cross", 64, 2)
    whole, broken = write(place / "whole", place, given), write(place / "broken", place, given)
    Runner(whole, place / "log").run("all", 1)
    shutil.copytree(whole.folder(""), broken.folder(""))
    return whole, broken


def show(rows: Sequence[Row], took: float) -> None:
    kills = sum(row.kills for row in rows)
    print(
        f"{kills} kills in {took / 60:.0f} minutes: {sum(row.finished for row in rows)} units were finished "
        f"before one, {sum(row.repeated for row in rows)} of them repeated; "
        f"{sum(row.ends for row in rows)} ends compared, {sum(row.differ > 0 for row in rows)} stages differ"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stage", nargs="+", help="only these")
    parser.add_argument("--kills", type=int, default=10, help="of each stage")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 1, 2], help="of the runs, in turn")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--size", type=float, default=1.0, help="of the sets, which are smaller below 1")
    given = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        whole, broken = prepared(Path(name), given)
        print(
            ", ".join(
                f"{name}: {documents:,} documents, {queries:,} queries"
                for name, (documents, queries) in SETS.items()
            )
        )
        print(f"prepared in {time.monotonic() - begin:.0f} s\n{Row.heading()}", flush=True)
        runner, rows = Runner(broken, Path(name) / "log"), []
        for stage in given.stage or broken.stages:
            rows.append(killed(runner, whole, stage, given))
            print(rows[-1], flush=True)
    show(rows, time.monotonic() - begin)
    sys.exit(0 if all(row.holds for row in rows) else 1)


if __name__ == "__main__":
    main()
