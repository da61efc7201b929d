"""A whole corpus through import, deduplication, prompts, checks and writing, with the mock engine.

python benchmarks/corpus.py CORPUS_FOLDER [--workers 2]

CORPUS_FOLDER is in BEIR form. Prints documents per second of wall time (everything included: imports, Ray's
start, the mock engine), the time of each stage, and the peak memory of all processes together.
"""

import argparse
import tempfile
from pathlib import Path

from setting import run_watched

EXPERIMENT = """
name = "corpus"
workspace = "{folder}/workspace"
[[dataset]]
name = "corpus"
path = "{corpus}"
[translation]
to = "nl"
engine = "mock"
repair = []
[runtime]
workers = {workers}
object_store_mb = 80
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "experiment.toml"
        file.write_text(
            EXPERIMENT.format(folder=name, corpus=arguments.corpus.resolve(), workers=arguments.workers)
        )
        run = run_watched(file, "--only", "check")
        (final,) = (t.final for t in run.pipeline.graph.translations if t.kind == "document")
        rows = final.artifact(run.pipeline.workspace).rows
    print(f"{rows:,} documents in {run.seconds:.0f} s: {rows / run.seconds:,.0f} documents/s")
    run.print()


if __name__ == "__main__":
    main()
