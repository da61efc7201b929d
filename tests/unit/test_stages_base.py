"""Units that fail, run out of memory or kill their worker: one line with what to lower, for every stage."""

import errno
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pydantic import BaseModel

from beirnl.config import Runtime, rag, sections, systems
from beirnl.errors import DataError, StageError
from beirnl.specs import Spec
from beirnl.stages import STAGES
from beirnl.stages.base import SetAsideError, Stage, Task, execute
from beirnl.store.artifacts import REDUCE, Artifact
from beirnl.store.attempts import MAX_DEATHS, alone_in, attempts_in_run, killed_units, units_set_aside
from beirnl.store.writing import PartWriter


def task(folder, stage="search-exact", workers=1, unit=0):
    return Task(stage, "set/nl", Spec(), folder, {}, unit, "run", folder, Runtime(workers=workers))


def stage_of(function, name="search-exact"):
    return Stage(name, 1, function, memory=STAGES[name].memory)


# What to lower ----------------------------------------------------------------------------------------------

TABLES: dict[str, tuple[type[BaseModel], ...]] = {
    "runtime": (sections.Runtime,),
    "translation": (sections.TranslationConfig,),
    "rag": (rag.RagConfig,),
    "ann": (systems.AnnConfig,),
    "": (systems.DenseSystem, systems.LateSystem, systems.RerankSystem),
}


@pytest.mark.parametrize("stage", STAGES.values(), ids=list(STAGES))
def test_every_setting_that_is_named_exists(stage):
    for named in stage.memory:
        heading, _, setting = named.split()[0].rpartition(".")
        table, *inner = heading.split(".")
        for model in TABLES[table]:
            for name in inner:
                model = model.model_fields[name].annotation
            if setting in model.model_fields:
                break
        else:
            pytest.fail(f"{stage.name}: no {named!r}")


def test_the_settings_of_the_stage_and_fewer_workers_are_named():
    assert STAGES["import-qrels"].less_memory(1) == "give a worker more memory"
    assert STAGES["import-qrels"].less_memory(2) == "lower runtime.workers, or give a worker more memory"
    assert "lower runtime.search_memory_mb, or" in STAGES["search-exact"].less_memory(1)
    assert "batch_tokens, batch_size, max_tokens or runtime.workers, or" in STAGES["embed"].less_memory(2)


def from_torch(unit):
    import torch

    torch.empty(1 << 60)


def from_linker(unit):
    raise ImportError("libtorch_python.so: failed to map segment from shared object")


def from_system(unit):
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


TOO_MUCH = {
    "python": lambda unit: bytearray(1 << 62),
    "numpy": lambda unit: np.empty(1 << 58),
    "arrow": lambda unit: pa.allocate_buffer(1 << 60),
    "torch": from_torch,
    "linker": from_linker,
    "system": from_system,
}


@pytest.mark.parametrize("library", TOO_MUCH)
@pytest.mark.parametrize("when", ["in the unit", "when loading"])
def test_an_allocation_that_fails_says_what_to_lower(tmp_path, library, when):
    too_much = TOO_MUCH[library]
    loading = when == "when loading"
    stage = stage_of((lambda unit: None) if loading else too_much)
    with pytest.raises(StageError) as error:
        execute(stage, task(tmp_path), (lambda: too_much(None)) if loading else None)
    line = str(error.value)
    assert line.startswith("search-exact set/nl: unit 0 ran out of memory: ")
    assert line.endswith("; lower runtime.search_memory_mb, or give a worker more memory")
    assert killed_units(Artifact(tmp_path)) == [], "an error is no death"


def test_another_failure_is_not_taken_for_it(tmp_path):
    with pytest.raises(StageError, match=r"unit 0 failed: ZeroDivisionError: .* --debug"):
        execute(stage_of(lambda unit: 1 / 0), task(tmp_path))


def test_an_error_without_a_place_gets_that_of_the_stage(tmp_path):
    def refuse(unit):
        raise DataError("documents have 3 dimensions, queries 4", remedy="embed both with one model")

    with pytest.raises(
        DataError, match=r"^search-exact set/nl: documents have 3 dimensions, queries 4; embed"
    ):
        execute(stage_of(refuse), task(tmp_path))


# Deaths -----------------------------------------------------------------------------------------------------


def die(folder, unit=0, run="run"):
    """What a worker leaves that is killed in a unit."""
    PartWriter(folder, unit, run)


def die_alone(folder, unit=0):
    die(folder, unit, alone_in("run"))


def test_a_worker_that_dies_while_it_loads_has_died_of_the_unit(tmp_path):
    seen = []
    stage = stage_of(lambda unit: None)
    execute(stage, task(tmp_path), lambda: seen.append(attempts_in_run(tmp_path, 0, "run")))
    assert seen == [1]


@pytest.mark.parametrize("name", ["embed", "search-exact", "rerank", "translate"])
def test_a_unit_that_has_killed_its_workers_is_set_aside_and_says_what_to_lower(tmp_path, name):
    for _ in range(MAX_DEATHS):
        die_alone(tmp_path)
    with pytest.raises(SetAsideError) as error:
        execute(stage_of(lambda unit: None, name), alone(task(tmp_path, name, workers=2)), pytest.fail)
    line = str(error.value)
    assert line.startswith(
        f"{name} set/nl: unit 0 has killed its worker 3 times and is set aside, most often for want of memory"
    )
    assert all(setting in line for setting in STAGES[name].memory) and "runtime.workers" in line
    execute(stage_of(lambda unit: None), alone(task(tmp_path, unit=1)))  # others go on
    assert units_set_aside(Artifact(tmp_path)) == [0]


def alone(task):
    return replace(task, alone=True)


def test_a_unit_whose_worker_died_with_others_in_flight_is_only_a_suspect(tmp_path):
    assert not task(tmp_path).is_suspect
    for _ in range(MAX_DEATHS + 1):
        die(tmp_path)
    assert task(tmp_path).is_suspect
    for _ in range(MAX_DEATHS - 1):
        die_alone(tmp_path)
    assert units_set_aside(Artifact(tmp_path)) == []
    execute(stage_of(lambda unit: None), alone(task(tmp_path)))


def test_deaths_are_counted_by_run_and_a_unit_that_is_done_after_all_is_no_longer_set_aside(tmp_path):
    for unit in (2, REDUCE):
        for _ in range(MAX_DEATHS):
            die_alone(tmp_path, unit)
    die(tmp_path, 4, alone_in("earlier"))
    die_alone(tmp_path, 4)
    die_alone(tmp_path, 4)
    assert units_set_aside(Artifact(tmp_path)) == [REDUCE, 2]
    assert units_set_aside(Artifact(tmp_path / "nowhere")) == []
    execute(stage_of(lambda unit: None), alone(replace(task(tmp_path, unit=2), run_id="next")))
    assert units_set_aside(Artifact(tmp_path)) == [REDUCE]


def test_units_set_aside_are_one_error_that_names_the_first_ones():
    errors = [SetAsideError(f"unit {n} is set aside", where=f"embed {n}", remedy="lower x") for n in range(7)]
    assert SetAsideError.of(errors[:1]) is errors[0]
    assert (
        str(SetAsideError.of(errors[:2]))
        == "embed 0: unit 0 is set aside; embed 1: unit 1 is set aside; lower x"
    )
    assert "embed 4: unit 4 is set aside; and 2 more; lower x" in str(SetAsideError.of(errors))


def test_units_at_which_workers_were_killed_are_those_without_a_receipt(tmp_path):
    die(tmp_path, 3, "before")
    die(tmp_path, 1, "before")
    die(tmp_path, 2, "long before")
    assert killed_units(Artifact(tmp_path)) == [1, 2, 3]
    execute(stage_of(lambda unit: None), task(tmp_path, unit=3))
    assert killed_units(Artifact(tmp_path)) == [1, 2]
    assert killed_units(Artifact(tmp_path / "nowhere")) == []


def test_time_to_load_is_not_that_of_a_unit(tmp_path, monkeypatch):
    from beirnl.store import writing

    clock = [0.0]
    monkeypatch.setattr(writing.time, "monotonic", lambda: clock[0])

    def spend(seconds):
        clock[0] += seconds

    receipt = execute(stage_of(lambda unit: spend(2)), task(tmp_path), lambda: spend(50))
    assert receipt.seconds == 2
