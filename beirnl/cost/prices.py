"""Prices of models, money for tokens, and money for people to read."""

import math
from typing import NamedTuple

from beirnl import registry
from beirnl.errors import ConfigError

_MILLION = 1_000_000


class Price(NamedTuple):
    """What a provider asks.

    Attributes:
        input, output: money per million tokens of prompt and of completion.
        batch_discount: factor on both in batch mode (0.5: half price).
        currency: of the money.
        origin: where the price is from, for people.
    """

    input: float
    output: float
    batch_discount: float = 1.0
    currency: str = "USD"
    origin: str = "given in the experiment"


def price_of(model: str, given: Price | None = None, where: str = "[translation]") -> Price:
    """The price of a model: the one given, else the registry's.

    Args:
        model: as its provider calls it.
        given: from the experiment file.
        where: the table of that file which names the model.

    Raises:
        ConfigError: neither has one.
    """
    if given is not None:
        return given
    entry = registry.prices().get(model)
    if entry is None:
        known = ", ".join(registry.prices())
        raise ConfigError(
            f"no price is known for model {model!r}",
            where=where,
            remedy=f"write price = {{ input = ..., output = ... }} under {where}, in money per million "
            f"tokens, or add an entry to beirnl/registry/prices.toml, which has {known}",
        )
    origin = f"{entry.source}, {entry.as_of}" + (f"; {entry.note}" if entry.note else "")
    return Price(entry.input, entry.output, entry.batch_discount, entry.currency, origin)


def money(prompt_tokens: float, completion_tokens: float, price: Price, batch: bool = False) -> float:
    """What tokens cost, in the price's currency; ``batch``: asked through the provider's batch mode."""
    full = (prompt_tokens * price.input + completion_tokens * price.output) / _MILLION
    return full * price.batch_discount if batch else full


def amount(money: float) -> str:
    """Money as people read it: with cents, from a thousand on without, and below one with two digits that
    count: ``0.0042``, ``0.50``, ``74.60``, ``12,346``."""
    if money >= 999.995:
        return f"{money:,.0f}"
    if not 0 < money < 1:
        return f"{money:.2f}"
    return f"{money:.{max(2, 1 - math.floor(math.log10(money)))}f}"
