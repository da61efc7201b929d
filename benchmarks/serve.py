"""/search over BM25 on Ray Serve: requests per second against what index and route allow, overload, recovery.

python benchmarks/serve.py EXP [--seconds 60] [--clients 16] [--replicas 2] [--runs 3]

EXP is an experiment with one BM25 system that was run, for instance over a million documents. In turn, each
``runs`` times: the bare index, searched in as many processes as there are replicas; a route of Ray Serve that
does nothing, with as many replicas and clients; and ``/search``. Were the two done one after the other, they
would give 1 / (1/index + 1/route) requests per second: of that the share is printed which ``/search``
reaches. Then ten times as many clients come: how many are answered 503 with Retry-After, the memory of all
replicas, and how soon the service answers as before. Exits with 1 if a request failed otherwise.
"""

import argparse
import asyncio
import os
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import setting  # noqa: F401  puts the tests' helpers on the path

from beirnl.config import load_experiment
from beirnl.graph import Node
from beirnl.pipeline import Pipeline

K = 10
OVERLOAD = 10
_index: Any = None


class Load(NamedTuple):
    """What clients have met: answers by status, seconds of each answered with 200, and of all together."""

    statuses: Counter[str]
    latencies: list[float]
    seconds: float

    @property
    def rate(self) -> float:
        """Answers per second."""
        return self.statuses["200"] / self.seconds

    def percentile(self, share: float) -> float:
        """Seconds."""
        return sorted(self.latencies)[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


def open_index(folder: Path, spec: Any) -> None:
    from beirnl.retrieval.bm25 import Bm25Index

    global _index
    _index = Bm25Index.open(folder, spec)


def search_alone(queries: Sequence[str], seconds: float) -> float:
    """Queries per second of one process, one query at a time."""
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        _index.search([queries[done % len(queries)]], K)
        done += 1
    return done / (time.perf_counter() - begin)


def bare_index(
    run: Node, pipeline: Pipeline, queries: Sequence[str], seconds: float, processes: int
) -> float:
    """Queries per second of all processes together."""
    spec: Any = run.spec
    folder = run.inputs["index"].artifact(pipeline.workspace).reduced_path()
    with ProcessPoolExecutor(processes, initializer=open_index, initargs=(folder, spec.bm25)) as pool:
        share = -(-len(queries) // processes)
        parts = [queries[n * share : (n + 1) * share] for n in range(processes)]
        list(pool.map(search_alone, parts, [0.5] * processes))  # its files are in memory then
        return sum(pool.map(search_alone, parts, [seconds] * processes))


async def _client(session: Any, url: str, asked: Any, end: float, met: Load) -> None:
    while time.perf_counter() < end:
        begin = time.perf_counter()
        try:
            async with session.get(url, params=next(asked)) as answer:
                await answer.read()
                told = (
                    "" if answer.status != 503 or "Retry-After" in answer.headers else " without Retry-After"
                )
                met.statuses[f"{answer.status}{told}"] += 1
                if answer.status == 200:
                    met.latencies.append(time.perf_counter() - begin)
                elif answer.status == 503:
                    await asyncio.sleep(0.1)  # a client that is told to wait, and hardly does
        except OSError as error:
            met.statuses[type(error).__name__] += 1


async def load(url: str, parameters: Sequence[dict[str, Any]], clients: int, seconds: float) -> Load:
    """Closed loop: each client asks again as soon as it has an answer."""
    import itertools

    import aiohttp

    met, begin, asked = Load(Counter(), [], 0.0), time.perf_counter(), itertools.cycle(parameters)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        end = begin + seconds
        await asyncio.gather(*(_client(session, url, asked, end, met) for _ in range(clients)))
    return met._replace(seconds=time.perf_counter() - begin)


def start_noop(replicas: int) -> None:
    """A route that does nothing, beside the application."""
    from fastapi import FastAPI, Response
    from ray import serve

    app = FastAPI()

    @serve.deployment(num_replicas=replicas, max_ongoing_requests=100, ray_actor_options={"num_cpus": 0})
    @serve.ingress(app)
    class Nothing:
        @app.get("/")
        async def nothing(self) -> Response:
            return Response("{}")

    serve.run(Nothing.bind(), name="noop", route_prefix="/noop")


def memory() -> float:
    """Private memory of all replicas, GiB."""
    import psutil

    found = 0
    for process in psutil.process_iter(["cmdline"]):
        if any("ServeReplica:beirnl" in part for part in process.info["cmdline"] or ()):
            found += process.memory_full_info().uss
    return found / 2**30


def overload(url: str, parameters: Sequence[dict[str, Any]], clients: int, seconds: float) -> Load:
    before = memory()
    met = asyncio.run(load(url, parameters, OVERLOAD * clients, seconds))
    after = memory()
    begin = time.perf_counter()
    calm = asyncio.run(load(url, parameters, 1, 0.5))
    while set(calm.statuses) != {"200"}:
        calm = asyncio.run(load(url, parameters, 1, 0.5))
    print(f"{OVERLOAD * clients} clients: {met.rate:.0f} answers/s, {dict(met.statuses)}")
    print(f"memory of the replicas {before:.2f} GiB before, {after:.2f} after")
    print(f"answers as before {time.perf_counter() - begin:.1f} s after the last of them")
    return met


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", type=Path)
    parser.add_argument("--seconds", type=float, default=60, help="of /search; a third for each of its runs")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    arguments = parsed()
    from beirnl.serve.running import served
    from beirnl.serve.settings import Settings

    experiment = load_experiment(arguments.experiment)
    pipeline = Pipeline.of(experiment)
    evaluation = pipeline.graph.evaluations[0]
    run = evaluation.node.inputs["run"]
    queries = evaluation.queries.artifact(pipeline.workspace).table()["text"].to_pylist()
    documents = evaluation.corpus.artifact(pipeline.workspace).rows
    named = {"dataset": evaluation.node.label, "system": evaluation.system.name, "k": K}
    parameters = [{**named, "q": query} for query in queries if query.strip()]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    settings = Settings(experiment=str(arguments.experiment), replicas=arguments.replicas)
    print(
        f"{documents:,} documents, {len(queries):,} queries, k = {K}, {arguments.replicas} replicas, "
        f"{arguments.clients} clients, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
    )
    seconds, figures = arguments.seconds / arguments.runs, []
    url = f"http://127.0.0.1:{port}"
    with served(experiment, settings, "127.0.0.1", port):
        start_noop(arguments.replicas)
        for address, given in ((f"{url}/noop/", [{}]), (f"{url}/search", parameters)):
            asyncio.run(load(address, given, arguments.clients, 2))  # first requests
        for _ in range(arguments.runs):
            index = bare_index(run, pipeline, queries, seconds / 2, arguments.replicas)
            route = asyncio.run(load(f"{url}/noop/", [{}], arguments.clients, seconds / 2))
            search = asyncio.run(load(f"{url}/search", parameters, arguments.clients, seconds))
            share = search.rate * (1 / index + 1 / route.rate)
            figures.append((index, route, search, share))
            print(
                f"index {index:.0f}/s, empty route {route.rate:.0f}/s, /search {search.rate:.0f}/s = "
                f"{share:.2f} of what both allow; p50 {1000 * search.percentile(0.5):.0f} ms, "
                f"p99 {1000 * search.percentile(0.99):.0f} ms; {dict(search.statuses)}"
            )
        met = overload(f"{url}/search", parameters, arguments.clients, seconds)
    print(f"median {statistics.median(figure[3] for figure in figures):.2f}")
    wrong = sum((set(figure[2].statuses) != {"200"}) for figure in figures) or set(met.statuses) - {
        "200",
        "503",
    }
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
