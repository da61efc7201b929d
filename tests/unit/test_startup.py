"""Commands that only look answer at once: nothing heavy is imported."""

import subprocess
import sys

import pytest
from running import BM25, ENVIRONMENT, experiment
from support import ROOT

HEAVY = {"torch", "ray", "vllm", "tantivy", "transformers", "sentence_transformers", "matplotlib", "usearch"}
PROGRAM = """
import os, sys
from beirnl.cli import main
os._exit = sys.exit
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print("\\nMODULES", " ".join(sorted(sys.modules)))
"""


@pytest.mark.parametrize("command", ["--help", "plan", "status", "datasets"])
def test_nothing_heavy_is_loaded(tmp_path, command):
    path = experiment(
        tmp_path,
        '[[dataset]]\nname = "sample"\n[translation]\nto = "nl"\nmodel = "gemma-3-270m"\n'
        + BM25
        + '[[system]]\nname = "d"\nkind = "dense"\nmodel = "all-MiniLM-L6-v2"\n',
    )
    arguments = [command, str(path)] if command in ("plan", "status") else [command]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "PATH": ""},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rpartition("MODULES ")[2].split())
    assert "beirnl.cli" in loaded and not loaded & HEAVY
