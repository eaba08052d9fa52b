"""Facts pushed to a source: valid items are stored, and each item gets a result.

An item enters history at its own time. Stored facts of a time never change: an identical item is a
duplicate, and a different one of the same time is rejected. Only an item that is not older than the
entity's latest facts becomes the latest.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from factbook.catalog.store import collectable
from factbook.clock import MINUTE
from factbook.facts import changes, entity_filter, removal, retention
from factbook.facts.datasource import DataSource
from factbook.facts.reasons import NOT_APPLICABLE
from factbook.storage import Transaction

# Of the facts of one item, as JSON.
LARGEST: Final = 64 * 1024
# Of one item: as many as a source can have.
MOST_FACTS: Final = 200

# How far the clocks of those who push may be ahead.
AHEAD: Final = 5 * MINUTE
_LEFT_OUT = f"{NOT_APPLICABLE}: the push left it out"


class FactItem(NamedTuple):
    """Facts about an entity at a time."""

    ref: str
    facts: Mapping[str, object]
    written_at: int


class FactItemResult(Struct):
    """Result of one item; problems are keyed by their place in it.

    `accepted`: the item is in history. `stored` are the names of the facts that have a value.
    `latest`: they are the latest facts of the entity.
    """

    accepted: bool = False
    stored: list[str] = []
    latest: bool = False
    problems: dict[str, str] = {}


class _Row(NamedTuple):
    entity_id: int
    written_at: int
    facts: str
    reasons: str


def push(
    transaction: Transaction, source: DataSource, items: Sequence[FactItem], now: int
) -> list[FactItemResult]:
    """Store the valid parts of the items; returns the result of each, in order.

    What is known of entities that went to another owner than that of the source is deleted.
    """
    if source.owner is not None:
        removal.drop_untracked(transaction, source)
    outcomes = [FactItemResult() for _ in items]
    ids = collectable.ids_of(transaction, {item.ref for item in items})
    left_out = _left_out(transaction, source, list(ids.values()))
    found: list[tuple[_Row, FactItemResult]] = []
    for item, outcome in zip(items, outcomes, strict=True):
        entity_id = ids.get(item.ref)
        if entity_id is None:
            outcome.problems["entity"] = f"there is no entity {item.ref}"
        elif entity_id in left_out:
            outcome.problems["entity"] = source.left_out(item.ref)
        elif row := _row(source, entity_id, item, outcome):
            found.append((row, outcome))
    _store(transaction, source, found, now)
    return outcomes


def _left_out(transaction: Transaction, source: DataSource, ids: list[int]) -> set[int]:
    """The entities that the source is not about."""
    if source.selection is None:
        return set()
    where = entity_filter.where(source.selection)
    return set(ids) - collectable.meeting(transaction, where, ids)


def _row(
    source: DataSource, entity_id: int, item: FactItem, outcome: FactItemResult
) -> _Row | None:
    """The row to store for an item; None if nothing can be stored."""
    declared = {fact.name for fact in source.schema}
    given = {name: value for name, value in item.facts.items() if name in declared}
    if len(item.facts) > MOST_FACTS:
        outcome.problems["facts"] = f"has more than {MOST_FACTS} facts"
        return None
    checked = source.check(given)
    for name in item.facts:
        if name not in declared:
            outcome.problems[f"facts.{name}"] = f"{source.id} declares no such fact"
        elif given[name] is not None and name in checked.reasons:
            outcome.problems[f"facts.{name}"] = checked.reasons[name].partition(": ")[2]
    if not item.facts:
        outcome.problems["facts"] = "has no facts"
    text = _json(checked.stored)
    if len(text) > LARGEST:
        outcome.problems["facts"] = f"is larger than {LARGEST // 1024} KiB"
        return None
    if all(f"facts.{name}" in outcome.problems for name in item.facts):
        return None
    outcome.stored = list(checked.stored)
    reasons = dict.fromkeys(sorted(declared - given.keys()), _LEFT_OUT) | checked.reasons
    return _Row(entity_id, item.written_at, text, _json(reasons))


def _store(
    transaction: Transaction, source: DataSource, found: list[tuple[_Row, FactItemResult]], now: int
) -> None:
    """Store new rows, and report those that conflict with other facts of the same time."""
    there = _there(transaction, source.id, [row for row, _ in found])
    new: dict[tuple[int, int], _Row] = {}
    good: list[tuple[_Row, FactItemResult]] = []
    for row, outcome in found:
        key = (row.entity_id, row.written_at)
        before = there.get(key)
        if before is None:
            there[key], new[key] = row.facts, row
        elif before != row.facts:
            outcome.stored = []
            outcome.problems["timestamp"] = "other facts of this time are stored already"
            continue
        outcome.accepted = True
        good.append((row, outcome))
    # Of one entity the newest comes last.
    rows = [(source.id, *new[key], source.version) for key in sorted(new)]
    transaction.many(_APPEND, rows)
    if rows:
        retention.note_pushed(transaction, source.id, min(row[2] for row in rows))
    newest = {row[1]: row for row in rows}
    _write_latest(transaction, source.id, newest, now)
    times: dict[int, int] = dict(
        transaction.all(_TIMES, (source.id, sorted({row[0] for row, _ in good})))
    )
    for row, outcome in good:
        outcome.latest = times.get(row.entity_id) == row.written_at


def _write_latest(
    transaction: Transaction, source_id: str, newest: Mapping[int, tuple[Any, ...]], now: int
) -> None:
    """Make the rows the latest ones of their entities unless older, and publish the changes."""
    before = changes.before(transaction, source_id, sorted(newest))
    # A time that is still to come was given by a clock that was set back since.
    to_come = now + AHEAD
    transaction.many(_WRITE_LATEST, [(*row, to_come) for row in newest.values()])
    written = {
        id_: row[3]
        for id_, row in newest.items()
        if id_ in before and not row[2] < before[id_].written_at <= to_come
    }
    changes.touch_values(transaction, source_id, newest)
    changes.tell(transaction, source_id, before, written, now)


def _there(
    transaction: Transaction, source_id: str, rows: Iterable[_Row]
) -> dict[tuple[int, int], str]:
    """The facts that are already stored, by entity and time."""
    by_time: dict[int, list[int]] = {}
    for row in rows:
        by_time.setdefault(row.written_at, []).append(row.entity_id)
    return {
        (entity_id, written_at): facts
        for written_at, ids in by_time.items()
        for entity_id, facts in transaction.all(_STORED, (source_id, written_at, ids))
    }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_STORED = """
SELECT entity_id, facts FROM facts_history
WHERE source_id = ? AND written_at = ? AND entity_id IN LIST(?)
"""

_APPEND = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
VALUES (?, ?, ?, ?, ?, ?)
"""

_WRITE_LATEST = """
INSERT INTO facts_latest (source_id, entity_id, written_at, facts, reasons, version)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, entity_id) DO UPDATE SET written_at = excluded.written_at,
    facts = excluded.facts, reasons = excluded.reasons, version = excluded.version, kept = '{}'
WHERE facts_latest.written_at <= excluded.written_at OR facts_latest.written_at > ?
"""

_TIMES = """
SELECT entity_id, written_at FROM facts_latest WHERE source_id = ? AND entity_id IN LIST(?)
"""
