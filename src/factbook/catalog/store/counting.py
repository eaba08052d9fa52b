"""How many entities of each kind there are, counted again only after the catalog has changed.

What is remembered is compared with the database for every answer, so a count is never older than
the last commit, whatever process made it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from factbook.storage import Database, Row


@dataclass
class _Counted:
    state: Row | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)


async def by_kind(database: Database) -> Mapping[str, int]:
    """The number of entities of each kind that there are any of."""
    known = database.remembered.of(_Counted)
    if known.state != await database.one(_STATE):
        async with known.one_at_a_time:
            # Looked at before the count: what is written meanwhile makes it be counted again.
            state = await database.one(_STATE)
            if known.state != state:
                known.kinds = dict(await database.search(_KINDS))
                known.state = state
    return known.kinds


# Entities come and go with a new revision of their set, or outside any set.
_STATE = """
SELECT s.number, s.revisions, s.items,
    (SELECT value FROM counters WHERE name = 'entity'),
    (SELECT count(*) FROM entities WHERE set_id IS NULL),
    (SELECT max(removed_at) FROM removed_entities)
FROM (
    SELECT count(*) AS number, SUM(revision) AS revisions, SUM(item_count) AS items FROM sets
) s
"""

_KINDS = "SELECT kind, count(*) FROM entities GROUP BY kind"
