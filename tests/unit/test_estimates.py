"""The parts of an estimate of retrieval, each against a few lines of arithmetic."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import tiny_models
from running import beirnl, experiment, system

from beirnl.cost import Range
from beirnl.errors import ConfigError, StoreError
from beirnl.estimates.forecasting import Row
from beirnl.estimates.laws import LAWS, Size, named, terms_of
from beirnl.estimates.machine import Machine, _limits, this_machine
from beirnl.estimates.measuring import Measured
from beirnl.estimates.probes import Probe
from beirnl.estimates.rates import of_probe
from beirnl.estimates.refusals import refusal
from beirnl.estimates.rendering import hours_text, size_text
from beirnl.estimates.weights import weights
from beirnl.graph import Node
from beirnl.graph.expected import Expected
from beirnl.retrieval.bm25 import build_unit, combine
from beirnl.specs import Bm25Spec, Spec
from beirnl.stages import STAGES

WORK = Size(
    documents=1_000_000, queries=2_000, hits=200_000, units=5, largest=200_000, text=300, dimension=384
)


@pytest.mark.parametrize("stage", LAWS)
def test_the_parts_of_a_stage_are_as_much_work_as_the_whole(stage):
    law = LAWS[stage]
    rows = law.rows(WORK)
    parts = [law.part(WORK, rows // 5)] * 5
    assert sum(law.rows(part) for part in parts) == rows
    assert sum(law.effort(part).mid for part in parts) == pytest.approx(law.effort(WORK).mid, rel=1e-6)


def test_every_stage_of_retrieval_has_a_law():
    others = {"translate", "lengths", "check", "repair", "quality", "reader", "cut"}
    others |= {"generate-questions", "questions", "plan-answers", "answer"}
    assert set(LAWS) == {name for name in STAGES if not name.startswith("import-")} - others


@pytest.mark.parametrize("stage", ["index", "embed", "search-exact", "rerank", "search-late"])
def test_twice_the_rows_take_twice_as_long(stage):
    law, twice = LAWS[stage], {"documents": 2_000_000, "hits": 400_000}
    found = law.effort(WORK._replace(**{law.counts: twice[law.counts]}))
    assert found == law.effort(WORK).times(Range.exactly(2))


def test_search_by_terms_grows_between_the_root_and_a_little_more_than_the_number_of_documents():
    small, large = (LAWS["search-bm25"].effort(WORK._replace(documents=n)) for n in (10_000, 1_000_000))
    assert [round(b / a) for a, b in zip(small, large, strict=True)] == [10, 32, 132]


def test_how_many_documents_a_run_names():
    draw = np.random.default_rng(0)
    found = [len(np.unique(draw.integers(0, 1_000, 700))) for _ in range(200)]
    assert named(WORK._replace(documents=1_000, hits=700)) == pytest.approx(np.mean(found), rel=0.01)


def test_a_second_stage_that_reads_texts_once_takes_what_its_units_name():
    size = WORK._replace(documents=5_000, hits=30_000, queries=300, units=3, query_text=50, once=True)
    draw = np.random.default_rng(0)
    texts = np.mean([len(np.unique(draw.integers(0, 5_000, 10_000))) for _ in range(50)])
    effort = LAWS["rerank"].effort(size)
    assert effort.mid == pytest.approx(3 * texts * (300 + 32) + 300 * (50 + 32), rel=0.01)
    assert effort.high == 3 * 5_000 * (300 + 32) + 300 * (50 + 32)
    every_pair = LAWS["rerank"].effort(size._replace(once=False))
    assert every_pair == Range.exactly(30_000 * (300 + 50 + 32))
    # A set of 60 documents: all pairs would be 100 times as many texts.
    small = LAWS["rerank"].effort(size._replace(documents=60, hits=6_000, queries=100, units=1))
    assert small.mid == pytest.approx(60 * 332 + 100 * 82, rel=1e-6)


def test_the_rate_of_a_probe_is_that_of_its_last_unit_alone():
    size = WORK._replace(documents=50, hits=700, queries=300, units=3, once=True)
    measured = Measured([(40, 1.0, 9), (60, 1.0, 9), (600, 2.0, 9)], 0.0, 0, 0, 0)
    rate = of_probe("rerank", Probe(measured, size))
    assert (rate.size.units, rate.size.hits, rate.seconds) == (1, 600, 2.0)
    assert rate.seconds_of(LAWS["rerank"], rate.size).mid == pytest.approx(2.0)


def test_the_bytes_of_terms_are_told_by_two_sizes():
    def size(documents, postings=90.0, terms=40.0):
        return documents, round(documents * (postings + terms * documents**-0.35))

    assert terms_of(size(1_000), size(59_000)) == pytest.approx(40 / 90, rel=0.01)
    assert terms_of((1_000, 90_000), (59_000, 59 * 90_000)) == 0


def test_the_size_of_an_index_is_told_by_smaller_ones(tmp_path):
    draw = np.random.default_rng(0)

    def written(documents):
        words = (40_000 ** draw.random((documents, 40))).astype(int)
        texts = [" ".join(f"w{word:x}" for word in row) for row in words]
        names, folder = [f"d{n}" for n in range(documents)], tmp_path / str(documents)
        build_unit(folder / "unit", Bm25Spec(), names, [""] * documents, texts)
        combine([folder / "unit"], folder / "whole", Bm25Spec())
        return sum(file.stat().st_size for file in (folder / "whole").rglob("*") if file.is_file())

    small, large, real = written(500), written(8_000), written(40_000)
    law, size = LAWS["index-shards"], Size(text=1, terms=terms_of((500, small), (8_000, large)))
    told = large * law.volume(size._replace(documents=40_000)) / law.volume(size._replace(documents=8_000))
    assert told == pytest.approx(real, rel=0.1)


def test_a_probe_tells_a_rate_by_its_last_unit():
    measured = Measured([(1_000, 9.0, 500), (4_000, 2.0, 1_600)], 0.5, 100, 1, 1)
    rate = of_probe("embed", Probe(measured, Size(documents=5_000, text=100)))
    law, size = LAWS["embed"], Size(documents=80_000, text=100)
    assert rate.seconds_of(law, size).mid == pytest.approx(40)
    assert rate.written_of(law, size) == pytest.approx(80_000 * (1_600 + 100) / 4_000)
    longer = rate.seconds_of(law, size._replace(text=232))
    assert longer.mid == pytest.approx(80) and longer.low < longer.mid < longer.high


# The machine ------------------------------------------------------------------------------------------------


def test_the_limits_of_control_groups_are_read(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "memory" / "c").mkdir(parents=True)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "a" / "memory.max").write_text("3000\n")
    (tmp_path / "a" / "b" / "memory.max").write_text("4000\n")
    (tmp_path / "memory" / "c" / "memory.limit_in_bytes").write_text("5000\n")
    groups = tmp_path / "cgroup"
    groups.write_text("12:cpu:/x\n5:memory:/c\n0::/a/b\n")
    assert sorted(_limits(groups, tmp_path)) == [3000, 4000, 5000]


def test_this_machine_has_memory_and_disk(tmp_path):
    machine = this_machine(tmp_path / "not" / "there")
    assert 1 << 28 < machine.memory < 1 << 50 and machine.disk > 0


# Refusals ---------------------------------------------------------------------------------------------------


def row(stage, memory=None, workers=1, disk=0.0):
    node = Node(stage, "set/nl", Spec(), {}, "system")
    return Row(node, 1, "rows", workers, disk=disk, memory=memory, origin="probe")


MACHINE = Machine(memory=8_000_000_000, disk=100_000_000_000)


@pytest.mark.parametrize(
    ("stage", "advice"),
    [
        ("ann-index", 'lower ann.numbers to "i8" or ann.connectivity, or give a worker more memory'),
        ("search-exact", "lower runtime.search_memory_mb, or give a worker more memory"),
        ("embed", "lower batch_tokens, batch_size or max_tokens, or give a worker more memory"),
        ("fuse", "lower depth, or give a worker more memory"),
    ],
)
def test_too_little_memory_says_how_much_and_what_to_set(stage, advice):
    rows = [row("index", 1e9, 3), row(stage, 3.1e9, 3)]
    error = refusal(rows, MACHINE, "e.toml")
    assert isinstance(error, ConfigError)
    assert str(error) == (
        f"e.toml: a worker of {stage} for set/nl system takes about 3.1 GB each, 3 workers 9.3 GB, and this "
        f"machine has 8.0 GB of memory; set workers = 2, or {advice}"
    )
    assert refusal([row(stage, 2.6e9, 3)], MACHINE, "e.toml") is None


def test_a_worker_that_does_not_fit_alone_is_told_no_number_of_workers():
    error = refusal([row("ann-index", 9e9)], MACHINE, "e.toml")
    assert "takes about 9.0 GB, and this machine" in str(error) and "set workers" not in str(error)


def test_too_little_disk_says_how_much_and_by_what():
    rows = [row("embed", disk=80e9), row("index", disk=90e9), row("search-ann", disk=None)]
    error = refusal(rows, MACHINE, "e.toml")
    assert isinstance(error, StoreError)
    assert "about 170.0 GB are to be written, most of it (90.0 GB by index for set/nl)" in str(error)
    assert "has 100.0 GB free; free space" in str(error) and "shards = 2" in str(error)
    assert refusal(rows[:1], MACHINE, "e.toml") is None


def test_sizes_and_hours_as_people_read_them():
    assert [size_text(n) for n in (0, 812, 4.1e6, 16.24e9, 2e12)] == [
        "0 B",
        "812 B",
        "4.1 MB",
        "16.2 GB",
        "2.0 TB",
    ]
    assert hours_text(Range(0.001, 0.002, 0.004)) == "< 0.01"
    assert hours_text(Range(1.5, 2, 3)) == "1.50 – 3.00"


# Models -----------------------------------------------------------------------------------------------------


def test_weights_are_counted_by_their_headers(tmp_path):
    from transformers import AutoModel

    folder = tiny_models.bert(tmp_path)
    numbers = sum(tensor.numel() for tensor in AutoModel.from_pretrained(folder).parameters())
    for dtype, size in (("float32", 4), ("bfloat16", 2)):
        assert weights(folder, dtype) == pytest.approx(numbers * size, rel=0.02)


def test_a_model_that_is_not_here_is_not_looked_for_on_a_network(tmp_path):
    asked = []

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def do_HEAD(self):
            self.do_GET()

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = experiment(tmp_path, '[[dataset]]\nname = "sample"\n' + system("dense", "e", model="some/where"))
    hub = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(tmp_path),
    }
    said = beirnl("plan", path, "--estimate", **hub)
    server.shutdown()
    assert "not known: the model is neither in the hub cache" in said.stdout and asked == []


def test_what_is_expected_of_an_artifact_is_its_parts(tmp_path):
    artifact = Expected(tmp_path, [3, 4])
    assert artifact.rows == 7 and [part.rows for part in artifact.parts] == [3, 4]
