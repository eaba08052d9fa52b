"""Comparison of a database's schema with the one that this release expects.

The expected schema is the result of the migrations on an empty in-memory SQLite database.
"""

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from functools import cache
from typing import Any, Final, NamedTuple

import structlog

from factbook import __version__
from factbook.errors import UnavailableError
from factbook.storage import dialects, introspection, migrations
from factbook.storage.database import Database, Dialect
from factbook.storage.introspection import Schema, spaced

log = structlog.get_logger("factbook.storage")

# SQLite has no word for it, and PostgreSQL a collation.
_SORTED: Final = "SORTED_TEXT"
_KEPT: Final = "TEXT_THAT_IS_SORTED"
_MOST_SHOWN: Final = 5


class Deviation(NamedTuple):
    """A missing or different schema object."""

    name: str  # as `index entities_by_name`
    missing: bool

    @property
    def is_fatal(self) -> bool:
        """True if statements fail because of it."""
        return self.missing and self.name.startswith("column ")


async def verify(database: Database) -> None:
    """Log the deviations of the schema from the expected one.

    Raises UnavailableError if tables or columns are missing, since the service could not work.
    """
    if differing := await migrations.differing(database):
        log.warning("migrations.differ", migrations=differing)
    found = await deviations(database)
    if not found:
        return
    if any(one.is_fatal for one in found):
        raise UnavailableError(f"{told(found)} {ADVICE}", retry_after=None)
    log.warning("schema.differs", names=[one.name for one in found])


ADVICE: Final = (
    "Something else than Factbook has changed the database, or it comes from a build that was not "
    "released. Restore a backup, or report it."
)


def told(found: list[Deviation]) -> str:
    """The deviations as a sentence."""
    shown = [f"{one.name} ({'missing' if one.missing else 'different'})" for one in found]
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    listed = ", ".join(shown[:_MOST_SHOWN]) + more
    return f"The schema is not the one of {__version__}: {listed}."


async def deviations(database: Database) -> list[Deviation]:
    """The deviations of an up-to-date database's schema; additional objects are ignored.

    Empty if a newer release has migrated it: only that release knows the expected schema.
    """
    if await migrations.unknown(database):
        return []
    # A tenth of the work, and usually enough.
    if database.dialect == "sqlite" and await database.all(_STATEMENTS) == _expected_statements():
        return []
    wanted, has = expected(database.dialect), await introspection.schema(database)
    return [
        Deviation(name, name not in has)
        for name, text in sorted(wanted.items())
        if has.get(name) != text
    ]


_STATEMENTS: Final = """
SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY type, name
"""


@cache
def _expected_statements() -> list[tuple[Any, ...]]:
    """The statements of the schema in a SQLite file that this release made."""
    with closing(_migrated(migrations.shipped().values())) as database:
        return database.execute(_STATEMENTS).fetchall()


def _migrated(texts: Iterable[str]) -> sqlite3.Connection:
    """A database in memory to which these migrations are applied."""
    database = sqlite3.connect(":memory:")
    database.execute(migrations.RECORD)
    for text in texts:
        for statement in dialects.at_once(text, "sqlite"):
            database.execute(statement)
    return database


@cache
def expected(dialect: Dialect) -> Schema:
    """The schema that the migrations of this release produce."""
    texts = (text.replace(_SORTED, _KEPT) for text in migrations.shipped().values())
    with closing(_migrated(texts)) as database:
        rows = [database.execute(sql).fetchall() if sql else [] for sql in introspection.SQLITE]
    found = dict(introspection.described(*rows))
    word = "TEXT" if dialect == "sqlite" else _SORTED
    found = {name: text.replace(_KEPT, word) for name, text in found.items()}
    if dialect == "postgresql":
        found = {name: text for name, text in found.items() if not name.startswith("trigger ")}
        found |= _programs()
    return found


def _programs() -> Schema:
    """The triggers and functions of PostgreSQL, from the SQL that creates them."""
    found: dict[str, str] = {}
    for text in migrations.shipped().values():
        for statement in dialects.at_once(text, "postgresql"):
            if trigger := re.match(r"CREATE TRIGGER (\w+) .*? ON (\w+)", spaced(statement)):
                found[f"trigger {trigger[1]}"] = f"ON {trigger[2]}"
            elif function := re.match(
                r"CREATE (?:OR REPLACE )?FUNCTION (\w+).*?\$\$(.*)\$\$", statement, re.DOTALL
            ):
                found[f"function {function[1]}"] = spaced(function[2])
            elif gone := re.match(r"DROP (TRIGGER|FUNCTION) (?:IF EXISTS )?(\w+)", statement):
                found.pop(f"{gone[1].lower()} {gone[2]}", None)
    return found
