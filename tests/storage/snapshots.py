"""Databases as the service of each schema has filled them: tests/storage/schemas/.

`python -m tests.storage.filling` writes the one of the newest schema. Those of earlier schemas
were made by the code of the commit that each names; they are kept as they are.
"""

import base64
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database
from factbook.storage.migrations import get_migration_texts, migrate
from tests.storage.landed import earlier_text

FOLDER = Path(__file__).with_name("schemas")


class Snapshot(NamedTuple):
    """Rows of each table, and what the one who made them knows beside."""

    schema: int
    made_by: str
    edited: list[str]  # the migrations that had their first form when they were applied
    time: int  # when it was made
    tokens: Mapping[str, str]
    sessions: Mapping[str, str]
    listed: list[str]  # the names of the entities
    cursor: str | None  # behind the first events
    events: list[str]  # which those were
    tables: Mapping[str, Mapping[str, Any]]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table by column; none where there was no such table."""
        found = self.tables.get(table, {"columns": [], "rows": []})
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def all_snapshots() -> list[Snapshot]:
    """The oldest first."""
    return [_read(file) for file in sorted(FOLDER.glob("*.json"))]


async def load(snapshot: Snapshot, database_url: str) -> None:
    """Make the database what it was."""
    database = await open_database(database_url, connections=3)
    try:
        await apply(database, snapshot.schema, snapshot.edited, snapshot.time)
        await database.write(lambda transaction: _fill(database, transaction, snapshot))
    finally:
        await database.close()


async def apply(database: Database, until: int, edited: Collection[str], now: int) -> None:
    """Apply the migrations up to a number, some of them in their first form."""
    texts = {
        name: earlier_text(name) if name in edited else text
        for name, text in get_migration_texts().items()
        if int(name[:4]) <= until
    }
    await migrate(database, now, known=texts)


def _fill(database: Database, transaction: Transaction, snapshot: Snapshot) -> None:
    transaction.run("DELETE FROM counters")
    # Entities refer to their sets.
    for name in sorted(snapshot.tables, key=lambda each: (each != "sets", each)):
        if name == "schema_migrations":
            continue
        table = snapshot.tables[name]
        transaction.insert(name, table["columns"], [tuple(map(_value, r)) for r in table["rows"]])
    if database.dialect == "postgresql" and "events" in snapshot.tables:
        last = "SELECT setval(pg_get_serial_sequence('events', 'id'), max(id)) FROM events"
        transaction.one(last)


def _value(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


def _read(file: Path) -> Snapshot:
    content = json.loads(file.read_text("utf-8"))
    return Snapshot(
        schema=int(file.stem.split("-")[1]),
        made_by=content["made_by"],
        edited=content.get("edited", []),
        time=content["time"],
        tokens=content["tokens"],
        sessions=content.get("sessions", {}),
        listed=content["listed"],
        cursor=content.get("cursor"),
        events=content.get("events", []),
        tables=content["tables"],
    )


def text_of(content: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a file: a row of a table is one."""
    yield json.dumps(content, ensure_ascii=False)[:-1] + ', "tables": {'
    for number, (name, table) in enumerate(tables.items(), 1):
        yield f'"{name}": {{"columns": {json.dumps(table["columns"])}, "rows": ['
        yield ",\n".join(json.dumps(row, ensure_ascii=False) for row in table["rows"])
        yield "]}" + ("," if number < len(tables) else "")
    yield "}}"
