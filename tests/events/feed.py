"""The feed of events as tests read it."""

from typing import Any

from tests.service import Service

EVENTS = "/api/events"

Event = dict[str, Any]


async def page(service: Service, **query: Any) -> dict[str, Any]:
    """A page of the feed."""
    answer = await service.http.get(EVENTS, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def events(service: Service, **query: Any) -> list[Event]:
    """All events of the feed, page by page."""
    found: list[Event] = []
    while True:
        got = await page(service, **query)
        found += got["events"]
        if not got["more"]:
            return found
        query["after"] = got["nextCursor"]


async def said(service: Service, **query: Any) -> list[tuple[str, str]]:
    """Type and subject of each."""
    return [(event["type"], event["subject"]) for event in await events(service, **query)]
