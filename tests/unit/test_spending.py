"""What an allowance lets through, what prices a limit needs, and how often the journal is summed for it."""

import pytest
from beir_folder import doc
from running import dataset, experiment
from translating import documents, table, translation, write_set

from beirnl.config import Runtime, load_experiment
from beirnl.errors import BudgetError, ConfigError
from beirnl.executors.local import LocalExecutor
from beirnl.graph import build_graph
from beirnl.pipeline import Pipeline
from beirnl.specs import LlmSpec, TranslationSpec
from beirnl.spending import Paid, Spending, price_of_llm
from beirnl.stages.base import Allowance, Task
from beirnl.stages.translate import Translator
from beirnl.store.workspace import Workspace

A_WORD = {"input": 1_000_000, "output": 1_000_000}


@pytest.fixture
def translator(tmp_path):
    llm = LlmSpec(engine="mock")
    spec = TranslationSpec(
        llm=llm, kind="query", prompt="p", template="{text}", source_language="en", target_language="nl"
    )
    return Translator(Task("translate", "own", spec, tmp_path, {}, 0, "run", tmp_path, Runtime()))


def orders(translator, allowance, costs):
    """How many orders the allowance lets through."""
    for number, cost in enumerate(costs):
        try:
            translator.reserve(allowance, cost)
        except BudgetError:
            return number
    return len(costs)


@pytest.mark.parametrize(
    ("costs", "through"),
    [([4, 4, 4], 2), ([5, 5, 0], 2), ([10, 0], 1), ([11], 0), ([0, 0, 0], 3), ([10 + 1e-9], 0)],
)
def test_an_allowance_pays_for_orders_up_to_its_end(translator, costs, through):
    assert orders(translator, Allowance("a", 10.0, 1.0, 1.0), costs) == through


def test_an_order_that_is_refused_leaves_what_is_left(translator):
    allowance = Allowance("a", 10.0, 1.0, 1.0)
    assert orders(translator, allowance, [8, 4]) == 1
    translator.reserve(allowance, 2)


def test_what_is_used_up_by_answers_lets_no_order_through_and_another_group_has_its_own(translator):
    allowance = Allowance("a", 10.0, 1.0, 1.0)
    with pytest.raises(BudgetError):
        translator.spend(allowance, 10)
    assert orders(translator, allowance, [0]) == 0
    assert orders(translator, allowance._replace(group="b"), [0]) == 1


def test_nothing_is_ordered_where_nothing_is_left(translator):
    assert orders(translator, Allowance("a", 0.0, 1.0, 1.0), [0]) == 0


def spending_of(path, kind=Spending.limited):
    loaded = load_experiment(path)
    workspace = Workspace(loaded.workspace_path)
    return kind(loaded, build_graph(loaded, workspace), workspace)


def test_the_journal_is_summed_once_for_each_allowance(tmp_path, monkeypatch):
    place = write_set(tmp_path / "set", documents(40))
    text = dataset(place) + translation(price=A_WORD, max_cost=2500) + table("runtime", workers=4)
    calls = {"money": 0, "allowance": 0}
    for name in calls:
        original = getattr(Spending, name)

        def counted(*arguments, name=name, original=original):
            calls[name] += 1
            return original(*arguments)

        monkeypatch.setattr(Spending, name, counted)
    monkeypatch.setattr(Spending, "paid", lambda self, llm: Paid())  # what is shown is summed now and then
    with pytest.raises(BudgetError):
        Pipeline.of(load_experiment(experiment(tmp_path, text))).run(LocalExecutor())
    assert calls["allowance"] > 1 and calls["money"] == calls["allowance"] + 1


def test_a_rest_that_pays_for_nothing_more_is_not_begun(tmp_path):
    place = write_set(tmp_path / "set", documents(40))
    limited = dataset(place) + translation(price=A_WORD, max_cost=1000)
    path = experiment(tmp_path, limited)
    with pytest.raises(BudgetError):
        Pipeline.of(load_experiment(path)).run(LocalExecutor())
    stopped = spending_of(path).money()
    for share, asked in ((0.997, False), (0.9, True)):
        experiment(tmp_path, limited.replace("max_cost = 1000", f"max_cost = {stopped / share}"))
        with pytest.raises(BudgetError):
            Pipeline.of(load_experiment(path)).run(LocalExecutor())
        assert (spending_of(path).money() > stopped) == asked


def two_engines(tmp_path, first, second):
    api = {"engine": "openai", "server": {"api_key_env": ""}}
    place = write_set(tmp_path / "set", [doc("a", "Water.")])
    settings = {"repair": ["engine"], "second": {**api, "model": "second", **second}}
    return experiment(
        tmp_path, dataset(place) + translation(**api, model="first", max_cost=5, **settings, **first)
    )


def test_a_limit_needs_the_price_of_every_engine_and_names_its_table(tmp_path):
    priced = {"price": {"input": 1, "output": 1}}
    with pytest.raises(
        ConfigError, match=r"^\[translation\]: no price .* 'first'; .* under \[translation\], "
    ):
        spending_of(two_engines(tmp_path, {}, priced))
    where = r"\[translation\.second\]"
    with pytest.raises(ConfigError, match=rf"^{where}: no price is known .* 'second'; .* under {where}, "):
        spending_of(two_engines(tmp_path, priced, {}))
    assert spending_of(two_engines(tmp_path, priced, priced)).is_known


def test_a_limit_is_checked_before_anything_is_done_if_anything_is_to_be_asked(tmp_path):
    path = two_engines(tmp_path, {}, {})
    pipeline = Pipeline.of(load_experiment(path))
    nodes = list(pipeline.graph.nodes.values())
    arguments = pipeline.experiment, pipeline.graph, pipeline.workspace
    with pytest.raises(ConfigError, match="no price is known"):
        Spending.check_limit(*arguments, nodes)
    Spending.check_limit(*arguments, [node for node in nodes if node.stage.startswith("import")])
    path.write_text(path.read_text().replace("max_cost = 5", ""))
    pipeline = Pipeline.of(load_experiment(path))
    Spending.check_limit(pipeline.experiment, *arguments[1:], nodes)


def test_a_limit_is_for_prices_in_one_currency(tmp_path):
    euro = {"price": {"input": 1, "output": 1, "currency": "EUR"}}
    dollar = {"price": {"input": 1, "output": 1}}
    with pytest.raises(ConfigError, match="prices in EUR and USD together, and nothing converts them; write"):
        spending_of(two_engines(tmp_path, euro, dollar))
    free = {"price": {"input": 0, "output": 0}}
    assert spending_of(two_engines(tmp_path, euro, free)).currency == "EUR"
    assert spending_of(two_engines(tmp_path, free, euro)).currency == "EUR"


def test_without_a_limit_no_price_is_needed(tmp_path):
    path = two_engines(tmp_path, {}, {})
    found = spending_of(path, Spending.of)
    assert not found.is_known and found.money() == 0
    with pytest.raises(ConfigError, match="no price is known"):
        price_of_llm(load_experiment(path), next(iter(found.prices)))
