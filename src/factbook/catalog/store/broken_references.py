"""References of entities that lead to nothing in the catalog, by the field that holds them."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from factbook.catalog.kinds import RELATIONS
from factbook.catalog.store.conditions import SQL
from factbook.storage import Database

ANY: Final = "any"
Field = Literal[
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
# Targets that are listed of an entity.
_MOST: Final = 20
_FIELDS: Final = {field.name: field for fields in RELATIONS.values() for field in fields}
_TYPES: Final = Counter(field.type for field in _FIELDS.values())


class BrokenReference(NamedTuple):
    """A reference that leads to nothing, with the field of spec that holds it."""

    field: str
    target: str


class BrokenEntity(NamedTuple):
    """The first broken references of an entity, and who pushed it; `set` is None outside any."""

    set: str | None
    pushed_by: str
    references: list[BrokenReference]


class Dangling(NamedTuple):
    """Entities with such a reference in this field, or with ANY in one of them."""

    field: Field

    def sql(self) -> SQL:
        where, values = _dangling(self.field)
        return f"e.id IN (SELECT r.source_id FROM relations r WHERE {where})", values


async def of_entities(
    database: Database, refs: Sequence[str], field: Field
) -> dict[str, BrokenEntity]:
    """Those of these entities that have such references."""
    found: dict[str, BrokenEntity] = {}
    where, values = _dangling(field)
    rows = await database.search(_BROKEN.format(where=where), (list(refs), *values, _MOST))
    for ref, type_, target, name, pushed_by in rows:
        entity = found.setdefault(ref, BrokenEntity(name, pushed_by, []))
        entity.references.append(BrokenReference(_field_of(ref, type_, target), target))
    return found


def _field_of(ref: str, type_: str, target: str) -> str:
    """The field of an entity's spec that states a relation."""
    fields = [one for one in RELATIONS.get(ref.partition(":")[0], ()) if one.type == type_]
    of_kind = [one for one in fields if one.target_kind == target.partition(":")[0]]
    return next((one.name for one in of_kind or fields), type_)


def _dangling(field: Field) -> SQL:
    missing = "NOT EXISTS (SELECT 1 FROM entities t WHERE t.ref = r.target_ref)"
    if field == ANY:
        return missing, []
    _, kind, type_ = _FIELDS[field]
    if _TYPES[type_] == 1:
        return f"r.type = ? AND {missing}", [type_]
    # The kind of the target tells the fields of one type apart.
    bounds = [f"{kind}:", f"{kind};"]
    return f"r.type = ? AND r.target_ref >= ? AND r.target_ref < ? AND {missing}", [type_, *bounds]


_BROKEN: Final = """
SELECT ref, type, target_ref, name, updated_by FROM (
    SELECT e.ref, r.type, r.target_ref, s.name, e.updated_by,
        row_number() OVER (PARTITION BY e.ref ORDER BY r.target_ref) AS place
    FROM entities e JOIN relations r ON r.source_id = e.id LEFT JOIN sets s ON s.id = e.set_id
    WHERE e.ref IN LIST(?) AND {where}
) found WHERE place <= ? ORDER BY ref, target_ref
"""
