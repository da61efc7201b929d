"""Prices of models, and money for tokens."""

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


def price_of(model: str, given: Price | None = None) -> Price:
    """The price of a model: the one given, else the registry's.

    Args:
        model: as its provider calls it.
        given: from the experiment file.

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
            where="[translation]",
            remedy="write price = { input = ..., output = ... } there, in money per million tokens, or add "
            f"an entry to beirnl/registry/prices.toml, which has {known}",
        )
    origin = f"{entry.source}, {entry.as_of}" + (f"; {entry.note}" if entry.note else "")
    return Price(entry.input, entry.output, entry.batch_discount, entry.currency, origin)


def money(prompt_tokens: float, completion_tokens: float, price: Price, batch: bool = False) -> float:
    """What tokens cost, in the price's currency; ``batch``: asked through the provider's batch mode."""
    full = (prompt_tokens * price.input + completion_tokens * price.output) / _MILLION
    return full * price.batch_discount if batch else full
