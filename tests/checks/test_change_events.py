"""The feed of what changes: complete up to where it was read, whoever commits when."""

import pytest

from factbook.clock import HOUR
from factbook.events.store import EventFilter, FeedPosition, page_events
from factbook.facts import store
from factbook.facts.freshness import Observation
from factbook.storage import Database, Transaction
from tests.checks.catalog import HOST, CheckedCatalog, a_check, leaf
from tests.checks.paused_write import PausedWrite
from tests.service import Time

CHANGED = EventFilter(types=["check.changed"])


async def changed(
    database: Database, after: FeedPosition | None = None
) -> tuple[list[str], FeedPosition]:
    """The references of results that changed, in the order of the feed, and the place behind."""
    page = await page_events(database, after, CHANGED, 100)
    return [str(one.data["entityRef"]) for one in page.events], page.next


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_change_that_is_committed_late_is_told_to_who_read_on(database: Database) -> None:
    """SQLite has one writer at a time."""
    time = Time()
    catalog = CheckedCatalog(database, time)
    await catalog.push(a="red", b="blue")
    await catalog.record("a", on=True)
    blue = {"source": "entity", "fact": "spec.owner", "operator": "equal", "value": "blue"}
    await catalog.publish(a_check("on", leaf("on", "equal", value=True)), a_check("blue", blue))

    def late(transaction: Transaction) -> None:
        store.record_facts(transaction, HOST, [Observation(1, {"on": False}, {})], time())
        transaction.evaluate_checks()

    slow = PausedWrite(database, late)
    await slow.stops()
    time.advance(HOUR)
    await catalog.push(a="red", b="green")
    seen, place = await changed(database)
    assert seen == ["component:default/b"]
    await slow.end()
    rest, _ = await changed(database, place)
    assert rest == ["component:default/a"]
