"""What retrieval will take, before it is run: disk, memory per worker and hours of every artifact.

    graph, imported rows --sizes--> how large each stage's work is
    samples --probes--> what a small piece of it takes on this machine, by running the stage itself
    receipts of finished units --rates--> what a piece of it has taken, which tells more than a probe
    rates x sizes, by the stage's law --forecast--> rows --refusal--> what cannot fit

What LLMs are asked, whose money counts, has estimates of its own: :mod:`beirnl.estimates.translations`, and
of questions and answers :mod:`beirnl.estimates.answers`.

A probe runs each distinct piece of work once, for a few seconds, in a process of its own.
"""

from beirnl.estimates.forecasting import Row, forecast, sources
from beirnl.estimates.machine import Machine, this_machine
from beirnl.estimates.refusals import refusal
from beirnl.estimates.rendering import table
from beirnl.tally import size_text

__all__ = ["Machine", "Row", "forecast", "refusal", "size_text", "sources", "table", "this_machine"]
