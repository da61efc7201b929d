"""Intervals and tests in the report of a run, and systems that go to different depths."""

import json

import pytest
from beir_folder import doc, query, write_beir
from running import BM25, beirnl, dataset, experiment, run, system

from beirnl.config import load_experiment
from beirnl.evaluation.measures import evaluate
from beirnl.pipeline import Pipeline
from beirnl.reporting import gather

WORDS = ["coffee", "tea", "milk", "water", "wine", "beer"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Six queries with the relevant document second or third; two systems of depth 100, one of depth 2."""
    folder = tmp_path_factory.mktemp("set")
    corpus = [doc(f"{word}-{at}", f"{word} " * (4 - at) + "and more") for word in WORDS for at in range(3)]
    relevant = [(f"q{n}", f"{word}-{1 + n % 2}", 1) for n, word in enumerate(WORDS)]
    place = write_beir(folder / "set", corpus, [query(f"q{n}", w) for n, w in enumerate(WORDS)], relevant)
    systems = BM25 + system("bm25", "flat", b=0.0) + system("bm25", "short", depth=2)
    settings = (
        '[evaluation]\nmeasures = ["AP", "P@1", "R@2"]\nseed = 3\nbootstrap = 100\nrandomisation = 99\n'
    )
    path = experiment(folder, dataset(place) + systems + settings)
    return path, run(path)


def test_systems_are_compared_to_the_depth_of_the_shortest(ran):
    _, pipeline = ran
    report = gather(pipeline)
    values = {(one.system, one.measure): one.value for one in report.records}
    assert values["bm25", "AP"] == values["short", "AP"]
    assert values["bm25", "R@2"] == values["short", "R@2"]
    [whole] = [one for one in pipeline.graph.evaluations if one.system.name == "bm25"]
    run_, qrels = (
        node.artifact(pipeline.workspace).table() for node in (whole.node.inputs["run"], whole.qrels)
    )
    uncut = evaluate(run_, qrels, ["AP"])["value"].mean()
    assert uncut > values["bm25", "AP"]
    cut = [line for line in report.warnings if "as many as the shortest run" in line]
    assert cut == [
        f"AP of {name} sees 2 of its 100 hits a query on own, as many as the shortest run there has"
        for name in ("bm25", "flat")
    ]


def test_records_state_intervals_and_tests_with_the_settings_of_the_file(ran):
    report = gather(ran[1])
    assert report.uncertainty.settings == (3, 100, 99, 0.05)
    for record in report.records:
        assert record.low <= record.value <= record.high
    [short] = [one for one in report.records if (one.system, one.measure) == ("short", "AP")]
    assert (short.wins, short.losses, short.ties, short.p, short.not_below_best) == (0, 0, 6, 1.0, True)


def test_settings_of_uncertainty_change_no_key(ran):
    path, _ = ran
    text = path.read_text().replace("seed = 3", "seed = 4\nalpha = 0.01")
    other = path.with_name("other.toml")
    other.write_text(text)
    assert all(status.state == "done" for status in Pipeline.of(load_experiment(other)).plan())


def test_the_command_shows_all_pairs(ran):
    path, _ = ran
    pairs = json.loads(beirnl("report", path, "--pairs", "--format", "json").stdout)
    assert len(pairs) == 3 * 3
    assert {(one["system"], one["other"]) for one in pairs if one["measure"] == "AP"} == {
        ("bm25", "flat"),
        ("bm25", "short"),
        ("flat", "short"),
    }
    shown = beirnl("report", path, "--pairs", "--format", "markdown").stdout
    assert "All pairs: AP on own (en)" in shown


def test_a_dataset_in_parts_is_resampled_inside_them(tmp_path):
    """One part where nothing is found beside one where all is: no variation inside means no width."""
    for part, right in (("found", 0), ("missed", 1)):
        corpus = [doc(f"{word}-{at}", word if at == 0 else "other") for word in WORDS for at in range(2)]
        relevant = [(f"q{n}", f"{word}-{right}", 1) for n, word in enumerate(WORDS)]
        write_beir(
            tmp_path / "set" / part, corpus, [query(f"q{n}", w) for n, w in enumerate(WORDS)], relevant
        )
    settings = '[evaluation]\nmeasures = ["P@1"]\nbootstrap = 100\nrandomisation = 99\n'
    path = experiment(tmp_path, dataset(tmp_path / "set") + BM25 + settings)
    [record] = gather(run(path)).records
    assert (record.low, record.value, record.high) == (0.5, 0.5, 0.5)
    assert record.queries == 12
