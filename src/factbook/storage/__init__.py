"""The database: SQLite in a file, or PostgreSQL; the rooms above do not depend on the choice."""

from factbook.storage.database import Database, Row, Transaction, Write

__all__ = ["Database", "Row", "Transaction", "Write"]
