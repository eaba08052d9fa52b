"""The stream of a page: events sent by the server that say no more than "look again".

What has changed is on the page, which is asked for as ever; so a stream tells nothing that the
person may not read. Who is signed out, or has lost a permission, hears nothing from then on.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from factbook.auth import sessions
from factbook.errors import InputError
from factbook.http.requests import Reply
from factbook.web import live
from factbook.web.live import Listener
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH: Final = "/live"
# Proxies end connections on which nothing came for a minute.
_BEAT_SECONDS: Final = 20.0
# Changes that come close together are told once.
_PAUSE_SECONDS: Final = 1.0
_OPENED: Final = b"event: opened\ndata:\n\n"
_CHANGED: Final = b"event: changed\ndata:\n\n"
_BEAT: Final = b":\n\n"
_DIGITS: Final = 15

# Proxies neither wait for more of it nor change it.
_HEADERS: Final = {"cache-control": "no-store, no-transform", "x-accel-buffering": "no"}


async def listen(visit: PageContext) -> Reply:
    """Stream of changes of the topics in the query, from the time on at which a page was made."""
    watched = live.checked(visit.request.all("topic"))
    visit.require(*live.permissions(watched))
    since = visit.query("since", str(visit.now))
    if not (since.isascii() and since.isdigit() and len(since) < _DIGITS):
        raise InputError("`since` is a time in milliseconds since the epoch.")
    visit.site.tail.check_room(visit.person.ref)
    listener = Listener(visit.person.ref, watched, int(since))
    return Reply(_pieces(visit, listener), headers=_HEADERS, content_type=b"text/event-stream")


async def _pieces(visit: PageContext, listener: Listener) -> AsyncIterator[bytes]:
    gone = asyncio.ensure_future(visit.request.gone())
    gone.add_done_callback(lambda _: listener.wake())
    try:
        with visit.site.tail.listening(listener):
            yield _OPENED
            while True:
                has_news = await listener.wait(_BEAT_SECONDS)
                if gone.done() or listener.is_over or not await _may_hear(visit, listener):
                    return
                yield _CHANGED if has_news else _BEAT
                if has_news:
                    await asyncio.wait([gone], timeout=_PAUSE_SECONDS)
    finally:
        gone.cancel()


async def _may_hear(visit: PageContext, listener: Listener) -> bool:
    """Look whether the session is as good as when the stream began."""
    database = visit.state.database
    database.refresh()
    found = await sessions.find_session(database, visit.person.hash)
    needs = live.permissions(listener.topics)
    return found is not None and found.counts(visit.now) and found.permissions.issuperset(needs)


LIVE: Sequence[PageRoute] = (PageRoute("GET", PATH, listen),)
