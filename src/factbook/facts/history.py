"""The history of facts: append-only, and trimmed elsewhere (facts/trimming.py)."""

from collections.abc import Iterable, Mapping
from functools import partial

import msgspec

from factbook.storage import Database, Transaction

_DROPPED_AT_ONCE = 5_000


def sample(
    transaction: Transaction,
    source_id: str,
    rows: Iterable[tuple[int, Mapping[str, object]]],
    now: int,
    version: str,
) -> None:
    """Append (entity id, facts) to history where the facts differ from the entity's last row."""
    transaction.many(
        _SAMPLE,
        (
            (source_id, entity_id, now, text, version, source_id, entity_id, text)
            for entity_id, text in (
                (entity_id, msgspec.json.encode(facts).decode()) for entity_id, facts in rows
            )
        ),
    )


async def drop(database: Database, source_id: str) -> int:
    """Forget the history of a source, in portions so that no other write waits long."""
    dropped, rest = 0, True
    while rest:
        place = await database.one(_PLACE, (source_id, _DROPPED_AT_ONCE))
        rest = place is not None
        keys = (source_id, *(place or (_BEYOND, _BEYOND)))
        dropped += await database.write(partial(_drop, keys=keys))
    return dropped


def _drop(transaction: Transaction, keys: tuple[str, int, int]) -> int:
    return transaction.run(_DROP, keys)


_SAMPLE = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
SELECT ?, ?, ?, ?, '{}', ? WHERE COALESCE((
    SELECT facts FROM facts_history WHERE source_id = ? AND entity_id = ?
    ORDER BY written_at DESC LIMIT 1
), '') <> ?
ON CONFLICT DO NOTHING
"""

_BEYOND = 2**63 - 1

_PLACE = """
SELECT entity_id, written_at FROM facts_history WHERE source_id = ?
ORDER BY entity_id, written_at LIMIT 1 OFFSET ?
"""

_DROP = "DELETE FROM facts_history WHERE source_id = ? AND (entity_id, written_at) < (?, ?)"
