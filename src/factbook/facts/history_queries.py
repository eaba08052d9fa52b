"""Changes of facts since a time, from their history."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.facts import history
from factbook.facts.freshness import reason_of
from factbook.storage import Database, Row

# Rows of history that one page of changes looks at.
SCANNED: Final = 2_000
# Rows before a change that tell what was before it. A value that a failing upstream left as it was
# is in none of the rows since; it is kept through three failed runs.
_BEFORE = 5


class ChangePosition(NamedTuple):
    """Position at the end of a page of changes."""

    written_at: int
    source_id: str
    entity_id: int


class FactChange(NamedTuple):
    """Facts changed by one row of history: by fact, the values before and after; None is no value.

    `reasons` are the row's reasons for missing values, by fact name or by a place above it.
    """

    place: ChangePosition
    ref: str
    version: str
    facts: dict[str, tuple[Any, Any]]
    reasons: dict[str, str]

    @property
    def source_id(self) -> str:
        """The source that wrote it."""
        return self.place.source_id

    @property
    def written_at(self) -> int:
        """The time of the write."""
        return self.place.written_at


class FactChangePage(NamedTuple):
    """A page of changes, possibly empty; `more` is None on the last page."""

    changes: list[FactChange]
    more: ChangePosition | None


async def changes_page(
    database: Database,
    since: int,
    source_id: str | None,
    kind: str | None,
    after: ChangePosition | None,
    limit: int,
) -> FactChangePage:
    """Up to `limit` rows at or after `since` that changed a fact, oldest first.

    A row is compared with the preceding row of the same source and entity; the first row is not a
    change. A page scans at most `SCANNED` rows, so it may hold fewer changes.
    """
    rows = await _examined(database, source_id, kind, after or ChangePosition(since, "", -1))
    changed = [row for row in rows if row[3] is not None]
    found = [await _change(database, *row) for row in changed[:limit]]
    if len(changed) > limit:
        more: ChangePosition | None = ChangePosition(*changed[limit - 1][:3])
    else:
        more = ChangePosition(*rows[-1][:3]) if len(rows) == SCANNED else None
    return FactChangePage([change for change in found if change.facts], more)


async def _examined(
    database: Database, source_id: str | None, kind: str | None, place: ChangePosition
) -> list[Row]:
    """The rows that a page scans: key, reference if it says something new, and version."""
    scan = _SCAN_ALL if source_id is None else _SCAN_ONE
    keys = await database.search(scan.start, (*_key(source_id, place), SCANNED))
    if not keys:
        return []
    of_kind, kinds = ("", ()) if kind is None else (" AND e.kind = ?", (kind,))
    sql = _CHANGED.replace("{range}", scan.range).replace("{kind}", of_kind)
    last = ChangePosition(*keys[-1])
    return await database.search(sql, (*_key(source_id, place), *_key(source_id, last), *kinds))


def _key(source_id: str | None, place: ChangePosition) -> tuple[Any, ...]:
    return place if source_id is None else (source_id, place.written_at, place.entity_id)


async def _change(
    database: Database, written_at: int, source_id: str, entity_id: int, ref: str, version: str
) -> FactChange:
    keys = (source_id, entity_id, written_at, _BEFORE + 1)
    found = await database.all(_WINDOW, keys)
    rows = [
        (_facts(facts, holding), msgspec.json.decode(reasons))
        for facts, reasons, _, holding in found
    ]
    changed = differences(rows)
    if any(held_at is not None and holding is None for *_, held_at, holding in found):
        # Long values before it went with an old row: whether they are others now is not known.
        changed = {name: changed[name] for name in changed if changed[name][0] is not None}
    place = ChangePosition(written_at, source_id, entity_id)
    return FactChange(place, ref, version, changed, rows[0][1])


def _facts(facts: str, holding: str | None) -> dict[str, Any]:
    """The facts of a row with the long values of the row that has them."""
    whole = facts if holding is None else history.filled(facts, holding)
    found: dict[str, Any] = msgspec.json.decode(whole)
    return found


Said = tuple[Mapping[str, Any], Mapping[str, str]]  # facts, and why others have no value


def differences(rows: Sequence[Said]) -> dict[str, tuple[Any, Any]]:
    """The facts changed by the first of the rows, newest first: (before, after) by fact.

    A row that has neither a value nor a reason for a fact leaves it unchanged.
    """
    before: dict[str, Any] = {}
    for row in reversed(rows[1:]):
        before = _after(before, row)
    since = _after(before, rows[0])
    return {
        name: (before.get(name), since.get(name))
        for name in {**before, **since}
        if name not in before or name not in since or not _same(before[name], since[name])
    }


def _after(state: Mapping[str, Any], row: Said) -> dict[str, Any]:
    facts, reasons = row
    return {name: state[name] for name in state if reason_of(name, reasons) is None} | dict(facts)


def _same(one: object, other: object) -> bool:
    return msgspec.json.encode(one) == msgspec.json.encode(other)


class _Scan(NamedTuple):
    """SQL of a scan: its `start`, which finds keys up to a limit, and the `range` between two."""

    start: str
    range: str


_SCAN_ALL = _Scan(
    """
    SELECT written_at, source_id, entity_id FROM facts_history
    WHERE (written_at, source_id, entity_id) > (?, ?, ?)
    ORDER BY written_at, source_id, entity_id LIMIT ?
    """,
    """(h.written_at, h.source_id, h.entity_id) > (?, ?, ?)
        AND (h.written_at, h.source_id, h.entity_id) <= (?, ?, ?)""",
)

_SCAN_ONE = _Scan(
    """
    SELECT written_at, source_id, entity_id FROM facts_history
    WHERE source_id = ? AND (written_at, entity_id) > (?, ?)
    ORDER BY written_at, entity_id LIMIT ?
    """,
    """h.source_id = ? AND (h.written_at, h.entity_id) > (?, ?)
        AND h.source_id = ? AND (h.written_at, h.entity_id) <= (?, ?)""",
)

# Bounded by a key and not by LIMIT, so that a cluster that keeps each entity in one place compares
# the rows there.
_CHANGED = """
SELECT s.written_at, s.source_id, s.entity_id, CASE WHEN e.ref IS NULL THEN NULL
    WHEN s.said <> COALESCE(s.said_before, s.said) THEN e.ref END, s.version
FROM (
    SELECT h.written_at, h.source_id, h.entity_id, h.version, h.facts || h.reasons AS said, (
        SELECT b.facts || b.reasons FROM facts_history b
        WHERE b.source_id = h.source_id AND b.entity_id = h.entity_id
            AND b.written_at < h.written_at
        ORDER BY b.written_at DESC LIMIT 1
    ) AS said_before FROM facts_history h WHERE {range}
) s LEFT JOIN entities e ON e.id = s.entity_id{kind}
ORDER BY s.written_at, s.source_id, s.entity_id
"""

_WINDOW = """
SELECT h.facts, h.reasons, h.held_at, (
    SELECT b.facts FROM facts_history b
    WHERE b.source_id = h.source_id AND b.entity_id = h.entity_id AND b.written_at = h.held_at
) FROM facts_history h
WHERE h.source_id = ? AND h.entity_id = ? AND h.written_at <= ? ORDER BY h.written_at DESC LIMIT ?
"""
