"""Every stage of retrieval, killed at every point of its first units and of its reduction, and resumed."""

import itertools
import shutil
import signal

import pytest
from killing import Scene, drive, processes
from running import dataset, experiment, system
from small_models import bi_encoder, cross_encoder, write_set

from beirnl.stages import STAGES

POINTS = ("before-part", "after-part", "after-receipt")
KILLS = 3 * len(POINTS)  # two units and a reduction, where there is one
TRANSLATION = {"import-lines", "translate", "lengths", "check", "repair", "quality"}
ANSWERING = {"import-documents", "generate-questions", "questions", "reader", "cut", "plan-answers", "answer"}
NOT_RETRIEVAL = TRANSLATION | ANSWERING


def write(folder, place):
    """Every stage of retrieval, over two shards."""
    folder.mkdir()
    bi, cross = place / "bi" / "encoder", place / "cross"
    systems = [
        system("bm25", "bm25"),
        system("bm25", "sharded", shards=2),
        system("dense", "dense", model=bi),
        system("dense", "ann", model=bi, search="ann"),
        system("late", "late", model=bi),
        system("rerank", "second", model=cross, first="bm25", depth=4),
        system("run", "imported", path=place / "imported.trec"),
        system("fusion", "fused", of=["bm25", "dense"]),
        "[runtime]\nthreads = 1\n",
    ]
    return Scene(experiment(folder, dataset(place / "set", shard_documents=15) + "".join(systems)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an undisturbed run gives."""
    place = tmp_path_factory.mktemp("kills")
    write_set(place / "set", 30, 6)
    (place / "imported.trec").write_text("q0 Q0 d1 1 2.5 elsewhere\nq1 Q0 d0 1 1.5 elsewhere\n")
    bi_encoder(place / "bi", 32, 1)
    cross_encoder(place / "cross", 32, 1)
    scene = write(place / "whole", place)
    assert code_of(scene, "all", place) == 0, (place / "log").read_text()
    return scene


def code_of(scene, stage, folder, **environment):
    process = processes().Process(target=drive, args=(scene.file, stage, 1, folder / "log", environment))
    process.start()
    process.join()
    return process.exitcode


def test_the_kills_are_of_every_stage_of_retrieval(whole):
    assert set(whole.stages) == STAGES.keys() - NOT_RETRIEVAL


@pytest.mark.parametrize("stage", sorted(STAGES.keys() - NOT_RETRIEVAL))
def test_killed_at_every_point_then_resumed_equals_the_undisturbed_run(whole, tmp_path, stage):
    scene = write(tmp_path / "killed", whole.file.parents[1])
    shutil.copytree(whole.folder(""), scene.folder(""))
    shutil.rmtree(scene.folder(stage))
    kept, kills, code = {}, 0, None
    points = itertools.chain(itertools.islice(itertools.cycle(POINTS), KILLS), [None])
    while code != 0:
        point = next(points)
        failpoint = {"BEIRNL_FAILPOINT": f"{point}:*:kill"} if point else {}
        code = code_of(scene, stage, tmp_path, **failpoint)
        assert code in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
        receipts = scene.receipts(stage)
        assert kept.items() <= receipts.items(), "a finished unit was repeated"
        kept, kills = receipts, kills + (code != 0)
    assert kills == min(KILLS, len(POINTS) * len(kept))
    assert scene.contents(stage) == whole.contents(stage)
    assert not scene.left(stage)
