"""The feed of events over HTTP."""

import asyncio
import re
from typing import Final

from factbook.api.parameters import FACTS_LIMIT, Integer, Text, Texts
from factbook.catalog import ref as refs
from factbook.clock import iso
from factbook.events.store import (
    TYPES,
    EventFilter,
    FeedPage,
    FeedPosition,
    find_feed_end,
    page_events,
)
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.schemas import common
from factbook.schemas.events import Event, Events

_PAGE: Final = 100
_NOW: Final = "now"
# Seconds between two checks for new events while a caller waits.
_LOOKED_EVERY: Final = 0.5
AFTER: Final = Text(
    name="after",
    description="The `nextCursor` of the page before, or `now` for what happens from now on. "
    "Without it the feed begins with the oldest event that is kept.",
    pattern=r"now|[0-9]{1,15}\.[0-9]{1,9}",
    wrong="has to be the nextCursor of a page, or now",
    example="now",
)
TYPE: Final = Texts(
    name="type",
    description="Only events of this type. Given more than once, of one of them.",
    pattern="|".join(map(re.escape, TYPES)),
    words=tuple(TYPES),
    most=len(TYPES),
    example=["set.replaced"],
)
SET: Final = Text(name="set", description="Only of this set and its entities.", example="payments")
SOURCE: Final = Text(
    name="source", description="Only of this data source and its facts.", example="coverage"
)
ENTITY: Final = Text(
    name="entity",
    description="Only about this entity.",
    pattern=common.REFERENCE,
    format="entity-reference",
    example="component:default/payments",
)
CHECK: Final = Text(name="check", description="Only of this check.", example="has-owner")
SCORECARD: Final = Text(
    name="scorecard", description="Only of levels of this scorecard.", example="readiness"
)
WAIT: Final = Integer(
    name="wait",
    description="Seconds to wait for an event when there is none yet.",
    most=30,
    example=1,
)
EVENT_PARAMETERS: Final = (AFTER, TYPE, SET, SOURCE, ENTITY, CHECK, SCORECARD, FACTS_LIMIT, WAIT)


async def get_events(request: Request, state: HandlerContext) -> JsonReply[Events]:
    """Events, oldest first.

    A page covers a bounded part of the feed, so it may have few events, or none, while there are
    `more`. Every page has a `nextCursor` to continue with, at once or later. No event is ever added
    before a position that was read. A cursor of events that are no longer kept gets 410.
    """
    after, filter_ = AFTER.of(request), _parse_event_filter(request)
    limit, wait = FACTS_LIMIT.of(request) or _PAGE, WAIT.of(request) or 0
    start: FeedPosition | None = None
    if after == _NOW:
        start = await find_feed_end(state.database)
    elif after is not None:
        position, _, item = after.partition(".")
        start = FeedPosition(int(position), int(item))
    page = await page_events(state.database, start, filter_, limit)
    loop = asyncio.get_running_loop()
    end = loop.time() + wait
    while not page.events and loop.time() < end:
        if not page.more:
            async with request.aside():
                await asyncio.sleep(_LOOKED_EVERY)
        page = await page_events(state.database, page.next, filter_, limit)
    return reply(_render_events(page))


def _parse_event_filter(request: Request) -> EventFilter:
    entity = ENTITY.of(request)
    ref = None if entity is None else str(refs.parse_ref(entity))
    return EventFilter(
        TYPE.of(request),
        SET.of(request),
        SOURCE.of(request),
        ref,
        CHECK.of(request),
        SCORECARD.of(request),
    )


def _render_events(page: FeedPage) -> Events:
    return Events(
        events=[
            Event(event.id, event.type, iso(event.at), event.subject, event.data)
            for event in page.events
        ],
        next_cursor=f"{page.next.position}.{page.next.item}",
        more=page.more,
    )
