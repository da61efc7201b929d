"""From an experiment to what is published, and back: a mock translation, published, imported again."""

import pytest
import running
from beir_folder import doc, query, write_beir

from beirnl.audit.sampling import draw
from beirnl.config import load_experiment
from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.pipeline import Pipeline
from beirnl.publish import publish, sets, translations

TRANSLATION = '[translation]\nto = "nl"\nengine = "mock"\n'
CORPUS = [
    doc("d1", "The owls hunt at night.", "Owls"),
    doc("d2", "The tea is green."),
    doc("d3", "Rain falls."),
]


def ranking_of(tmp_path, folder):
    """What BM25 finds in a published folder."""
    text = running.dataset(folder, language="nl") + running.BM25
    return running.ranking(running.run(running.experiment(tmp_path, text)))


@pytest.fixture(scope="module")
def two_sets(tmp_path_factory):
    """Two datasets on one corpus, the second with parts beside it, translated by the mock engine."""
    folder = tmp_path_factory.mktemp("two")
    write_beir(folder / "one", CORPUS, [query("q1", "when do owls hunt")], [("q1", "d1", 1)])
    write_beir(folder / "two", CORPUS, [query("q2", "which tea is green")], [("q2", "d2", 1)])
    for part in ("a", "b"):
        write_beir(folder / "parts" / part, CORPUS[:2], [query(part, f"tea {part}")], [(part, "d2", 1)])
    names = ("one", "two", "parts")
    text = "\n".join(running.dataset(folder / name, name) for name in names) + TRANSLATION
    return running.run(running.experiment(folder, text))


def test_every_set_has_its_own_queries_and_judgements(two_sets):
    found = translations(two_sets)
    assert [(one.dataset, one.part) for one in found] == [
        ("one", ""),
        ("two", ""),
        ("parts", "a"),
        ("parts", "b"),
    ]
    one, two = found[:2]
    assert one.documents.translated.directory == two.documents.translated.directory  # paid for once
    assert [row["query_id"] for row in two.qrels.table().to_pylist()] == ["q2"]
    assert [row["id"] for row in two.queries.source.table().to_pylist()] == ["q2"]
    assert one.documents.spec.kind == "document" and one.queries.spec.kind == "query"
    assert {one.language, one.documents.spec.source_language} == {"nl", "en"} and one.split == "test"
    assert [rung.number for rung in one.documents.rungs] == list(range(1, len(one.documents.rungs) + 1))
    assert list(sets(found)) == ["one-nl", "two-nl", "parts-nl"]


def test_only_the_datasets_that_are_named(two_sets):
    assert {one.dataset for one in translations(two_sets, ["parts"])} == {"parts"}
    with pytest.raises(ConfigError, match="no dataset called 'party'; did you mean 'parts'"):
        translations(two_sets, ["party"])


def test_a_translation_that_is_not_finished(tmp_path):
    path = running.experiment(tmp_path, '[[dataset]]\nname = "sample"\n' + TRANSLATION)
    with pytest.raises(PrerequisiteError, match=r"is not finished; run `beirnl run "):
        translations(Pipeline.of(load_experiment(path)))


@pytest.mark.parametrize("tables", ["system", "parallel"])
def test_the_advice_holds_for_an_experiment_without_a_dataset_to_translate(tmp_path, tables):
    (tmp_path / "lines.txt").write_text("One line.\n")
    lines = f'source = "{tmp_path}/lines.txt"\nreference = "{tmp_path}/lines.txt"\n'
    parallel = f'[[parallel]]\nname = "p"\n{lines}{TRANSLATION}'
    text = parallel if tables == "parallel" else '[[dataset]]\nname = "sample"\n' + running.BM25
    pipeline = Pipeline.of(load_experiment(running.experiment(tmp_path, text)))
    for refuses in (translations, lambda found: draw(found, 1, 7)):
        with pytest.raises(ConfigError, match=r"add a \[\[dataset\]\] and a \[translation\] of it"):
            refuses(pipeline)


def test_what_was_published_is_imported_again_from_either_layout(two_sets, tmp_path):
    for name, parts in sets(translations(two_sets)).items():
        made = publish(name, parts, tmp_path / "out")
        found = []
        for layout in ("beir", "hub"):
            (tmp_path / name / layout).mkdir(parents=True)
            found.append(ranking_of(tmp_path / name / layout, made.folder / layout))
        assert found[0] == found[1] and found[0]
