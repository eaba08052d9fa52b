"""Relations among entities, and short summaries of entities.

Relations include dependents of an entity, subgroups, and broken references.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from factbook.catalog.kinds import RELATIONS
from factbook.catalog.store import entity_query
from factbook.catalog.store.conditions import EXISTS_VALUE, SQL, AllOf, Condition, Has, Not, Related
from factbook.catalog.store.entity_query import Query, ResultPage
from factbook.catalog.store.stored_entities import (
    DOCUMENT,
    RENDERED_DOCUMENT,
    STORED_COLUMNS,
    StoredEntity,
)
from factbook.storage import Database, Transaction

# The owner of `entities e`, NULL without one. Lists of owners (from earlier releases) and lists of
# systems count as their first item.
OWNER: Final = """(
    SELECT MIN(o.target_ref) FROM relations o WHERE o.source_id = e.id AND o.type = 'ownedBy'
)"""
SYSTEM: Final = """(
    SELECT MIN(p.target_ref) FROM relations p WHERE p.source_id = e.id AND p.type = 'partOf'
        AND p.target_ref >= 'system:' AND p.target_ref < 'system;'
)"""
# Limit on subgroups, to bound the length of statements.
MOST_GROUPS: Final = 1_000

_LACKS_OWNER: Final = Not(Related(["ownedby"]))

ANY_FIELD: Final = "any"
ReferenceField = Literal[
    "any",
    "owner",
    "system",
    "subcomponentOf",
    "providesApis",
    "consumesApis",
    "dependsOn",
    "dependencyOf",
    "domain",
    "subdomainOf",
    "parent",
    "children",
    "members",
    "memberOf",
]
# Targets listed for one entity.
_MOST: Final = 20
_FIELDS: Final = {field.name: field for fields in RELATIONS.values() for field in fields}
_TYPES: Final = Counter(field.type for field in _FIELDS.values())


class Belonging(NamedTuple):
    """A relation type, such as `ownedBy`, and its possible targets."""

    type: str
    targets: Sequence[str]


class BelongingEntity(NamedTuple):
    """An entity with its document as pushed."""

    ref: str
    id: int
    document: str


class BelongingPage(NamedTuple):
    """Entities by reference; `total` counts those of all pages, up to `MORE_THAN_BOUND`."""

    entities: list[BelongingEntity]
    total: int
    has_more: bool


async def page_belonging(
    database: Database,
    about: Belonging,
    after: str | None,
    limit: int,
    also: Sequence[Condition] = (),
) -> BelongingPage:
    """Up to `limit` entities after a reference that also meet the other conditions."""
    condition = AllOf([Related([about.type.lower()], about.targets), *also])
    total = await (
        entity_query.count_bounded(database, condition)
        if also
        else _count_belonging(database, about)
    )
    if also or total < entity_query.MORE_THAN_BOUND:
        query = Query(condition=condition, limit=limit, after=[after] if after else None)
        columns = f"e.ref, e.id, {DOCUMENT}"
        found = await entity_query.query_page_of(database, query, columns, BelongingEntity)
        return BelongingPage(found.items, total, found.after)
    # With this many, the next ones are found by probing entities one by one.
    values = after or "", about.type, list(about.targets)
    rows = await database.search(f"{_IN_ORDER} LIMIT {limit + 1}", values)
    entities = [BelongingEntity(*row) for row in rows[:limit]]
    return BelongingPage(entities, total, len(rows) > limit)


async def _count_belonging(database: Database, about: Belonging) -> int:
    """The number of entities, counted up to `MORE_THAN_BOUND`."""
    rows = await database.search(
        _COUNTED, (about.type, list(about.targets), entity_query.MORE_THAN_BOUND)
    )
    found, distinct = rows[0]
    return entity_query.MORE_THAN_BOUND if found == entity_query.MORE_THAN_BOUND else distinct


class CatalogPart(NamedTuple):
    """A part of the catalog; None means no restriction.

    `owners` are references; an empty list means entities without an owner, and "" as `system`
    means entities without a system.
    """

    kind: str | None = None
    namespace: str | None = None
    owners: Sequence[str] | None = None
    system: str | None = None
    type: str | None = None
    lifecycle: str | None = None

    def condition(self) -> Condition:
        """The restrictions on `entities e`."""
        plain = {
            "kind": self.kind,
            "metadata.namespace": self.namespace,
            "spec.type": self.type,
            "spec.lifecycle": self.lifecycle,
        }
        parts: list[Condition] = [
            Has(key, [value.lower()]) for key, value in plain.items() if value is not None
        ]
        if self.owners is not None:
            parts.append(Related(["ownedby"], self.owners) if self.owners else _LACKS_OWNER)
        if self.system is not None:
            parts.append(Related(["partof"], [self.system]) if self.system else _LACKS_SYSTEM)
        return AllOf(parts)


async def list_groups_below(database: Database, group: str) -> list[str]:
    """The group and all its subgroups, nearest first, up to `MOST_GROUPS`.

    A group that is its own ancestor is listed once.
    """
    found, level = {group: None}, [group]
    while level and len(found) < MOST_GROUPS:
        rows = await database.search(_CHILDREN, (level, level))
        level = [ref for ref in sorted({row[0] for row in rows}) if ref not in found]
        found |= dict.fromkeys(level)
    return list(found)[:MOST_GROUPS]


class _InSystem(NamedTuple):
    """The condition that an entity is part of a system."""

    def sql(self) -> tuple[str, list[object]]:
        return f"{SYSTEM} IS NOT NULL", []


_LACKS_SYSTEM: Final = Not(_InSystem())


async def read_group_parents(database: Database) -> dict[str, set[str]]:
    """The parents of each group, whether stated by the parent or the child."""
    return _collect_parents(await database.search(_GROUPS))


def read_group_parents_within(transaction: Transaction) -> dict[str, set[str]]:
    """Like `read_group_parents`, within a transaction."""
    return _collect_parents(transaction.all(_GROUPS))


async def read_system_domains(database: Database) -> dict[str, str]:
    """The domain of each system; the first by reference if there are several."""
    return dict(await database.search(_SYSTEMS))


def _collect_parents(rows: list[tuple[str, str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for type_, source, target in rows:
        child, parent = (source, target) if type_ == "childOf" else (target, source)
        found.setdefault(child, set()).add(parent)
    return found


class BrokenReference(NamedTuple):
    """A reference to a missing entity, with the spec field that holds it."""

    field: str
    target: str


class BrokenEntity(NamedTuple):
    """An entity's first broken references, and who pushed it; `set` is None outside any set."""

    set: str | None
    pushed_by: str
    references: list[BrokenReference]


class Dangling(NamedTuple):
    """Entities with a broken reference in this field, or in any field for ANY."""

    field: ReferenceField

    def sql(self) -> SQL:
        where, values = _dangling_condition(self.field)
        return f"e.id IN (SELECT r.source_id FROM relations r WHERE {where})", values


async def find_broken_references(
    database: Database, refs: Sequence[str], field: ReferenceField
) -> dict[str, BrokenEntity]:
    """The entities among these that have broken references."""
    found: dict[str, BrokenEntity] = {}
    where, values = _dangling_condition(field)
    rows = await database.search(_BROKEN.format(where=where), (list(refs), *values, _MOST))
    for ref, type_, target, name, pushed_by in rows:
        entity = found.setdefault(ref, BrokenEntity(name, pushed_by, []))
        fields = [one for one in RELATIONS.get(ref.partition(":")[0], ()) if one.type == type_]
        of_kind = [one for one in fields if one.target_kind == target.partition(":")[0]]
        entity.references.append(
            BrokenReference(next((one.name for one in of_kind or fields), type_), target)
        )
    return found


def _dangling_condition(field: ReferenceField) -> SQL:
    missing = "NOT EXISTS (SELECT 1 FROM entities t WHERE t.ref = r.target_ref)"
    if field == ANY_FIELD:
        return missing, []
    _, kind, type_ = _FIELDS[field]
    if _TYPES[type_] == 1:
        return f"r.type = ? AND {missing}", [type_]
    # The target's kind distinguishes fields with the same relation type.
    bounds = [f"{kind}:", f"{kind};"]
    return f"r.type = ? AND r.target_ref >= ? AND r.target_ref < ? AND {missing}", [type_, *bounds]


# An entity may be part of several of the targets.
_COUNTED: Final = """
SELECT COUNT(*), COUNT(DISTINCT source_id) FROM (
    SELECT r.source_id FROM relations r WHERE r.type = ? AND r.target_ref IN LIST(?) LIMIT ?
) found
"""

# The OFFSET keeps PostgreSQL from listing all entities with the targets, as its generic plan, used
# from the sixth execution on, would. The LIMIT is a literal for the same reason.
_IN_ORDER: Final = f"""
SELECT e.ref, e.id, {DOCUMENT} FROM entities e WHERE e.ref > ? AND EXISTS (
    SELECT 1 FROM relations r
    WHERE r.source_id = e.id AND r.type = ? AND r.target_ref IN LIST(?) LIMIT 1 OFFSET 0
) ORDER BY e.ref
"""

# A child names its parent, or a parent its children.
_CHILDREN = """
SELECT c.ref FROM relations r JOIN entities c ON c.id = r.source_id
WHERE r.type = 'childOf' AND r.target_ref IN LIST(?)
UNION
SELECT r.target_ref FROM entities p JOIN relations r ON r.source_id = p.id
WHERE r.type = 'parentOf' AND p.ref IN LIST(?)
"""

_GROUPS = """
SELECT r.type, e.ref, r.target_ref FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.kind = 'group' AND r.type IN ('childOf', 'parentOf')
"""

_SYSTEMS = """
SELECT e.ref, MIN(r.target_ref) FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.kind = 'system' AND r.type = 'partOf' AND r.target_ref LIKE 'domain:%' GROUP BY e.ref
"""

_BROKEN: Final = """
SELECT ref, type, target_ref, name, updated_by FROM (
    SELECT e.ref, r.type, r.target_ref, s.name, e.updated_by,
        row_number() OVER (PARTITION BY e.ref ORDER BY r.target_ref) AS place
    FROM entities e JOIN relations r ON r.source_id = e.id LEFT JOIN sets s ON s.id = e.set_id
    WHERE e.ref IN LIST(?) AND {where}
) found WHERE place <= ? ORDER BY ref, target_ref
"""


Group = Literal["kind", "namespace", "type", "lifecycle", "tag", "owner", "system"]

# Longer documents are not read for a summary.
_LONGEST: Final = 200_000


class EntityWithOwner(NamedTuple):
    """An entity with its id, the time of its last change, and the document of its owner.

    The owner's document is None if there is no owner or the owner is not in the catalog.
    """

    stored: StoredEntity
    id: int
    updated_at: int
    owner: str | None


class Summary(NamedTuple):
    """A short summary of an entity; None for missing values."""

    ref: str
    title: str | None
    type: str | None
    lifecycle: str | None
    owner: str | None


class FilterCandidate(NamedTuple):
    """An entity that may match a filter; `document` is None if not requested."""

    ref: str
    id: int
    document: str | None


async def find_with_owner(database: Database, ref: str) -> EntityWithOwner | None:
    """The entity with this canonical reference."""
    row = await database.find(_FOUND, ref)
    return EntityWithOwner(StoredEntity(*row[:-3]), *row[-3:]) if row else None


async def page_summaries(
    database: Database, condition: Condition, limit: int, after: str | None
) -> ResultPage[Summary]:
    """Up to `limit` entities after a reference, in order."""
    query = Query(condition=condition, limit=limit, after=[after] if after else None)
    return await entity_query.query_page_of(database, query, _SUMMARY, _make_summary)


async def page_summaries_and_total(
    database: Database, condition: Condition, limit: int, after: str | None
) -> tuple[ResultPage[Summary], int]:
    """Like `page_summaries`, with the number of all matches, up to `MORE_THAN_BOUND`."""
    query = Query(condition=condition, limit=limit, after=[after] if after else None)
    if not query.is_quick and await entity_query.rewrite_frequent(database, condition) is None:
        found, counted = await entity_query.query_page_and_kinds(
            database, query, "", _COLUMNS_OF_SUMMARY, _make_summary, entity_query.MORE_THAN_BOUND
        )
        total = sum(counted.values())
        if total < entity_query.MORE_THAN_BOUND:
            return found, total
    return await page_summaries(
        database, condition, limit, after
    ), await entity_query.count_bounded(database, condition)


async def list_summaries(database: Database, entity_ids: Sequence[int]) -> list[Summary]:
    """These entities, by reference."""
    rows = await database.all(_OF_IDS, (list(entity_ids),))
    return [_make_summary(*row) for row in rows]


async def list_filter_candidates(
    database: Database, condition: Condition, limit: int, after: str, *, documents: bool
) -> list[FilterCandidate]:
    """Up to `limit` entities after a reference, in order."""
    query = Query(condition=condition, limit=limit, after=[after] if after else None)
    columns = f"e.ref, e.id, {RENDERED_DOCUMENT if documents else 'NULL'}"
    return (await entity_query.query_page_of(database, query, columns, FilterCandidate)).items


async def count_by_group(
    database: Database, condition: Condition, by: Group, total: int
) -> dict[str | None, int]:
    """The number of entities by value, among the `total` that meet the condition.

    An entity with several tags counts for each; entities without a value count for None.
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


def _make_summary(ref: str, document: str | None, owner: str | None) -> Summary:
    found = _Document() if document is None else _read(document)
    texts = (found.metadata.title, found.spec.type, found.spec.lifecycle)
    title, type_, lifecycle = (one if isinstance(one, str) else None for one in texts)
    return Summary(ref, title, type_, lifecycle, owner)


_FOUND: Final = f"""
SELECT {STORED_COLUMNS}, e.id, e.updated_at,
    (SELECT o.head || o.body || '}}' FROM entities o WHERE o.ref = {OWNER})
FROM entities e WHERE e.ref IN LIST(?)
"""

_COLUMNS_OF_SUMMARY: Final = (
    "e.ref",
    f"CASE WHEN length(e.body) <= {_LONGEST} THEN {DOCUMENT} END",
    OWNER,
)
_SUMMARY: Final = ", ".join(_COLUMNS_OF_SUMMARY)
_OF_IDS: Final = f"SELECT {_SUMMARY} FROM entities e WHERE e.id IN LIST(?) ORDER BY e.ref"

_COLUMNS: Final[Mapping[str, str]] = {
    "kind": "e.kind",
    "namespace": "e.namespace",
    "owner": OWNER,
    "system": SYSTEM,
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
