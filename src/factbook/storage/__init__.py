"""The database: a SQLite file or PostgreSQL; packages above do not depend on the choice."""

from factbook.storage.database import Database, Row, Transaction, Write

__all__ = ["Database", "Row", "Transaction", "Write"]
