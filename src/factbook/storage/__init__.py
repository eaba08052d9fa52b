"""The database: SQLite in a file, or PostgreSQL; the rooms above do not depend on the choice."""

from factbook.storage.database import Database, Row, Transaction, Write
from factbook.storage.database_url import open_database
from factbook.storage.observation import Observer, observed

__all__ = ["Database", "Observer", "Row", "Transaction", "Write", "observed", "open_database"]
