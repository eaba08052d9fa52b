"""The database: SQLite in a file, or PostgreSQL; nothing above this room knows which."""

from factbook.storage.database import Database, Row, Transaction, Write
from factbook.storage.database_url import open_database

__all__ = ["Database", "Row", "Transaction", "Write", "open_database"]
