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


class Dangling(NamedTuple):
    """Entities with such a reference in this field, or with ANY in one of them."""

    field: Field

    def sql(self) -> SQL:
        where, values = _dangling(self.field)
        return f"e.id IN (SELECT r.source_id FROM relations r WHERE {where})", values


async def targets(database: Database, refs: Sequence[str], field: Field) -> dict[str, list[str]]:
    """The first of these references of each entity."""
    found: dict[str, list[str]] = {ref: [] for ref in refs}
    where, values = _dangling(field)
    rows = await database.search(_TARGETS.format(where=where), (list(refs), *values, _MOST))
    for ref, target in rows:
        found[ref].append(target)
    return found


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


_TARGETS: Final = """
SELECT ref, target_ref FROM (
    SELECT e.ref, r.target_ref,
        row_number() OVER (PARTITION BY e.ref ORDER BY r.target_ref) AS place
    FROM entities e JOIN relations r ON r.source_id = e.id WHERE e.ref IN LIST(?) AND {where}
) found WHERE place <= ? ORDER BY ref, target_ref
"""
