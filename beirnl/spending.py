"""What an experiment has spent on answers, and what its workers may still spend.

Spent is what the journal holds: the answers that these engines have given in this workspace, for whatever
experiment. An engine that runs on one's own machines costs nothing here unless it is given a price.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from beirnl.config import EngineConfig, Experiment
from beirnl.cost import Price, price_of
from beirnl.cost import money as price_for
from beirnl.errors import ConfigError
from beirnl.graph import Graph, Node
from beirnl.llm import ENGINES
from beirnl.specs import LlmSpec
from beirnl.stages import STAGES
from beirnl.stages.base import Allowance
from beirnl.stages.translate import journal_folder
from beirnl.store.journal import Totals, totals
from beirnl.store.workspace import Workspace


class Paid(NamedTuple):
    """What answers add up to: tokens of one engine, and money of all of them, where it is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = None
    currency: str = ""


_FREE = Price(input=0.0, output=0.0)


@dataclass(frozen=True)
class Spending:
    """The engines of an experiment with their prices, and the journal that tells what they have cost.

    Args:
        workspace: where the journal is.
        prices: price per engine; None where an API's is not known.
    """

    workspace: Workspace
    prices: dict[LlmSpec, Price | None]

    @classmethod
    def of(cls, experiment: Experiment, graph: Graph, workspace: Workspace) -> "Spending":
        """The spending of an experiment."""
        return cls(workspace, {llm: _known_price(experiment, llm) for llm in graph.asked()})

    @classmethod
    def limited(cls, experiment: Experiment, graph: Graph, workspace: Workspace) -> "Spending":
        """The spending of an experiment with a ``max_cost``.

        Raises:
            ConfigError: an API whose model has no price, or prices in several currencies.
        """
        found = cls.of(experiment, graph, workspace)
        prices = [price_of_llm(experiment, llm) for llm in found.prices]
        currencies = dict.fromkeys(price.currency for price in prices if price.input or price.output)
        if len(currencies) > 1:
            raise ConfigError(
                f"max_cost is for prices in {' and '.join(currencies)} together, and nothing converts them",
                where=experiment.file,
                remedy='write them in one: price = { input = ..., output = ..., currency = "USD" }',
            )
        return found

    @classmethod
    def check_limit(
        cls, experiment: Experiment, graph: Graph, workspace: Workspace, nodes: Iterable[Node]
    ) -> None:
        """Refuse, before anything is done, a ``max_cost`` that cannot be kept when these nodes are made.

        Raises:
            ConfigError: as :meth:`limited`, if any of the nodes asks an engine.
        """
        if experiment.max_cost and any(STAGES[node.stage].asks for node in nodes):
            cls.limited(experiment, graph, workspace)

    @property
    def is_known(self) -> bool:
        """Whether every engine has a price."""
        return None not in self.prices.values()

    @property
    def currency(self) -> str:
        """Of the first engine that anything is paid for."""
        paid = (price.currency for price in self.prices.values() if price and (price.input or price.output))
        return next(paid, _FREE.currency)

    def totals(self, llm: LlmSpec) -> Totals:
        """Answers and tokens that an engine has given."""
        return totals(journal_folder(self.workspace, llm))

    def money(self) -> float:
        """Money spent so far, on all engines with a price."""
        costs = (
            self.cost(llm, found.prompt_tokens, found.completion_tokens)
            for llm in self.prices
            for found in [self.totals(llm)]
        )
        return sum(cost or 0.0 for cost in costs)

    def cost(self, llm: LlmSpec, prompt_tokens: int, completion_tokens: int) -> float | None:
        """What tokens of an engine cost; None where its price is not known, or nothing."""
        price = self.prices.get(llm)
        if price is None or not (price.input or price.output):
            return None
        return price_for(prompt_tokens, completion_tokens, price, ENGINES[llm.engine].deferred)

    @property
    def is_paid(self) -> bool:
        """Whether any engine has a price that is not nothing."""
        return any(price and (price.input or price.output) for price in self.prices.values())

    def paid(self, llm: LlmSpec) -> Paid:
        """Tokens of an engine, and the money that all of them have cost, where that is known."""
        found = self.totals(llm)
        money = self.money() if self.is_paid and self.is_known else None
        return Paid(found.prompt_tokens, found.completion_tokens, money, self.currency)

    def allowance(self, llm: LlmSpec, money: float) -> Allowance:
        """An allowance of ``money`` for one worker's next units."""
        price, batch = self.prices[llm] or _FREE, ENGINES[llm.engine].deferred
        a_token = price_for(1, 0, price, batch), price_for(0, 1, price, batch)
        return Allowance(uuid.uuid4().hex[:8], money, *a_token)


def _known_price(experiment: Experiment, llm: LlmSpec) -> Price | None:
    try:
        return price_of_llm(experiment, llm)
    except ConfigError:
        return None


def price_of_llm(experiment: Experiment, llm: LlmSpec) -> Price:
    """The price of an engine: what the file says, else the registry's; nothing for one's own machines.

    Raises:
        ConfigError: an API whose model has no price.
    """
    heading, config = _table_of(experiment, llm)
    given = Price(**config.price.model_dump()) if config and config.price else None
    if not ENGINES[llm.engine].remote:
        return given or _FREE
    assert llm.model is not None
    return price_of(llm.model.name, given, heading)


def _table_of(experiment: Experiment, llm: LlmSpec) -> tuple[str, EngineConfig | None]:
    """The table of the experiment file that an LLM comes from, with its heading."""
    translation, name = experiment.translation, llm.model and llm.model.name
    tables: dict[str, EngineConfig | None] = {"[translation]": translation}
    tables["[translation.second]"] = translation and translation.second
    tables |= experiment.rag.engines if experiment.rag else {}
    for heading, table in tables.items():
        if table and table.engine in (llm.engine, "auto") and table.model == name:
            return heading, table
    return next((heading for heading, table in tables.items() if table), "[translation]"), None
