"""Data of an entity's page, including the names of related entities."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from factbook.catalog.store.by_ref import COMPLIANCE
from factbook.catalog.store.documents import COLUMNS, StoredEntity
from factbook.storage import Database

# A document that is longer is not read for a name alone.
_LONGEST = 20_000


class EntityDetail(NamedTuple):
    """An entity with its metadata in the store; `set` is None outside any set."""

    stored: StoredEntity
    id: int
    set: str | None
    updated_by: str
    updated_at: int
    compliance: int


class DisplayName(NamedTuple):
    """Display name of a related entity: its title, or else its name as written."""

    title: str
    name: str


async def entity(database: Database, ref: str) -> EntityDetail | None:
    """The entity with this canonical reference."""
    row = await database.one(_SHOWN, (ref,))
    width = len(StoredEntity._fields)
    return EntityDetail(StoredEntity(*row[:width]), *row[width:]) if row else None


async def names(database: Database, refs: Sequence[str]) -> dict[str, DisplayName]:
    """The display names of the entities that are in the catalog, by reference."""
    rows = await database.all(_NAMES, (_LONGEST, list(refs)))
    return {ref: _named(ref, document) for ref, document in rows}


async def same_name(database: Database, name: str, limit: int) -> list[str]:
    """References with this name, of any kind and namespace."""
    rows = await database.all(_SAME_NAME, (name.lower(), limit))
    return [row[0] for row in rows]


class _NameMetadata(msgspec.Struct):
    name: str = ""
    title: str = ""


class _NameDocument(msgspec.Struct):
    metadata: _NameMetadata


_read = msgspec.json.Decoder(_NameDocument).decode


def _named(ref: str, document: str | None) -> DisplayName:
    name = ref.rpartition("/")[2]
    if document is None:
        return DisplayName(name, name)
    metadata = _read(document).metadata
    return DisplayName(metadata.title.strip() or metadata.name or name, metadata.name or name)


_SHOWN = (
    f"SELECT {COLUMNS}, e.id, s.name, e.updated_by, e.updated_at, {COMPLIANCE} "
    "FROM entities e "
    "LEFT JOIN sets s ON s.id = e.set_id WHERE e.ref = ?"
)

_NAMES = """
SELECT e.ref, CASE WHEN length(e.body) <= ? THEN e.head || e.body || '}' END FROM entities e
WHERE e.ref IN LIST(?)
"""

_SAME_NAME = "SELECT ref FROM entities WHERE name = ? ORDER BY ref LIMIT ?"
