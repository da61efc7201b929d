"""An estimate for a terminal."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from beirnl.cost.estimates import EXACT, TOTAL, EstimateRow, Factor, Range, SetSample, Speed
from beirnl.cost.prices import Price, amount

if TYPE_CHECKING:
    from rich.table import Table

_UNKNOWN = "unknown"


def table(rows: Sequence[EstimateRow], currency: str = "USD") -> "Table":
    """The estimate for a terminal, ranges as low – high, the total last."""
    from rich import box
    from rich.table import Table

    made = Table(title="Estimate", title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    made.add_column("dataset", overflow="fold", min_width=8)
    for head in ("texts", "known"):
        made.add_column(head, justify="right", no_wrap=True)
    for head in ("requests", "prompt tokens", "completion tokens", currency, "hours"):
        made.add_column(head, justify="right", overflow="fold")  # a range wraps at its dash
    for row in rows:
        if (row.dataset, row.kind) == (TOTAL, ""):
            made.add_section()
        made.add_row(
            f"{row.dataset} {row.kind}".strip(),
            f"{row.texts:,}",
            f"{'' if row.known.is_exact else '~'}{row.known.mid:,.0f}",
            _span(row.requests, _count),
            _span(row.prompt_tokens, _count),
            _span(row.completion_tokens, _count),
            _span(row.money, amount),
            _span(row.hours, _hours) if row.hours else _UNKNOWN,
        )
    return made


def notes(
    samples: Sequence[SetSample], price: Price | str | None, batch: bool, repairs: Factor, speed: Speed
) -> list[str]:
    """What the estimate rests on, one line each.

    Args:
        samples: of the sets.
        price: None: nothing is paid per token; a text: what to do about a price that is not known.
        batch: whether the provider's batch mode is used.
        repairs, speed: as for :func:`beirnl.cost.estimate`.
    """
    counters = [(one.kind, _counter(one)) for one in samples]
    expansions = [(one.kind, _factor(one.expansion)) for one in samples]
    return [
        _price(price, batch),
        *_by_kind("tokens", counters),
        *_by_kind("completion tokens per source token", expansions),
        f"repairs per text: {_factor(repairs)}",
        f"hours: {_pace(speed, batch)}",
    ]


def _price(price: Price | str | None, batch: bool) -> str:
    if price is None:
        return "nothing is paid per token"
    if isinstance(price, str):
        return f"no price: {price}"
    mode = f", times {price.batch_discount:g} in batch mode" if batch else ""
    cost = (
        f"{price.input:g} and {price.output:g} {price.currency} per million tokens of prompt and completion"
    )
    return f"price: {cost}{mode} ({price.origin})"


def _counter(one: SetSample) -> str:
    return one.counter if one.counted == EXACT else f"{one.counter}, times {_factor(one.counted)}"


def _by_kind(heading: str, lines: Sequence[tuple[str, str]]) -> list[str]:
    """Each different line once; where queries and documents differ, with the kind."""
    kinds: dict[str, list[str]] = {}
    for kind, line in lines:
        kinds.setdefault(line, []).append(kind)
    if len(kinds) == 1:
        return [f"{heading}: {line}" for line in kinds]
    return [f"{heading}, {' and '.join(dict.fromkeys(of))}: {line}" for line, of in kinds.items()]


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
    ends = "" if factor.low == factor.high else f"{factor.low:.3g} to {factor.high:.3g}, "
    return f"{factor.mid:.3g} ({ends}{factor.origin})"


def _span(span: Range | None, form: Callable[[float], str]) -> str:
    if span is None:
        return "–"
    return " – ".join(dict.fromkeys((form(span.low), form(span.high))))


def _hours(value: float) -> str:
    return "< 0.01" if 0 < value < 0.01 else amount(value)


def _count(value: float) -> str:
    """Three digits and a unit: 950, 12.3k, 1.20M, 3.50G."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size * 0.9995:
            return f"{_digits(value / size)}{unit}"
    return f"{value:.0f}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
