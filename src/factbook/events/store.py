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

from factbook.clock import Throttle
from factbook.errors import GoneError, UnavailableError
from factbook.events.event import (
    OF_ENTITIES,
    TYPES,
    EventRow,
    FeedEvent,
    FeedPosition,
    NumberedEventRow,
    Topic,
    events,
)
from factbook.storage import Database, Transaction
from factbook.storage.database import fetch_counter, lift_counter, put_counter, select_counter

# Rows that one page looks at: with a condition that few events meet it holds few.
SCANNED: Final = 1_000
_SWEPT_AT_ONCE: Final = 1_000
_NUMBERED_AT_ONCE: Final = 1_000
# Counters of the newest position, and of the newest that was deleted for its age.
COUNTER: Final = "event"
_FORGOTTEN: Final = "event_forgotten"


class EventFilter(NamedTuple):
    """A filter of events; a member that is None or empty matches everything."""

    types: Sequence[str] = ()
    set: str | None = None
    source: str | None = None
    entity: str | None = None
    check: str | None = None
    scorecard: str | None = None


class FeedPage(NamedTuple):
    """Events in order, the place after them, and true if more rows are already there."""

    events: list[FeedEvent]
    next: FeedPosition
    more: bool


class Newest(NamedTuple):
    """The last row of the feed; `at` is None if no row is kept."""

    position: int
    at: int | None


class EventMark(NamedTuple):
    """A row of the feed without its content."""

    position: int
    at: int
    topic: Topic
    about: str


async def newest(database: Database) -> Newest:
    """The end of the feed."""
    position = await fetch_counter(database, COUNTER)
    return Newest(position, await time_of(database, position))


async def time_of(database: Database, position: int) -> int | None:
    """The time of the row with this position; None if it is not kept, or yet to come."""
    row = await database.one("SELECT at FROM events WHERE position = ?", (position,))
    return row[0] if row else None


def append(transaction: Transaction, told: Iterable[EventRow], now: int) -> None:
    """Add rows, without blocking other transactions."""
    rows = [(now, one.topic, one.about, _json(one.content)) for one in told]
    transaction.many(_APPEND, rows)


async def page(
    database: Database, after: FeedPosition | None, wanted: EventFilter, limit: int
) -> FeedPage:
    """Up to `limit` events from a place on, or from the oldest that is kept.

    Raises GoneError if events from this place on are no longer kept, or never existed.
    """
    # What has its place already can be read though nothing can be written.
    with suppress(UnavailableError):
        await catch_up(database)
    last = await fetch_counter(database, COUNTER)
    place = after or FeedPosition(await _oldest(database), 0)
    end = min(place.position + SCANNED, last + 1)
    sql, parameters = _condition(wanted)
    keys = (place.position, end, *parameters, limit + 1)
    rows = [NumberedEventRow(*row) for row in await database.search(_PAGE.replace("{}", sql), keys)]
    # Looked at after the rows, which might have been forgotten in between.
    if place.position < await _oldest(database) or place.position > last + 1:
        raise GoneError(
            "This cursor points to events that are no longer kept. Start over without `after`, "
            "and read what has changed from the catalog."
        )
    found: list[FeedEvent] = []
    for row in rows:
        for event in events(row):
            if event.place >= place and _meets(event, wanted):
                if len(found) == limit:
                    return FeedPage(found, event.place, more=True)
                found.append(event)
    # All of the rows were looked at, though not all that there are.
    if len(rows) > limit:
        end = rows[-1].position + 1
    return FeedPage(found, FeedPosition(end, 0), more=end <= last)


async def end(database: Database) -> FeedPosition:
    """The place after everything that has happened so far."""
    await catch_up(database)
    return FeedPosition(await fetch_counter(database, COUNTER) + 1, 0)


async def marks(database: Database, after: int, limit: int) -> list[EventMark]:
    """The first rows after a position; those that have none yet are numbered before."""
    with suppress(UnavailableError):
        await catch_up(database)
    return [EventMark(*row) for row in await database.all(_MARKS, (after, limit))]


async def subjects(database: Database, after: int, last: int) -> set[str]:
    """The entities that events of these rows are about."""
    keys = (after + 1, last + 1, sorted(OF_ENTITIES), last - after)
    rows = await database.search(_PAGE.replace("{}", _TOPICS), keys)
    return {event.subject for row in rows for event in events(NumberedEventRow(*row))}


async def start(database: Database) -> FeedPosition:
    """The place of the oldest event that is kept."""
    return FeedPosition(await _oldest(database), 0)


async def sweep(database: Database, before: int, pace: Throttle) -> int:
    """Delete rows older than a time, oldest first, in portions; returns their number."""
    await catch_up(database)
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
    # One that is slower than another, as when its lease has lapsed, brings back nothing.
    lift_counter(transaction, _FORGOTTEN, last)
    return transaction.run("DELETE FROM events WHERE position <= ?", (last,))


async def catch_up(database: Database) -> None:
    """Assign a position to every committed row. Almost free if there are no new rows."""
    while await database.one(_NEW) and await database.write(number) == _NUMBERED_AT_ONCE:
        pass


def number(transaction: Transaction) -> int:
    """Assign positions to the oldest rows without one; returns their number."""
    transaction.lock("events")
    last = select_counter(transaction, COUNTER)
    count = transaction.run(_NUMBER, (last, _NUMBERED_AT_ONCE))
    put_counter(transaction, COUNTER, last + count)
    return count


def restart(transaction: Transaction, above: int) -> FeedPosition:
    """Delete every event, and continue from a place above `above` and all places used here.

    For a restored database: ids of events published after the backup are never assigned again, and
    every earlier cursor refers to events that are no longer kept.
    """
    transaction.lock("events")
    last = max(select_counter(transaction, COUNTER) + 1, above)
    transaction.run("DELETE FROM events")
    for name in (COUNTER, _FORGOTTEN):
        put_counter(transaction, name, last)
    return FeedPosition(last + 1, 0)


async def _oldest(database: Database) -> int:
    """The first position whose row was not deleted for its age."""
    return await fetch_counter(database, _FORGOTTEN) + 1


def _condition(wanted: EventFilter) -> tuple[str, list[object]]:
    """The condition for rows that may contain wanted events."""
    topics = _topics(wanted)
    sql, parameters = _TOPICS, list[object]([sorted(topics)])
    for about in (wanted.set, wanted.source, wanted.check, wanted.scorecard):
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
    if wanted.check is not None:
        topics &= {"check"}
    if wanted.scorecard is not None:
        topics &= {"level"}
    if wanted.entity is not None:
        topics &= OF_ENTITIES
    return topics


def _meets(event: FeedEvent, wanted: EventFilter) -> bool:
    return (not wanted.types or event.type in wanted.types) and (
        wanted.entity is None or event.subject == wanted.entity
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_APPEND = "INSERT INTO events (at, topic, about, content) VALUES (?, ?, ?, ?)"

_PAGE = """
SELECT position, at, topic, about, content FROM events
WHERE position >= ? AND position < ?{} ORDER BY position LIMIT ?
"""

_TOPICS = " AND topic IN LIST(?)"

_MARKS = """
SELECT position, at, topic, about FROM events WHERE position > ? ORDER BY position LIMIT ?
"""

_OLDEST = "SELECT position, at FROM events WHERE position IS NOT NULL ORDER BY position LIMIT ?"

_NEW = "SELECT 1 FROM events WHERE position IS NULL LIMIT 1"

# An order by id is that of the commits where one transaction began after the other had ended.
_NUMBER = """
UPDATE events SET position = numbered.position FROM (
    SELECT id, ? + ROW_NUMBER() OVER (ORDER BY id) AS position FROM events
    WHERE position IS NULL ORDER BY id LIMIT ?
) AS numbered WHERE events.id = numbered.id
"""
