"""Documents of many kinds, from a folder."""

from beirnl.rag.documents.folder import READERS, Source, find, read, read_folder, suffixes, table
from beirnl.rag.documents.kinds import Document, Unread

__all__ = ["READERS", "Document", "Source", "Unread", "find", "read", "read_folder", "suffixes", "table"]
