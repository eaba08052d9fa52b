"""Event types, their encoding in rows, and the store of these rows.

A row has one topic. A row about a set or a source is one event; a row about entities covers some or
all of the entities changed by a push, a row about facts all entities changed by one write of a
source, and a row about levels the entities whose level a transaction changed in one scorecard.

Rows are added in the transaction of the change. A row gets its position after its transaction has
committed, and never changes otherwise. Readers see only rows with a position, so they never miss an
earlier one. If a transaction assigned its own position, it might commit after a higher one was
read; preventing that would make all writers wait for each other's commits. So readers assign
positions to the committed rows in order of writing, one process at a time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, NamedTuple, assert_never

import msgspec

from factbook.clock import Throttle
from factbook.errors import GoneError, UnavailableError
from factbook.storage import Database, Transaction
from factbook.storage.database import fetch_counter, lift_counter, put_counter, select_counter

Topic = Literal["set", "entity", "fact", "source", "check", "level", "exemption"]
EventType = Literal[
    "set.replaced",
    "import.held",
    "entity.added",
    "entity.updated",
    "entity.removed",
    "fact.changed",
    "source.down",
    "source.up",
    "check.changed",
    "check.published",
    "level.changed",
    "exemption.requested",
    "exemption.decided",
    "exemption.expiring",
    "exemption.expired",
]

# Every event type, with its topic and a description.
TYPES: Final[Mapping[EventType, tuple[Topic, str]]] = {
    "set.replaced": ("set", "A set has a new revision: it was pushed, changed or restored."),
    "import.held": ("set", "Removals of an importer wait for a decision."),
    "entity.added": ("entity", "An entity was added to the catalog."),
    "entity.updated": ("entity", "An entity changed, or moved to another set."),
    "entity.removed": ("entity", "An entity was removed from the catalog."),
    "fact.changed": ("fact", "A source wrote different facts about an entity."),
    "source.down": ("source", "Everything failed in a full run of a source."),
    "source.up": ("source", "A source that was down delivered facts again."),
    "check.changed": ("check", "The result of a check changed for an entity."),
    "check.published": ("check", "A version of a check took effect."),
    "level.changed": ("level", "An entity reached another level of a scorecard."),
    "exemption.requested": ("exemption", "Someone requested an exemption for an entity."),
    "exemption.decided": ("exemption", "An exemption was approved, denied or revoked."),
    "exemption.expiring": ("exemption", "An exemption ends within a week."),
    "exemption.expired": ("exemption", "An exemption expired, or a request that nobody decided."),
}

Change = Literal["added", "updated", "removed"]
ExemptionStep = Literal["requested", "decided", "expiring", "expired"]
# Topics whose events have an entity as their subject.
OF_ENTITIES: Final = frozenset[Topic]({"entity", "fact", "check", "level", "exemption"})


class FeedPosition(NamedTuple):
    """A position in the feed: a row's position, and an event's position in the row."""

    position: int
    item: int


class FeedEvent(NamedTuple):
    """A change; `subject` is the set, entity or source, `at` in milliseconds since the epoch."""

    place: FeedPosition
    type: str
    at: int
    subject: str
    data: dict[str, Any]

    @property
    def id(self) -> str:
        """An id that is unique in this database."""
        return f"{self.place.position}-{self.place.item}"


class EventRow(NamedTuple):
    """A new row of the store."""

    topic: Topic
    about: str
    content: dict[str, Any]


class NumberedEventRow(NamedTuple):
    """A row of the store with its position."""

    position: int
    at: int
    topic: Topic
    about: str
    content: str


def make_set_row(
    name: str,
    revision: int,
    by: str,
    item_count: int,
    changes: Mapping[str, int],
    restored: int | None,
) -> EventRow:
    """A new revision of a set, written `by` a user; `restored` is the revision it restored."""
    content = {"revision": revision, "by": by, "itemCount": item_count, "changes": changes}
    if restored is not None:
        content["restored"] = restored
    return EventRow("set", name, content)


def make_held_row(set_name: str, count: int, reason: str) -> EventRow:
    """Removals from an importer's set that await a decision, and the reason."""
    return EventRow("set", set_name, {"heldCount": count, "reason": reason})


def make_entities_row(
    set_name: str | None, revision: int, by: str, refs: Mapping[Change, Sequence[str]]
) -> EventRow:
    """Entities changed by a write of the catalog, by kind of change."""
    content: dict[str, Any] = {"revision": revision, "by": by}
    for change, found in refs.items():
        content[change] = found
    return EventRow("entity", set_name or "", content)


def make_facts_row(source_id: str, changes: list[msgspec.Raw]) -> EventRow:
    """Entities whose facts were changed by a source: pairs of a reference and the changes."""
    return EventRow("fact", source_id, {"changes": changes})


def make_source_row(source_id: str, change: Literal["down", "up"], reason: str | None) -> EventRow:
    """A source that went down, with the reason, or came up."""
    return EventRow("source", source_id, {"change": change, "reason": reason})


def make_check_row(check_id: str, changes: Sequence[tuple[str, str, str, msgspec.Raw]]) -> EventRow:
    """Results of a check: reference, state before, state after, and the written result."""
    return EventRow("check", check_id, {"changes": changes})


def make_published_check_row(check_id: str, version: str) -> EventRow:
    """A version of a check that came into effect."""
    return EventRow("check", check_id, {"version": version})


def make_levels_row(
    scorecard_id: str, changes: Sequence[tuple[str, str | None, str | None]]
) -> EventRow:
    """Levels of a scorecard: triples of reference, level before, and level after."""
    return EventRow("level", scorecard_id, {"changes": changes})


def make_exemption_row(step: ExemptionStep, ref: str, exemption: Mapping[str, Any]) -> EventRow:
    """A step of an entity's exemption, with the exemption after the step."""
    return EventRow("exemption", ref, {"step": step, "exemption": exemption})


def list_events_of_row(row: NumberedEventRow) -> Iterator[FeedEvent]:
    """The events of a row."""
    for item, (type_, subject, data) in enumerate(_list_changes(row)):
        yield FeedEvent(FeedPosition(row.position, item), type_, row.at, subject, data)


def _list_changes(row: NumberedEventRow) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Iterate over the type, the subject and the data of each event of a row."""
    about, content = row.about, msgspec.json.decode(row.content)
    data: dict[str, Any]
    match row.topic:
        case "set":
            type_ = "import.held" if "heldCount" in content else "set.replaced"
            yield type_, about, {"set": about, **content}
        case "entity":
            data = {"set": about or None, "by": content["by"]}
            if about:
                data["revision"] = content["revision"]
            for change in ("added", "updated", "removed"):
                for ref in content.get(change, ()):
                    yield f"entity.{change}", ref, {"entityRef": ref, **data}
        case "fact":
            for ref, facts in content["changes"]:
                yield "fact.changed", ref, {"entityRef": ref, "source": about, "facts": facts}
        case "source":
            data = {"source": about}
            if content["reason"] is not None:
                data["reason"] = content["reason"]
            yield f"source.{content['change']}", about, data
        case "check":
            if "version" in content:
                yield "check.published", about, {"check": about, "version": content["version"]}
            for ref, before, after, why in content.get("changes", ()):
                data = {"entityRef": ref, "check": about, "from": before, "to": after, "why": why}
                yield "check.changed", ref, data
        case "level":
            for ref, before, after in content["changes"]:
                data = {"entityRef": ref, "scorecard": about, "from": before, "to": after}
                yield "level.changed", ref, data
        case "exemption":
            data = {"entityRef": about, "exemption": content["exemption"]}
            yield f"exemption.{content['step']}", about, data
        case _:
            assert_never(row.topic)


# Rows scanned for one page, which may hold few events if few meet the filter.
SCANNED: Final = 1_000
_SWEPT_AT_ONCE: Final = 1_000
_NUMBERED_AT_ONCE: Final = 1_000
# Counters of the newest position, and of the newest position deleted because of age.
EVENT_COUNTER: Final = "event"
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
    """Events in order, the position after them, and true if more rows exist already."""

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


async def fetch_newest_event(database: Database) -> Newest:
    """The end of the feed."""
    position = await fetch_counter(database, EVENT_COUNTER)
    return Newest(position, await fetch_event_time(database, position))


async def fetch_event_time(database: Database, position: int) -> int | None:
    """The time of the row at this position; None if it is not kept, or does not exist yet."""
    row = await database.one("SELECT at FROM events WHERE position = ?", (position,))
    return row[0] if row else None


def append_events(transaction: Transaction, told: Iterable[EventRow], now: int) -> None:
    """Add rows, without blocking other transactions."""
    rows = [(now, one.topic, one.about, _encode_event(one.content)) for one in told]
    transaction.many(_APPEND, rows)


async def page_events(
    database: Database, after: FeedPosition | None, wanted: EventFilter, limit: int
) -> FeedPage:
    """Up to `limit` events from a position, or from the oldest kept event.

    Raises GoneError if events at this position are no longer kept, or never existed.
    """
    # If the database rejects writes, numbered rows can still be read.
    with suppress(UnavailableError):
        await number_new_events(database)
    last = await fetch_counter(database, EVENT_COUNTER)
    place = after or FeedPosition(await _find_oldest_event(database), 0)
    end = min(place.position + SCANNED, last + 1)
    sql, parameters = _render_event_condition(wanted)
    keys = (place.position, end, *parameters, limit + 1)
    rows = [NumberedEventRow(*row) for row in await database.search(_PAGE.replace("{}", sql), keys)]
    # Checked after reading the rows, in case they were deleted meanwhile.
    if place.position < await _find_oldest_event(database) or place.position > last + 1:
        raise GoneError(
            "This cursor points to events that are no longer kept. Start over without `after`, "
            "and read what has changed from the catalog."
        )
    found: list[FeedEvent] = []
    for row in rows:
        for event in list_events_of_row(row):
            if (
                event.place >= place
                and (not wanted.types or event.type in wanted.types)
                and (wanted.entity is None or event.subject == wanted.entity)
            ):
                if len(found) == limit:
                    return FeedPage(found, event.place, more=True)
                found.append(event)
    # The statement stopped at its limit, so the page ends at the last row.
    if len(rows) > limit:
        end = rows[-1].position + 1
    return FeedPage(found, FeedPosition(end, 0), more=end <= last)


async def find_feed_end(database: Database) -> FeedPosition:
    """The position after all events so far."""
    await number_new_events(database)
    return FeedPosition(await fetch_counter(database, EVENT_COUNTER) + 1, 0)


async def list_event_marks(database: Database, after: int, limit: int) -> list[EventMark]:
    """The first rows after a position, after numbering new rows."""
    with suppress(UnavailableError):
        await number_new_events(database)
    return [EventMark(*row) for row in await database.all(_MARKS, (after, limit))]


async def list_event_subjects(database: Database, after: int, last: int) -> set[str]:
    """The entities that are subjects of events in these rows."""
    keys = (after + 1, last + 1, sorted(OF_ENTITIES), last - after)
    rows = await database.search(_PAGE.replace("{}", _TOPICS), keys)
    return {event.subject for row in rows for event in list_events_of_row(NumberedEventRow(*row))}


async def find_feed_start(database: Database) -> FeedPosition:
    """The position of the oldest kept event."""
    return FeedPosition(await _find_oldest_event(database), 0)


async def delete_old_events(database: Database, before: int, pace: Throttle) -> int:
    """Delete rows older than a time, oldest first, in portions; returns their number."""
    await number_new_events(database)
    gone, rest = 0, True
    while rest:
        rows = await database.all(_OLDEST, (_SWEPT_AT_ONCE,))
        old = [position for position, at in rows if at < before]
        # The clock may have been set back: rows after a kept row are kept, too.
        kept = next((position for position, at in rows if at >= before), None)
        last = max((one for one in old if kept is None or one < kept), default=None)
        rest = kept is None and len(rows) == _SWEPT_AT_ONCE
        if last is not None:
            gone += await database.write(partial(_forget_events, last=last))
        await pace.rest()
    return gone


def _forget_events(transaction: Transaction, *, last: int) -> int:
    # A process that is late, for example after losing its lease, must not lower the counter.
    lift_counter(transaction, _FORGOTTEN, last)
    return transaction.run("DELETE FROM events WHERE position <= ?", (last,))


async def number_new_events(database: Database) -> None:
    """Assign a position to every committed row. Almost free if there are no new rows."""
    while await database.one(_NEW) and await database.write(number_events) == _NUMBERED_AT_ONCE:
        pass


def number_events(transaction: Transaction) -> int:
    """Assign positions to the oldest rows without one; returns their number."""
    transaction.lock("events")
    last = select_counter(transaction, EVENT_COUNTER)
    count = transaction.run(_NUMBER, (last, _NUMBERED_AT_ONCE))
    put_counter(transaction, EVENT_COUNTER, last + count)
    return count


def restart_feed(transaction: Transaction, above: int) -> FeedPosition:
    """Delete every event, and continue above `above` and all positions used here.

    For a restored database: ids of events published after the backup are never assigned again, and
    every earlier cursor refers to events that are no longer kept.
    """
    transaction.lock("events")
    last = max(select_counter(transaction, EVENT_COUNTER) + 1, above)
    transaction.run("DELETE FROM events")
    for name in (EVENT_COUNTER, _FORGOTTEN):
        put_counter(transaction, name, last)
    return FeedPosition(last + 1, 0)


async def _find_oldest_event(database: Database) -> int:
    """The first position whose row was not deleted because of its age."""
    return await fetch_counter(database, _FORGOTTEN) + 1


def _render_event_condition(wanted: EventFilter) -> tuple[str, list[object]]:
    """The condition for rows that may contain wanted events."""
    topics = _list_filter_topics(wanted)
    sql, parameters = _TOPICS, list[object]([sorted(topics)])
    for about in (wanted.set, wanted.source, wanted.check, wanted.scorecard):
        if about is not None:
            sql += " AND about = ?"
            parameters.append(about)
    if wanted.entity is not None:
        sql += " AND content LIKE ? ESCAPE '!'"
        text = _encode_event(wanted.entity)
        for char in "!%_":
            text = text.replace(char, f"!{char}")
        parameters.append(f"%{text}%")
    return sql, parameters


def _list_filter_topics(wanted: EventFilter) -> set[Topic]:
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


def _encode_event(value: object) -> str:
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

# If one transaction began after another had ended, the order of ids is the order of commits.
_NUMBER = """
UPDATE events SET position = numbered.position FROM (
    SELECT id, ? + ROW_NUMBER() OVER (ORDER BY id) AS position FROM events
    WHERE position IS NULL ORDER BY id LIMIT ?
) AS numbered WHERE events.id = numbered.id
"""
