"""Statements that reach SQLite are recorded, and PostgreSQL refuses those in SQLite's dialect."""

from pathlib import Path

import pytest

from factbook.storage import Database
from tests.conftest import RECORDER
from tests.statements import accepted_statements, refused_statements

PORTABLE = "SELECT name FROM sets WHERE name = ?"


async def test_each_statement_that_reaches_sqlite_is_recorded(
    database: Database, pytestconfig: pytest.Config
) -> None:
    statement = "SELECT name AS recorded FROM sets"
    await database.all(statement)
    assert statement in pytestconfig.stash[RECORDER].statements


def test_statements_about_other_tables_and_the_schema_are_left_out(migrated_file: Path) -> None:
    others = ["SELECT a FROM no_such_table", "PRAGMA user_version", "SELECT 1 FROM sqlite_master"]
    assert list(accepted_statements(migrated_file, [*others, PORTABLE])) == [PORTABLE]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_postgresql_refuses_a_statement_in_the_dialect_of_sqlite(database_url: str) -> None:
    own = "SELECT IFNULL(name, '') FROM sets"
    [(statement, reason)] = refused_statements(database_url, [PORTABLE, own]).items()
    assert statement == own
    assert "ifnull" in reason
