"""Profiles: what each states, and what becomes of it in the graph of an experiment."""

from typing import get_args

import pytest
from beir_folder import write_beir
from running import dataset, experiment, run, system

from beirnl.config import load_experiment
from beirnl.errors import ConfigError
from beirnl.graph import build_graph
from beirnl.registry import Bm25Entry, bm25_profiles, datasets, profiles
from beirnl.reporting import gather
from beirnl.schema import join_title_text
from beirnl.specs import Bm25Profile, Bm25Spec, Profile, SystemProfile
from beirnl.store.keys import spec_fields
from beirnl.store.workspace import Workspace

CORPUS = [
    {"_id": "d1", "title": "fish", "text": "red fish swim"},
    {"_id": "q1", "title": "", "text": "where do fish swim"},
]
QUERIES = [{"_id": "q1", "text": "where do fish swim"}]


def graph_of(folder, text):
    loaded = load_experiment(experiment(folder, text))
    return build_graph(loaded, Workspace(loaded.workspace_path))


@pytest.fixture
def tiny(tmp_path):
    return write_beir(tmp_path / "set", CORPUS, QUERIES, [("q1", "d1", "1")])


def evaluation_of(graph, name):
    [found] = [evaluation for evaluation in graph.evaluations if evaluation.system.name == name]
    return found


def test_names_are_those_of_the_file():
    assert set(profiles()) == set(get_args(Profile))
    assert set(bm25_profiles()) == set(get_args(Bm25Profile))
    assert set(get_args(SystemProfile)) == set(profiles()) | set(bm25_profiles())
    # What a name shared by both means is one thing.
    assert all(profiles()[name].bm25 == name for name in set(profiles()) & set(bm25_profiles()))


def test_conditions_without_a_profile_are_those_of_elasticsearch_and_enter_no_key():
    default = bm25_profiles()["elasticsearch"]
    plain = Bm25Spec()
    assert (default.fields, default.k1, default.b, default.tie_breaker, default.statistics) == (
        plain.profile,
        plain.k1,
        plain.b,
        plain.tie_breaker,
        plain.statistics,
    )
    assert spec_fields(plain) == {}
    assert spec_fields(Bm25Spec(statistics="bm25s")) == {"statistics": "bm25s"}


def test_titles_are_joined_as_both_profiles_do():
    assert join_title_text("fish", "swim") == "fish swim"
    assert join_title_text("", "swim") == "swim"


@pytest.mark.parametrize(
    ("stated", "of_system", "expected"),
    [
        (None, None, "elasticsearch"),
        ("paper", None, "elasticsearch"),
        ("mteb", None, "mteb"),
        ("mteb", "paper", "elasticsearch"),
        ("paper", "mteb", "mteb"),
        ("mteb", "flat", "flat"),
        (None, "anserini-multifield", "anserini-multifield"),
    ],
)
def test_bm25_has_the_conditions_of_its_profile(tmp_path, tiny, stated, of_system, expected):
    text = dataset(tiny) + system("bm25", "BM25", **({"profile": of_system} if of_system else {}))
    text += f'[evaluation]\nprofile = "{stated}"\n' if stated else ""
    found = evaluation_of(graph_of(tmp_path, text), "BM25")
    spec, entry = found.node.inputs["run"].spec.bm25, bm25_profiles()[expected]
    assert found.profile == expected
    assert isinstance(entry, Bm25Entry)
    assert (spec.profile, spec.k1, spec.b) == (entry.fields, entry.k1, entry.b)
    assert (spec.tie_breaker, spec.statistics) == (entry.tie_breaker, entry.statistics)
    assert spec.analyzer == (entry.analyzer or "english")


def test_parameters_of_a_system_stand_in_place_of_the_profiles(tmp_path, tiny):
    text = dataset(tiny) + system("bm25", "BM25", profile="mteb", k1=0.7, analyzer="dutch", tie_breaker=0.0)
    spec = evaluation_of(graph_of(tmp_path, text), "BM25").node.inputs["run"].spec.bm25
    assert (spec.k1, spec.b, spec.analyzer, spec.tie_breaker) == (0.7, 0.75, "dutch", 0.0)
    assert spec.statistics == "bm25s"


def test_anserini_needs_no_index_of_its_own(tmp_path, tiny):
    names = ("elasticsearch", "flat", "mteb", "anserini-flat", "anserini-multifield")
    text = dataset(tiny) + "".join(system("bm25", name, profile=name) for name in names)
    graph = graph_of(tmp_path, text)
    indexes = {name: evaluation_of(graph, name).node.inputs["run"].inputs["index"] for name in names}
    assert indexes["anserini-flat"] is indexes["flat"]
    assert indexes["anserini-multifield"] is indexes["elasticsearch"]
    assert len({node.key for node in indexes.values()}) == 3


SELF = [  # dataset, what its table says, profile: are self-matches removed?
    ("scifact", {}, None, False),
    ("scifact", {}, "mteb", False),
    ("scifact", {}, "paper", True),
    ("arguana", {}, None, True),
    ("arguana", {}, "mteb", True),
    ("arguana", {}, "paper", True),
    ("arguana", {"remove_self_matches": False}, "paper", False),
    ("own", {}, "paper", False),
    ("own", {"remove_self_matches": True}, "mteb", True),
    ("SCIDOCS-NL", {}, "paper", True),
]


@pytest.mark.parametrize(("name", "settings", "profile", "removed"), SELF)
def test_the_rule_for_self_matches(tmp_path, tiny, name, settings, profile, removed):
    text = dataset(tiny, name, **settings) + system("bm25", "BM25")
    text += f'[evaluation]\nprofile = "{profile}"\n' if profile else ""
    text = text.replace("= False", "= false").replace("= True", "= true")
    found = evaluation_of(graph_of(tmp_path, text), "BM25")
    assert found.remove_self_matches is found.node.inputs["run"].spec.remove_self_matches is removed


def test_both_profiles_in_one_experiment(tmp_path, tiny):
    """The paper's run lacks the document that is the query, MTEB's has it; conditions say which is which."""
    text = dataset(tiny, "scifact") + system("bm25", "ours", profile="paper")
    text += system("bm25", "theirs", profile="mteb")
    pipeline = run(experiment(tmp_path, text))
    values = {}
    for record in gather(pipeline).records:
        if record.measure == "nDCG@10":
            values[record.system] = record.value
            assert record.conditions.profile == {"ours": "elasticsearch", "theirs": "mteb"}[record.system]
            assert record.conditions.self_matches == {"ours": "removed", "theirs": "kept"}[record.system]
    assert values["ours"] == 1.0 > values["theirs"]


def test_instructions_are_the_datasets_in_mteb_and_the_cards_in_the_paper(tmp_path, tiny):
    """For a model that is told its task; one with prefixes has the same in both."""
    names = ("multilingual-e5-large-instruct", "multilingual-e5-small")
    text = dataset(tiny, "SciFact")
    for profile in ("paper", "mteb"):
        text += "".join(
            system("dense", f"{name}.{profile}", model=name, profile=profile, languages=["en"])
            for name in names
        )
    graph = graph_of(tmp_path, text)

    def prompts(name):
        spec = evaluation_of(graph, name).node.inputs["run"].inputs["queries"].spec.encoder
        return spec.query_prompt, spec.document_prompt

    instructed, prefixed = names
    task = "Given a scientific claim, retrieve documents that support or refute the claim"
    assert prompts(f"{instructed}.mteb") == (f"Instruct: {task}\nQuery: ", "")
    assert prompts(f"{instructed}.paper")[0] != prompts(f"{instructed}.mteb")[0]
    assert prompts(f"{prefixed}.mteb") == prompts(f"{prefixed}.paper") == ("query: ", "passage: ")


def test_conditions_of_bm25_are_not_for_other_kinds(tmp_path, tiny):
    text = dataset(tiny) + system("dense", "d", model="bge-m3", profile="anserini-flat")
    with pytest.raises(
        ConfigError, match=r"profile: must be 'paper' or 'mteb'; 'anserini-flat' is for kind bm25"
    ):
        graph_of(tmp_path, text)
    text = dataset(tiny) + system("bm25", "b") + '[evaluation]\nprofile = "flat"\n'
    with pytest.raises(ConfigError, match=r"evaluation.profile: must be 'paper' or 'mteb'"):
        graph_of(tmp_path, text)


def test_every_rule_of_mteb_is_that_of_an_entry():
    for entry in datasets().values():
        assert profiles()["mteb"].removes_self_matches(entry) == entry.remove_self_matches
        assert profiles()["paper"].removes_self_matches(entry)
