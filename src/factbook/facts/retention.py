"""Removal of stored facts: history beyond its lifecycle, deletions, old months, expired values."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from factbook.catalog import filters
from factbook.clock import DAY, HOUR, MINUTE, Throttle, iso
from factbook.errors import UnavailableError
from factbook.facts import history, store
from factbook.facts.datasource import DataSource, duration_milliseconds
from factbook.facts.freshness import LATE_AFTER, Observation, expiry_time
from factbook.facts.schema import UPSTREAM_ERROR
from factbook.scheduling import runs
from factbook.scheduling.runs import SourceHealth
from factbook.storage import Database, Transaction, Write
from factbook.storage.partitions import MonthlyTable, Partition, replace_gone_partitions

# For a row `h`. The newest confirmation is that of the latest facts, also for rows that share its
# values. These follow within a day of each other, so checking the next row is enough.
FOUND_UNTIL: Final = """
COALESCE(CASE WHEN COALESCE(h.held_at, h.written_at) = (
    SELECT n.held_at FROM facts_history n WHERE n.source_id = h.source_id
        AND n.entity_id = h.entity_id AND n.written_at > h.written_at
    ORDER BY n.written_at LIMIT 1
) THEN (
    SELECT COALESCE(r.confirmed_at, CASE WHEN NOT EXISTS (
        SELECT 1 FROM facts_history n WHERE n.source_id = r.source_id
            AND n.entity_id = r.entity_id AND n.written_at > r.written_at
    ) THEN (
        SELECT l.written_at FROM facts_latest l
        WHERE l.source_id = r.source_id AND l.entity_id = r.entity_id
    ) END, r.written_at) AS found_until FROM facts_history r
    WHERE r.source_id = h.source_id AND r.entity_id = h.entity_id
        AND r.written_at < COALESCE(h.held_at, h.written_at) + 86400000
        AND r.held_at = COALESCE(h.held_at, h.written_at)
    ORDER BY r.written_at DESC LIMIT 1
) END, h.confirmed_at, CASE WHEN NOT EXISTS (
    SELECT 1 FROM facts_history n WHERE n.source_id = h.source_id
        AND n.entity_id = h.entity_id AND n.written_at > h.written_at
) THEN (
    SELECT l.written_at FROM facts_latest l
    WHERE l.source_id = h.source_id AND l.entity_id = h.entity_id
) END, h.written_at)
"""
# Rows examined at once.
_ROWS_AT_ONCE = 1_000
# Rows deleted at once; few, to keep other writes from waiting long.
_DELETED_AT_ONCE = 200
# Rows may be stored this long after their time.
_TRIM_DELAY = 5 * MINUTE
_AFTER_ALL = 2**63 - 1
# Stands for the number of items of a source that keeps a time. As the largest number, it makes a
# source that switches to a number have all its entities examined.
_ANY_TIME = _AFTER_ALL
_RowKey = tuple[str, int, int]
_ENTITIES_AT_ONCE = 1_000
_HISTORY_AT_ONCE = 5_000
MONTHLY_HISTORY: Final = MonthlyTable("facts_history", "written_at")
_BEFORE_ALL: Final = -(2**63)
_EXPIRED_AT_ONCE = 500


class _Mark(NamedTuple):
    """Progress of trimming a source that keeps `max_items`.

    Entities without a row at or after `trimmed_to`, or at or after `late`, have no surplus rows.

    For a source that keeps a time, rows before `trimmed_to` were examined, and `passed_at` is the
    time at which all were.
    """

    max_items: int
    trimmed_to: int
    late: int | None
    passed_at: int | None


class _Progress(NamedTuple):
    """Marks of a source, to be recorded once its rows are deleted."""

    trimmed_to: int
    passed_at: int | None
    source_id: str


async def sweep_history(
    database: Database, sources: Sequence[DataSource], now: int, pace: Throttle | None = None
) -> int:
    """Delete rows beyond the lifecycles of the sources; returns their number."""
    return await _HistorySweep(database, now, pace or Throttle()).run(sources)


def record_late_push(transaction: Transaction, source_id: str, earliest: int) -> None:
    """Record that rows with possibly old times were added to the history of a source."""
    transaction.run(_RECORD_LATE, (earliest, earliest, source_id))


class _HistorySweep:
    def __init__(self, database: Database, now: int, pace: Throttle) -> None:
        self._database = database
        self._now = now
        self._pace = pace
        # An entity with rows in two portions appears in both.
        self._keys: dict[_RowKey, None] = {}
        self._trimmed: list[_Progress] = []
        self._removed = 0

    async def run(self, sources: Sequence[DataSource]) -> int:
        marks = {id_: _Mark(*rest) for id_, *rest in await self._database.all(_TRIM_MARKS)}
        for source in sources:
            async for keys in self._outlived(source, marks.get(source.id)):
                self._keys |= dict.fromkeys(keys)
                while len(self._keys) + len(self._trimmed) >= _DELETED_AT_ONCE:
                    await self._flush()
                await self._pace.rest()
        await self._flush()
        return self._removed

    async def _outlived(
        self, source: DataSource, mark: _Mark | None
    ) -> AsyncIterator[list[_RowKey]]:
        """The rows to delete from a source, in portions, which may be empty."""
        if source.lifecycle is None:
            return
        most, lifetime = source.lifecycle.max_items, source.lifecycle.time_to_live
        if most is not None:
            async for keys in self._too_many(source.id, most, mark):
                yield keys
        elif lifetime is not None:
            async for keys in self._too_old(
                source.id, self._now - duration_milliseconds(lifetime), mark
            ):
                yield keys

    async def _too_old(
        self, source_id: str, before: int, mark: _Mark | None
    ) -> AsyncIterator[list[_RowKey]]:
        since = await self._since(source_id, _ANY_TIME, mark)
        passed_at = mark.passed_at if mark is not None else None
        if passed_at is None or not passed_at <= self._now < passed_at + DAY or not since:
            since, passed_at = 0, self._now
        found = False
        place: tuple[int, int] | None = (since - 1, _AFTER_ALL)
        while place is not None:
            rows = await self._database.all(_OLDER_ROWS, (source_id, before, *place, _ROWS_AT_ONCE))
            gone = [row[:3] for row in rows if row[3] < before]
            yield [
                *(await self._sharing(source_id, gone) if since else ()),
                *((source_id, id_, written_at) for written_at, id_, _ in gone),
            ]
            found = found or bool(rows)
            place = rows[-1][:2] if len(rows) == _ROWS_AT_ONCE else None
        if found or not since or before - since > HOUR:
            self._trimmed.append(_Progress(before, passed_at, source_id))

    async def _sharing(
        self, source_id: str, rows: Sequence[tuple[int, int, int | None]]
    ) -> list[_RowKey]:
        """The earlier rows that were kept because these share their long values."""
        ends = {(id_, held_at): at for at, id_, held_at in rows if held_at is not None}
        found: list[_RowKey] = []
        for (id_, held_at), at in ends.items():
            found += await self._database.all(_ROWS_SHARING, (source_id, id_, held_at, at, held_at))
        return found

    async def _since(self, source_id: str, most: int, mark: _Mark | None) -> int:
        """The time from which rows must be examined; 0: all of them."""
        if mark is None or mark.late is not None or mark.max_items != most:
            row = await self._database.write(
                lambda transaction: transaction.one(_BEGIN_TRIM, (source_id, most, _ANY_TIME))
            )
            return row[0] if row else 0
        return mark.trimmed_to

    async def _too_many(
        self, source_id: str, most: int, mark: _Mark | None
    ) -> AsyncIterator[list[_RowKey]]:
        since = await self._since(source_id, most, mark)
        # The clock was set back: later rows have earlier times.
        since = since if since <= self._now else 0
        found = False
        portions = self._recent(source_id, most, since) if since else self._every(source_id, most)
        async for keys in portions:
            found = True
            yield keys
        if found or not since:
            self._trimmed.append(_Progress(self._now - _TRIM_DELAY, None, source_id))

    async def _recent(self, source_id: str, most: int, since: int) -> AsyncIterator[list[_RowKey]]:
        """The surplus rows of entities with rows since then."""
        place: tuple[int, int] | None = (since, -1)
        while place is not None:
            rows = await self._database.all(_ROWS_SINCE, (source_id, *place, _ROWS_AT_ONCE))
            if not rows:
                return
            until = self._now + _TRIM_DELAY
            among = (source_id, until, most - 1, source_id, *place, *rows[-1], source_id)
            async for keys in self._database.pages(_ROWS_BEYOND, among, _ROWS_AT_ONCE):
                yield [(source_id, entity_id, written_at) for entity_id, written_at in keys]
            yield []
            place = rows[-1] if len(rows) == _ROWS_AT_ONCE else None

    async def _every(self, source_id: str, most: int) -> AsyncIterator[list[_RowKey]]:
        """The surplus rows of all entities."""
        place, last, count, needed = (_AFTER_ALL, _AFTER_ALL), -1, 0, 0
        while rows := await self._database.search(
            _NEWEST_FIRST, (source_id, *place, _ROWS_AT_ONCE)
        ):
            keys: list[_RowKey] = []
            for entity_id, written_at, held_at in rows:
                count = count if entity_id == last else 0
                last = entity_id
                # Rows with a future time are left until then and don't count.
                count += written_at <= self._now + _TRIM_DELAY
                if count == most:
                    needed = written_at if held_at is None else held_at
                if count > most and written_at < needed:
                    keys.append((source_id, entity_id, written_at))
            yield keys
            place = rows[-1][:2]

    async def _flush(self) -> None:
        """Delete the first of the keys, and record the trimmed sources once none is left."""
        keys = list(islice(self._keys, _DELETED_AT_ONCE))
        for key in keys:
            del self._keys[key]
        trimmed = list[_Progress]()
        if not self._keys:
            trimmed, self._trimmed = self._trimmed, []

        def delete_rows(transaction: Transaction) -> None:
            # Rows restored by a crash go with the next sweep; so don't wait for the disk.
            transaction.relax()
            transaction.delete("facts_history", ("source_id", "entity_id", "written_at"), keys)
            transaction.many(_END_TRIM, trimmed)

        if keys or trimmed:
            await self._database.write(delete_rows)
            self._removed += len(keys)
            await self._pace.rest()


def delete_facts(
    transaction: Transaction, entity_ids: Iterable[int], source_id: str | None = None
) -> int:
    """Delete the facts of these entities, of all sources or of one; returns the number of rows."""
    only, parameters = ("", ()) if source_id is None else (" AND source_id = ?", (source_id,))
    ids = list(entity_ids)
    if source_id is not None:
        history.touch_values(transaction, source_id, ids)
    statements = (_DELETE_LATEST, _DELETE_HISTORY)
    return sum(transaction.run(each + only, (ids, *parameters)) for each in statements)


def delete_source_facts(transaction: Transaction, source_id: str) -> None:
    """Delete everything that a source has stored."""
    history.lock_latest(transaction, source_id)
    after = 0
    while rows := transaction.all(_LATEST_IDS, (source_id, after, _ENTITIES_AT_ONCE)):
        history.touch_values(transaction, source_id, [entity_id for (entity_id,) in rows])
        after = rows[-1][0]
    for statement in _DELETE_SOURCE:
        transaction.run(statement, (source_id,))


async def drop_history(database: Database, source_id: str, write: Write) -> int:
    """Delete the history of a source in portions, to keep other writes from waiting long.

    `write` runs each portion in a transaction.
    """
    dropped, rest = 0, True
    while rest:
        place = await database.one(_HISTORY_PLACE, (source_id, _HISTORY_AT_ONCE))
        rest = place is not None
        keys = (source_id, *(place or (_AFTER_ALL, _AFTER_ALL)))
        dropped += await write(partial(_drop_rows, keys=keys))
    return dropped


def drop_facts(transaction: Transaction, source_id: str, names: Iterable[str]) -> None:
    """Remove facts from a source's latest facts, whose types must match its schema."""
    gone, after = frozenset(names), 0
    history.lock_latest(transaction, source_id)
    while gone and (
        rows := transaction.all(_LATEST_OF_SOURCE, (source_id, after, _ENTITIES_AT_ONCE))
    ):
        rewritten = []
        for entity_id, *texts in rows:
            members = [msgspec.json.decode(text, type=dict[str, msgspec.Raw]) for text in texts]
            remaining = [
                {name: value for name, value in values.items() if name not in gone}
                for values in members
            ]
            encoded = (msgspec.json.encode(values).decode() for values in remaining)
            rewritten.append((*encoded, source_id, entity_id))
        transaction.many(_REWRITE_LATEST, rewritten)
        after = rows[-1][0]
        history.touch_values(transaction, source_id, [row[0] for row in rows])


def drop_untracked(transaction: Transaction, source: DataSource) -> int:
    """Delete the latest facts of entities that no longer match the filter; returns their number."""
    if source.selection is None:
        return 0
    history.lock_latest(transaction, source.id)
    condition, values = filters.make_filter_condition(source.selection)
    gone = transaction.all(_UNTRACKED.replace("{}", condition), (source.id, *values))
    if not gone:
        return 0
    history.close_history(transaction, source.id, gone)
    ids = [entity_id for entity_id, _ in gone]
    history.touch_values(transaction, source.id, ids)
    return transaction.run(_DROP_LATEST, (source.id, ids))


def _drop_rows(transaction: Transaction, keys: tuple[str, int, int]) -> int:
    return transaction.run(_DROP_ROWS, keys)


async def drop_months(database: Database, sources: Sequence[DataSource], now: int) -> None:
    """Drop past months in which no source keeps a row."""
    # Cutoff times; a source that keeps a number of rows, or all, has none.
    cutoffs = {
        source.id: now - duration_milliseconds(lifecycle.time_to_live)
        for source in sources
        if (lifecycle := source.lifecycle)
        and lifecycle.time_to_live
        and lifecycle.max_items is None
    }

    async def is_gone(month: Partition) -> bool:
        source_id, sql = "", _NEXT_SOURCE.format(month.name)
        while row := await database.one(sql, (source_id,)):
            source_id = row[0]
            if not _may_drop(cutoffs, source_id, month):
                return False
            values = (source_id, month.start or _BEFORE_ALL, month.end, cutoffs[source_id])
            try:
                if await database.search(_IS_KEPT, values):
                    return False
            except UnavailableError:  # it takes too long, so its rows go one by one
                return False
        return True

    def check(transaction: Transaction, month: Partition) -> bool:
        """Return true unless rows with an old time were pushed since."""
        source_id, sql = "", _NEXT_SOURCE.format(month.name)
        while row := transaction.one(sql, (source_id,)):
            source_id = row[0]
            if not _may_drop(cutoffs, source_id, month):
                return False
        return True

    await replace_gone_partitions(database, MONTHLY_HISTORY, now, is_gone, check)


def _may_drop(cutoffs: Mapping[str, int], source_id: str, month: Partition) -> bool:
    return month.end is not None and cutoffs.get(source_id, _BEFORE_ALL) >= month.end


class _FirstRound:
    """The first round of this process."""

    at: int | None = None


class _Expired(NamedTuple):
    """The number of entities, and the id of the last one looked at; None at the end."""

    entities: int
    last: int | None


async def sweep_expired(
    database: Database, sources: Iterable[DataSource], now: int, pace: Throttle
) -> int:
    """Expire values of sources without a run for a value's lifetime; returns their number."""
    start = database.remembered.of(_FirstRound)
    start.at = now if start.at is None or start.at > now else start.at
    if now - start.at < LATE_AFTER:
        return 0
    known, count = await runs.fetch_health(database), 0
    for source in sources:
        reason = _expiry_cause(source, known.get(source.id), now)
        after = None if reason is None else 0
        while reason is not None and after is not None:
            step = partial(_expire_values, source=source, reason=reason, after=after, now=now)
            expired: _Expired = await database.write(step)
            count, after = count + expired.entities, expired.last
            await pace.rest()
    return count


def _expiry_cause(source: DataSource, health: SourceHealth | None, now: int) -> str | None:
    """The reason why values may have expired; None if the source's runs expire them."""
    if source.cadence is None or source.draft or health is None:
        return None
    last = health.last
    if last is None or health.running or now <= expiry_time(source, last.started_at):
        return None
    return last.error or f"{UPSTREAM_ERROR}: no run since {iso(last.started_at)}"


def _expire_values(
    transaction: Transaction, *, source: DataSource, reason: str, after: int, now: int
) -> _Expired:
    """Expire the values of the next entities."""
    rows = transaction.all(_KNOWN_VALUES, (source.id, after, _EXPIRED_AT_ONCE))
    old = [id_ for id_, written_at in rows if now > expiry_time(source, written_at)]
    lost = [Observation(id_, {}, {"": reason}, frozenset({""})) for id_ in old]
    if lost:
        store.record_facts(transaction, source, lost, now)
        transaction.evaluate_checks()
    return _Expired(len(old), rows[-1][0] if len(rows) == _EXPIRED_AT_ONCE else None)


_TRIM_MARKS = "SELECT source_id, max_items, trimmed_to, late, passed_at FROM history_trims"

_RECORD_LATE = """
UPDATE history_trims SET late = CASE WHEN late < ? THEN late ELSE ? END WHERE source_id = ?
"""

# Waits for pushes in progress: their marks are seen here or left for the next sweep.
_BEGIN_TRIM = """
INSERT INTO history_trims (source_id, max_items, trimmed_to) VALUES (?, ?, 0)
ON CONFLICT (source_id) DO UPDATE SET trimmed_to = CASE
        WHEN history_trims.max_items > excluded.max_items THEN 0
        WHEN history_trims.max_items < excluded.max_items AND excluded.max_items = ? THEN 0
        WHEN history_trims.late < history_trims.trimmed_to THEN history_trims.late
        ELSE history_trims.trimmed_to
    END, max_items = excluded.max_items, late = NULL
RETURNING trimmed_to
"""

_END_TRIM = "UPDATE history_trims SET trimmed_to = ?, passed_at = ? WHERE source_id = ?"

_OLDER_ROWS = """
SELECT h.written_at, h.entity_id, h.held_at, {until}
FROM facts_history h
WHERE h.source_id = ? AND h.written_at < ? AND (h.written_at, h.entity_id) > (?, ?)
ORDER BY h.written_at, h.entity_id LIMIT ?
""".replace("{until}", FOUND_UNTIL)

_ROWS_SHARING = """
SELECT source_id, entity_id, written_at FROM facts_history
WHERE source_id = ? AND entity_id = ? AND written_at >= ? AND written_at < ?
    AND COALESCE(held_at, written_at) = ?
ORDER BY written_at
"""

_ROWS_SINCE = """
SELECT written_at, entity_id FROM facts_history
WHERE source_id = ? AND (written_at, entity_id) > (?, ?)
ORDER BY written_at, entity_id LIMIT ?
"""

# For the entities of a portion: rows before the last kept row and before the row that stores its
# long values, from when the source kept a time.
_ROWS_BEYOND = """
SELECT h.entity_id, h.written_at FROM (
    SELECT t.entity_id, (
        SELECT COALESCE(n.held_at, n.written_at) AS needed FROM facts_history n
        WHERE n.source_id = ? AND n.entity_id = t.entity_id AND n.written_at <= ?
        ORDER BY n.written_at DESC LIMIT 1 OFFSET ?
    ) AS needed FROM (
        SELECT DISTINCT entity_id FROM facts_history
        WHERE source_id = ? AND (written_at, entity_id) > (?, ?)
            AND (written_at, entity_id) <= (?, ?)
    ) t
) kept CROSS JOIN facts_history h
WHERE h.source_id = ? AND h.entity_id = kept.entity_id AND h.written_at < kept.needed
"""

_NEWEST_FIRST = """
SELECT entity_id, written_at, held_at FROM facts_history
WHERE source_id = ? AND (entity_id, written_at) < (?, ?)
ORDER BY entity_id DESC, written_at DESC LIMIT ?
"""


_DELETE_LATEST = "DELETE FROM facts_latest WHERE entity_id IN LIST(?)"

_DELETE_HISTORY = "DELETE FROM facts_history WHERE entity_id IN LIST(?)"

_DELETE_SOURCE = (
    "DELETE FROM facts_latest WHERE source_id = ?",
    "DELETE FROM facts_history WHERE source_id = ?",
    "DELETE FROM history_trims WHERE source_id = ?",
)

_HISTORY_PLACE = """
SELECT entity_id, written_at FROM facts_history WHERE source_id = ?
ORDER BY entity_id, written_at LIMIT 1 OFFSET ?
"""

_DROP_ROWS = "DELETE FROM facts_history WHERE source_id = ? AND (entity_id, written_at) < (?, ?)"

_LATEST_OF_SOURCE = """
SELECT entity_id, facts, reasons, kept FROM facts_latest
WHERE source_id = ? AND entity_id > ? ORDER BY entity_id LIMIT ?
"""

_LATEST_IDS = """
SELECT entity_id FROM facts_latest WHERE source_id = ? AND entity_id > ?
ORDER BY entity_id LIMIT ?
"""

_REWRITE_LATEST = """
UPDATE facts_latest SET facts = ?, reasons = ?, kept = ? WHERE source_id = ? AND entity_id = ?
"""

_UNTRACKED = """
SELECT known.entity_id, known.written_at FROM facts_latest known CROSS JOIN entities e
WHERE known.source_id = ? AND e.id = known.entity_id AND NOT ({})
"""

_DROP_LATEST = "DELETE FROM facts_latest WHERE source_id = ? AND entity_id IN LIST(?)"


_NEXT_SOURCE: Final = "SELECT source_id FROM {} WHERE source_id > ? ORDER BY source_id LIMIT 1"

# An old row is kept while it is confirmed, or one that needs it, as in facts.retention.
_IS_KEPT: Final = """
SELECT 1 FROM facts_history h
WHERE h.source_id = ? AND h.written_at >= ? AND h.written_at < ? AND {until} >= ?
LIMIT 1
""".replace("{until}", FOUND_UNTIL)


_KNOWN_VALUES = """
SELECT entity_id, written_at FROM facts_latest
WHERE source_id = ? AND entity_id > ? AND facts <> '{}' ORDER BY entity_id LIMIT ?
"""
