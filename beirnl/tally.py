"""How far a stage is, in numbers that a terminal, a log, a metrics endpoint and the events all show."""

from dataclasses import dataclass

_SHORTEST, _LONGEST, _SHARE = 10.0, 300.0, 1 / 30  # seconds; of what has passed
_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


@dataclass
class Tally:
    """How far a stage is.

    Attributes:
        units: all of its units.
        before: how many of them earlier runs had finished.
        done: how many are finished, those included.
        running: units at work.
        failed: attempts that have died with their worker; each is made again.
        rows, bytes: that went in and came out, of units that this run has finished.
        partly: rows that units at work have done.
        doing: what is done before there are any, such as loading a model.
        prompt_tokens, completion_tokens: asked and answered in this run.
        work: seconds of work of finished units.
        money: spent by the experiment so far; None where nothing is paid for.
        currency: of the money.
        seconds: since the stage began in this run.
    """

    units: int = 0
    before: int = 0
    done: int = 0
    running: int = 0
    failed: int = 0
    rows: int = 0
    bytes: int = 0
    partly: int = 0
    doing: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    work: float = 0.0
    money: float | None = None
    currency: str = ""
    seconds: float = 0.0

    @property
    def pending(self) -> int:
        """Units that nobody is at."""
        return max(0, self.units - self.done - self.running)

    @property
    def tokens(self) -> int:
        """Tokens of both kinds."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def row_rate(self) -> float:
        """Rows per second in this run, of units at work too."""
        return (self.rows + self.partly) / max(1e-6, self.seconds)

    @property
    def token_rate(self) -> float:
        """Tokens per second in this run."""
        return self.tokens / max(1e-6, self.seconds)

    @property
    def left(self) -> float | None:
        """Seconds until the stage is done if it goes on so; None where nothing tells.

        A unit at work counts by its rows, taken for as many as finished units have.
        """
        new = self.done - self.before
        if new <= 0:
            return None
        new_and_partly = new + (min(self.running, self.partly * new / self.rows) if self.rows else 0.0)
        return max(0.0, self.units - self.before - new_and_partly) * self.seconds / new_and_partly

    def counts(self) -> str:
        """Units by state: ``12/200 units done, 4 running, 184 pending``, and failures if there are any."""
        said = [f"{self.done:,}/{self.units:,} units done", f"{self.running:,} running"]
        said.append(f"{self.pending:,} pending")
        if self.failed:
            said.append(f"{self.failed:,} failed")
        return ", ".join(said)

    def rates(self) -> str:
        """Rows and tokens per second, bytes written and money spent, as far as there are any."""
        said = [f"{rate_text(self.row_rate)} rows/s"] if self.rows or self.partly else []
        if self.doing and not said:
            said.append(f"{self.doing} for {duration(self.seconds)}")
        if self.tokens:
            said.append(f"{rate_text(self.token_rate)} tokens/s")
        if self.bytes:
            said.append(size_text(self.bytes))
        if self.money is not None:
            from beirnl.cost import amount

            said.append(f"{amount(self.money)} {self.currency} spent")
        return ", ".join(said)

    def note(self) -> str:
        """What there is to say of a stage that is done: rows per second of work, and failures."""
        said = [f"{self.rows / self.work:,.0f} rows/s per worker"] if self.work > 0.5 and self.rows else []
        if self.failed:
            said.append(f"{self.failed:,} failed attempt{'s' * (self.failed > 1)}")
        return ", ".join(said)

    def line(self) -> str:
        """All of it."""
        left = "" if self.left is None else f"{duration(self.left)} left"
        return ", ".join(part for part in (self.counts(), self.rates(), left) if part)


def duration(seconds: float) -> str:
    """Seconds as people say them: ``42 s``, ``3 min 05 s``, ``2 h 10 min``, ``3 d 04 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def rate_text(rate: float) -> str:
    """A number per second: ``0.42``, ``4.2``, ``42``, ``4,200``."""
    return f"{rate:,.{0 if rate >= 9.95 else 1 if rate >= 0.995 else 2}f}"


def size_text(size: float) -> str:
    """Bytes as people read them, in powers of ten: ``812 B``, ``4.1 MB``, ``16.2 GB``."""
    for name, unit in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} B"


def pause(seconds: float) -> float:
    """Seconds until a stage that has gone on for ``seconds`` is told of again: 10, growing to 5 minutes, so
    that a run of days leaves hundreds of lines and not tens of thousands."""
    return min(_LONGEST, max(_SHORTEST, seconds * _SHARE))
