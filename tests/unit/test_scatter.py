"""Quality against parameters and speed: which systems stand where, and names that do not overlap."""

from itertools import pairwise

import pytest

from beirnl import registry
from beirnl.evaluation.page.scatter import plots, spread
from beirnl.evaluation.records import Conditions, Record, Report, Speed


def record(system, value, dataset="a", model=None, language="nl"):
    search = "exact" if model else "bm25"
    stated = Conditions(dataset_hash="x", search=search, self_matches="kept", model=model)
    return Record(
        dataset=dataset,
        language=language,
        system=system,
        measure="nDCG@10",
        value=value,
        queries=3,
        conditions=stated,
    )


RECORDS = [
    record("BM25", 0.5),
    record("m3", 0.7, model="bge-m3"),
    record("xm", 0.6, model="dpr-xm"),
    record("own", 0.4, model="some/model"),
]


def test_parameters_are_the_registrys_and_what_has_none_is_a_line():
    [plot] = plots(Report("r", RECORDS), "nDCG@10")
    used = registry.find_model("dpr-xm").active_parameters
    assert plot.title == "nDCG@10 against parameters (a)"
    assert plot.alt.partition(": ")[2] == (
        f"BM25, nl: 0.5000 at none; m3, nl: 0.7000 at 568; xm, nl: 0.6000 at {used:g}"
    )
    assert all(f">{name}<" in plot.svg for name in ("BM25", "m3", "xm")) and ">own<" not in plot.svg
    assert not list(plots(Report("r", RECORDS[:2]), "nDCG@10")), "one point is no plot"


def test_rates_are_harmonic_means_and_quality_is_that_of_systems_with_all_datasets():
    more = [record("BM25", 0.3, "b"), record("m3", 0.5, "b", model="bge-m3")]
    speeds = [
        Speed(dataset, "nl", system, None, rate)
        for system, rates in (("BM25", (20.0, 60.0)), ("m3", (2.0, 2.0)), ("xm", (5.0, 5.0)))
        for dataset, rate in zip("ab", rates, strict=True)
    ]
    found = {plot.title: plot.alt for plot in plots(Report("r", [*RECORDS, *more], speeds=speeds), "nDCG@10")}
    said = "mean over 2 datasets; without 2 systems that lack some"
    assert list(found) == [f"nDCG@10 against queries per second ({said})"]
    [alt] = found.values()
    assert alt.endswith("BM25, nl: 0.4000 at 30; m3, nl: 0.6000 at 2")


@pytest.mark.parametrize(
    "places, gap",
    [([0.5], 0.1), ([0.2, 0.2, 0.2], 0.1), ([0.0, 0.99, 0.995, 1.0], 0.1), ([0.1, 0.5, 0.9], 0.1)],
)
def test_names_are_a_gap_apart_in_order_and_inside(places, gap):
    moved = spread(places, gap)
    assert all(b - a >= gap - 1e-12 for a, b in pairwise(moved))
    assert min(moved) >= 0 and max(moved) <= 1 + 1e-12 and len(moved) == len(places)


def test_names_with_room_stay_where_they_are():
    assert spread([0.1, 0.5, 0.9], 0.1) == [0.1, 0.5, 0.9]
