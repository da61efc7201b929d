"""Entry points for ``ray job submit``: each is a command under another name, and nothing else."""

import ast
import subprocess
import sys

import pytest
from support import ROOT

JOBS = sorted((ROOT / "jobs").glob("*.py"))


@pytest.mark.parametrize("job", JOBS, ids=[job.stem for job in JOBS])
def test_an_entry_point_has_no_logic_and_explains_itself(job, tmp_path):
    tree = ast.parse(job.read_text())
    assert f"python jobs/{job.name}" in (ast.get_docstring(tree) or "")
    *rest, last = tree.body[1:]
    assert isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'"
    assert all(isinstance(one, ast.Import | ast.ImportFrom) or "sys.path" in ast.unparse(one) for one in rest)
    (call,) = last.body
    assert ast.unparse(call).startswith("main([") and "'--address', 'auto', *sys.argv[1:]" in ast.unparse(
        call
    )
    done = subprocess.run(
        [sys.executable, job, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "Usage: beirnl" in done.stdout, done.stderr
    assert "--address" in done.stdout


def test_there_is_one_for_everything_that_takes_a_cluster():
    assert {"run", "translate", "evaluate", "rag", "serve"} <= {job.stem for job in JOBS}
