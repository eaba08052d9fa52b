"""The viewer's own: the entities of their groups, those that fail most first."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.catalog.store import membership, related_entities
from factbook.catalog.store.related_entities import Belonging, BelongingEntity
from factbook.checks.levels.group_hierarchy import GroupHierarchy
from factbook.checks.results import failing_counts
from factbook.checks.results.failing_counts import FailingCounts
from factbook.web.data_sources.fact_across import Share
from factbook.web.entity import contents
from factbook.web.entity.contents import ContentsTable
from factbook.web.overview import standings
from factbook.web.overview.standings import OwnedLevels
from factbook.web.site.page_context import PageContext

_GROUPS: Final = 3
_LOOKED_AT: Final = 100  # entities of a group
_SHOWN: Final = 6
_NONE: Final = FailingCounts(0, 0, 0)


class OwnGroup(NamedTuple):
    """A group of the viewer: its mean scores, and the first of its entities.

    `is_part`: there are more entities than were looked at to find the first ones.
    """

    ref: str
    scores: list[Share]
    entities: int
    contents: ContentsTable
    is_part: bool


class OwnGroups(NamedTuple):
    """The groups of the viewer; of the `others` only the names are shown."""

    shown: list[OwnGroup]
    others: list[str]


async def groups(
    visit: PageContext, tree: GroupHierarchy, levels: Sequence[OwnedLevels]
) -> OwnGroups:
    """The groups that the person signed in is a direct member of."""
    found = sorted(await membership.stated_groups(visit.state.database, visit.person.ref))
    shown = [await _group(visit, one, tree, levels) for one in found[:_GROUPS]]
    return OwnGroups(shown, found[_GROUPS:])


async def _group(
    visit: PageContext, group: str, tree: GroupHierarchy, levels: Sequence[OwnedLevels]
) -> OwnGroup:
    database = visit.state.database
    owned = Belonging("ownedBy", sorted(tree.within(group)))
    found = await related_entities.page(database, owned, None, _LOOKED_AT)
    counts = await failing_counts.of_entities(database, [one.id for one in found.entities])

    def place(one: BelongingEntity) -> tuple[bool, int, int, str]:
        own = counts.get(one.id, _NONE)
        return not one.ref.startswith("component:"), -own.failing, -own.unknown, one.ref

    first = sorted(found.entities, key=place)[:_SHOWN]
    scores = [standings.score(one.given, one.of_group(tree, group), group) for one in levels]
    return OwnGroup(
        group,
        [one for one in scores if one is not None],
        found.total,
        await contents.of_entities(visit, first, [one.given for one in levels]),
        found.has_more,
    )
