"""Conditions on the targets of relations, in the form that suits the number of entities met."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.catalog.store import overview
from factbook.catalog.store.conditions import SQL, Condition, Related
from factbook.storage import Database

# Of more than one in two, a page and a bounded number are found by probing one entity after the
# other before all of them could be listed.
_FREQUENT: Final = 2


class TargetedNear(NamedTuple):
    """Entities that state a relation to one of the targets, probed one by one."""

    type: str
    targets: Sequence[str]

    def sql(self) -> SQL:
        marks = ", ".join("?" * len(self.targets))
        # The offset keeps PostgreSQL from reading all that have the targets.
        probe = (
            "SELECT 1 FROM relations o WHERE o.source_id = e.id AND o.type = ? "
            f"AND o.target_ref IN ({marks}) LIMIT 1 OFFSET 0"
        )
        return f"EXISTS ({probe})", [self.type, *self.targets]


async def related(database: Database, type_: str, targets: Sequence[str]) -> Condition:
    """The condition that an entity states a relation of a type to one of the targets."""
    enough = sum((await overview.kinds(database)).values()) // _FREQUENT + 1
    rows = await database.search(_COUNTED.format(most=enough), (type_, list(targets)))
    if targets and rows[0][0] == enough:
        return TargetedNear(type_, targets)
    return Related([type_.lower()], targets)


_COUNTED: Final = """
SELECT count(*) FROM (
    SELECT 1 FROM relations WHERE type = ? AND target_ref IN LIST(?) LIMIT {most}
) counted
"""
