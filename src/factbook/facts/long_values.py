"""Long values in history, such as the files of a repository: stored once a day at most while they
stay the same.

A row with the same facts as an earlier one, and with the same long values, leaves these out and has
the time of that row. It has all of them or none, so one row is enough to read another.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from factbook.clock import DAY
from factbook.facts.datasource import DataSource, milliseconds
from factbook.storage import Transaction

# Characters of JSON from which on a value is long.
LONG: Final = 512
# Of the time that rows are kept, the part after which values are stored again: rows whose long
# values went with an older row are among the oldest.
_PART: Final = 10

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def without(facts: str, before: str) -> str | None:
    """The facts without their long values; None if there are none, or others than before."""
    if len(facts) < LONG:
        return None
    new, old = _members(facts), _members(before)
    short = {name: value for name, value in new.items() if len(bytes(value)) < LONG}
    same = all(new[name] == old.get(name) for name in new.keys() - short.keys())
    if new.keys() != old.keys() or len(short) == len(new) or not same:
        return None
    return msgspec.json.encode(short).decode()


def filled(facts: str | msgspec.Raw, holding: str) -> msgspec.Raw:
    """The facts with the long values that they leave out, from those of the row that has them."""
    own, held = _members(facts), _members(holding)
    return msgspec.Raw(msgspec.json.encode({name: own.get(name, held[name]) for name in held}))


class Holder(NamedTuple):
    """The row with the long values that the newest row of an entity has or leaves out."""

    written_at: int
    facts: str


def holders(
    transaction: Transaction, source: DataSource, entity_ids: Iterable[int], now: int
) -> dict[int, Holder]:
    """The rows that have the long values of the entities' newest rows, by entity.

    Without those that are too old to be referred to.
    """
    since = _since(source, now)
    if since is None or not (ids := list(entity_ids)):
        return {}
    rows = transaction.all(_HOLDERS, (source.id, ids, since, now))
    return {entity_id: Holder(*holder) for entity_id, *holder in rows}


def _since(source: DataSource, now: int) -> int | None:
    lifecycle = source.lifecycle
    # Rows that are counted may go at any time, and each definition of a draft may be another one.
    if source.draft or (lifecycle and lifecycle.max_items is not None):
        return None
    if lifecycle is None or lifecycle.time_to_live is None:
        return now - DAY
    return now - min(DAY, milliseconds(lifecycle.time_to_live) // _PART)


# The newest row is the last one until the latest facts: a clock that was set back left later ones.
_HOLDERS: Final = """
SELECT b.entity_id, b.written_at, b.facts FROM (
    SELECT l.source_id, l.entity_id, (
        SELECT COALESCE(h.held_at, h.written_at) AS time FROM facts_history h
        WHERE h.source_id = l.source_id AND h.entity_id = l.entity_id
            AND h.written_at <= l.written_at
        ORDER BY h.written_at DESC LIMIT 1
    ) AS held_at FROM facts_latest l WHERE l.source_id = ? AND l.entity_id IN LIST(?)
) s JOIN facts_history b
    ON b.source_id = s.source_id AND b.entity_id = s.entity_id AND b.written_at = s.held_at
WHERE b.written_at > ? AND b.written_at < ?
"""
