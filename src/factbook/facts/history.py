"""The history of facts: append-only, and trimmed to the lifecycle of each source."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial

import msgspec

from factbook.facts.datasource import DataSource, milliseconds
from factbook.storage import Database, Transaction

# Rows that a sweep reads and at most deletes in one go, so that no other write waits long.
_SWEPT_AT_ONCE = 1_000
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


async def sweep(database: Database, source: DataSource, now: int) -> int:
    """Trim the history of a source to its lifecycle; the number of rows that went."""
    if source.lifecycle is None:
        return 0
    if source.lifecycle.time_to_live is not None:
        before = now - milliseconds(source.lifecycle.time_to_live)
        return await _sweep_before(database, source.id, before)
    removed = 0
    places: Counter[int] = Counter()
    async for keys in _history(database, source.id):
        outlived = []
        for entity_id, written_at in keys:
            places[entity_id] += 1
            if not source.lifecycle.keeps(places[entity_id], now - written_at):
                outlived.append((source.id, entity_id, written_at))
        if outlived:
            await database.write(partial(_trim, keys=outlived))
            removed += len(outlived)
    return removed


async def _sweep_before(database: Database, source_id: str, before: int) -> int:
    """Forget what is older than that, without a look at the rest."""
    removed = 0
    while rows := await database.search(_BEFORE, (source_id, before, _SWEPT_AT_ONCE)):
        keys = [(source_id, entity_id, written_at) for entity_id, written_at in rows]
        await database.write(partial(_trim, keys=keys))
        removed += len(keys)
    return removed


async def drop(database: Database, source_id: str) -> int:
    """Forget the history of a source, in portions so that no other write waits long."""
    dropped, rest = 0, True
    while rest:
        place = await database.one(_PLACE, (source_id, _DROPPED_AT_ONCE))
        rest = place is not None
        keys = (source_id, *(place or (_BEYOND, _BEYOND)))
        dropped += await database.write(partial(_drop, keys=keys))
    return dropped


async def _history(database: Database, source_id: str) -> AsyncIterator[list[tuple[int, int]]]:
    """Entity id and time of every row of a source's history, the newest of an entity first."""
    last = (_BEYOND, _BEYOND)
    # Searches let others be answered meanwhile, however much there is to look at.
    while keys := await database.search(_HISTORY, (source_id, *last, _SWEPT_AT_ONCE)):
        yield [(entity_id, written_at) for entity_id, written_at in keys]
        last = keys[-1]


def _drop(transaction: Transaction, keys: tuple[str, int, int]) -> int:
    return transaction.run(_DROP, keys)


def _trim(transaction: Transaction, keys: list[tuple[str, int, int]]) -> None:
    transaction.many(_TRIM, keys)


_SAMPLE = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
SELECT ?, ?, ?, ?, '{}', ? WHERE COALESCE((
    SELECT facts FROM facts_history WHERE source_id = ? AND entity_id = ?
    ORDER BY written_at DESC LIMIT 1
), '') <> ?
ON CONFLICT DO NOTHING
"""

_BEYOND = 2**63 - 1

_HISTORY = """
SELECT entity_id, written_at FROM facts_history
WHERE source_id = ? AND (entity_id, written_at) < (?, ?)
ORDER BY entity_id DESC, written_at DESC LIMIT ?
"""

_BEFORE = """
SELECT entity_id, written_at FROM facts_history WHERE source_id = ? AND written_at < ?
ORDER BY written_at LIMIT ?
"""

_TRIM = "DELETE FROM facts_history WHERE source_id = ? AND entity_id = ? AND written_at = ?"

_PLACE = """
SELECT entity_id, written_at FROM facts_history WHERE source_id = ?
ORDER BY entity_id, written_at LIMIT 1 OFFSET ?
"""

_DROP = "DELETE FROM facts_history WHERE source_id = ? AND (entity_id, written_at) < (?, ?)"
