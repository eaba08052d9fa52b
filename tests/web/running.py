"""Data sources that run for the pages, and runs as a browser begins them."""

from typing import Any

from tests.collection.world import World
from tests.conftest import StartService
from tests.web.visiting import Browser, words

HOSTILE = "<script>alert(1)</script> \"quoted\" & 'so'"


async def world(start: StartService, **options: Any) -> World:
    """A service with a source that a made-up vendor answers for."""
    service = await start()
    found = World(service, **options)
    registry = service.state.registry
    registry.fixed.sources["vendor"] = found.integration.source
    registry.fixed.integrations["vendor"] = found.integration
    return found


async def run_of(browser: Browser, source: str, **fields: str) -> str:
    """Begin a run; the path of its page."""
    await browser.open(f"/data-sources/{source}")
    answer = await browser.send(f"/data-sources/{source}/runs", **fields)
    assert answer.status_code == 303, words(answer.text)
    location: str = answer.headers["location"]
    return location
