"""What a translation costs: prices, money for tokens, and an estimate before anything is asked.

    price_of -> Price --money--> spent
    SetSample, Price --estimate--> EstimateRow --table, notes--> terminal

Pure functions: the caller counts tokens, reads the journal and the receipts. Nothing converts currencies.
"""

from beirnl.cost.estimates import (
    EXACT,
    EXPANSION,
    NO_SPEED,
    REPAIRS,
    EstimateRow,
    Factor,
    Range,
    SetSample,
    Speed,
    estimate,
    hours,
    measured_counted,
    measured_expansion,
    measured_known,
    measured_repairs,
    measured_speed,
    total,
)
from beirnl.cost.prices import Price, amount, money, price_of
from beirnl.cost.rendering import notes, table
from beirnl.cost.tokens import TokenCounter, bytes_per_token, usual_expansion

__all__ = [
    "EXACT",
    "EXPANSION",
    "NO_SPEED",
    "REPAIRS",
    "EstimateRow",
    "Factor",
    "Price",
    "Range",
    "SetSample",
    "Speed",
    "TokenCounter",
    "amount",
    "bytes_per_token",
    "estimate",
    "hours",
    "measured_counted",
    "measured_expansion",
    "measured_known",
    "measured_repairs",
    "measured_speed",
    "money",
    "notes",
    "price_of",
    "table",
    "total",
    "usual_expansion",
]
