"""Facts pushed to a source: valid items are stored, and each item gets a result.

An item enters history at its own time. Stored facts of a time never change: an identical item is a
duplicate, and a different one of the same time is rejected. Only an item that is not older than the
entity's latest facts becomes the latest.

An item replaces everything that the source says about its entity, or is merged into what it said
at the item's time: facts that a merged item leaves out keep their values, with the times of these.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from factbook.catalog import filters
from factbook.catalog.store import stored_entities
from factbook.clock import MINUTE
from factbook.facts import history, retention
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, find_reason
from factbook.facts.history import Before
from factbook.facts.schema import (
    BAD_DEFINITION,
    NOT_APPLICABLE,
    NOT_SENT,
    REASONS,
    UPSTREAM_ERROR,
    is_text,
)
from factbook.storage import Transaction

# JSON size of one item's facts.
LARGEST_ITEM: Final = 64 * 1024
# Facts in one item: as many as a source can have.
MOST_FACTS: Final = 200

# Tolerance for clocks of pushers that run ahead.
LARGEST_LEAD: Final = 5 * MINUTE
# Length of a reason, in characters.
_LONGEST_REASON: Final = 300
# The second is the form of earlier releases.
_UNSENT: Final = frozenset({NOT_SENT, f"{NOT_APPLICABLE}: the push left it out"})


class FactItem(NamedTuple):
    """Facts about an entity at a time, and the pusher's reasons for unknown ones."""

    ref: str
    facts: Mapping[str, object]
    written_at: int
    reasons: Mapping[str, str] = {}
    is_merged: bool = False


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
    """The facts of one item; `unsent` are the names of facts that the item leaves out."""

    entity_id: int
    written_at: int
    facts: dict[str, Any]
    reasons: dict[str, str]
    unsent: frozenset[str]
    is_merged: bool

    def on(self, base: Latest | None, source: DataSource) -> Latest:
        """The facts of the source after the item; `base` are the facts before."""
        facts, reasons, kept = dict(self.facts), dict(self.reasons), dict[str, int]()
        unsent = self.unsent
        if self.is_merged and base is not None:
            held = {name: base.facts[name] for name in unsent & base.facts.keys()}
            older = source.check(held).stored
            said = {name: find_reason(name, base.reasons) for name in unsent - older.keys()}
            reasons |= {name: why for name, why in said.items() if why and why not in _UNSENT}
            facts |= older
            times = {name: base.kept.get(name, base.written_at) for name in older}
            kept = {name: time for name, time in times.items() if time != self.written_at}
        if unsent - facts.keys() - reasons.keys():
            reasons[""] = NOT_SENT
        in_order = {fact.name: facts[fact.name] for fact in source.schema if fact.name in facts}
        return Latest(in_order, reasons, source.version, self.written_at, kept)


def push_facts(
    transaction: Transaction, source: DataSource, items: Sequence[FactItem], now: int
) -> list[FactItemResult]:
    """Store the valid parts of the items; returns the result of each, in order.

    Facts about entities that no longer belong to the source's owner are deleted.
    """
    if source.owner is not None:
        retention.drop_untracked(transaction, source)
    outcomes = [FactItemResult() for _ in items]
    ids = stored_entities.read_ids_of_refs(transaction, {item.ref for item in items})
    asked_ids = list(ids.values())
    if source.selection is None:
        left_out = set()
    else:
        where = filters.make_filter_condition(source.selection)
        left_out = set(asked_ids) - stored_entities.filter_ids_meeting(
            transaction, where, asked_ids
        )
    found: list[tuple[_Row, FactItemResult]] = []
    for item, outcome in zip(items, outcomes, strict=True):
        entity_id = ids.get(item.ref)
        if entity_id is None:
            outcome.problems["entity"] = f"there is no entity {item.ref}"
        elif entity_id in left_out:
            outcome.problems["entity"] = source.left_out(item.ref)
        elif row := _check_item(source, entity_id, item, outcome):
            found.append((row, outcome))
    _store_rows(transaction, source, found, now)
    return outcomes


def _check_item(
    source: DataSource, entity_id: int, item: FactItem, outcome: FactItemResult
) -> _Row | None:
    """The row to store for an item; None if nothing can be stored."""
    declared = {fact.name for fact in source.schema}
    given = {name: value for name, value in item.facts.items() if name in declared}
    names = dict.fromkeys([*item.facts, *item.reasons])
    if len(names) > MOST_FACTS:
        outcome.problems["facts"] = f"has more than {MOST_FACTS} facts"
        return None
    checked = source.check(given)
    for name in item.facts:
        if name not in declared:
            outcome.problems[f"facts.{name}"] = f"{source.id} declares no such fact"
        elif given[name] is not None and name in checked.reasons:
            where = f"{BAD_DEFINITION}: schema.{name}.type: "
            outcome.problems[f"facts.{name}"] = checked.reasons[name].removeprefix(where)
    reasons = dict[str, str]()
    for name, text in item.reasons.items():
        if mistake := _find_mistake(name, text, item, declared):
            outcome.problems[f"reasons.{name}"] = mistake
        else:
            word, _, _ = text.partition(":")
            reasons[name] = text.strip() if word in REASONS else f"{UPSTREAM_ERROR}: {text.strip()}"
    if not names:
        outcome.problems["facts"] = "has no facts"
    if len(_encode_json(checked.stored)) > LARGEST_ITEM:
        outcome.problems["facts"] = f"is larger than {LARGEST_ITEM // 1024} KiB"
        return None
    sent = {name for name in names if name in reasons or f"facts.{name}" not in outcome.problems}
    if not sent & declared:
        return None
    outcome.stored = list(checked.stored)
    unsent = frozenset(declared - given.keys() - reasons.keys())
    reasons = checked.reasons | reasons
    return _Row(entity_id, item.written_at, checked.stored, reasons, unsent, item.is_merged)


def _find_mistake(name: str, text: str, item: FactItem, declared: Collection[str]) -> str:
    """The mistake in a reason; empty if there is none."""
    if name not in declared:
        return "the data source declares no such fact"
    if item.facts.get(name) is not None:
        return "the fact has a value, so it has no reason; send one of the two"
    if text.strip() and len(text) <= _LONGEST_REASON and is_text(text):
        return ""
    return f"has to be a text of 1 to {_LONGEST_REASON} characters that is not blank"


def _store_rows(
    transaction: Transaction, source: DataSource, found: list[tuple[_Row, FactItemResult]], now: int
) -> None:
    """Store new rows, and report those that conflict with other facts of the same time."""
    before = history.select_stored(
        transaction, source.id, sorted({row.entity_id for row, _ in found})
    )
    stored = _select_present(transaction, source.id, [row for row, _ in found])
    states = {id_: _decode_latest(*was) for id_, was in before.items()}
    done: dict[int, Latest] = {}
    new: dict[tuple[int, int], Latest] = {}
    good: list[tuple[_Row, FactItemResult]] = []
    # Each row is merged into the preceding one in time.
    for row, outcome in sorted(found, key=lambda one: one[0].written_at):
        key = row.entity_id, row.written_at
        base = None
        if row.is_merged:
            bases = [done.get(row.entity_id), states.get(row.entity_id)]
            base = _base_facts(transaction, source.id, row, bases)
        after = row.on(base, source)
        text = _encode_json(after.facts)
        there = stored.get(key)
        if there is not None and not _agrees_with_stored(row, there, text, base):
            outcome.stored = []
            outcome.problems["timestamp"] = "other facts of this time are stored already"
            continue
        if there is None or (
            row.is_merged and base is not None and _stated_facts(base) != _stated_facts(after)
        ):
            stored[key], new[key], done[row.entity_id] = text, after, after
        outcome.accepted = True
        good.append((row, outcome))
    # The newest row of an entity comes last.
    rows = [
        (
            source.id,
            *key,
            _encode_json(one.facts),
            _encode_json(one.reasons),
            one.version,
            _encode_json(one.kept),
        )
        for key, one in sorted(new.items())
    ]
    transaction.many(_APPEND_PUSHED, [row[:6] for row in rows])
    if rows:
        retention.record_late_push(transaction, source.id, min(row[2] for row in rows))
    newest = {row[1]: row for row in rows}
    _write_newest(transaction, source.id, before, newest, now)
    times: dict[int, int] = dict(
        transaction.all(_LATEST_TIMES, (source.id, sorted({row.entity_id for row, _ in good})))
    )
    for row, outcome in good:
        outcome.latest = times.get(row.entity_id) == row.written_at


def _stated_facts(latest: Latest) -> tuple[object, ...]:
    return latest.facts, latest.reasons, latest.kept


def _agrees_with_stored(row: _Row, there: str, text: str, base: Latest | None) -> bool:
    """Return true if an item does not contradict facts stored for the same time.

    A merged item may add facts, and replace facts from an earlier time.
    """
    if there == text:
        return True
    if not row.is_merged:
        return False
    held: dict[str, Any] = msgspec.json.decode(there)
    older = base.kept if base is not None and base.written_at == row.written_at else {}
    own = held.keys() & (row.facts.keys() | row.reasons.keys()) - older.keys()
    return all(name in row.facts and row.facts[name] == held[name] for name in own)


def _base_facts(
    transaction: Transaction, source_id: str, row: _Row, bases: Iterable[Latest | None]
) -> Latest | None:
    """The facts of the entity at the time of the row, or the last before it."""
    later = [one for one in bases if one is not None]
    found = [one for one in later if one.written_at <= row.written_at]
    if len(found) < len(later):
        past = transaction.one(_PAST_ROW, (source_id, row.entity_id, row.written_at))
        found += [_decode_latest(*past)] if past else []
    return max(found, key=lambda one: one.written_at, default=None)


def _decode_latest(
    facts: str, reasons: str, version: str, written_at: int, kept: str = "{}"
) -> Latest:
    read = msgspec.json.decode
    return Latest(read(facts), read(reasons), version, written_at, read(kept))


def _write_newest(
    transaction: Transaction,
    source_id: str,
    before: Mapping[int, Before],
    newest: Mapping[int, tuple[Any, ...]],
    now: int,
) -> None:
    """Make the rows the latest ones of their entities unless older, and publish the changes."""
    # A future time comes from a clock that was set back since.
    to_come = now + LARGEST_LEAD
    transaction.many(_WRITE_LATEST, [(*row, to_come) for row in newest.values()])
    written = {
        id_: row[3]
        for id_, row in newest.items()
        if id_ in before and not row[2] < before[id_].written_at <= to_come
    }
    history.touch_values(transaction, source_id, newest)
    history.publish_changes(transaction, source_id, before, written, now)


def _select_present(
    transaction: Transaction, source_id: str, rows: Iterable[_Row]
) -> dict[tuple[int, int], str]:
    """The facts that are already stored, by entity and time."""
    by_time: dict[int, list[int]] = {}
    for row in rows:
        by_time.setdefault(row.written_at, []).append(row.entity_id)
    return {
        (entity_id, written_at): facts
        for written_at, ids in by_time.items()
        for entity_id, facts in transaction.all(_STORED_ROWS, (source_id, written_at, ids))
    }


def _encode_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_STORED_ROWS = """
SELECT entity_id, facts FROM facts_history
WHERE source_id = ? AND written_at = ? AND entity_id IN LIST(?)
"""

_APPEND_PUSHED = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, entity_id, written_at) DO UPDATE SET facts = excluded.facts,
    reasons = excluded.reasons, version = excluded.version
"""

_PAST_ROW = """
SELECT facts, reasons, version, written_at FROM facts_history
WHERE source_id = ? AND entity_id = ? AND written_at <= ? ORDER BY written_at DESC LIMIT 1
"""

_WRITE_LATEST = """
INSERT INTO facts_latest (source_id, entity_id, written_at, facts, reasons, version, kept)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, entity_id) DO UPDATE SET written_at = excluded.written_at,
    facts = excluded.facts, reasons = excluded.reasons, version = excluded.version,
    kept = excluded.kept
WHERE facts_latest.written_at <= excluded.written_at OR facts_latest.written_at > ?
"""

_LATEST_TIMES = """
SELECT entity_id, written_at FROM facts_latest WHERE source_id = ? AND entity_id IN LIST(?)
"""
