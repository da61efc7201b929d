"""Serve what was run from the cluster that this job was submitted to, until the job is stopped.

    ray job submit --working-dir . -- python jobs/serve.py experiments/NAME.toml --host 0.0.0.0

The arguments are those of ``beirnl serve``; the address is that of the job's own cluster.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a job is shipped as a folder, not installed

from beirnl.cli import main

if __name__ == "__main__":
    main(["serve", "--address", "auto", *sys.argv[1:]])
