"""A run on a cluster of three nodes while workers and nodes are killed, and nodes are added back.

python benchmarks/lost_nodes.py [--shards 200] [--workers-killed 4] [--nodes-killed 2] [--interval 60]

The nodes are processes of their own on this machine; an engine whose answers are known waits for each answer,
so that the run lasts as long as the kills do. Every interval a worker, or a node with all that runs on it, is
killed; half an interval after a node was lost another one joins. Shows

- that the run ends, and that the translations are those of an undisturbed run, byte for byte;
- how many units were begun again: no more than were in flight on what was killed (one per worker).

Exits with 1 where that does not hold.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from kills import documents
from setting import write_set

# isort: split
from ray_nodes import LocalCluster, clean_up, contents, drive, made

NODES, CPUS = 3, 2
DOCUMENTS = 4  # of a shard, about
EXPERIMENT = """
name = "lost-nodes"
workspace = "{folder}/workspace"
[[dataset]]
name = "set"
path = "{set}"
shard_documents = {shard}
[translation]
to = "nl"
engine = "mock"
repair = []
"""


class Attempts:
    """Which attempts at units there have been: their markers are looked for while the run goes on."""

    def __init__(self, workspace: Path) -> None:
        self._folder, self.seen = workspace / "artifacts" / "translate", set[str]()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Attempts":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.02):
            self.seen |= {str(marker) for marker in self._folder.rglob("attempts/*")}

    def repeated(self) -> int:
        """Attempts beyond the first one of each unit."""
        units = {(Path(one).parent, Path(one).name.partition("-")[0]) for one in self.seen}
        return len(self.seen) - len(units)


def write(folder: Path, place: Path) -> Path:
    folder.mkdir()
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(folder=folder, set=place, shard=DOCUMENTS))
    made(file, "import-corpus", "import-queries")
    return file


def units(file: Path) -> int:
    return sum(1 for _ in (file.parent / "workspace/artifacts").glob("import-corpus/*/*/*/part-*"))


class Killer:
    """Kills workers and nodes of a cluster, and adds nodes; counts what was in flight on them."""

    def __init__(self, cluster: LocalCluster, seed: int) -> None:
        self.cluster, self.draw, self.in_flight = cluster, random.Random(seed), 0

    def kill(self, what: str) -> None:
        nodes = [n for n in self.cluster.alive if n and self.cluster.workers(n, "MapWorker")]
        if what == "node":
            node = self.draw.choice(nodes)
            self.in_flight += len(self.cluster.workers(node, "MapWorker"))
            self.cluster.kill_node(node)
        else:
            node = self.draw.choice(nodes or [0])
            self.in_flight += 1
            self.cluster.kill_worker("MapWorker", node)
        print(f"{what} killed (node {node}); nodes left: {len(self.cluster.alive)}", flush=True)

    def add(self) -> None:
        print(f"node {self.cluster.add_node()} joins", flush=True)


def order(workers: int, nodes: int, draw: random.Random) -> list[str]:
    kills = ["worker"] * workers + ["node"] * nodes
    draw.shuffle(kills)
    return kills


def disturb(killer: Killer, kills: Sequence[str], interval: float) -> None:
    """Kill one after another; called in the main thread, in which nodes are started."""
    begin = time.monotonic()
    for number, what in enumerate(kills):
        time.sleep(max(0.0, number * interval - (time.monotonic() - begin)))
        killer.kill(what)
        if what == "node":
            time.sleep(max(0.0, (number + 0.5) * interval - (time.monotonic() - begin)))
            killer.add()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", type=int, default=200, help="at least; their number is a power of two")
    parser.add_argument("--workers-killed", type=int, default=4)
    parser.add_argument("--nodes-killed", type=int, default=2)
    parser.add_argument("--interval", type=float, default=60.0, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    kills = order(arguments.workers_killed, arguments.nodes_killed, random.Random(arguments.seed))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = write_set(folder / "set", documents(DOCUMENTS * arguments.shards, arguments.seed))
        whole, broken = write(folder / "whole", place), write(folder / "broken", place)
        made(whole, "translate")
        number = units(broken)
        # the units that are left when the kills are over take an interval more
        seconds = arguments.interval * (len(kills) + 1) * NODES * CPUS / number
        begin = time.monotonic()
        repeated, in_flight = disturbed(broken, kills, arguments, seconds / DOCUMENTS)
        took = time.monotonic() - begin
        equal = contents(broken) == contents(whole)
    print(f"{number} shards, about {seconds:.1f} s each, {NODES} nodes of {CPUS} CPUs: {took:.0f} s in all")
    print(f"{len(kills)} kills; {repeated} units begun again (at most {in_flight} allowed)")
    print(f"results {'equal' if equal else 'DIFFER'}")
    sys.exit(0 if equal and repeated <= in_flight and number >= arguments.shards else 1)


def disturbed(
    file: Path, kills: Sequence[str], arguments: argparse.Namespace, delay: float
) -> tuple[int, int]:
    """Run it with these kills: units begun again, and how many that may be."""
    cluster = LocalCluster(NODES, CPUS)
    try:
        killer = Killer(cluster, arguments.seed)
        with Attempts(file.parent / "workspace") as attempts:
            driver = drive(file, cluster.address, NODES * CPUS, delay)
            while not attempts.seen and driver.poll() is None:
                time.sleep(0.05)
            disturb(killer, kills, arguments.interval)
            early = driver.poll() is not None
            output = driver.communicate()[0]
        if driver.returncode or early:
            sys.exit(output + ("the run ended before the kills did" if early else ""))
        return attempts.repeated(), killer.in_flight
    finally:
        cluster.shutdown()
        clean_up()


if __name__ == "__main__":
    main()
