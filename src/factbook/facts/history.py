"""Appending to history: a row for each change, and the last confirmation of what did not change.

A row says what a collection found at `written_at` and what every later one found again, until
`confirmed_at`. While it is the newest row of its source and entity, that time is in `facts_latest`;
the row that follows puts it down. A value that was out of sight for longer than it is kept begins a
new row even if it is the same: nobody knows what it was meanwhile.

Long values, such as the files of a repository, are stored once a day at most while they stay the
same. A row with the same facts as an earlier one, and with the same long values, leaves these out
and has the time of that row. It has all of them or none, so one row is enough to read another.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.clock import DAY
from factbook.facts.changes import Before
from factbook.facts.datasource import DataSource, milliseconds
from factbook.facts.freshness import Latest, expiry
from factbook.storage import Transaction

# Characters of JSON from which on a value is long.
_LONG: Final = 512
# Of the time that rows are kept, the part after which values are stored again: rows whose long
# values went with an older row are among the oldest.
_PART: Final = 10

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class FactObservation(NamedTuple):
    """Facts and reasons that one collection found about an entity, as JSON."""

    entity_id: int
    facts: str
    reasons: str


class _HoldingRow(NamedTuple):
    """The row with the long values that the newest row of an entity has or leaves out."""

    written_at: int
    facts: str


def finding(entity_id: int, latest: Latest) -> FactObservation:
    """The part of the latest facts that the collection itself found; the rest was kept."""
    facts = {name: value for name, value in latest.facts.items() if name not in latest.kept}
    return FactObservation(entity_id, _json(facts), _json(latest.reasons))


def append(
    transaction: Transaction,
    source: DataSource,
    found: Iterable[FactObservation],
    before: Mapping[int, Before],
    now: int,
) -> None:
    """Append what differs from the entity's last row; `before` are the latest facts until now."""
    new = [one for one in found if not _is_known(source, one, before.get(one.entity_id), now)]
    ends = [(one.entity_id, before[one.entity_id].written_at) for one in new if one[0] in before]
    close(transaction, source.id, [end for end in ends if 0 < end[1] < now])
    rows = [(source.id, one.entity_id, now, *one[1:], source.version) for one in new]
    transaction.many(_APPEND, _shortened(transaction, source, rows, before, now))


def close(transaction: Transaction, source_id: str, ends: Iterable[tuple[int, int]]) -> None:
    """Put the last confirmation, by entity, down in the row of history that holds until then."""
    rows = [(at, source_id, entity_id, source_id, entity_id, at, at) for entity_id, at in ends]
    transaction.many(_CLOSE, rows)


def filled(facts: str | msgspec.Raw, holding: str) -> msgspec.Raw:
    """The facts with the long values that they leave out, from those of the row that has them."""
    own, held = _members(facts), _members(holding)
    return msgspec.Raw(msgspec.json.encode({name: own.get(name, held[name]) for name in held}))


def _shortened(
    transaction: Transaction,
    source: DataSource,
    rows: Sequence[tuple[Any, ...]],
    before: Mapping[int, Before],
    now: int,
) -> list[tuple[Any, ...]]:
    """The rows without the long values that did not change, and with the time of what has them."""
    facts = {row[1]: row[3] for row in rows if row[1] in before}
    same = [id_ for id_ in facts if _without(facts[id_], _own(before[id_])) is not None]
    short = dict[int, tuple[str, int]]()
    for id_, holder in _holders(transaction, source, same, now).items():
        # By its time alone it may be another one than that of the latest facts: a clock set back
        # leaves rows of a time to come, and what follows them confirms these.
        if (found := _without(facts[id_], holder.facts)) is not None:
            short[id_] = found, holder.written_at
    return [
        (*row[:3], short[row[1]][0], *row[4:], short[row[1]][1])
        if row[1] in short
        else (*row, None)
        for row in rows
    ]


def _is_known(source: DataSource, found: FactObservation, before: Before | None, now: int) -> bool:
    """Return true if the newest row says the same and has not been out of sight for long."""
    # Each definition of a draft may have other facts under the same version.
    if (
        before is None
        or source.draft
        or not 0 < before.written_at < now <= _lost_at(source, before)
    ):
        return False
    return (_own(before), before.reasons, before.version) == (*found[1:], source.version)


def _lost_at(source: DataSource, before: Before) -> int:
    """The time from which nobody knows whether the facts were the same all along."""
    lost_at = expiry(source, before.written_at)
    lifetime = source.lifecycle.time_to_live if source.lifecycle else None
    # The row may have been trimmed by then.
    return lost_at if lifetime is None else min(lost_at, before.written_at + milliseconds(lifetime))


def _own(before: Before) -> str:
    if before.kept == "{}":
        return before.facts
    kept = msgspec.json.decode(before.kept, type=dict[str, int])
    facts = msgspec.json.decode(before.facts, type=dict[str, msgspec.Raw])
    # A failed collection marks the values of that time as stale. They are the row's all the same.
    own = {name: facts[name] for name in facts if kept.get(name) in (None, before.written_at)}
    return _json(own)


def _without(facts: str, before: str) -> str | None:
    """The facts without their long values; None if there are none, or others than before."""
    if len(facts) < _LONG:
        return None
    new, old = _members(facts), _members(before)
    short = {name: value for name, value in new.items() if len(bytes(value)) < _LONG}
    same = all(new[name] == old.get(name) for name in new.keys() - short.keys())
    if new.keys() != old.keys() or len(short) == len(new) or not same:
        return None
    return msgspec.json.encode(short).decode()


def _holders(
    transaction: Transaction, source: DataSource, entity_ids: Iterable[int], now: int
) -> dict[int, _HoldingRow]:
    """The rows that have the long values of the entities' newest rows, by entity.

    Without those that are too old to be referred to.
    """
    since = _since(source, now)
    if since is None or not (ids := list(entity_ids)):
        return {}
    rows = transaction.all(_HOLDERS, (source.id, ids, since, now))
    return {entity_id: _HoldingRow(*holder) for entity_id, *holder in rows}


def _since(source: DataSource, now: int) -> int | None:
    lifecycle = source.lifecycle
    # Rows that are counted may go at any time, and each definition of a draft may be another one.
    if source.draft or (lifecycle and lifecycle.max_items is not None):
        return None
    if lifecycle is None or lifecycle.time_to_live is None:
        return now - DAY
    return now - min(DAY, milliseconds(lifecycle.time_to_live) // _PART)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


# A run repeated within the same millisecond leaves the row as it is.
_APPEND = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version, held_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""

_CLOSE = """
UPDATE facts_history SET confirmed_at = ?
WHERE source_id = ? AND entity_id = ? AND written_at = (
    SELECT MAX(written_at) FROM facts_history
    WHERE source_id = ? AND entity_id = ? AND written_at <= ?
) AND written_at < ?
"""

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
