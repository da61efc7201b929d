"""beirnl: distributed batch processing for retrieval research, on Ray."""

__version__ = "0.1.0"
