"""Units on Ray are seen on the Prometheus endpoint of their node, under the names that are documented."""

import re
import time
import urllib.request

import pytest
from running import BM25, dataset, experiment
from support import ROOT

from beirnl.config import load_experiment
from beirnl.executors.metrics import METRICS
from beirnl.pipeline import Pipeline
from beirnl.store.events import read_events

ROWS = 63 + 25  # documents and queries of the sample


@pytest.fixture
def prompt(monkeypatch):
    """Processes tell their metrics often."""
    monkeypatch.setenv("RAY_metrics_report_interval_ms", "500")


def test_the_readme_documents_every_metric():
    rows = re.findall(r"^\| `ray_(beirnl_\w+)` \| (.*?) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    kinds = {name: (metric.kind, metric.labels) for name, metric in METRICS.items()}
    assert {name: (said.split(",")[0], tuple(re.findall("`(.*?)`", said))) for name, said in rows} == kinds


def exposed(node):
    """Samples of the project on a node's endpoint: value by name and labels."""
    url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    found = (re.fullmatch(r"ray_(beirnl_\w+)\{(.*)\} (\S+)", line) for line in lines)
    return {(one[1], frozenset(re.findall(r'(\w+)="(.*?)"', one[2]))): float(one[3]) for one in found if one}


def total(samples, name, **labels):
    """Sum over the workers, or None where there is no such sample."""
    values = [value for (at, has), value in samples.items() if at == name and labels.items() <= has]
    return sum(values) if values else None


def test_what_a_run_does_is_on_the_endpoint(prompt, tmp_path):
    import ray

    from beirnl.executors.cluster import RayExecutor

    sample = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=8)
    pricey = '[translation]\nto = "nl"\nengine = "mock"\nprice = { input = 100, output = 200 }\n'
    path = experiment(tmp_path, sample + pricey + BM25 + "[runtime]\nworkers = 2\n")
    pipeline = Pipeline.of(load_experiment(path))
    executor = RayExecutor(pipeline.experiment.runtime, None)
    seen = {}
    try:
        (node,) = ray.nodes()
        pipeline.run(executor, nodes=pipeline.wanted("translate"))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            seen |= exposed(node)  # what has ended is no longer exposed some time later
            if (
                total(seen, "beirnl_rows_total", stage="translate") == ROWS
                and total(seen, "beirnl_stage_units", stage="translate", state="pending") == 0
            ):
                break
            time.sleep(0.3)
    finally:
        executor.close()
    events = list(read_events(tmp_path / "workspace" / "experiments" / "test.events.jsonl"))
    units = [event for event in events if event.event == "unit-done" and event.stage == "translate"]
    assert len({event.node for event in units}) == 1 and node["NodeID"].startswith(units[0].node)
    assert total(seen, "beirnl_units_total", stage="translate", outcome="done") == len(units) > 1
    assert total(seen, "beirnl_rows_total", stage="translate") == ROWS
    assert total(seen, "beirnl_unit_seconds_count", stage="translate") == len(units)
    for kind in ("prompt", "completion"):
        tokens = sum(getattr(event, f"{kind}_tokens") for event in units)
        assert total(seen, "beirnl_tokens_total", stage="translate", kind=kind) == tokens > 0
    assert set(METRICS) >= {re.sub("_(bucket|count|sum)$", "", name) for name, _ in seen}
    assert total(seen, "beirnl_stage_units", stage="translate", state="pending") == 0
