"""Reading of the organizational units of an organization, from its root down."""

from dataclasses import dataclass, field

from factbook.importers.aws.accounts import AwsUnit
from factbook.importers.aws.api import OrganizationsApi
from factbook.outbound.outcomes import REPEATED, Missing


@dataclass
class UnitTree:
    """Organizational units by id, each with the names from the root to it.

    `missing` is the reason if there are units that were not read.
    """

    units: dict[str, AwsUnit] = field(default_factory=dict)
    paths: dict[str, list[str]] = field(default_factory=dict)
    missing: Missing | None = None
    parents: set[str] = field(default_factory=set)

    @property
    def rights(self) -> frozenset[str]:
        """The units with others below them: a list that is suddenly empty is not believed."""
        return frozenset(f"units below {parent}" for parent in self.parents)


async def read_units(api: OrganizationsApi) -> UnitTree:
    """Every organizational unit."""
    tree = UnitTree()
    roots = await api.listing("ListRoots", "Roots", AwsUnit)
    tree.missing = roots.missing
    waiting = [(root.id, [root.name]) for root in roots.items]
    while waiting:
        parent, path = waiting.pop()
        found = await api.listing(
            "ListOrganizationalUnitsForParent", "OrganizationalUnits", AwsUnit, ParentId=parent
        )
        tree.missing = tree.missing or found.missing
        tree.parents |= {parent} if found.items else set()
        for unit in found.items:
            if unit.id in tree.units:
                tree.missing = tree.missing or REPEATED
                continue
            tree.units[unit.id], tree.paths[unit.id] = unit, path
            waiting.append((unit.id, [*path, unit.name]))
    return tree
