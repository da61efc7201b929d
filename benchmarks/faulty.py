"""A translation through a server that fails: 429, 500, cut connections, malformed JSON and time-outs.

python benchmarks/faulty.py [--documents 1000] [--rate 0.2] [--seed 7]

Shows that every row ends with a status, none lost and none twice. Exits with 1 where that does not hold.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from kills import EXPERIMENT, documents, finish
from setting import FaultServer, answer, write_set

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline

FAULTS = ("429", "500", "cut", "malformed", "stall")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=0.2, help="share of requests that fail")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    rates = dict.fromkeys(FAULTS, arguments.rate / len(FAULTS))
    with (
        tempfile.TemporaryDirectory() as name,
        FaultServer(
            answer=answer, rates=rates, seed=arguments.seed, stall_seconds=1.0, retry_after=0.05
        ) as server,
    ):
        folder = Path(name)
        place = write_set(folder / "set", documents(arguments.documents, arguments.seed))
        text = EXPERIMENT.format(folder=folder, set=place, url=server.url, shard=200, in_flight=32)
        file = folder / "experiment.toml"
        file.write_text(text + "timeout = 0.5\n")
        finish(file)
        pipeline = Pipeline.of(load_experiment(file))
        rows = [
            row
            for translation in pipeline.graph.translations
            if translation.kind == "document"
            for table in translation.final.artifact(pipeline.workspace).tables()
            for row in table.select(["id", "status"]).to_pylist()
        ]
    outcomes = ", ".join(f"{number} {name}" for name, number in server.counts.outcomes.most_common())
    statuses = Counter(row["status"] for row in rows)
    times = Counter(row["id"] for row in rows)
    lost = arguments.documents - len(times)
    twice = sum(number > 1 for number in times.values())
    print(f"{server.counts.prompts.total()} requests: {outcomes}")
    print(f"{len(rows)} rows: {', '.join(f'{n} {s}' for s, n in statuses.most_common())}")
    print(f"{lost} lost, {twice} twice")
    sys.exit(1 if lost or twice or not all(row["status"] for row in rows) else 0)


if __name__ == "__main__":
    main()
