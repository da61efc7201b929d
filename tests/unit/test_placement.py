"""Which resources workers ask for, and what a cluster lacks, said before anything is done."""

from pathlib import Path

import pytest

from beirnl.config import Runtime
from beirnl.config.sections import StageRuntime
from beirnl.errors import ClusterError
from beirnl.executors import placement
from beirnl.executors.placement import NodeKind, actor_options, check, counted, node_types
from beirnl.specs import EncoderSpec, LlmSpec, ModelRef, Spec, TranslationSpec
from beirnl.stages import STAGES
from beirnl.stages.base import Task
from beirnl.stages.dense import EmbedSpec

ROOT = Path(__file__).resolve().parents[2]
CPUS, GPUS = NodeKind(8, 0, 2), NodeKind(4, 2, 3)


def task(stage, spec, **runtime):
    return Task(stage, "set/nl", spec, Path(), {}, 0, "run", Path(), Runtime(**runtime).of(stage))


def test_a_stage_has_what_the_file_says_for_it_in_place_of_what_holds_for_all():
    runtime = Runtime(
        workers=8,
        gpus=1,
        stages={"embed": StageRuntime(gpus=0.25), "translate": StageRuntime(workers=2, gpus=4)},
    )
    assert [(runtime.of(s).workers, runtime.of(s).gpus) for s in ("embed", "translate", "rerank")] == [
        (8, 0.25),
        (2, 4),
        (8, 1),
    ]
    assert runtime.most_workers == 8
    assert Runtime(stages={"embed": StageRuntime(workers=3)}).most_workers == 3
    assert Runtime().most_workers == 1


def llm(engine):
    return LlmSpec(engine=engine, model=ModelRef(name="m", source="m") if engine != "mock" else None)


@pytest.mark.parametrize(
    ("stage", "spec", "gpus"),
    [
        ("translate", TranslationSpec.model_construct(llm=llm("vllm")), 0.5),
        ("translate", TranslationSpec.model_construct(llm=llm("mock")), 0),
        ("translate", TranslationSpec.model_construct(llm=llm("openai")), 0),
        (
            "embed",
            EmbedSpec.model_construct(encoder=EncoderSpec(model=ModelRef(name="m", source="m"))),
            0.5,
        ),
        (
            "embed",
            EmbedSpec.model_construct(encoder=EncoderSpec(model=ModelRef(name="m", source="api:m"))),
            0,
        ),
        ("rerank", Spec(), 0.5),
        ("search-exact", Spec(), 0.5),
        ("import-corpus", Spec(), 0),
        ("index", Spec(), 0),
        ("check", Spec(), 0),
        ("evaluate", Spec(), 0),
    ],
)
def test_only_workers_that_run_a_model_or_search_exactly_ask_for_gpus(monkeypatch, stage, spec, gpus):
    monkeypatch.setattr(placement, "nodes", lambda: [CPUS, GPUS])
    asked = actor_options(task(stage, spec, gpus=0.5))
    assert asked.get("num_gpus", 0) == gpus and asked["num_cpus"] == 1
    assert ("scheduling_strategy" in asked) == (gpus == 0), "kept off nodes with GPUs"
    monkeypatch.setattr(placement, "nodes", lambda: [CPUS])
    assert "scheduling_strategy" not in actor_options(task(stage, spec))


def test_nodes_are_told_by_their_resources():
    kinds = counted([{"CPU": 4.0, "GPU": 2.0, "memory": 1.0}, {"CPU": 8.0}, {"CPU": 4.0, "GPU": 2.0}, {}])
    assert kinds == [NodeKind(0, 0, 1), NodeKind(4, 2, 2), NodeKind(8, 0, 1)]


@pytest.mark.parametrize(
    ("there", "asked", "message"),
    [
        ([], {}, "no node has a CPU for a worker .nodes: none."),
        ([NodeKind(0, 0, 1)], {}, "no node has a CPU for a worker .nodes: 1 with 0 CPUs."),
        (
            [CPUS, GPUS],
            {"embed": 0.5, "translate": 4},
            "no node has 4 GPUs and a CPU, which a worker of translate needs .nodes: 2 with 8 CPUs, 3 with 4 "
            "CPUs and 2 GPUs.; .*runtime.gpus .*runtime.stages.translate",
        ),
        ([CPUS], {"embed": 0.5}, "no node has 0.5 GPUs and a CPU, which a worker of embed needs"),
    ],
)
def test_a_cluster_that_lacks_what_a_worker_needs_says_what_is_there_and_what_was_asked(
    monkeypatch, there, asked, message
):
    monkeypatch.setattr(placement, "nodes", lambda: there)
    monkeypatch.setattr(placement, "node_types", lambda: [])
    with pytest.raises(ClusterError, match=message):
        check(asked)


def test_what_the_autoscaler_may_add_counts_as_there(monkeypatch):
    kinds = node_types(ROOT / "cluster.yaml")
    assert NodeKind(16, 0, 4, True) in kinds and NodeKind(8, 1, 8, True) in kinds
    assert not any(kind.cpus == 0 for kind in kinds), "the head is not added"
    assert node_types(ROOT / "nowhere.yaml") == []
    monkeypatch.setattr(placement, "nodes", lambda: [NodeKind(0, 0, 1)])
    monkeypatch.setattr(placement, "node_types", lambda: kinds)
    check({"embed": 1})
    with pytest.raises(
        ClusterError, match=r"2 GPUs .*1 with 0 CPUs, 4 more with 16 CPUs, 2 more with 8 CPUs and 1"
    ):
        check({"translate": 2})


def test_every_stage_that_loads_a_model_may_use_a_gpu():
    loading = {name for name, stage in STAGES.items() if "batch_size" in stage.memory or stage.asks}
    assert {name for name in loading if STAGES[name].gpu.__name__ == "never"} == set()
