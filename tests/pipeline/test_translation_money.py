"""What a translation costs: the estimate before, what is spent and left, and the limit that stops a run."""

import re
import shutil
import signal
import time

import pytest
from beir_folder import doc
from fault_answers import prompt_of
from fault_server import FaultServer
from running import beirnl, dataset, experiment, run, start
from support import shared
from translating import (
    by_id,
    command,
    counted,
    documents,
    dutch,
    finals,
    served,
    table,
    translation,
    write_set,
)

from beirnl.config import load_experiment
from beirnl.cost import amount
from beirnl.errors import BudgetError
from beirnl.estimates import translations as estimating
from beirnl.executors.local import LocalExecutor
from beirnl.graph import build_graph
from beirnl.llm.local import counter
from beirnl.pipeline import Pipeline
from beirnl.registry import resolve_model
from beirnl.specs import LlmSpec
from beirnl.spending import Spending
from beirnl.store.journal import read_entries
from beirnl.store.workspace import Workspace

A_WORD = {"input": 1_000_000, "output": 1_000_000}  # a word, which the mock counts as a token, costs 1


@pytest.fixture
def server():
    with FaultServer(answer=dutch, latency=0.02) as made:
        yield made


def words(server):
    """What the server has charged for: words of prompts and answers."""
    charged = server.counts.answered
    return sum(number * in_words(prompt) for prompt, number in charged.items())


def spent(path):
    loaded = load_experiment(path)
    workspace = Workspace(loaded.workspace_path)
    return Spending.of(loaded, build_graph(loaded, workspace), workspace).money()


def in_words(prompt):
    """Words of a prompt and of its answer."""
    return len(prompt.split()) + len(dutch(prompt).split())


def limited(tmp_path, server, most, shards=16, in_flight=2, **more):
    """An experiment of 120 documents with a limit, and what the longest row of it costs."""
    place = write_set(tmp_path / "set", documents(120))
    settings = served(server, price=A_WORD, server={"in_flight": in_flight}, **more)
    return experiment(
        tmp_path, dataset(place, shard_documents=shards) + translation(**settings, max_cost=most)
    )


A_ROW = 130  # a little more than the longest row costs
#: Two requests in flight, and as many answers that have come and are not counted yet, of each of four units.
LATE = 2 + 2 * 4


def test_max_cost_stops_a_run_that_goes_on_when_it_is_raised(tmp_path, server):
    path = limited(tmp_path, server, 3000.5)
    said = command("run", path)
    assert said.error.startswith(f"error: {path}: max_cost is reached: ")
    assert "of 3,000 USD are spent; raise max_cost and run the same command again" in said.error
    assert max(map(in_words, server.counts.prompts)) <= A_ROW
    assert 0.995 * 3000.5 <= spent(path) <= 3000.5 + LATE * A_ROW
    first = server.counts.prompts.total()
    again = command("run", path)
    assert again.error.startswith(f"error: {path}: max_cost is reached: ")
    assert server.counts.prompts.total() == first
    path.write_text(path.read_text().replace("3000.5", "1000000"))
    pipeline = run(path)
    assert {row["status"] for row in finals(pipeline)} == {"ok"} and len(finals(pipeline)) == 120
    assert spent(path) == sum(map(in_words, server.counts.prompts))  # every answer is in the journal once


@pytest.mark.parametrize(("in_flight", "latency"), [(2, 0.0), (64, 0.3)])
def test_what_is_in_flight_when_max_cost_stops_a_run_is_kept(tmp_path, in_flight, latency):
    with FaultServer(answer=dutch, latency=latency) as server:
        path = limited(tmp_path, server, 3000, in_flight=in_flight)
        command("run", path)
        answered = server.counts.prompts.total()
        assert answered < 121 and spent(path) == words(server)
        path.write_text(path.read_text().replace("3000", "1000000"))
        run(path)
        assert server.counts.prompts.total() == len(server.counts.prompts) == 121  # none a second time


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_in_flight_when_a_run_is_interrupted_is_kept(tmp_path, number):
    with FaultServer(answer=dutch, latency=0.3) as server:
        path = limited(tmp_path, server, 1_000_000, in_flight=16)
        process = start("run", path)
        while server.counts.prompts.total() < 40:
            time.sleep(0.01)
        process.send_signal(number)
        assert "interrupted; run the same command again" in process.communicate(timeout=60)[1]
        assert process.returncode == 130 and server.counts.prompts.total() < 121
        assert spent(path) == words(server)
        run(path)
        assert server.counts.prompts.total() == len(server.counts.prompts) == 121  # none a second time


def test_max_cost_is_shared_by_many_workers_round_after_round(tmp_path):
    place = write_set(tmp_path / "set", documents(60))
    text = dataset(place) + translation(price=A_WORD, max_cost=3000) + table("runtime", workers=4)
    path = experiment(tmp_path, text)
    with pytest.raises(BudgetError):
        Pipeline.of(load_experiment(path)).run(LocalExecutor())
    assert 0.995 * 3000 <= spent(path) <= 3000 + A_ROW


def test_an_engine_that_answers_one_by_one_spends_one_answer_too_much_and_asks_nothing_twice(tmp_path):
    place = write_set(tmp_path / "set", documents(60))
    path = experiment(tmp_path, dataset(place, shard_documents=8) + translation(price=A_WORD, max_cost=1000))
    pipeline = Pipeline.of(load_experiment(path))
    with pytest.raises(BudgetError):
        pipeline.run(LocalExecutor())
    stopped = spent(path)
    assert 1000 <= stopped < 1200
    path.write_text(path.read_text().replace("max_cost = 1000", "max_cost = 900000"))
    pipeline = run(path)
    answers = counted(pipeline, "translate")  # of the attempts that were committed
    spending = Spending.of(pipeline.experiment, pipeline.graph, pipeline.workspace)
    (llm,) = spending.prices
    assert spending.totals(llm).answers == 61 and 0 < answers < 61


def test_two_workers_share_what_is_left(tmp_path, server):
    path = limited(tmp_path, server, 2500)
    done = beirnl("run", path, "--workers", "2", check=2)
    assert "max_cost is reached" in done.stderr and done.stderr.count("error: ") == 1
    assert 0.995 * 2500 <= spent(path) <= 2500 + 2 * LATE * A_ROW


def test_what_is_paid_for_already_is_no_reason_to_stop(tmp_path):
    place = write_set(tmp_path / "set", documents(10))
    path = experiment(tmp_path, dataset(place) + translation(price=A_WORD, max_cost=1000000))
    run(path)
    cost = spent(path)
    path.write_text(path.read_text().replace("max_cost = 1000000", f"max_cost = {cost}"))
    shutil.rmtree(tmp_path / "workspace" / "artifacts" / "translate")
    pipeline = run(path)
    assert spent(path) == cost and len(finals(pipeline)) == 10


def test_status_shows_what_is_spent_and_left(tmp_path):
    place = write_set(tmp_path / "set", documents(10))
    path = experiment(tmp_path, dataset(place) + translation(price=A_WORD, max_cost=5000))
    before = command("status", path)
    assert "answers in the journal: 0 (0 tokens), 0.00 USD spent, 5,000 of 5,000 left" in before.out
    run(path)
    cost = spent(path)
    line = f"11 ({cost:,.0f} tokens), {amount(cost)} USD spent, {amount(5000 - cost)} of 5,000 left"
    assert line in command("status", path).out


def test_status_without_a_price_counts_answers(tmp_path):
    place = write_set(tmp_path / "set", documents(3))
    path = experiment(tmp_path, dataset(place) + translation())
    run(path)
    assert re.search(r"answers in the journal: 4 \([\d,]+ tokens\)\n$", command("status", path).out)


def test_the_second_engine_is_paid_at_its_own_price(tmp_path, server):
    rows = [
        doc(f"x{n}", f"The people drink water in {n} houses. [[fault:empty]]", f"Title {n}") for n in range(4)
    ]
    place = write_set(tmp_path / "set", [*documents(4), *rows])
    second = served(server, price={"input": 3_000_000, "output": 0})
    path = experiment(tmp_path, dataset(place) + translation(repair=["engine"], price=A_WORD, second=second))
    run(path)
    loaded = load_experiment(path)
    workspace = Workspace(loaded.workspace_path)
    spending = Spending.of(loaded, build_graph(loaded, workspace), workspace)
    own, other = spending.prices
    (first, then) = (spending.totals(llm) for llm in (own, other))
    assert first.answers == 9 and then.answers == server.counts.prompts.total() == 4
    assert spending.money() == first.prompt_tokens + first.completion_tokens + 3 * then.prompt_tokens


def test_a_batch_engine_costs_the_batch_price(tmp_path, server):
    place = write_set(tmp_path / "set", documents(5))
    price = A_WORD | {"batch_discount": 0.5}
    path = experiment(tmp_path, dataset(place) + translation(**served(server, "batch", price=price)))
    pipeline = run(path)
    assert {row["status"] for row in by_id(pipeline).values()} == {"ok"}
    assert spent(path) == words(server) / 2


def test_a_model_without_a_price_runs_but_cannot_be_limited(tmp_path, server):
    place = write_set(tmp_path / "set", documents(3))
    settings = served(server)
    del settings["price"]
    path = experiment(tmp_path, dataset(place) + translation(**settings))
    path.write_text(path.read_text().replace("[translation]\n", "[translation]\nmax_cost = 5\n"))
    said = command("run", path)
    assert said.error.startswith("error: [translation]: no price is known for model 'mock'; write price = {")
    assert server.counts.prompts.total() == 0 and not [*(tmp_path / "workspace").rglob("journal/*/*.jsonl")]
    path.write_text(path.read_text().replace("max_cost = 5\n", ""))
    assert command("run", path).code == 0 and server.counts.prompts.total() == 4
    assert "answers in the journal: 4" in command("status", path).out
    assert "what they cost is not known" in command("status", path).out


# Before -----------------------------------------------------------------------------------------------------


def estimate(path):
    """The rows of the estimate: name to cells, and the notes."""
    said = command("plan", path, "--estimate")
    assert said.code == 0, said.err
    cells = [re.split(r"\s{2,}", line.strip()) for line in said.out.splitlines()]
    return {row[0]: row[1:] for row in cells if len(row) == 8 and row[1].replace(",", "").isdigit()}, said.out


def span(cell):
    """The ends of a range."""
    ends = [float(end.replace(",", "")) for end in re.split(r"\s*–\s*", cell)]
    return ends[0], ends[-1]


def forecast(path):
    """The total of the estimate."""
    return estimating.forecast(Pipeline.of(load_experiment(path))).rows[-1]


def journalled(path):
    """How many requests are answered in the journal."""
    files = load_experiment(path).workspace_path.rglob("journal/*/*.jsonl")
    return len({entry.key for file in files for entry in read_entries(file)})


@pytest.mark.parametrize("looked", [20_000, 1], ids=["all", "a sample"])
def test_an_estimate_knows_what_a_run_that_stopped_has_been_answered(tmp_path, server, monkeypatch, looked):
    monkeypatch.setattr(estimating, "ROWS", looked)
    monkeypatch.setattr(estimating, "_OF_A_UNIT", 10)
    path = limited(tmp_path, server, 6000, shards=32, repair=[])
    command("run", path)
    stopped, answers = spent(path), journalled(path)
    left = forecast(path)
    assert left.texts == 121 and left.known.low <= answers <= left.known.high
    assert left.known.is_exact == (looked > 1)
    path.write_text(path.read_text().replace("max_cost = 6000", "max_cost = 1000000"))
    run(path)
    assert left.money.low <= spent(path) - stopped <= left.money.high
    assert left.money.high < 1.25 * left.money.low or looked == 1
    assert forecast(path).money == (0, 0, 0)


def test_an_estimate_knows_what_another_experiment_has_paid_for(tmp_path, server):
    rows = documents(60)
    one = write_set(tmp_path / "one", rows[:40])
    other = write_set(tmp_path / "other", [row | {"_id": f"x{n}"} for n, row in enumerate(rows)])
    settings = served(server, price=A_WORD, repair=[])
    run(experiment(tmp_path, dataset(one, "first", shard_documents=8) + translation(**settings)))
    cost = spent(tmp_path / "experiment.toml")
    path = experiment(tmp_path, dataset(other, "second", shard_documents=30) + translation(**settings))
    rows, _ = estimate(path)
    assert rows["second document"][:2] == ["60", "40"] and rows["second query"][:2] == ["1", "1"]
    low, high = span(rows["total"][5])
    run(path)
    assert low <= spent(path) - cost <= high


def test_an_estimate_does_not_count_an_empty_text_and_counts_every_piece(tmp_path):
    long = " ".join(row["text"] for row in documents(60))
    place = write_set(tmp_path / "set", [doc("a", "", ""), doc("b", "  ", ""), doc("c", long), *documents(3)])
    path = experiment(tmp_path, dataset(place) + translation(price=A_WORD, repair=[]))
    rows, _ = estimate(path)
    asked = float(rows["own document"][2])
    assert rows["own document"][0] == "4"
    run(path)
    assert journalled(path) == asked + 1 > 6


def test_an_estimate_counts_the_repairs_that_are_to_come(tmp_path):
    bad = [
        doc(f"x{n}", f"The people drink water in {n} houses. [[fault:empty]]", f"T {n}") for n in range(30)
    ]
    place = write_set(tmp_path / "set", [*documents(30), *bad])
    path = experiment(
        tmp_path, dataset(place, shard_documents=8) + translation(price=A_WORD, repair=["room"])
    )
    pipeline = run(path)
    assert forecast(path).requests == (0, 0, 0)
    (repairs,) = (
        node
        for node in pipeline.graph.nodes.values()
        if node.stage == "repair" and "document" in str(node.spec.rungs[0].translation.kind)
    )
    shutil.rmtree(repairs.artifact(pipeline.workspace).directory)
    low, _, high = forecast(path).requests
    assert low == 0 < high  # assumed, since none has been measured
    run(experiment(tmp_path, dataset(place, shard_documents=8) + translation(price=A_WORD, repair=["room"])))


def test_an_estimate_counts_what_two_sets_share_once(tmp_path):
    common = documents(30)
    first = write_set(tmp_path / "one", common + documents(10, seed=1))
    second = write_set(
        tmp_path / "two", [row | {"_id": f"x{n}"} for n, row in enumerate([*common, *documents(5, seed=2)])]
    )
    text = dataset(first, "one") + dataset(second, "two", shard_documents=5)
    path = experiment(tmp_path, text + translation(price=A_WORD))
    rows, _ = estimate(path)
    assert {name: cells[:2] for name, cells in rows.items()} == {
        "one document": ["40", "0"],
        "one query": ["1", "0"],
        "two document": ["5", "0"],
        "two query": ["0", "0"],
        "total": ["46", "0"],
    }
    low, high = span(rows["total"][5])
    assert 0 < low < high
    run(path)
    rows, shown = estimate(path)
    assert rows["total"][:3] == ["46", "46", "0"] and "measured on" in shown


def test_the_cost_lies_within_the_estimate(tmp_path):
    """No tokenizer is at hand, and the server counts with a real vocabulary."""
    place = write_set(tmp_path / "set", english())
    with FaultServer(answer=turned) as server:
        server.model.complete = counted_by_a_vocabulary(server.model.complete)
        settings = served(server, price={"input": 1000, "output": 4000}, server={"in_flight": 64})
        path = experiment(tmp_path, dataset(place, shard_documents=64) + translation(**settings, repair=[]))
        rows, shown = estimate(path)
        assert server.counts.prompts.total() == 0
        assert (
            "one for 4.5 bytes, since the tokenizer of mock is not at hand, times 1 (0.868 to 1.19" in shown
        )
        run(path)
        low, high = span(rows["total"][5])
        assert low <= spent(path) <= high <= 2 * low


def english():
    """Documents of news; their human translations are what the server answers."""
    return [doc(f"n{n}", line, "") for n, line in enumerate(parallel("newstest2019-src.eng.txt"))]


def parallel(name):
    with shared("ntrex", name).open(encoding="utf-8") as file:
        return [line.strip() for line in file][:300]


def turned(prompt):
    """The translation of the line of which a prompt asks."""
    pairs = zip(parallel("newstest2019-src.eng.txt"), parallel("newstest2019-ref.nld.txt"), strict=True)
    found = next((dutch for english, dutch in pairs if english in prompt), "Wat is een cel?")
    return f"<title></title><body>{found}</body>"


def counted_by_a_vocabulary(complete):
    """Responses whose tokens are counted by the tokenizer of an LLM."""
    count = counter(LlmSpec(engine="transformers", model=resolve_model("gemma-3-270m", "llm")))

    def counted(path, body):
        response = complete(path, body)
        said = response["choices"][0]["message"]["content"]
        prompt, answer = count(prompt_of(body)), count(said)
        return response | {"usage": {"prompt_tokens": prompt, "completion_tokens": answer}}

    return counted


def test_an_estimate_says_whose_tokenizer_has_counted(tmp_path):
    place = write_set(tmp_path / "set", documents(5))
    engine = {"engine": "openai", "price": A_WORD, "server": {"api_key_env": ""}}
    path = experiment(tmp_path, dataset(place) + translation(**engine, model="gemma-3-270m"))
    assert "tokens: counted by the tokenizer of gemma-3-270m\n" in estimate(path)[1]
    path = experiment(tmp_path, dataset(place) + translation(**engine, model="a-model-of-tomorrow"))
    assert "tokens: one for 4.5 bytes, since the tokenizer of a-model-of-tomorrow is not" in estimate(path)[1]


@pytest.mark.parametrize("limit", [{}, {"max_cost": 5}], ids=["no limit", "max_cost"])
def test_an_estimate_of_a_model_without_a_price_counts_and_says_what_to_write(tmp_path, limit):
    place = write_set(tmp_path / "set", documents(5))
    engine = {"engine": "openai", "model": "nobody-knows-it"}
    server = {"api_key_env": "", "requests_per_minute": 1}
    path = experiment(tmp_path, dataset(place) + translation(**engine, server=server, **limit))
    rows, shown = estimate(path)
    assert rows["total"][:2] == ["6", "0"] and span(rows["total"][2]) == (6, 7)
    assert span(rows["total"][3])[0] > 100 and rows["total"][5] == "–" and span(rows["total"][6])[0] == 0.10
    assert "no price: write price = { input = ..., output = ... } under [translation], in money" in shown


def test_an_estimate_of_shards_of_one_row(tmp_path):
    place = write_set(tmp_path / "set", documents(5))
    path = experiment(tmp_path, dataset(place, shard_documents=1) + translation(price=A_WORD))
    rows, _ = estimate(path)
    assert rows["own document"][:2] == ["5", "0"]


def test_an_estimate_asks_nothing_and_needs_no_key(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    place = write_set(tmp_path / "set", documents(5))
    engine = {
        "engine": "openai",
        "model": "gpt-4o-mini",
        "server": {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "NO_SUCH_KEY"},
    }
    rows, shown = estimate(experiment(tmp_path, dataset(place) + translation(**engine)))
    assert rows["total"][0] == "6" and "openai.com" in shown


def test_max_cost_limits_what_is_ordered_in_batch_jobs(tmp_path, server):
    place = write_set(tmp_path / "set", documents(120))
    settings = served(server, "batch", price=A_WORD)
    path = experiment(tmp_path, dataset(place, shard_documents=16) + translation(**settings, max_cost=2500))
    assert "max_cost is reached" in command("run", path).error
    ordered = sum(len(batch["_lines"]) for batch in server.store.batches.values() if "_lines" in batch)
    assert words(server) <= 2500 + 40 * A_ROW and ordered < 120
