"""Reading and validating retrieval sets."""
