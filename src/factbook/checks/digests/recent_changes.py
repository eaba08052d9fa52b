"""Changes of the last days by check: how many entities newly fail, went unknown, and pass again."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from factbook.checks.digests import digest
from factbook.checks.digests.digest import StateChange
from factbook.storage import Database

# That are looked at, newest first: a page has to be quick after the busiest week.
MOST: Final = 3_000


class RecentChanges(NamedTuple):
    """The numbers of entities by check and by the word of the state that they have come to.

    What flaps, and what is again as it was, has not changed. `is_cut`: there were more changes
    than were looked at, which are the last ones.
    """

    counts: Mapping[str, Mapping[str, int]]
    is_cut: bool

    def to(self, word: str) -> dict[str, int]:
        """The number of entities by check that have come to a state."""
        return {check: own[word] for check, own in self.counts.items() if own.get(word)}


async def since(database: Database, time: int, now: int, most: int = MOST) -> RecentChanges:
    """The changes from a time on, for entities that are still there."""
    rows = await database.search(_SINCE, (time, now, most + 1))
    # Oldest first, as the net of them is taken.
    changes = [StateChange(check, str(entity), *rest) for check, entity, *rest in rows[-most:]]
    counts: dict[str, Counter[str]] = {}
    for one in digest.net(changes, now):
        counts.setdefault(one.check, Counter())[one.after] += 1
    return RecentChanges(counts, is_cut=len(rows) > most)


# The index of the time gives the last ones in order; the states of an entity go with it.
_SINCE: Final = """
SELECT c.check_id, c.entity_id, c.at, c.before, c.after FROM (
    SELECT id, check_id, entity_id, at, before, after FROM check_changes
    WHERE at > ? AND at <= ? ORDER BY at DESC, id DESC LIMIT ?
) c JOIN check_states s ON s.entity_id = c.entity_id ORDER BY c.at, c.id
"""
