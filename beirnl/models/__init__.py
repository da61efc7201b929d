"""Model weights: where they are kept, and how packages that carry some become model folders."""

from beirnl.models.cache import cache_directory, folder_digest, model_path

__all__ = ["cache_directory", "folder_digest", "model_path"]
