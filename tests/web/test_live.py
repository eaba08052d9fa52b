"""The stream of live pages: who hears what, how many may listen, and how it ends."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import unquote

import pytest

from factbook.auth import sessions, users
from factbook.web.live import look_for_changes
from tests.api.defining import define, of_entities
from tests.conftest import StartService
from tests.importers.reading import IMPORTER, Imports, item, part
from tests.service import NOON, Service, component, resource
from tests.web.listening import PATH, Stream
from tests.web.running import run_of, world
from tests.web.visiting import browser, signed_in

WEB = "component:default/web"


async def test_a_page_hears_that_a_run_went_on_and_ended(start: StartService) -> None:
    found = await world(start)
    await found.push("web")
    visitor = await signed_in(found.service)
    run = (await run_of(visitor, "vendor")).rpartition("/")[2]
    async with Stream(found.service, visitor, topic=f"run/{run}", since=NOON) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-store, no-transform"
        assert stream.headers["x-accel-buffering"] == "no"
        assert await stream.event() == "opened"
        assert await stream.event() == "changed"
        await found.collector.drain()
        assert await stream.event() == "changed"
        # Not even the name of what was asked for.
        assert stream.said == b"event: opened\ndata:\n\n" + 2 * b"event: changed\ndata:\n\n"


async def test_a_page_hears_of_its_entity_and_of_what_came_while_it_was_on_its_way(
    service: Service,
) -> None:
    await service.push("all", component("web"))
    visitor = await signed_in(service)
    async with Stream(service, visitor, topic="importers", since=service.time() - 1) as other:
        # Somebody who listens already is what makes the tail remember.
        assert await other.event() == "opened"
        service.time.advance(60_000)
        made = service.time()
        async with Stream(service, visitor, topic=f"entity/{WEB}", since=made) as stream:
            assert await stream.event() == "opened"
            await service.push("all", component("web", lifecycle="deprecated"))
            assert await stream.event() == "changed"


async def test_a_name_with_a_blank_is_one_topic(service: Service) -> None:
    await service.push("all", resource("master account"))
    visitor = await signed_in(service)
    page = await visitor.text("/catalog/resource/default/master%20account")
    [live] = re.findall(r'data-live="([^"]+)"', page)
    topics = [unquote(topic) for topic in live.split(" ")]
    assert topics == ["entity/resource:default/master account"]
    async with Stream(service, visitor, topic=topics) as stream:
        assert await stream.event() == "opened"


async def test_a_stream_that_begins_after_a_change_tells_of_it(service: Service) -> None:
    made = service.time()
    await Imports(service.state.database).write(part(item("web")))
    visitor = await signed_in(service)
    topics = [f"importer/{IMPORTER}", "importers"]
    async with Stream(service, visitor, topic=topics, since=made) as stream:
        assert [await stream.event(), await stream.event()] == ["opened", "changed"]


async def test_a_look_names_what_changed_and_nothing_else(service: Service) -> None:
    database = service.state.database
    seen, changed = await look_for_changes(database, None, (), NOON)
    assert changed == {}
    await service.push("all", component("web"), component("api"))
    await define(service, of_entities())
    watched = [f"entity/{WEB}", "entity/component:default/db"]
    seen, changed = await look_for_changes(database, seen, watched, NOON + 5)
    assert changed == {f"entity/{WEB}": NOON + 5}
    visitor = await signed_in(service)
    run = (await run_of(visitor, "owners")).rpartition("/")[2]
    seen, changed = await look_for_changes(database, seen, watched, NOON + 6)
    assert set(changed) == {f"run/{run}", "source/owners", "sources"}
    seen, changed = await look_for_changes(database, seen, watched, NOON + 7)
    assert changed == {}
    await Imports(database).write(part(item("shop")))
    _, changed = await look_for_changes(database, seen, (), NOON + 8)
    assert set(changed) == {f"importer/{IMPORTER}", "importers"}


async def _signed_out(service: Service, ref: str) -> None:
    write = service.state.database.write
    await write(partial(sessions.end_other_sessions, ref=ref, keep_hash="none"))


async def _disabled(service: Service, ref: str) -> None:
    await service.state.database.write(partial(users.disable_user, ref=ref, now=service.time()))


@pytest.mark.parametrize("lose", [_signed_out, _disabled])
async def test_who_may_not_read_any_more_hears_nothing_from_then_on(
    service: Service, lose: Callable[[Service, str], Awaitable[None]]
) -> None:
    visitor = await signed_in(service, "vic", "viewer")
    async with Stream(service, visitor, topic="importers") as stream:
        assert await stream.event() == "opened"
        await lose(service, users.make_user_ref("vic"))
        service.time.advance(2_000)
        await Imports(service.state.database).write(part(item("web")))
        assert await stream.event() == ""
    async with Stream(service, visitor, topic="importers") as again:
        assert again.status == 401
        assert "location" not in again.headers


async def test_nobody_listens_without_a_session(service: Service) -> None:
    async with Stream(service, browser(service), topic="sources") as stream:
        assert stream.status == 401
        assert "location" not in stream.headers


async def test_what_is_no_topic_is_refused(service: Service, subtests: pytest.Subtests) -> None:
    visitor = await signed_in(service)
    cases: list[dict[str, object]] = [
        {},
        {"topic": ""},
        {"topic": "audit"},
        {"topic": "source"},
        {"topic": "source/"},
        {"topic": "sources/x"},
        {"topic": "entity/" + "x" * 400},
        {"topic": [f"run/{number}" for number in range(9)]},
        {"topic": "sources", "since": "yesterday"},
        {"topic": "sources", "since": "9" * 400},
    ]
    for query in cases:
        with subtests.test(query=query):
            async with Stream(service, visitor, **query) as stream:
                assert stream.status == 400
                assert stream.headers["content-type"] == "text/plain; charset=utf-8"


async def test_one_person_has_twelve_streams_and_others_have_theirs(service: Service) -> None:
    ada, vic = await signed_in(service), await signed_in(service, "vic", "viewer")
    streams = [Stream(service, ada, topic="sources") for _ in range(12)]
    for each in streams:
        await each.__aenter__()
        assert await each.event() == "opened"
    async with Stream(service, ada, topic="sources") as refused:
        assert (refused.status, refused.headers["retry-after"]) == (429, "60")
    async with Stream(service, vic, topic="sources") as other:
        assert other.status == 200
    await streams.pop().hang_up()
    async with Stream(service, ada, topic="sources") as stream:
        assert await stream.event() == "opened"
    await asyncio.gather(*(each.hang_up() for each in streams))


async def test_streams_end_when_the_server_stops(service: Service) -> None:
    visitor = await signed_in(service)
    async with (
        Stream(service, visitor, topic="sources") as stream,
        Stream(service, visitor, topic="exemptions") as other,
    ):
        assert [await stream.event(), await other.event()] == ["opened", "opened"]
        service.state.stopping.set()
        assert [await stream.event(), await other.event()] == ["", ""]


async def test_a_head_request_opens_no_stream(service: Service) -> None:
    visitor = await signed_in(service)
    for _ in range(20):
        answer = await visitor.http.head(PATH, params={"topic": "sources"})
        assert answer.status_code == 200
