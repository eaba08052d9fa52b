"""Figures of a digest: changes of checks in a period, and levels before and now."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from factbook.catalog.store import collectable, hierarchy
from factbook.checks.definitions.scorecard import Scorecard, parse
from factbook.checks.digests import digest
from factbook.checks.digests.digest import EVERYTHING, Digest, DigestLevels, LevelMove, StateChange
from factbook.checks.levels import level_store
from factbook.checks.levels.group_hierarchy import GroupHierarchy
from factbook.checks.results import result_age
from factbook.checks.scorecards import trend
from factbook.checks.versions.check_store import check_store
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.storage import Database

# Of a period; of more than these the first ones are told.
_MOST: Final = 20_000


async def of_owner(
    database: Database,
    owner: str,
    since: int,
    until: int,
    before: DigestLevels,
    now: int,
    public_url: str | None = None,
) -> tuple[Digest, DigestLevels]:
    """The digest of an owner with the groups below it, or of everybody, and the levels now.

    It links to the page with the scorecards of the owner, if the service knows its own address.
    `before` are the levels that were told last: a scorecard that is not among them is not told of.
    """
    owners = await _owners(database, owner)
    found = await _changes(database, owners, since, until)
    changes = digest.net(found[:_MOST], until)
    levels, cards = await _levels(database, owners, now)
    moves = [
        LevelMove(cards[id_].title, before[id_], own)
        for id_, own in levels.items()
        if id_ in before and before[id_] != own
    ]
    link = None if public_url is None else public_url + await _page(database, owner)
    age = await result_age.of_checks(database, None, now)
    told = Digest(
        owner, since, until, tuple(changes), tuple(moves), age, link, is_cut=len(found) > _MOST
    )
    return told, levels


async def _page(database: Database, owner: str) -> str:
    """Path of the page with the scorecards of an owner, or of everybody."""
    if owner == EVERYTHING or await collectable.id_of(database, owner) is None:
        return "/scorecards"
    parts = re.split("[:/]", owner, maxsplit=2)
    return f"/catalog/{'/'.join(quote(part, safe='') for part in parts)}#standing"


async def levels_of(database: Database, owner: str, now: int) -> DigestLevels:
    """The levels of an owner's entities by now."""
    return (await _levels(database, await _owners(database, owner), now))[0]


async def _owners(database: Database, owner: str) -> list[str] | None:
    """The owner with the groups below it; None for everybody."""
    if owner == EVERYTHING:
        return None
    return sorted(GroupHierarchy(await hierarchy.group_parents(database)).within(owner))


async def _changes(
    database: Database, owners: Sequence[str] | None, since: int, until: int
) -> list[StateChange]:
    """One more than are told, if there are more."""
    if owners is None:
        rows = await database.search(_EVERY_CHANGE, (since, until, _MOST + 1))
    else:
        rows = await database.search(_CHANGES, (list(owners), since, until, _MOST + 1))
    refs = await collectable.refs_of_ids(database, {row[1] for row in rows})
    titles = {one.id: one.title for one in await check_store.everything(database)}
    return [
        StateChange(titles[check], refs[entity], *rest)
        for check, entity, *rest in rows
        if entity in refs and check in titles
    ]


async def _levels(
    database: Database, owners: Sequence[str] | None, now: int
) -> tuple[dict[str, dict[str, int]], dict[str, Scorecard]]:
    """Entities by level of each scorecard in effect, and these scorecards."""
    levels, cards = {}, {}
    for stored in await scorecard_store.everything(database):
        if stored.slot is None or stored.published is None:
            continue
        card = parse(stored.published)
        if card.is_effective(now):
            tally = await level_store.total(database, stored.slot, owners)
            levels[card.id] = dict(trend.figures(card, tally).levels)
            cards[card.id] = card
    return levels, cards


_CHANGES: Final = """
SELECT c.check_id, c.entity_id, c.at, c.before, c.after
FROM check_changes c JOIN check_states s ON s.entity_id = c.entity_id
WHERE s.owner IN LIST(?) AND c.at > ? AND c.at <= ? ORDER BY c.at, c.id LIMIT ?
"""

_EVERY_CHANGE: Final = """
SELECT check_id, entity_id, at, before, after FROM check_changes
WHERE at > ? AND at <= ? ORDER BY at, id LIMIT ?
"""
