"""Parts of the catalog: by kind, owner, system and more; the groups below a group."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.catalog.store.conditions import AllOf, Condition, Has, Not, Related
from factbook.storage import Database

# Of `entities e`, NULL without one. Lists of owners from earlier releases, and lists of systems,
# count as their first.
OWNER: Final = """(
    SELECT MIN(o.target_ref) FROM relations o WHERE o.source_id = e.id AND o.type = 'ownedBy'
)"""
SYSTEM: Final = """(
    SELECT MIN(p.target_ref) FROM relations p WHERE p.source_id = e.id AND p.type = 'partOf'
        AND p.target_ref >= 'system:' AND p.target_ref < 'system;'
)"""
# Groups below one that are read, so that no tree makes a statement too long.
MOST_GROUPS: Final = 1_000


class CatalogPart(NamedTuple):
    """Some of the entities; None leaves a restriction out.

    `owners` are references; an empty list stands for entities without an owner, as "" does for
    those without a system.
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


async def groups_below(database: Database, group: str) -> list[str]:
    """The group and all groups below it, nearest first, up to `MOST_GROUPS`.

    A group that is its own ancestor is listed once.
    """
    found, level = {group: None}, [group]
    while level and len(found) < MOST_GROUPS:
        rows = await database.search(_CHILDREN, (level, level))
        level = [ref for ref in sorted({row[0] for row in rows}) if ref not in found]
        found |= dict.fromkeys(level)
    return list(found)[:MOST_GROUPS]


_LACKS_OWNER: Final = Not(Related(["ownedby"]))


class _InSystem(NamedTuple):
    """The condition that an entity is part of a system."""

    def sql(self) -> tuple[str, list[object]]:
        return f"{SYSTEM} IS NOT NULL", []


_LACKS_SYSTEM: Final = Not(_InSystem())

# A child names its parent, or a parent its children.
_CHILDREN = """
SELECT c.ref FROM relations r JOIN entities c ON c.id = r.source_id
WHERE r.type = 'childOf' AND r.target_ref IN LIST(?)
UNION
SELECT r.target_ref FROM entities p JOIN relations r ON r.source_id = p.id
WHERE r.type = 'parentOf' AND p.ref IN LIST(?)
"""
