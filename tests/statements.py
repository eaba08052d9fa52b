"""Check that PostgreSQL accepts every statement that the tests ran on SQLite.

Above the stores, tests run on SQLite alone. Each worker records the distinct statements that reach
SQLite. At the end of a run PostgreSQL prepares all of them, and refuses syntax, functions and types
that only SQLite has. The result is reported as one more test.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import psycopg
import pytest

from factbook.storage import database, sqlite

TEST: Final = "tests/statements.py::test_postgresql_accepts_every_statement_that_ran_on_sqlite"

# Statements about the schema, transactions and the file are written for one database. The storage
# tests run them on both.
_OF_ONE_DATABASE: Final = re.compile(
    r"\s*(ALTER|ANALYZE|ATTACH|BEGIN|COMMIT|CREATE|DETACH|DROP|PRAGMA|RELEASE|ROLLBACK|SAVEPOINT"
    r"|VACUUM)\b|.*\b(sqlite_\w+|pragma_\w+)",
    re.IGNORECASE | re.DOTALL,
)


class StatementRecorder:
    """The distinct statements that reached SQLite in this process."""

    def __init__(self) -> None:
        self.statements: set[str] = set()
        for name in ("translate_to_sqlite", "translate_find"):
            setattr(sqlite, name, self._recording(getattr(sqlite, name)))

    def _recording(self, translate: Any) -> Any:
        """The same function, which records what it translates."""

        @cache
        def record(sql: str) -> Any:
            self.statements.add(sql)
            return translate(sql)

        return record


def report_statements(
    session: pytest.Session, sqlite_file: Path, postgresql_url: str, statements: Iterable[str]
) -> None:
    """Report whether PostgreSQL prepares the statements, as the result of a test.

    Both databases are migrated and empty. Statements that SQLite refuses there come from tests that
    make their own tables, and are left out.
    """
    refused = refused_statements(postgresql_url, accepted_statements(sqlite_file, statements))
    outcome: Literal["passed", "failed"] = "failed" if refused else "passed"
    message = "".join(f"{reason}\n    {sql}\n" for sql, reason in sorted(refused.items()))
    report = pytest.TestReport(
        nodeid=TEST,
        location=("tests/statements.py", None, "every statement"),
        keywords={},
        outcome=outcome,
        longrepr=message or None,
        when="call",
    )
    session.config.hook.pytest_runtest_logreport(report=report)
    if refused:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def accepted_statements(sqlite_file: Path, statements: Iterable[str]) -> Iterator[str]:
    """The statements that a migrated SQLite accepts, except those about its schema and file."""
    with closing(sqlite3.connect(sqlite_file)) as connection:
        for sql in statements:
            if _OF_ONE_DATABASE.match(sql):
                continue
            # SQLite prepares a statement before it asks for the parameters, which are missing here.
            with suppress(sqlite3.ProgrammingError):
                try:
                    connection.execute(f"EXPLAIN {database.translate_to_sqlite(sql)[0]}")
                except sqlite3.OperationalError:
                    continue
            yield sql


def refused_statements(url: str, statements: Iterable[str]) -> dict[str, str]:
    """The statements that PostgreSQL can't prepare, with its reasons."""
    refused = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for sql in statements:
            try:
                connection.execute(f"PREPARE statement AS {_numbered(sql)}".encode())
                connection.execute("DEALLOCATE statement")
            except psycopg.Error as error:
                refused[" ".join(sql.split())] = str(error).partition("\n")[0]
    return refused


def _numbered(sql: str) -> str:
    """The statement for PostgreSQL, with $1, $2, … where psycopg has %s."""
    first, *others = database.translate_to_postgresql(sql).split("%s")
    numbered = first + "".join(f"${number}{text}" for number, text in enumerate(others, 1))
    return numbered.replace("%%", "%")
