"""Entities in a few words each, their numbers by group, and what one of them is known by."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from factbook.catalog.store import entity_query, related_entities
from factbook.catalog.store.conditions import EXISTS_VALUE, Condition
from factbook.catalog.store.entity_query import Query, ResultPage
from factbook.catalog.store.stored_entities import (
    DOCUMENT,
    RENDERED_DOCUMENT,
    STORED_COLUMNS,
    StoredEntity,
)
from factbook.storage import Database

Group = Literal["kind", "namespace", "type", "lifecycle", "tag", "owner", "system"]

# A document that is longer is not read for a line about it.
_LONGEST: Final = 200_000


class FoundEntity(NamedTuple):
    """An entity with its id, the time of its last change, and the document of its owner.

    That is None without an owner, and without one in the catalog.
    """

    stored: StoredEntity
    id: int
    updated_at: int
    owner: str | None


class Summary(NamedTuple):
    """An entity in a few words; None for what it does not say."""

    ref: str
    title: str | None
    type: str | None
    lifecycle: str | None
    owner: str | None


class FilterCandidate(NamedTuple):
    """An entity that may be wanted; `document` is None where it was not asked for."""

    ref: str
    id: int
    document: str | None


async def found(database: Database, ref: str) -> FoundEntity | None:
    """The entity with this canonical reference."""
    row = await database.find(_FOUND, ref)
    return FoundEntity(StoredEntity(*row[:-3]), *row[-3:]) if row else None


async def page(
    database: Database, condition: Condition, limit: int, after: str | None
) -> ResultPage[Summary]:
    """Up to `limit` entities after a reference, in order."""
    query = Query(condition=condition, limit=limit, after=[after] if after else None)
    return await entity_query.query_page_of(database, query, _SUMMARY, _summary)


async def page_and_total(
    database: Database, condition: Condition, limit: int, after: str | None
) -> tuple[ResultPage[Summary], int]:
    """The same with the number of all that meet the condition, up to `MORE_THAN_BOUND`."""
    query = Query(condition=condition, limit=limit, after=[after] if after else None)
    if not query.is_quick and await entity_query.rewrite_frequent(database, condition) is None:
        found, counted = await entity_query.query_page_and_kinds(
            database, query, "", _COLUMNS_OF_SUMMARY, _summary, entity_query.MORE_THAN_BOUND
        )
        total = sum(counted.values())
        if total < entity_query.MORE_THAN_BOUND:
            return found, total
    return await page(database, condition, limit, after), await entity_query.count_bounded(
        database, condition
    )


async def of_ids(database: Database, entity_ids: Sequence[int]) -> list[Summary]:
    """These entities, by reference."""
    rows = await database.all(_OF_IDS, (list(entity_ids),))
    return [_summary(*row) for row in rows]


async def candidates(
    database: Database, condition: Condition, limit: int, after: str, *, documents: bool
) -> list[FilterCandidate]:
    """Up to `limit` entities after a reference, in order."""
    query = Query(condition=condition, limit=limit, after=[after] if after else None)
    columns = f"e.ref, e.id, {RENDERED_DOCUMENT if documents else 'NULL'}"
    return (await entity_query.query_page_of(database, query, columns, FilterCandidate)).items


async def groups(
    database: Database, condition: Condition, by: Group, total: int
) -> dict[str | None, int]:
    """The number of entities by a value that they have, of `total` that meet the condition.

    One with several tags counts for each; those without a value count for None.
    """
    where, parameters = condition.sql()
    if key := _KEYS.get(by):
        sql, values = _BY_KEY.format(where=where), [key, EXISTS_VALUE, *parameters]
    else:
        sql, values = _BY_COLUMN.format(column=_COLUMNS[by], where=where), parameters
    found = {value: number for value, number in await database.search(sql, values) if value}
    having = sum(found.values())
    if by == "tag":
        having = (await database.search(_WITH_KEY.format(where=where), values))[0][0]
    return found | ({None: total - having} if having < total else {})


class _Metadata(msgspec.Struct):
    title: object = None


class _SummarySpec(msgspec.Struct):
    type: object = None
    lifecycle: object = None


class _Document(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _SummarySpec = msgspec.field(default_factory=_SummarySpec)


_read = msgspec.json.Decoder(_Document).decode


def _summary(ref: str, document: str | None, owner: str | None) -> Summary:
    found = _Document() if document is None else _read(document)
    texts = (found.metadata.title, found.spec.type, found.spec.lifecycle)
    title, type_, lifecycle = (one if isinstance(one, str) else None for one in texts)
    return Summary(ref, title, type_, lifecycle, owner)


_FOUND: Final = f"""
SELECT {STORED_COLUMNS}, e.id, e.updated_at,
    (SELECT o.head || o.body || '}}' FROM entities o WHERE o.ref = {related_entities.OWNER})
FROM entities e WHERE e.ref IN LIST(?)
"""

_COLUMNS_OF_SUMMARY: Final = (
    "e.ref",
    f"CASE WHEN length(e.body) <= {_LONGEST} THEN {DOCUMENT} END",
    related_entities.OWNER,
)
_SUMMARY: Final = ", ".join(_COLUMNS_OF_SUMMARY)
_OF_IDS: Final = f"SELECT {_SUMMARY} FROM entities e WHERE e.id IN LIST(?) ORDER BY e.ref"

_COLUMNS: Final[Mapping[str, str]] = {
    "kind": "e.kind",
    "namespace": "e.namespace",
    "owner": related_entities.OWNER,
    "system": related_entities.SYSTEM,
}
_KEYS: Final[Mapping[str, str]] = {
    "type": "spec.type",
    "lifecycle": "spec.lifecycle",
    "tag": "metadata.tags",
}

_BY_COLUMN: Final = "SELECT {column} AS value, count(*) FROM entities e WHERE {where} GROUP BY 1"

_BY_KEY: Final = """
SELECT s.value, count(DISTINCT s.entity_id) FROM search s JOIN entities e ON e.id = s.entity_id
WHERE s.key_id = (SELECT id FROM search_keys WHERE key = ?) AND s.value <> ? AND ({where})
GROUP BY s.value
"""
_WITH_KEY: Final = """
SELECT count(DISTINCT s.entity_id) FROM search s JOIN entities e ON e.id = s.entity_id
WHERE s.key_id = (SELECT id FROM search_keys WHERE key = ?) AND s.value <> ? AND ({where})
"""
