"""Deletion of stored facts: of entities, of a source, of single facts; retention is apart."""

from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from factbook.facts import changes, entity_filter, history
from factbook.facts.datasource import DataSource
from factbook.storage import Database, Transaction, Write

_AT_ONCE = 1_000
_HISTORY_AT_ONCE = 5_000
_BEYOND = 2**63 - 1


def forget(
    transaction: Transaction, entity_ids: Iterable[int], source_id: str | None = None
) -> int:
    """Delete the facts of these entities, of all sources or of one; returns the number of rows."""
    only, parameters = ("", ()) if source_id is None else (" AND source_id = ?", (source_id,))
    ids = list(entity_ids)
    if source_id is not None:
        changes.touch_values(transaction, source_id, ids)
    statements = (_FORGET_LATEST, _FORGET_HISTORY)
    return sum(transaction.run(each + only, (ids, *parameters)) for each in statements)


def forget_source(transaction: Transaction, source_id: str) -> None:
    """Delete everything that a source has stored."""
    changes.lock(transaction, source_id)
    for entity_ids in _portions(transaction, source_id):
        changes.touch_values(transaction, source_id, entity_ids)
    for statement in _FORGET_SOURCE:
        transaction.run(statement, (source_id,))


async def drop_history(database: Database, source_id: str, write: Write) -> int:
    """Delete the history of a source, in portions so that no other write waits long.

    `write` runs each of them in a transaction.
    """
    dropped, rest = 0, True
    while rest:
        place = await database.one(_PLACE, (source_id, _HISTORY_AT_ONCE))
        rest = place is not None
        keys = (source_id, *(place or (_BEYOND, _BEYOND)))
        dropped += await write(partial(_drop_history, keys=keys))
    return dropped


def drop_facts(transaction: Transaction, source_id: str, names: Iterable[str]) -> None:
    """Remove facts from the latest ones of a source, whose types must match its schema."""
    gone, after = frozenset(names), 0
    changes.lock(transaction, source_id)
    while gone and (rows := transaction.all(_LATEST, (source_id, after, _AT_ONCE))):
        transaction.many(
            _WRITE_LATEST,
            [
                (*(_without(text, gone) for text in texts), source_id, entity_id)
                for entity_id, *texts in rows
            ],
        )
        after = rows[-1][0]
        changes.touch_values(transaction, source_id, [row[0] for row in rows])


def drop_untracked(transaction: Transaction, source: DataSource) -> int:
    """Delete the latest facts of entities that no longer match the filter; returns their number."""
    if source.selection is None:
        return 0
    changes.lock(transaction, source.id)
    condition, values = entity_filter.where(source.selection)
    gone = transaction.all(_UNTRACKED.replace("{}", condition), (source.id, *values))
    if not gone:
        return 0
    history.close(transaction, source.id, gone)
    ids = [entity_id for entity_id, _ in gone]
    changes.touch_values(transaction, source.id, ids)
    return transaction.run(_DROP_LATEST, (source.id, ids))


def _drop_history(transaction: Transaction, keys: tuple[str, int, int]) -> int:
    return transaction.run(_DROP, keys)


def _portions(transaction: Transaction, source_id: str) -> Iterator[list[int]]:
    """The entities about which a source has latest facts."""
    after = 0
    while rows := transaction.all(_LATEST_IDS, (source_id, after, _AT_ONCE)):
        yield [entity_id for (entity_id,) in rows]
        after = rows[-1][0]


def _without(text: str, names: frozenset[str]) -> str:
    values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    kept = {name: value for name, value in values.items() if name not in names}
    return msgspec.json.encode(kept).decode()


_FORGET_LATEST = "DELETE FROM facts_latest WHERE entity_id IN LIST(?)"

_FORGET_HISTORY = "DELETE FROM facts_history WHERE entity_id IN LIST(?)"

_FORGET_SOURCE = (
    "DELETE FROM facts_latest WHERE source_id = ?",
    "DELETE FROM facts_history WHERE source_id = ?",
    "DELETE FROM history_trims WHERE source_id = ?",
)

_PLACE = """
SELECT entity_id, written_at FROM facts_history WHERE source_id = ?
ORDER BY entity_id, written_at LIMIT 1 OFFSET ?
"""

_DROP = "DELETE FROM facts_history WHERE source_id = ? AND (entity_id, written_at) < (?, ?)"

_LATEST = """
SELECT entity_id, facts, reasons, kept FROM facts_latest
WHERE source_id = ? AND entity_id > ? ORDER BY entity_id LIMIT ?
"""

_LATEST_IDS = """
SELECT entity_id FROM facts_latest WHERE source_id = ? AND entity_id > ?
ORDER BY entity_id LIMIT ?
"""

_WRITE_LATEST = """
UPDATE facts_latest SET facts = ?, reasons = ?, kept = ? WHERE source_id = ? AND entity_id = ?
"""

_UNTRACKED = """
SELECT known.entity_id, known.written_at FROM facts_latest known CROSS JOIN entities e
WHERE known.source_id = ? AND e.id = known.entity_id AND NOT ({})
"""

_DROP_LATEST = "DELETE FROM facts_latest WHERE source_id = ? AND entity_id IN LIST(?)"
