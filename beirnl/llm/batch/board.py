"""What an engine says of its batch jobs: what it has ordered, and how far they are when that changes."""

import logging
import threading
import time
from collections import Counter
from typing import NamedTuple

from beirnl.llm.batch.book import Job
from beirnl.llm.batch.provider import Look
from beirnl.wording import counted

logger = logging.getLogger("beirnl.batch")


class _Seen(NamedTuple):
    state: str
    requests: int
    answered: int


class Board:
    """The jobs that one engine waits for, whichever of its threads looks at them.

    Args:
        seconds: between two looks at a job; lines that only count come no oftener.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._jobs: dict[str, _Seen] = {}
        self._lock = threading.Lock()
        self._said, self._when = "", float("-inf")

    def ordered(self, job: Job) -> None:
        """A job has been ordered."""
        logger.info("batch job %s ordered: %d requests", job.id, len(job.waiting))
        with self._lock:
            self._jobs[job.id] = _Seen("running", len(job.waiting), 0)

    def looked(self, job: Job, look: Look) -> None:
        """The state of a job, as the provider has just shown it."""
        with self._lock:
            before = self._jobs.get(job.id)
            self._jobs[job.id] = _Seen(look.state, len(job.waiting), look.answered)
            line = self._line()
            soon = time.monotonic() - self._when < self._seconds and look.state == "running"
            if before is None:
                logger.info("batch job %s of %d requests was ordered before", job.id, len(job.waiting))
            if line != self._said and not soon:
                self._said, self._when = line, time.monotonic()
                logger.info("%s", line)

    def _line(self) -> str:
        states = Counter(seen.state for seen in self._jobs.values())
        jobs = ", ".join(f"{number} {state}" for state, number in states.items())
        requests = sum(seen.requests for seen in self._jobs.values())
        answered = sum(seen.answered for seen in self._jobs.values())
        told = counted(requests, "request")
        told = f"{answered:,} of {told} answered" if answered else told
        return f"batch jobs: {jobs}, {told}; looked at every {self._seconds:g} s (poll_seconds)"
