"""An estimate for a terminal."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from beirnl.cost.estimates import TOTAL, EstimateRow, Factor, Range, Speed
from beirnl.cost.prices import Price

if TYPE_CHECKING:
    from rich.table import Table

_UNKNOWN = "unknown"


def table(rows: Sequence[EstimateRow], currency: str = "USD") -> "Table":
    """The estimate for a terminal, ranges as low – high, the total last."""
    from rich import box
    from rich.table import Table

    made = Table(title="Estimate", title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    made.add_column("dataset", overflow="fold", min_width=8)
    for head in ("requests", "known"):
        made.add_column(head, justify="right", no_wrap=True)
    for head in ("to ask", "prompt tokens", "completion tokens", currency, "hours"):
        made.add_column(head, justify="right", overflow="fold")  # a range wraps at its dash
    for row in rows:
        if (row.dataset, row.kind) == (TOTAL, ""):
            made.add_section()
        made.add_row(
            f"{row.dataset} {row.kind}".strip(),
            f"{row.requests:,}",
            f"{row.known:,}",
            _span(row.to_ask, _count),
            _span(row.prompt_tokens, _count),
            _span(row.completion_tokens, _count),
            _span(row.money, _amount),
            _span(row.hours, _amount) if row.hours else _UNKNOWN,
        )
    return made


def notes(price: Price | None, batch: bool, expansion: Factor, repairs: Factor, speed: Speed) -> list[str]:
    """What the estimate rests on, one line each."""
    lines = [
        f"completion tokens per source token: {_factor(expansion)}",
        f"repairs per request: {_factor(repairs)}",
        f"hours: {_pace(speed, batch)}",
    ]
    if price is None:
        return ["nothing is paid per token", *lines]
    mode = f", times {price.batch_discount:g} in batch mode" if batch else ""
    cost = (
        f"{price.input:g} and {price.output:g} {price.currency} per million tokens of prompt and completion"
    )
    return [f"price: {cost}{mode} ({price.origin})", *lines]


def _pace(speed: Speed, batch: bool) -> str:
    if speed.measured is not None:
        return f"completion tokens per second: {_factor(speed.measured)}"
    if batch:
        return "unknown: the provider decides when a batch job runs"
    limits = (speed.requests_per_minute, speed.tokens_per_minute)
    if any(limits):
        names = ("requests", "tokens")
        named = [f"{limit:g} {name}" for limit, name in zip(limits, names, strict=True) if limit]
        return f"at least, at the rate limit of {' and '.join(named)} per minute"
    return "unknown: run a sample first"


def _factor(factor: Factor) -> str:
    return f"{factor.mid:.3g} ({factor.low:.3g} to {factor.high:.3g}, {factor.origin})"


def _span(span: Range | None, form: Callable[[float], str]) -> str:
    if span is None:
        return "–"
    return " – ".join(dict.fromkeys((form(span.low), form(span.high))))


def _count(value: float) -> str:
    """Three digits and a unit: 950, 12.3k, 1.20M, 3.50G."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size * 0.9995:
            return f"{_digits(value / size)}{unit}"
    return f"{value:.0f}"


def _amount(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2g}" if 0 < value < 0.1 else _digits(value)


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
