"""What a shard costs beside its work: empty units through the pipeline on Ray, receipts and events included.

    python benchmarks/executor_overhead.py --units 10000

In turn with bare tasks of a Ray Data actor pool of as many workers, one block each. Prints milliseconds of
wall time per unit and of the driver's CPU time (medians), their ratio, and the driver's largest memory;
``--profile`` says where its time goes.
"""

import argparse
import cProfile
import os
import pstats
import statistics
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import psutil
from setting import ROOT

# workers import the stage, too
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
)

from empty_stage import EmptySpec

from beirnl.config import Experiment, Runtime
from beirnl.executors.cluster import RayExecutor
from beirnl.graph import Graph, Node
from beirnl.pipeline import Pipeline
from beirnl.progress import Lines
from beirnl.store.workspace import Workspace

LIMIT_MS, LIMIT_MB = 15, 500


class Bare:
    def __call__(self, batch):
        return batch


def bare(units: int, runtime: Runtime) -> float:
    """Seconds that Ray Data takes for as many blocks of one row through a pool that does nothing."""
    import ray

    begin = time.monotonic()
    rows = [{"number": number, "task": b""} for number in range(units)]
    done = ray.data.from_items(rows, override_num_blocks=units).map_batches(
        Bare, compute=ray.data.ActorPoolStrategy(size=runtime.workers), batch_size=1, num_cpus=1
    )
    assert sum(1 for _ in done.iter_rows()) == units
    return time.monotonic() - begin


def ours(executor: RayExecutor, units: int, runtime: Runtime) -> float:
    """Seconds that the pipeline takes, from nothing to the manifest."""
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        experiment = Experiment.model_construct(name="overhead", workspace=folder, runtime=runtime)
        graph = Graph()
        node = graph.add(Node("empty", "set/en", EmptySpec(units=units), {}))
        pipeline = Pipeline(experiment, Workspace(Path(folder)), graph, Lines())
        begin = time.monotonic()
        pipeline.run(executor)
        seconds = time.monotonic() - begin
        assert len(node.artifact(pipeline.workspace).manifest.receipts) == units
        return seconds


def watch(peak: list[int], end: threading.Event) -> None:
    while not end.wait(0.5):
        peak[0] = max(peak[0], psutil.Process().memory_info().rss)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--units", type=int, default=10_000)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--profile", action="store_true", help="also where the driver's time goes")
    given = options.parse_args()
    runtime = Runtime(workers=given.workers)
    executor = RayExecutor(runtime, None)
    peak, end, profile = [0], threading.Event(), cProfile.Profile()
    threading.Thread(target=watch, args=(peak, end), daemon=True).start()
    times: dict[str, list[float]] = {"ray": [], "ray, CPU": [], "beirnl": [], "beirnl, CPU": []}
    for _ in range(given.rounds):
        for name, run in (("ray", bare), ("beirnl", partial(ours, executor))):
            cpu = time.process_time()
            if given.profile and run is not bare:
                profile.enable()
            times[name].append(1000 * run(given.units, runtime) / given.units)
            profile.disable()
            times[f"{name}, CPU"].append(1000 * (time.process_time() - cpu) / given.units)
        print({name: [round(one, 2) for one in found] for name, found in times.items()}, flush=True)
    end.set()
    executor.close()
    told = {name: statistics.median(found) for name, found in times.items()}
    setting = f"{given.workers} workers, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{given.units} empty units, {setting}; milliseconds per unit:")
    mine, bare_ray = told["beirnl"], told["ray"]
    print(f"beirnl {mine:.2f} (asked: under {LIMIT_MS}), {told['beirnl, CPU']:.2f} of the driver's CPU")
    print(f"bare Ray Data {bare_ray:.2f}, {told['ray, CPU']:.2f}; ratio {mine / bare_ray:.2f}")
    print(f"largest memory of the driver {peak[0] / 1e6:.0f} MB (asked: under {LIMIT_MB})")
    if given.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    main()
