"""Translation of our SQL to the two databases."""

import re
from functools import lru_cache
from textwrap import dedent

# 0001 first made other indexes, and a migration that drops one has to apply there, too.
_DROP_INDEX = r"DROP INDEX(?! IF EXISTS)"
_SCHEMA_WORDS = {
    "sqlite": {
        "SERIAL_KEY": "INTEGER PRIMARY KEY",
        "SORTED_TEXT": "TEXT",
        "POSITION": "instr",
        "CONCURRENTLY ": "",
        "WITHOUT ROWID": "WITHOUT ROWID",
        _DROP_INDEX: "DROP INDEX IF EXISTS",
    },
    # A linguistic collation would order the same references differently from SQLite.
    "postgresql": {
        "SORTED_TEXT": 'TEXT COLLATE "C"',
        "INTEGER": "BIGINT",
        "BLOB": "BYTEA",
        # A key that the database gives to rows in the order in which they come.
        "SERIAL_KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "POSITION": "strpos",
        "WITHOUT ROWID": "",
        _DROP_INDEX: "DROP INDEX IF EXISTS",
    },
}

# Of a statement; the lines of what holds statements itself, as a trigger, are indented.
_END = re.compile(r";\s*(?:\n(?=\S)|$)")


def schema(sql: str, dialect: str) -> list[str]:
    """The statements of a migration, translated for one database."""
    for word, translation in _SCHEMA_WORDS[dialect].items():
        sql = re.sub(rf"\b{word}\b", translation, sql)
    sql = re.sub(r"--.*", "", _part(dedent(sql), dialect))
    return [statement.strip() for statement in _END.split(sql) if statement.strip()]


def _part(sql: str, dialect: str) -> str:
    """The lines for this database: those after `-- On sqlite:` are not for PostgreSQL."""
    kept, mine = [], True
    for line in sql.splitlines():
        if heading := re.fullmatch(r"-- On (sqlite|postgresql|both):", line):
            mine = heading[1] in (dialect, "both")
        elif mine:
            kept.append(line)
    return "\n".join(kept)


def is_concurrent(sql: str) -> bool:
    """Return true if a migration creates indexes concurrently with writes."""
    return "INDEX CONCURRENTLY" in sql


def at_once(sql: str, dialect: str) -> list[str]:
    """The statements for a transaction, which cannot create indexes concurrently."""
    statements = schema(sql.replace("INDEX CONCURRENTLY ", "INDEX "), dialect)
    if not is_concurrent(sql):
        return statements
    # On a new database an earlier migration may have made one of that name.
    return [each for one in statements for each in (drop_index(one), one)]


def drop_index(statement: str) -> str:
    """The statement that drops the index created by `statement`, if it exists."""
    found = re.match(r"CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(\w+)", statement)
    assert found, statement
    return f"DROP INDEX {found[1] or ''}IF EXISTS {found[2]}"


_FOR_UPDATE = re.compile(r"\sFOR UPDATE( OF \w+ SKIP LOCKED)?")

# Milliseconds since the epoch, by the clock of the database's machine.
_SQLITE_TIME = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_POSTGRESQL_TIME = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"

# A member of a JSON object as JSON text, ordered by its bytes; NULL without one. SQLite takes no
# name with a quote, a backslash or a control character.
_MEMBER = re.compile(r"JSON_MEMBER\(([\w.]+), \?\)")
_SQLITE_MEMBER = r"""(\1 -> ('$."' || ? || '"'))"""
_POSTGRESQL_MEMBER = r"""(CAST(CAST(\1 AS JSON) -> ? AS TEXT) COLLATE "C")"""


@lru_cache(maxsize=1024)
def sqlite(sql: str) -> tuple[str, bool]:
    """The statement for SQLite, and true if lists among its parameters must become JSON."""
    listed = "IN LIST(?)" in sql
    sql = sql.replace("LIST_OF(", "json_group_array(")
    # Whoever writes to SQLite is alone.
    sql = _FOR_UPDATE.sub("", sql).replace("DATABASE_TIME()", _SQLITE_TIME)
    sql = _MEMBER.sub(_SQLITE_MEMBER, sql)
    return sql.replace("IN LIST(?)", "IN (SELECT value FROM json_each(?))"), listed


@lru_cache(maxsize=1024)
def sqlite_find(sql: str) -> str:
    """The statement of a `find`, for a single key."""
    return sql.replace("IN LIST(?)", "= ?")


@lru_cache(maxsize=1024)
def postgresql(sql: str) -> str:
    """The statement for psycopg."""
    sql = sql.replace("%", "%%").replace("LIST_OF(", "array_agg(").replace(" BLOB)", " BYTEA)")
    sql = _MEMBER.sub(_POSTGRESQL_MEMBER, sql.replace("DATABASE_TIME()", _POSTGRESQL_TIME))
    return sql.replace("IN LIST(?)", "= ANY(?)").replace("?", "%s")
