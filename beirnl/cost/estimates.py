"""An estimate of requests, tokens, money and hours, each with a range.

It multiplies what a sample says of a request by the number of requests. Ranges are combined at their ends
(all that is uncertain at its low end, then all at its high end), so they are wider than an interval of
95 %, not narrower.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from beirnl.cost.prices import Price, money
from beirnl.errors import DataError
from beirnl.wording import counted

#: Name of the row that sums the others.
TOTAL = "total"

_Z = 1.96  # half width of a 95 % interval, in standard errors


class Range(NamedTuple):
    """A predicted number: lowest, likeliest, highest."""

    low: float
    mid: float
    high: float

    def __add__(self, other: object) -> "Range":
        """Both ends of two ranges added: they are not taken to be independent."""
        if not isinstance(other, Range):
            return NotImplemented
        return Range(*(a + b for a, b in zip(self, other, strict=True)))

    @classmethod
    def exactly(cls, number: float) -> "Range":
        """A number that is known."""
        return cls(number, number, number)

    def times(self, other: "Range") -> "Range":
        """The product of two ranges of numbers that are not negative."""
        return Range(*(a * b for a, b in zip(self, other, strict=True)))

    @property
    def is_exact(self) -> bool:
        """Whether there is no range."""
        return self.low == self.high


class Factor(NamedTuple):
    """A number that an estimate multiplies by, with its range and where it is from, for people."""

    low: float
    mid: float
    high: float
    origin: str


#: Tokens of a translation for one token of its source, where nothing at all is known.
EXPANSION = Factor(1.0, 1.3, 1.6, "assumed")
#: Tokens are counted as the provider counts them.
EXACT = Factor(1.0, 1.0, 1.0, "")
#: Requests of the repair ladder for each first request, where none have been measured.
REPAIRS = Factor(0.0, 0.05, 0.15, "assumed")


class Speed(NamedTuple):
    """What decides how long it takes; without any of it, hours are unknown.

    Attributes:
        measured: completion tokens per second of all workers together, from earlier runs.
        requests_per_minute, tokens_per_minute: the provider's limits; tokens of prompt and completion.
    """

    measured: Factor | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


#: Nothing is known: hours are not estimated.
NO_SPEED = Speed()


class SetSample(NamedTuple):
    """The queries or documents of one dataset: how many, and a random sample of those to be asked.

    Attributes:
        dataset: its name.
        kind: ``query`` or ``document``.
        texts: distinct ones; one that an earlier set also has belongs to that.
        known: how many of them are answered in the journal.
        unrepaired: how many have yet to go through the repair ladder.
        prompt_tokens: of each sampled text's requests, prompts included, as they are counted here.
        source_tokens: of the text itself, in the same requests.
        requests: for each sampled text; empty: one each.
        counted: tokens that the provider counts for each that is counted here.
        expansion: tokens of a translation for each of its source.
        counter: what counted here, for people.
    """

    dataset: str
    kind: str
    texts: int
    known: Range
    unrepaired: int
    prompt_tokens: Sequence[float]
    source_tokens: Sequence[float]
    requests: Sequence[float] = ()
    counted: Factor = EXACT
    expansion: Factor = EXPANSION
    counter: str = ""


class EstimateRow(NamedTuple):
    """What the rest of one set will take; ``money`` is None without a price, ``hours`` if unknown.

    Attributes:
        dataset, kind: the set; ``total`` for their sum.
        texts, known: distinct texts, and those already answered.
        requests: still to be made, repairs included.
        prompt_tokens, completion_tokens: of those.
        money: in the price's currency.
        hours: of a run.
    """

    dataset: str
    kind: str
    texts: int
    known: Range
    requests: Range
    prompt_tokens: Range
    completion_tokens: Range
    money: Range | None
    hours: Range | None


def measured_counted(ours: Sequence[float], theirs: Sequence[int], left: float = math.inf) -> Factor:
    """Prompt tokens that the provider has counted for each that is counted here, from answered requests.

    Args:
        ours: tokens of each prompt, as they are counted here.
        theirs: as the provider has counted them.
        left: requests that it is to hold for; few of them can differ more from those that are answered.

    Raises:
        DataError: there are no answers, or none of the prompts has a token.
    """
    return _ratio(theirs, ours, f"measured on {counted(len(ours), 'answer')}", left)


def measured_expansion(
    source_tokens: Sequence[float], completion_tokens: Sequence[int], left: float = math.inf
) -> Factor:
    """Tokens of a translation for one of its source, from requests that are answered.

    Args:
        source_tokens: as the provider counts them: what is counted here, times :func:`measured_counted`.
        completion_tokens: as the provider has counted them.
        left: as for :func:`measured_counted`.

    Raises:
        DataError: there are no answers, or none of the sources has a token.
    """
    return _ratio(
        completion_tokens, source_tokens, f"measured on {counted(len(source_tokens), 'answer')}", left
    )


def measured_known(units: Sequence[tuple[int, int, int]], total: int) -> Range:
    """How many texts are answered, from samples of units of work; exact where all have been looked up.

    Args:
        units: texts of each unit that was looked at, how many of them were looked up, how many are answered.
        total: texts of all units.
    """
    looked, found = sum(unit[1] for unit in units), sum(unit[2] for unit in units)
    if looked >= total:
        return Range.exactly(found)
    sizes = [unit[0] for unit in units]
    share = _ratio([size * known / seen for size, seen, known in units], sizes, "")
    unseen = math.sqrt(max(0.0, 1 - sum(sizes) / total))  # units that were not looked at
    within = _Z * math.sqrt(share.mid * (1 - share.mid) / looked)  # texts that were not, in those that were
    half = math.hypot((share.high - share.mid) * unseen, within) * total
    mid = share.mid * total
    return Range(max(found, mid - half), mid, min(total - (looked - found), mid + half))


def measured_repairs(repairs: Sequence[int]) -> Factor:
    """Requests of the repair ladder for each first request, from how many each of the finished rows took.

    The high end is at least 3 over the number of rows: the bound when none has been seen (the rule of three).

    Raises:
        DataError: there are no rows.
    """
    found = _ratio(repairs, [1] * len(repairs), f"measured on {counted(len(repairs), 'row')}")
    return found._replace(high=max(found.high, 3 / len(repairs)))


def measured_speed(completion_tokens: Sequence[int], seconds: Sequence[float], workers: int = 1) -> Factor:
    """Completion tokens per second of all workers, from the units of work of earlier runs.

    The low end is not below the slowest unit.

    Args:
        completion_tokens: that each unit made.
        seconds: that it took on one worker.
        workers: that will run.

    Raises:
        DataError: there are no units, or they took no time.
    """
    one = _ratio(completion_tokens, seconds, f"measured on {counted(len(seconds), 'unit of work')}")
    rates = [made / took for made, took in zip(completion_tokens, seconds, strict=True) if took > 0]
    low = max(one.low, min(rates))
    return Factor(low * workers, one.mid * workers, one.high * workers, one.origin)


def _ratio(above: Sequence[float], below: Sequence[float], origin: str, left: float = math.inf) -> Factor:
    """A ratio of sums with its 95 % normal interval (Cochran 1977, section 6.4), or that of the same in
    ``left`` more pairs; one pair has no interval."""
    y, x = np.asarray(above, np.float64), np.asarray(below, np.float64)
    if len(y) != len(x) or not x.sum() > 0:
        raise DataError("there is nothing to measure a rate on", remedy="run a sample first")
    ratio = float(y.sum() / x.sum())
    spread = float(np.sqrt(((y - ratio * x) ** 2).sum() / max(len(x) - 1, 1)))
    half = _Z * spread * math.sqrt(1 / len(x) + 1 / left) / float(x.mean())
    return Factor(max(0.0, ratio - half), ratio, ratio + half, origin)


def estimate(
    samples: Sequence[SetSample],
    price: Price | None,
    *,
    batch: bool = False,
    repairs: Factor = REPAIRS,
    speed: Speed = NO_SPEED,
) -> list[EstimateRow]:
    """What the rest of the work will take: one row per set, and their total as the last.

    A set's mean text has the 95 % normal interval of its sample, with the correction for a finite population;
    a repair counts as one more text like it. Completions are the source's tokens times ``expansion``.

    Args:
        samples: the sets.
        price: None: nothing is paid per token, or it is not known how much.
        batch: whether the provider's batch mode is used: its discount holds, its rate limits do not.
        repairs: of the repair ladder for each text.
        speed: what decides the hours.

    Raises:
        DataError: the sample of a set with requests to be made has fewer than two (nor all) of its texts.
    """
    rows = [_row(one, price, batch, repairs, speed) for one in samples]
    return [*rows, total(rows, price is not None)]


def _row(one: SetSample, price: Price | None, batch: bool, repairs: Factor, speed: Speed) -> EstimateRow:
    first = Range(*(max(0.0, one.texts - end) for end in reversed(one.known)))
    _check_sample(one, first)
    asked = first + Range.exactly(one.unrepaired).times(Range(*repairs[:3]))
    counted = Range(*one.counted[:3])
    requests = _total(one.requests or [1.0] * len(one.prompt_tokens), asked)
    prompt = _total(one.prompt_tokens, asked).times(counted)
    completion = _total(one.source_tokens, asked).times(counted).times(Range(*one.expansion[:3]))
    paid = None
    if price is not None:
        ends = zip(prompt, completion, strict=True)
        paid = Range(*(money(asking, answering, price, batch) for asking, answering in ends))
    return EstimateRow(
        dataset=one.dataset,
        kind=one.kind,
        texts=one.texts,
        known=one.known,
        requests=requests,
        prompt_tokens=prompt,
        completion_tokens=completion,
        money=paid,
        hours=hours(requests, prompt, completion, speed, batch),
    )


def _check_sample(one: SetSample, left: Range) -> None:
    size, least = len(one.prompt_tokens), min(2, left.high) or min(1, one.unrepaired)
    if size < least:
        raise DataError(
            f"{counted(size, 'text is', 'texts are', of=round(left.high))} in the sample",
            where=f"{one.dataset}, {one.kind}",
            remedy="sample at least two of them",
        )


def _total(sampled: Sequence[float], asked: Range) -> Range:
    """A sum over all texts that are asked, from a sample of them."""
    if asked.high == 0:
        return Range.exactly(0.0)
    size = len(sampled)
    values = np.asarray(sampled, np.float64)
    mean = float(values.mean())
    unseen = math.sqrt(max(0.0, 1 - size / asked.high))
    half = _Z * float(values.std(ddof=1)) / math.sqrt(size) * unseen if size > 1 else 0.0
    return asked.times(Range(max(0.0, mean - half), mean, mean + half))


def hours(requests: Range, prompt: Range, completion: Range, speed: Speed, batch: bool) -> Range | None:
    """The longest of what the measured speed and the rate limits say; None if there is neither.

    Args:
        requests: to be made.
        prompt, completion: their tokens.
        speed: what decides it.
        batch: whether the provider's batch mode is used, which has no rate limits.
    """
    bounds = []
    if (rate := speed.measured) is not None:
        per_second = (rate.high, rate.mid, rate.low)  # the quickest goes with the least work
        ends = zip(completion, per_second, strict=True)
        bounds.append(Range(*(tokens / one / 3600 if one else math.inf for tokens, one in ends)))
    if speed.requests_per_minute and not batch:
        bounds.append(Range(*(count / speed.requests_per_minute / 60 for count in requests)))
    if speed.tokens_per_minute and not batch:
        bounds.append(Range(*(count / speed.tokens_per_minute / 60 for count in prompt + completion)))
    return Range(*map(max, zip(*bounds, strict=True))) if bounds else None


def total(rows: Sequence[EstimateRow], priced: bool) -> EstimateRow:
    """The sum of rows; with money where it is ``priced``, with hours where all have some."""
    zero = Range.exactly(0.0)
    taken = [row.hours for row in rows if row.hours is not None]
    return EstimateRow(
        TOTAL,
        "",
        sum(row.texts for row in rows),
        sum((row.known for row in rows), zero),
        sum((row.requests for row in rows), zero),
        sum((row.prompt_tokens for row in rows), zero),
        sum((row.completion_tokens for row in rows), zero),
        sum((row.money for row in rows if row.money), zero) if priced else None,
        sum(taken, zero) if len(taken) == len(rows) else None,
    )
