"""A process that the system kills leaves no word: the next run says where it was, and what to lower."""

import signal

import pytest
from running import beirnl, dataset, experiment, system
from support import ROOT


@pytest.mark.parametrize(
    ("stage", "lower"),
    [
        ("embed", "lower batch_tokens, batch_size or max_tokens, or give"),
        ("search-exact", "lower runtime.search_memory_mb, or give"),
    ],
)
def test_the_run_after_a_kill_says_what_to_lower(tmp_path, tiny_encoder, stage, lower):
    sample = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=16)
    path = experiment(tmp_path, sample + system("dense", "dense", model=tiny_encoder))
    before = {"embed": "import", "search-exact": "embed"}[stage]
    beirnl("run", path, "--only", before)
    killed = beirnl("run", path, "--only", stage, check=None, BEIRNL_FAILPOINT="before-part:0:kill")
    assert killed.returncode == -signal.SIGKILL
    again = beirnl("run", path, "--only", stage)
    said = [line for line in again.stderr.splitlines() if "an earlier run was killed at unit 0" in line]
    assert len(said) == 1 and said[0].startswith(f"{stage} sample/en: ") and lower in said[0]
