"""Approximate search through the whole pipeline: its recall stands beside every score that rests on it."""

import pytest
from running import experiment, report, system

from beirnl.errors import ConfigError, StageError
from beirnl.retrieval import ann


def settings(text: str) -> str:
    return text + "ann = { expansion_search = 64, min_recall = 0.5 }\n"


def test_recall_stands_beside_each_score_and_is_judged_anew(tmp_path, tiny_encoder, monkeypatch):
    monkeypatch.setattr(ann, "_EXHAUSTIVE", 0)  # the graph also where all could be scored
    systems = (
        system("dense", "exact", model=tiny_encoder, depth=10)
        + settings(system("dense", "ann", model=tiny_encoder, depth=10, search="ann"))
        + system("rerank", "second", first="ann", model=tiny_encoder, method="bi-encoder")
        + '[[system]]\nkind = "fusion"\nname = "fused"\nof = ["exact", "second"]\n'
    )
    path = experiment(tmp_path, '[[dataset]]\nname = "sample"\n' + systems)
    found = {r.system: r for r in report(path).records if r.measure == "nDCG@10"}
    conditions = {name: record.conditions.model_dump() for name, record in found.items()}
    assert conditions["ann"]["search"] == "ann" and conditions["ann"]["ann_expansion_search"] == 64
    for name in ("ann", "second", "fused"):
        kept = conditions[name]
        assert 0.5 <= kept["ann_recall_low"] <= kept["ann_recall"] <= kept["ann_recall_high"] <= 1
        assert kept["ann_recall_queries"] == found["ann"].queries
    assert not any(key.startswith("ann") for key in conditions["exact"])
    monkeypatch.setattr("beirnl.reporting.scores.recall_of", lambda frame: ann_recall(0.4))
    with pytest.raises(StageError, match=r"sample/en: .* raise expansion_search above 64"):
        report(path)


def ann_recall(value):
    from beirnl.stages.ann import Recall

    return Recall(value, value, value, 25)


def test_a_setting_that_is_misspelt_names_the_nearest(tmp_path, tiny_encoder):
    text = system("dense", "a", model=tiny_encoder, search="ann") + "ann = { expansion_serch = 64 }\n"
    path = experiment(tmp_path, '[[dataset]]\nname = "sample"\n' + text)
    with pytest.raises(ConfigError, match=r"ann.expansion_serch'; did you mean 'expansion_search'"):
        report(path)
