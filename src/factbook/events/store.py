"""The store of events: rows are added in the transaction of the change, and never modified.

A row gets its position after its transaction has committed; readers see only rows with a position,
so what they have read is complete up to there. If a transaction assigned its own, it might commit
after a higher one was read; preventing that would make all writers wait for each other's commits.
So readers assign positions to the committed rows in order of writing, one process at a time.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

import msgspec

from factbook.clock import Pace
from factbook.errors import GoneError, UnavailableError
from factbook.events import numbering
from factbook.events.event import (
    TYPES,
    EventRow,
    FeedEvent,
    FeedPosition,
    NumberedEventRow,
    Topic,
    events,
)
from factbook.storage import Database, Transaction

# Rows that one page looks at: with a condition that few events meet it holds few.
SCANNED: Final = 1_000
_SWEPT_AT_ONCE: Final = 1_000


class EventFilter(NamedTuple):
    """A filter of events; a member that is None or empty matches everything."""

    types: Sequence[str] = ()
    set: str | None = None
    source: str | None = None
    entity: str | None = None


class Page(NamedTuple):
    """Events in their order, the place behind them, and whether more rows are there already."""

    events: list[FeedEvent]
    next: FeedPosition
    more: bool


class Newest(NamedTuple):
    """The last row of the feed; `at` is None if no row is kept."""

    position: int
    at: int | None


async def newest(database: Database) -> Newest:
    """How far the feed goes."""
    position = await _counter(database, numbering.COUNTER)
    row = await database.one("SELECT at FROM events WHERE position = ?", (position,))
    return Newest(position, row[0] if row else None)


def append(transaction: Transaction, told: Iterable[EventRow], now: int) -> None:
    """Add rows, without blocking other transactions."""
    rows = [(now, one.topic, one.about, _json(one.content)) for one in told]
    transaction.many(_APPEND, rows)


async def page(
    database: Database, after: FeedPosition | None, wanted: EventFilter, limit: int
) -> Page:
    """Up to `limit` events from a place on, or from the oldest that is kept.

    Raises GoneError when events from this place on are not kept any more, or never were there.
    """
    # What has its place already can be read though nothing can be written.
    with suppress(UnavailableError):
        await numbering.catch_up(database)
    last = await _counter(database, numbering.COUNTER)
    place = after or FeedPosition(await _counter(database, _FORGOTTEN) + 1, 0)
    end = min(place.position + SCANNED, last + 1)
    sql, parameters = _condition(wanted)
    keys = (place.position, end, *parameters, limit + 1)
    rows = [NumberedEventRow(*row) for row in await database.search(_PAGE.replace("{}", sql), keys)]
    # Looked at after the rows, which might have been forgotten in between.
    if place.position <= await _counter(database, _FORGOTTEN) or place.position > last + 1:
        raise GoneError(
            "This cursor is of events that are not kept any more. Begin anew without `after`, "
            "and read what changed meanwhile from the catalog."
        )
    found: list[FeedEvent] = []
    for row in rows:
        for event in events(row):
            if event.place >= place and _meets(event, wanted):
                if len(found) == limit:
                    return Page(found, event.place, more=True)
                found.append(event)
    # All of the rows were looked at, though not all that there are.
    if len(rows) > limit:
        end = rows[-1].position + 1
    return Page(found, FeedPosition(end, 0), more=end <= last)


async def end(database: Database) -> FeedPosition:
    """The place behind everything that has happened until now."""
    await numbering.catch_up(database)
    return FeedPosition(await _counter(database, numbering.COUNTER) + 1, 0)


async def start(database: Database) -> FeedPosition:
    """The place of the oldest event that is kept."""
    return FeedPosition(await _counter(database, _FORGOTTEN) + 1, 0)


async def sweep(database: Database, before: int, pace: Pace) -> int:
    """Delete rows older than a time, oldest first, in portions; returns their number."""
    await numbering.catch_up(database)
    gone, rest = 0, True
    while rest:
        rows = await database.all(_OLDEST, (_SWEPT_AT_ONCE,))
        old = [position for position, at in rows if at < before]
        # A clock may have been set back: what stands behind a kept row is kept, too.
        kept = next((position for position, at in rows if at >= before), None)
        last = max((one for one in old if kept is None or one < kept), default=None)
        rest = kept is None and len(rows) == _SWEPT_AT_ONCE
        if last is not None:
            gone += await database.write(partial(_forget, last=last))
        await pace.rest()
    return gone


def _forget(transaction: Transaction, *, last: int) -> int:
    transaction.run("UPDATE counters SET value = ? WHERE name = ?", (last, _FORGOTTEN))
    return transaction.run("DELETE FROM events WHERE position <= ?", (last,))


async def _counter(database: Database, name: str) -> int:
    row = await database.one("SELECT value FROM counters WHERE name = ?", (name,))
    return int(row[0]) if row else 0


def _condition(wanted: EventFilter) -> tuple[str, list[object]]:
    """The condition for rows that may contain wanted events."""
    topics = _topics(wanted)
    sql, parameters = " AND topic IN LIST(?)", list[object]([sorted(topics)])
    for about in (wanted.set, wanted.source):
        if about is not None:
            sql += " AND about = ?"
            parameters.append(about)
    if wanted.entity is not None:
        sql += " AND content LIKE ? ESCAPE '!'"
        text = _json(wanted.entity)
        for char in "!%_":
            text = text.replace(char, f"!{char}")
        parameters.append(f"%{text}%")
    return sql, parameters


def _topics(wanted: EventFilter) -> set[Topic]:
    topics = {
        topic for type_, (topic, _) in TYPES.items() if not wanted.types or type_ in wanted.types
    }
    if wanted.set is not None:
        topics &= {"set", "entity"}
    if wanted.source is not None:
        topics &= {"fact", "source"}
    if wanted.entity is not None:
        topics &= {"entity", "fact"}
    return topics


def _meets(event: FeedEvent, wanted: EventFilter) -> bool:
    return (not wanted.types or event.type in wanted.types) and (
        wanted.entity is None or event.subject == wanted.entity
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_FORGOTTEN: Final = "event_forgotten"

_APPEND = "INSERT INTO events (at, topic, about, content) VALUES (?, ?, ?, ?)"

_PAGE = """
SELECT position, at, topic, about, content FROM events
WHERE position >= ? AND position < ?{} ORDER BY position LIMIT ?
"""

_OLDEST = "SELECT position, at FROM events WHERE position IS NOT NULL ORDER BY position LIMIT ?"
