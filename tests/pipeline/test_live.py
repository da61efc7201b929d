"""A run as it is seen from outside: events, `status`, `report --timeline`, against receipts and journal."""

import json
import re
import time

import pytest
from running import BM25, dataset, experiment, run, start
from support import ROOT
from translating import command

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline
from beirnl.spending import Spending
from beirnl.standing import standings
from beirnl.store.events import read_events

PRICED = '[translation]\nto = "nl"\nengine = "mock"\nprice = { input = 100, output = 200 }\n'


def write(folder, shard_documents=8):
    sample = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=shard_documents)
    return experiment(folder, sample + PRICED + BM25)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("done"))
    run(path)
    return path


def events(path):
    return list(read_events(path.parent / "workspace" / "experiments" / "test.events.jsonl"))


def receipts(pipeline):
    """Receipts by stage and key, reductions last."""
    for node in pipeline.graph.nodes.values():
        manifest = pipeline.states.manifest(node)
        for receipt in [*manifest.receipts, *([manifest.reduced] if manifest.reduced else [])]:
            yield (node.stage, node.key, receipt.unit), receipt


def test_events_tell_what_receipts_hold(done):
    told = {(e.stage, e.key, e.unit): e for e in events(done) if e.event == "unit-done"}
    made = dict(receipts(Pipeline.of(load_experiment(done))))
    assert len(made) > 30 and told.keys() == made.keys()
    for key, receipt in made.items():
        event = told[key]
        assert (event.rows, event.seconds, event.worker) == (receipt.rows_in, receipt.seconds, receipt.worker)
        assert event.bytes == sum(file.size for part in receipt.parts for file in part.files)


def test_status_adds_up_to_receipts_and_journal(done):
    pipeline = Pipeline.of(load_experiment(done))
    found = {standing.stage: standing for standing in standings(pipeline, pipeline.plan())}
    spending = Spending.of(pipeline.experiment, pipeline.graph, pipeline.workspace)
    (llm,) = pipeline.graph.asked()
    totals = spending.totals(llm)
    asking = [found["translate"].tally, found["repair"].tally]
    assert sum(tally.prompt_tokens for tally in asking) == totals.prompt_tokens > 0
    assert sum(tally.completion_tokens for tally in asking) == totals.completion_tokens
    assert sum(tally.money or 0 for tally in asking) == pytest.approx(spending.money())
    counted = [key for key, _ in receipts(pipeline) if key[0] == "translate"]
    assert found["translate"].tally.done == found["translate"].tally.units == len(counted)
    assert found["translate"].tally.rows == 63 + 25
    assert {standing.state for standing in found.values()} == {"done"}


def test_status_says_it(done):
    shown = command("status", done).out
    assert re.search(r"^stage +done +running +pending +failed +rows/s +tokens/s +left", shown)
    assert re.search(r"^translate +9/9 +88 +[\d,]+ +[\d.]+ kB +[\d.]+ USD$", shown, re.MULTILINE)
    assert "artifacts are done\nnot running\nanswers in the journal: " in shown
    watched = command("status", done, "--watch", "--artifacts").out  # ends, as nothing runs
    assert watched.endswith(shown) and len(watched.splitlines()) > len(shown.splitlines()) + 15


def test_the_timeline_adds_up(done):
    shown = command("report", done, "--timeline").out
    page = done.parent / "workspace" / "reports" / "test" / "timeline.html"
    assert f"timeline: {page}" in shown and "Where the time went" in shown and "█" in shown
    assert page.read_text().count("<svg") == 1
    (table,) = json.loads(command("report", done, "--timeline", "--format", "json").out)
    assert "translate" in json.dumps(table)
    last = events(done)[-1]
    assert last.event == "run-ended" and last.error == ""


def test_without_a_run_there_is_no_timeline(tmp_path):
    path = write(tmp_path)
    said = command("report", path, "--timeline").err
    assert "test.events.jsonl: no run has left events; run the experiment first" in said
    shown = command("status", path).out
    assert re.search(r"^translate +waiting *$", shown, re.MULTILINE) and "0 of " in shown


def test_a_run_that_goes_on_is_seen(tmp_path):
    path = write(tmp_path, shard_documents=4)
    driver = start("run", path, BEIRNL_MOCK_DELAY="0.5")
    try:
        assert any("translate" in line and "17 units" in line for line in driver.stderr)
        workspace = tmp_path / "workspace"
        while not list(workspace.glob("artifacts/translate/**/receipts/*.json")):
            assert driver.poll() is None
            time.sleep(0.05)
        pipeline = Pipeline.of(load_experiment(path))
        found = {standing.stage: standing for standing in standings(pipeline, pipeline.plan())}
    finally:
        driver.kill()
        driver.communicate(timeout=60)
    translate = found["translate"]
    assert translate.state == "running" and found["check"].state == "waiting"
    assert 1 <= translate.tally.done < translate.tally.units and translate.live.row_rate > 0
    assert translate.live.left > 0 and translate.tally.running <= translate.tally.units - translate.tally.done
    pipeline = Pipeline.of(load_experiment(path))
    stopped = {standing.stage: standing for standing in standings(pipeline, pipeline.plan())}
    assert stopped["translate"].state == "pending" and stopped["translate"].live is None
