"""A database as the first release made it, with entities in it."""

from importlib import resources

from factbook.storage import Database, Transaction, migrations
from factbook.storage.database import translate_schema
from factbook.storage.database_url import open_database

_DOCUMENT = (
    '{"apiVersion":"v1","kind":"Component","metadata":{"name":"Old%s","annotations":{}},'
    '"spec":{"type":"Service"}}'
)


async def make(database_url: str, *, entities: int = 1) -> None:
    """Make the tables of the first schema, and components named old-0, old-1, …"""
    database = await open_database(database_url, connections=3)
    try:
        await database.write(lambda transaction: _fill(database, transaction, entities))
    finally:
        await database.close()


def _fill(database: Database, transaction: Transaction, entities: int) -> None:
    first = (resources.files(migrations) / "0001_initial.sql").read_text("utf-8")
    record = "CREATE TABLE schema_migrations (name TEXT PRIMARY KEY, applied_at BIGINT)"
    for statement in (*translate_schema(first, database.dialect), record):
        transaction.run(statement)
    transaction.run("INSERT INTO schema_migrations VALUES ('0001_initial.sql', 1)")
    columns = (
        *("id", "uid", "ref", "kind", "namespace", "name", "etag", "updated_by", "updated_at"),
        *("compliance", "document", "relations"),
    )
    transaction.insert("entities", columns, [_entity(number) for number in range(entities)])
    transaction.run("INSERT INTO search_keys VALUES (1, 'spec.type')")
    transaction.run("UPDATE counters SET value = 1 WHERE name = 'search_key'")
    rows = [(1, "service", 7 + number) for number in range(entities)]
    transaction.insert("search", ("key_id", "value", "entity_id"), rows)


def _entity(number: int) -> tuple[object, ...]:
    name = f"old-{number}"
    place = (f"component:default/{name}", "component", "default", name)
    return (7 + number, f"u{number}", *place, "e", "user:default/x", 1, 0, _DOCUMENT % number, "[]")
