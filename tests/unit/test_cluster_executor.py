"""What goes wrong with Ray before any unit runs, and what workers say of units; no cluster is started."""

import pickle

import pytest

from beirnl.config import Runtime
from beirnl.errors import ClusterError, StageError
from beirnl.executors import cluster
from beirnl.executors.cluster import ManyWorker, RayExecutor, Worker
from beirnl.specs import Spec
from beirnl.stages.base import SetAsideError, Task
from beirnl.store.artifacts import Receipt
from beirnl.store.attempts import MAX_DEATHS, alone_in
from beirnl.store.writing import PartWriter


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (None, "^this machine: no Ray cluster starts .Exception: The node timed out.; .*less busy"),
        ("auto", "^auto: no Ray cluster answers .Exception: The node timed out.; .*ray start --head"),
    ],
)
def test_a_cluster_that_does_not_start_or_answer_is_one_line(monkeypatch, address, message):
    import ray

    def init(**options):
        raise Exception("The node timed out. This could happen because the machine is overloaded.")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ClusterError, match=message):
        RayExecutor(Runtime(workers=2), address)


# Units that kill their workers; workers are called as Ray calls them ---------------------------------------


def task(folder, unit=0):
    return Task("check", "set/nl", Spec(), folder, {}, unit, "run", folder, Runtime(workers=2))


@pytest.mark.parametrize("kind", [Worker, ManyWorker])
def test_a_unit_that_killed_its_workers_is_an_outcome_and_stops_no_other(tmp_path, kind):
    worker = kind()
    for _ in range(MAX_DEATHS):
        PartWriter(tmp_path, 0, alone_in("run"))
    outcome = pickle.loads(worker.run(pickle.dumps(task(tmp_path))))
    assert isinstance(outcome, SetAsideError) and "unit 0 has killed its worker 3 times" in str(outcome)
    assert not worker._stop.is_set()
    outcome = pickle.loads(worker.run(pickle.dumps(task(tmp_path, unit=1))))
    assert not isinstance(outcome, SetAsideError)
    assert isinstance(outcome, StageError) and worker._stop.is_set(), "it lacks its inputs: an error like any"


@pytest.mark.parametrize(
    ("kind", "died", "expected"),
    [(Worker, False, "alone"), (ManyWorker, False, "together"), (ManyWorker, True, "alone")],
)
def test_who_has_lost_a_worker_is_run_alone_where_there_may_be_several(
    tmp_path, monkeypatch, kind, died, expected
):
    seen = []

    def execute(stage, task, load, stop):
        seen.append("alone" if task.alone else "together")
        assert worker._room._turn.locked() == task.alone
        return Receipt(unit=0, attempt="a", parts=())

    worker = kind()
    monkeypatch.setattr(cluster, "execute", execute)
    if died:
        PartWriter(tmp_path, 0, "run")
    assert isinstance(pickle.loads(worker.run(pickle.dumps(task(tmp_path)))), Receipt) and seen == [expected]


def test_all_units_are_taken_before_it_is_told_what_was_set_aside(tmp_path):
    tasks = [task(tmp_path, unit) for unit in range(4)]
    aside = [SetAsideError(f"unit {unit} is set aside", where="check set/nl") for unit in (0, 2)]
    outcomes = [aside[0], "first", aside[1], "second"]

    class Results:
        def iter_rows(self):
            for number, outcome in enumerate(outcomes):
                yield {"number": number, "outcome": pickle.dumps(outcome)}

    done, dead = [], []
    with pytest.raises(SetAsideError, match=r"unit 0 is set aside; check set/nl: unit 2 is set aside"):
        cluster._take(
            Results(),
            tasks,
            lambda task, receipt: done.append((task.unit, receipt)),
            lambda task: dead.append(task.unit),
        )
    assert dead == [0, 2]
    assert done == [(1, "first"), (3, "second")]


@pytest.mark.parametrize(
    ("units", "workers", "blocks"),
    [(1, 1, 1), (200, 4, 200), (511, 2, 511), (512, 2, 256), (10_000, 2, 1250), (10_000, 200, 10_000)],
)
def test_very_many_units_travel_together_and_few_alone(units, workers, blocks):
    assert cluster.count_blocks(units, workers) == blocks


def test_units_that_travel_with_one_that_killed_its_workers_are_done(tmp_path):
    for _ in range(MAX_DEATHS):
        PartWriter(tmp_path, 1, alone_in("run"))
    for unit in (0, 2):
        PartWriter(tmp_path, unit, "run").commit()
    block = {"number": [7, 8, 9], "task": [pickle.dumps(task(tmp_path, unit)) for unit in range(3)]}
    told = Worker()(block)
    first, aside, last = map(pickle.loads, told["outcome"])
    assert told["number"] == [7, 8, 9] and isinstance(aside, SetAsideError)
    assert (first.unit, last.unit) == (0, 2)
