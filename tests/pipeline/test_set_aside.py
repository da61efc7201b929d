"""A unit that kills its workers is set aside: what does not stand on it is made, and report and run say so.

Here the deaths are markers as killed workers leave them; tests/cluster kills real ones.
"""

import json
from dataclasses import replace

import pytest
from running import BM25, dataset, experiment, run
from support import ROOT

from beirnl import api
from beirnl.cli import app
from beirnl.config import load_experiment
from beirnl.executors.local import LocalExecutor
from beirnl.pipeline import Pipeline
from beirnl.reporting import gather
from beirnl.stages import STAGES
from beirnl.stages.base import SetAsideError, execute
from beirnl.store.artifacts import REDUCE
from beirnl.store.attempts import MAX_DEATHS, alone_in
from beirnl.store.writing import PartWriter

SAMPLE = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=16, remove_self_matches=True)
TEXT = SAMPLE + '[translation]\nto = "nl"\nengine = "mock"\nrepair = []\n' + BM25


class Deadly(LocalExecutor):
    """Runs all units but those that kill their workers, of which it leaves what these leave."""

    def __init__(self, *deadly):
        super().__init__()
        self.deadly = set(deadly)

    def run(self, tasks, done, aside):
        deadly = [task for task in tasks if (task.stage, task.label, task.unit) in self.deadly]
        super().run([task for task in tasks if task not in deadly], done, aside)
        errors = []
        for task in deadly:
            for _ in range(MAX_DEATHS):
                PartWriter(task.directory, task.unit, alone_in(task.run_id))
            with pytest.raises(SetAsideError) as caught:
                execute(STAGES[task.stage], replace(task, alone=True), pytest.fail)
            errors.append(caught.value)
            aside(task)
        if errors:
            raise SetAsideError.of(errors)


def records(path):
    return gather(Pipeline.of(load_experiment(path))).records


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = experiment(tmp_path_factory.mktemp("whole"), TEXT)
    run(path)
    return records(path)


ASIDE = "{} killed its workers and is set aside; the next run tries it again"


@pytest.mark.parametrize(
    ("deadly", "named"),
    [
        (
            [("translate", "sample/nl/document", 0), ("translate", "sample/nl/document", 2)],
            ["translate sample/nl/document: unit 0", "translate sample/nl/document: unit 2"],
        ),
        ([("index", "sample/nl", REDUCE)], ["index sample/nl: the reduction"]),
    ],
    ids=["two units", "a reduction"],
)
def test_everything_else_is_made_and_the_next_run_tries_it_again(
    tmp_path, monkeypatch, capsys, expected, deadly, named
):
    path = experiment(tmp_path, TEXT)
    monkeypatch.setattr(api, "_executor", lambda *_: Deadly(*deadly))
    with pytest.raises(SetAsideError) as caught:
        app(["run", str(path)], standalone_mode=False)
    assert all(f"{one} has killed its worker 3 times and is set aside" in str(caught.value) for one in named)
    lines = [ASIDE.format(one) for one in named]
    written = (tmp_path / "workspace/reports/test/report.md").read_text()
    assert all(line in written for line in lines)
    english = [record for record in expected if record.language == "en"]
    assert english and records(path) == english
    capsys.readouterr()
    app(["status", str(path)], standalone_mode=False)
    shown = capsys.readouterr().out
    assert all(line in shown for line in lines)
    app(["report", str(path), "--timeline"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert all(f"{one.split(' ', 1)[1].replace(':', '')}: set aside after 3 deaths" in shown for one in named)
    run(path)
    assert records(path) == expected
    assert not any("set aside" in line for line in gather(Pipeline.of(load_experiment(path))).warnings)


def test_what_was_done_before_a_unit_was_set_aside_is_kept(tmp_path):
    path = experiment(tmp_path, TEXT)
    pipeline = Pipeline.of(load_experiment(path))
    with pytest.raises(SetAsideError):
        pipeline.run(Deadly(("translate", "sample/nl/document", 1)), only="check")
    folder = tmp_path / "workspace" / "artifacts" / "translate" / "sample" / "nl"
    kept = {file: json.loads(file.read_bytes()) for file in folder.rglob("receipts/*.json")}
    assert len(kept) > 3 and len(list(folder.rglob("manifest.json"))) == 1, "that of the queries"
    run(path)
    assert all(json.loads(file.read_bytes()) == receipt for file, receipt in kept.items())
