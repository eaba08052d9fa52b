"""The actual schema of a database: a text for each column, index, trigger and function.

Equal schemas have equal texts on both databases, except for triggers and functions.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from factbook.storage.database import Database, Dialect, Row

# By kind and name, as `column entities.ref`: `SORTED_TEXT NOT NULL`.
Schema = Mapping[str, str]

# Has a row for each migration, and is made by the code that applies them.
_RECORD: Final = "schema_migrations"
_TYPES: Final = {"bigint": "INTEGER", "bytea": "BLOB", "text": "TEXT"}


async def schema(database: Database) -> Schema:
    """All schema objects of the database that migrations create."""
    columns, unique, indexes, triggers, functions = [
        await database.all(sql) if sql else [] for sql in _QUERIES[database.dialect]
    ]
    return described(columns, unique, indexes, triggers, functions)


def described(
    columns: Iterable[Row],
    unique: Iterable[Row],
    indexes: Iterable[Row],
    triggers: Iterable[Row],
    functions: Iterable[Row],
) -> Schema:
    """The texts for rows returned by the catalog queries."""
    found = {f"column {table}.{name}": _column(*row) for table, name, *row in columns}
    found |= {f"unique {table} ({names})": "" for table, names in unique}
    found |= {f"index {name}": index_text(text) for name, text in indexes}
    found |= {f"trigger {name}": spaced(text) for name, text in triggers}
    found |= {f"function {name}": spaced(text) for name, text in functions}
    return {name: text for name, text in found.items() if f" {_RECORD}" not in name}


def _column(type_: str, collation: str | None, required: int, default: str | None, key: int) -> str:
    word = _TYPES.get(type_, type_)
    text = "SORTED_TEXT" if collation == "C" else word
    if required or key:
        text += " NOT NULL"
    if default is not None:
        text += f" DEFAULT {re.sub(r'::[a-z ]+$', '', default)}"
    return text + (f" KEY {key}" if key else "")


def index_text(statement: str) -> str:
    """A CREATE INDEX statement without optional words in which equal indexes may differ."""
    text = re.sub(r"CONCURRENTLY |USING btree |\"", "", spaced(statement))
    text = re.sub(r" ON (?:ONLY )?(?:\w+\.)?(\w+)", r" ON \1", text)
    head, where, condition = text.partition(" WHERE ")
    # PostgreSQL writes the type of a number that is compared with a column.
    return head + where + re.sub(r"[()]|(?<=\d\))::bigint", "", condition)


def spaced(text: str) -> str:
    """The text with each run of whitespace replaced by one space."""
    return " ".join(text.split())


# Columns (table, name, type, collation, required, default, place in the primary key), unique
# constraints (table, columns), indexes (name, statement), triggers and functions (name, text).
SQLITE: Final = (
    """
    SELECT m.name, c.name, c.type, NULL, c."notnull", c.dflt_value, c.pk
    FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'
    """,
    """
    SELECT m.name, (SELECT group_concat(i.name, ', ') FROM pragma_index_info(l.name) i)
    FROM sqlite_master m JOIN pragma_index_list(m.name) l
    WHERE m.type = 'table' AND l.origin = 'u'
    """,
    "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'",
    "",
)
# Partitions are parts of their tables, and have what these have.
_POSTGRESQL: Final = (
    """
    SELECT t.relname, a.attname, format_type(a.atttypid, a.atttypmod), c.collname,
        a.attnotnull::int, pg_get_expr(d.adbin, d.adrelid),
        coalesce(array_position(k.conkey, a.attnum), 0)
    FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0
    LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation c ON c.oid = a.attcollation
    LEFT JOIN pg_constraint k ON k.conrelid = t.oid AND k.contype = 'p'
    WHERE t.relkind IN ('r', 'p') AND NOT a.attisdropped AND NOT t.relispartition
        AND t.relnamespace = {schema}
    """,
    """
    SELECT t.relname, (
        SELECT string_agg(a.attname, ', ' ORDER BY p.place)
        FROM unnest(k.conkey) WITH ORDINALITY p (number, place)
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = p.number
    ) FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
    WHERE k.contype = 'u' AND NOT t.relispartition AND t.relnamespace = {schema}
    """,
    # One that was left half-made finds nothing.
    """
    SELECT n.relname,
        CASE WHEN i.indisvalid THEN '' ELSE 'INVALID ' END || pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class n ON n.oid = i.indexrelid
    WHERE NOT n.relispartition AND n.relnamespace = {schema}
        AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)
    """,
    """
    SELECT g.tgname, 'ON ' || t.relname || CASE g.tgenabled WHEN 'D' THEN ' DISABLED' ELSE '' END
    FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid
    WHERE NOT g.tgisinternal AND NOT t.relispartition AND t.relnamespace = {schema}
    """,
    """
    SELECT f.proname, f.prosrc FROM pg_proc f JOIN pg_language l ON l.oid = f.prolang
    WHERE l.lanname = 'plpgsql' AND f.pronamespace = {schema}
    """,
)
_NAMESPACE: Final = (
    "(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('schema_migrations'))"
)
_QUERIES: Final[Mapping[Dialect, tuple[str, ...]]] = {
    "sqlite": SQLITE,
    "postgresql": tuple(sql.format(schema=_NAMESPACE) for sql in _POSTGRESQL),
}
