"""Trimming of history to the lifecycle of each source, in time proportional to the deleted rows.

A row is as old as its last confirmation, or that of a row that needs it (facts.row_age). Old rows
that are still confirmed would be found in every sweep, so a sweep looks only at those that have
become old since the one before, and at all of them once a day.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import NamedTuple

from factbook.clock import DAY, HOUR, MINUTE, Throttle
from factbook.facts.datasource import DataSource, milliseconds
from factbook.facts.row_age import FOUND_UNTIL
from factbook.storage import Database, Transaction

# Rows that are looked at in one go.
_AT_ONCE = 1_000
# Rows that are deleted in one go, so that no other write waits long.
_DELETED = 200
# What is stored may have been given its time so long before.
_DELAY = 5 * MINUTE
_BEYOND = 2**63 - 1
# In place of the number of items, of a source that keeps a time. It is the largest, so when the
# source is to keep a number instead, all its entities are looked at.
_A_TIME = _BEYOND

_Key = tuple[str, int, int]


class _Mark(NamedTuple):
    """Progress of trimming a source that keeps `max_items`.

    Entities without a row at or after `trimmed_to`, or at or after `late`, have no surplus rows.

    Of a source that keeps a time, `trimmed_to` is the time before which rows were looked at, and
    `passed_at` when all of them were.
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


async def sweep(
    database: Database, sources: Sequence[DataSource], now: int, pace: Throttle | None = None
) -> int:
    """Delete rows beyond the lifecycles of the sources; returns their number."""
    return await _Sweep(database, now, pace or Throttle()).run(sources)


def note_pushed(transaction: Transaction, source_id: str, earliest: int) -> None:
    """Record that rows with possibly old times were added to the history of a source."""
    transaction.run(_NOTE, (earliest, earliest, source_id))


class _Sweep:
    def __init__(self, database: Database, now: int, pace: Throttle) -> None:
        self._database = database
        self._now = now
        self._pace = pace
        # An entity that has rows in two portions is found in both.
        self._keys: dict[_Key, None] = {}
        self._trimmed: list[_Progress] = []
        self._removed = 0

    async def run(self, sources: Sequence[DataSource]) -> int:
        marks = {id_: _Mark(*rest) for id_, *rest in await self._database.all(_MARKS)}
        for source in sources:
            async for keys in self._outlived(source, marks.get(source.id)):
                self._keys |= dict.fromkeys(keys)
                while len(self._keys) + len(self._trimmed) >= _DELETED:
                    await self._flush()
                await self._pace.rest()
        await self._flush()
        return self._removed

    async def _outlived(self, source: DataSource, mark: _Mark | None) -> AsyncIterator[list[_Key]]:
        """The rows to delete from a source, in portions, which may be empty."""
        if source.lifecycle is None:
            return
        most, lifetime = source.lifecycle.max_items, source.lifecycle.time_to_live
        if most is not None:
            async for keys in self._too_many(source.id, most, mark):
                yield keys
        elif lifetime is not None:
            async for keys in self._too_old(source.id, self._now - milliseconds(lifetime), mark):
                yield keys

    async def _too_old(
        self, source_id: str, before: int, mark: _Mark | None
    ) -> AsyncIterator[list[_Key]]:
        since = await self._since(source_id, _A_TIME, mark)
        passed_at = mark.passed_at if mark is not None else None
        if passed_at is None or not passed_at <= self._now < passed_at + DAY or not since:
            since, passed_at = 0, self._now
        found = False
        place: tuple[int, int] | None = (since - 1, _BEYOND)
        while place is not None:
            rows = await self._database.all(_OLDER, (source_id, before, *place, _AT_ONCE))
            gone = [row[:3] for row in rows if row[3] < before]
            yield [
                *(await self._sharing(source_id, gone) if since else ()),
                *((source_id, id_, written_at) for written_at, id_, _ in gone),
            ]
            found = found or bool(rows)
            place = rows[-1][:2] if len(rows) == _AT_ONCE else None
        if found or not since or before - since > HOUR:
            self._trimmed.append(_Progress(before, passed_at, source_id))

    async def _sharing(
        self, source_id: str, rows: Sequence[tuple[int, int, int | None]]
    ) -> list[_Key]:
        """The earlier rows that share long values with these, and were kept for their sake."""
        ends = {(id_, held_at): at for at, id_, held_at in rows if held_at is not None}
        found: list[_Key] = []
        for (id_, held_at), at in ends.items():
            found += await self._database.all(_SHARING, (source_id, id_, held_at, at, held_at))
        return found

    async def _since(self, source_id: str, most: int, mark: _Mark | None) -> int:
        """The time from which rows must be examined; 0: all of them."""
        if mark is None or mark.late is not None or mark.max_items != most:
            return await self._database.write(lambda tx: _begin(tx, source_id, most))
        return mark.trimmed_to

    async def _too_many(
        self, source_id: str, most: int, mark: _Mark | None
    ) -> AsyncIterator[list[_Key]]:
        since = await self._since(source_id, most, mark)
        # The clock was set back: what came since has earlier times.
        since = since if since <= self._now else 0
        found = False
        portions = self._recent(source_id, most, since) if since else self._every(source_id, most)
        async for keys in portions:
            found = True
            yield keys
        if found or not since:
            self._trimmed.append(_Progress(self._now - _DELAY, None, source_id))

    async def _recent(self, source_id: str, most: int, since: int) -> AsyncIterator[list[_Key]]:
        """The surplus rows of entities that have rows since then."""
        place: tuple[int, int] | None = (since, -1)
        while place is not None:
            rows = await self._database.all(_SINCE, (source_id, *place, _AT_ONCE))
            if not rows:
                return
            until = self._now + _DELAY
            among = (source_id, until, most - 1, source_id, *place, *rows[-1], source_id)
            async for keys in self._database.pages(_MORE, among, _AT_ONCE):
                yield [(source_id, entity_id, written_at) for entity_id, written_at in keys]
            yield []
            place = _next(rows)

    async def _every(self, source_id: str, most: int) -> AsyncIterator[list[_Key]]:
        """The surplus rows of all entities."""
        place, last, count, needed = (_BEYOND, _BEYOND), -1, 0, 0
        while rows := await self._database.search(_NEWEST_FIRST, (source_id, *place, _AT_ONCE)):
            keys: list[_Key] = []
            for entity_id, written_at, held_at in rows:
                count = count if entity_id == last else 0
                last = entity_id
                # One whose time is to come is left until then, and takes no other's place.
                count += written_at <= self._now + _DELAY
                if count == most:
                    needed = written_at if held_at is None else held_at
                if count > most and written_at < needed:
                    keys.append((source_id, entity_id, written_at))
            yield keys
            place = rows[-1][:2]

    async def _flush(self) -> None:
        """Delete the first of the keys, and record the trimmed sources once none is left."""
        keys = list(islice(self._keys, _DELETED))
        for key in keys:
            del self._keys[key]
        trimmed = list[_Progress]()
        if not self._keys:
            trimmed, self._trimmed = self._trimmed, []
        if keys or trimmed:
            await self._database.write(lambda tx: _forget(tx, keys, trimmed))
            self._removed += len(keys)
            await self._pace.rest()


def _next(rows: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The start of the next portion; None if this was the last."""
    return rows[-1] if len(rows) == _AT_ONCE else None


def _begin(transaction: Transaction, source_id: str, most: int) -> int:
    """The time from which rows must be examined; 0: all of them."""
    row = transaction.one(_BEGIN, (source_id, most, _A_TIME))
    return row[0] if row else 0


def _forget(transaction: Transaction, keys: list[_Key], marks: list[_Progress]) -> None:
    # What a crash brings back goes with the next sweep; nobody else waits for the disk.
    transaction.relax()
    transaction.delete("facts_history", ("source_id", "entity_id", "written_at"), keys)
    transaction.many(_END, marks)


_MARKS = "SELECT source_id, max_items, trimmed_to, late, passed_at FROM history_trims"

_NOTE = """
UPDATE history_trims SET late = CASE WHEN late < ? THEN late ELSE ? END WHERE source_id = ?
"""

# Waits for pushes under way: what they note is either seen here or left for the next sweep.
_BEGIN = """
INSERT INTO history_trims (source_id, max_items, trimmed_to) VALUES (?, ?, 0)
ON CONFLICT (source_id) DO UPDATE SET trimmed_to = CASE
        WHEN history_trims.max_items > excluded.max_items THEN 0
        WHEN history_trims.max_items < excluded.max_items AND excluded.max_items = ? THEN 0
        WHEN history_trims.late < history_trims.trimmed_to THEN history_trims.late
        ELSE history_trims.trimmed_to
    END, max_items = excluded.max_items, late = NULL
RETURNING trimmed_to
"""

_END = "UPDATE history_trims SET trimmed_to = ?, passed_at = ? WHERE source_id = ?"

_OLDER = """
SELECT h.written_at, h.entity_id, h.held_at, {until}
FROM facts_history h
WHERE h.source_id = ? AND h.written_at < ? AND (h.written_at, h.entity_id) > (?, ?)
ORDER BY h.written_at, h.entity_id LIMIT ?
""".replace("{until}", FOUND_UNTIL)

_SHARING = """
SELECT source_id, entity_id, written_at FROM facts_history
WHERE source_id = ? AND entity_id = ? AND written_at >= ? AND written_at < ?
    AND COALESCE(held_at, written_at) = ?
ORDER BY written_at
"""

_SINCE = """
SELECT written_at, entity_id FROM facts_history
WHERE source_id = ? AND (written_at, entity_id) > (?, ?)
ORDER BY written_at, entity_id LIMIT ?
"""

# Of the entities of a portion, the rows before the last one that is kept, and before the one that
# has its long values, from when the source kept a time.
_MORE = """
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
