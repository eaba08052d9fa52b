"""Facts about an entity as they were at a time in the past."""

from collections.abc import Collection
from typing import Final

import msgspec

from factbook.storage import Database


async def at(
    database: Database, entity_id: int, source_ids: Collection[str], moment: int
) -> dict[str, dict[str, msgspec.Raw]]:
    """The values that each source had written last by a moment, as JSON by fact.

    Facts that it did not mention then are missing, as are long values that are stored elsewhere.
    """
    if not source_ids:
        return {}
    rows = await database.all(_AT, (moment, entity_id, sorted(source_ids)))
    return {source_id: _members(facts) for source_id, facts in rows if facts is not None}


_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

_AT: Final = """
SELECT l.source_id, (
    SELECT h.facts FROM facts_history h
    WHERE h.source_id = l.source_id AND h.entity_id = l.entity_id AND h.written_at <= ?
    ORDER BY h.written_at DESC LIMIT 1
) FROM facts_latest l WHERE l.entity_id = ? AND l.source_id IN LIST(?)
"""
