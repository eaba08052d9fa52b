"""The few words in which our SQL differs between the two databases."""

import re
from functools import lru_cache

_SCHEMA_WORDS = {
    "sqlite": {
        "SERIAL_KEY": "INTEGER PRIMARY KEY",
        "SORTED_TEXT": "TEXT",
        "POSITION": "instr",
        "WITHOUT ROWID": "WITHOUT ROWID",
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
    },
}


def schema(sql: str, dialect: str) -> list[str]:
    """The statements of a migration, in the words of one database."""
    for word, translation in _SCHEMA_WORDS[dialect].items():
        sql = re.sub(rf"\b{word}\b", translation, sql)
    sql = re.sub(r"--.*", "", sql)
    return [statement.strip() for statement in sql.split(";") if statement.strip()]


@lru_cache(maxsize=1024)
def sqlite(sql: str) -> tuple[str, bool]:
    """The statement for SQLite, and whether lists among its parameters become JSON."""
    listed = "IN LIST(?)" in sql
    sql = sql.replace("LIST_OF(", "json_group_array(")
    # Whoever writes to SQLite is alone.
    sql = sql.replace(" FOR UPDATE", "")
    return sql.replace("IN LIST(?)", "IN (SELECT value FROM json_each(?))"), listed


@lru_cache(maxsize=1024)
def sqlite_find(sql: str) -> str:
    """The statement of a `find`, looking for one key."""
    return sql.replace("IN LIST(?)", "= ?")


@lru_cache(maxsize=1024)
def postgresql(sql: str) -> str:
    """The statement for psycopg."""
    sql = sql.replace("%", "%%").replace("LIST_OF(", "array_agg(")
    return sql.replace("IN LIST(?)", "= ANY(?)").replace("?", "%s")
