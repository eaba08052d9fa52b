"""Figures of the digest of an owner: changes of checks, and levels before and now."""

from collections.abc import Sequence
from typing import Final

from factbook.catalog.store import collectable, hierarchy
from factbook.checks import check_store, digest, scorecard_figures, scorecard_store, trend
from factbook.checks.digest import Digest, LevelMove, StateChange
from factbook.checks.group_hierarchy import GroupHierarchy
from factbook.clock import DAY
from factbook.storage import Database

# Of a team in a week; of more than these the first ones are told.
_MOST: Final = 20_000


async def of_owner(
    database: Database, owner: str, since: int, now: int, link: str | None = None
) -> Digest:
    """The digest of an owner, with the groups below it, from a time until now."""
    owners = sorted(GroupHierarchy(await hierarchy.group_parents(database)).within(owner))
    changes = digest.net(await _changes(database, owners, since, now), now)
    levels = await _levels(database, owner, since, now)
    return Digest(owner, since, now, tuple(changes), tuple(levels), link)


async def _changes(
    database: Database, owners: Sequence[str], since: int, now: int
) -> list[StateChange]:
    rows = await database.search(_CHANGES, (list(owners), since, now, _MOST))
    refs = await collectable.refs_of_ids(database, {row[1] for row in rows})
    titles = {
        one.id: one.current.get("title", one.id) for one in await check_store.everything(database)
    }
    return [
        StateChange(titles[check], refs[entity], *rest)
        for check, entity, *rest in rows
        if entity in refs and check in titles
    ]


async def _levels(database: Database, owner: str, since: int, now: int) -> list[LevelMove]:
    """The scorecards of which the levels of the owner's entities are others than before."""
    found = []
    for stored in await scorecard_store.everything(database):
        if stored.slot is None or stored.published is None:
            continue
        given = await scorecard_figures.in_effect(database, stored.id)
        if not given.card.is_effective(now):
            continue
        day = since // DAY
        kept = trend.series(await trend.of_group(database, stored.id, owner, day, day), day, day)
        [*_, today] = await scorecard_figures.over_time(database, given, owner, now // DAY, now)
        # Without figures from before there is nothing to compare with.
        if kept and kept[-1].figures.levels != today.figures.levels:
            before = kept[-1].figures.levels
            found.append(LevelMove(given.card.title, before, today.figures.levels))
    return found


_CHANGES: Final = """
SELECT c.check_id, c.entity_id, c.at, c.before, c.after
FROM check_changes c JOIN check_states s ON s.entity_id = c.entity_id
WHERE s.owner IN LIST(?) AND c.at > ? AND c.at <= ? ORDER BY c.at, c.id LIMIT ?
"""
