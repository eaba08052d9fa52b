"""Conditions on the targets of relations, in the form that suits the number of entities met."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.catalog.store import overview
from factbook.catalog.store.conditions import SQL, Condition, Related
from factbook.storage import Database

# Of more than one in two, SQLite finds a page and a bounded number by probing one entity after the
# other before it could list all of them. Of more than one in eight it lists all of them to count
# them, but not to sort them. PostgreSQL probes each of them.
_MOST_FREQUENT: Final = 2
_FREQUENT: Final = 8


class TargetedNear(NamedTuple):
    """Entities that state a relation to one of the targets, probed one by one."""

    type: str
    targets: Sequence[str]

    def sql(self) -> SQL:
        marks = ", ".join("?" * len(self.targets))
        return (
            "EXISTS (SELECT 1 FROM relations o WHERE o.source_id = e.id AND o.type = ? "
            f"AND o.target_ref IN ({marks}))"
        ), [self.type, *self.targets]


class Targeted(NamedTuple):
    """Entities that state a relation to one of the targets, of which there are many."""

    type: str
    targets: Sequence[str]

    @property
    def near(self) -> TargetedNear:
        """The same for a few entities."""
        return TargetedNear(self.type, self.targets)

    def sql(self) -> SQL:
        return Related([self.type.lower()], self.targets).sql()


async def related(database: Database, type_: str, targets: Sequence[str]) -> Condition:
    """The condition that an entity states a relation of a type to one of the targets."""
    stated = Related([type_.lower()], targets)
    if database.dialect != "sqlite" or not targets:
        return stated
    entities = sum((await overview.kinds(database)).values())
    enough = entities // _MOST_FREQUENT + 1
    [[found]] = await database.search(_COUNTED.format(most=enough), (type_, list(targets)))
    if found == enough:
        return TargetedNear(type_, targets)
    return Targeted(type_, targets) if found * _FREQUENT > entities else stated


_COUNTED: Final = """
SELECT count(*) FROM (
    SELECT 1 FROM relations WHERE type = ? AND target_ref IN LIST(?) LIMIT {most}
) counted
"""
