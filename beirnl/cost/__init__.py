"""What a translation costs: prices, money for tokens, and an estimate before anything is asked.

    price_of -> Price --money--> spent
    SetSample, Price --estimate--> EstimateRow --table, notes--> terminal

Pure functions: the caller counts tokens, reads the journal and the receipts. Nothing converts currencies.
"""

from beirnl.cost.estimates import (
    EXPANSION,
    NO_SPEED,
    REPAIRS,
    EstimateRow,
    Factor,
    Range,
    SetSample,
    Speed,
    estimate,
    measured_expansion,
    measured_repairs,
    measured_speed,
)
from beirnl.cost.prices import Price, money, price_of
from beirnl.cost.rendering import notes, table

__all__ = [
    "EXPANSION",
    "NO_SPEED",
    "REPAIRS",
    "EstimateRow",
    "Factor",
    "Price",
    "Range",
    "SetSample",
    "Speed",
    "estimate",
    "measured_expansion",
    "measured_repairs",
    "measured_speed",
    "money",
    "notes",
    "price_of",
    "table",
]
