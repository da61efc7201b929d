"""Whatever point an error strikes at, resuming gives the bytes of a clean run."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import BM25, dataset, experiment, run
from support import ROOT

from beirnl.config import load_experiment
from beirnl.errors import BeirnlError
from beirnl.pipeline import Pipeline

POINT = st.tuples(
    st.sampled_from(["before-part", "after-part", "after-receipt", "after-answer"]),
    st.sampled_from([0, 1, 3, 7, "*"]),
    st.sampled_from(["raise", "enospc"]),
)


def write(folder: Path) -> Path:
    sample = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=8)
    return experiment(folder, sample + '[translation]\nto = "nl"\nengine = "mock"\n' + BM25)


def contents(pipeline: Pipeline) -> dict[str, str]:
    """Digest of every artifact whose bytes are repeatable (an index holds random segment names)."""
    return {
        f"{node.stage} {node.label}": node.artifact(pipeline.workspace).manifest.content
        for node in pipeline.graph.nodes.values()
        if node.stage != "index"
    }


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    return contents(run(write(tmp_path_factory.mktemp("clean"))))


@settings(max_examples=8)
@given(st.lists(POINT, min_size=1, max_size=4))
def test_any_interruption_then_resume_equals_the_clean_run(clean, points):
    folder = Path(tempfile.mkdtemp())
    try:
        path = write(folder)
        for point in points:
            os.environ["BEIRNL_FAILPOINT"] = ":".join(map(str, point))
            try:
                run(path)
            except BeirnlError as error:
                assert "\n" not in str(error)
            finally:
                del os.environ["BEIRNL_FAILPOINT"]
        assert contents(run(path)) == clean
        assert all(s.state == "done" for s in Pipeline.of(load_experiment(path)).plan())
        assert not list((folder / "workspace").rglob("attempts"))
    finally:
        shutil.rmtree(folder)
