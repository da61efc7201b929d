"""Evaluate models on datasets, without an experiment file, on the cluster that this job was submitted to.

    ray job submit --working-dir . -- python jobs/evaluate.py --model NAME --dataset DIR --workspace DIR

The arguments are those of ``beirnl evaluate``; the address is that of the job's own cluster.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a job is shipped as a folder, not installed

from beirnl.cli import main

if __name__ == "__main__":
    main(["evaluate", "--address", "auto", *sys.argv[1:]])
