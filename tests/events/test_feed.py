"""`GET /api/events`: what changed, read in an order that can be resumed."""

import asyncio
from typing import Any

import pytest

from factbook.auth.permissions import EVENTS_READ, PERMISSION_NAMES
from factbook.clock import DAY
from factbook.events import store
from factbook.worker import sweep
from tests.api.defining import FACTS, WEB, define, item, pushed
from tests.conftest import StartService
from tests.events.feed import EVENTS, events, page, said
from tests.service import PUSH, Service, component

NOON_ISO = "2026-11-21T12:00:00.000+00:00"
BY = "user:default/tester"


async def test_a_push_tells_of_its_set_and_of_every_entity_that_changed(service: Service) -> None:
    await service.push("shop", component("web"), component("api"))
    await service.push("shop", component("web", lifecycle="old"), component("new"))
    found = await events(service)
    assert [(one["type"], one["subject"]) for one in found] == [
        ("set.replaced", "shop"),
        ("entity.added", "component:default/web"),
        ("entity.added", "component:default/api"),
        ("set.replaced", "shop"),
        ("entity.added", "component:default/new"),
        ("entity.updated", "component:default/web"),
        ("entity.removed", "component:default/api"),
    ]
    assert found[3] == {
        "id": found[3]["id"],
        "type": "set.replaced",
        "at": NOON_ISO,
        "subject": "shop",
        "data": {
            "set": "shop",
            "revision": 2,
            "by": BY,
            "itemCount": 2,
            "changes": {"added": 1, "updated": 1, "removed": 1},
        },
    }
    assert found[6]["data"] == {
        "entityRef": "component:default/api",
        "set": "shop",
        "revision": 2,
        "by": BY,
    }
    assert len({one["id"] for one in found}) == 7


async def test_what_changes_nothing_tells_nothing(service: Service) -> None:
    await service.push("shop", component("web"))
    cursor = (await page(service))["nextCursor"]
    await service.push("shop", component("web"))
    await service.push("shop", component("other"), dryRun="true")
    await service.push("other", component("web"))
    assert await said(service, after=cursor) == []


async def test_single_entities_restored_sets_and_entities_that_are_taken_are_told(
    service: Service,
) -> None:
    http = service.http
    await service.push("shop", component("web"))
    await http.post(f"{PUSH}/entities", json=component("alone"))
    await http.post(f"{PUSH}/sets/shop", json=component("api"))
    cursor = (await page(service))["nextCursor"]
    await service.push("other", component("web"), onConflict="take")
    taken = await events(service, after=cursor)
    assert [(one["type"], one["subject"]) for one in taken] == [
        ("set.replaced", "shop"),
        ("set.replaced", "other"),
        ("entity.updated", "component:default/web"),
    ]
    assert taken[0]["data"]["changes"] == {"added": 0, "updated": 0, "removed": 1}
    assert taken[2]["data"]["set"] == "other"
    cursor = (await page(service))["nextCursor"]
    await http.delete(f"{PUSH}/sets/other")
    await http.post(f"{PUSH}/sets/other/revisions/1/restore")
    restored = await events(service, after=cursor)
    assert [one["type"] for one in restored] == [
        *("set.replaced", "entity.removed"),
        *("set.replaced", "entity.added"),
    ]
    assert restored[2]["data"]["restored"] == 1
    alone = await events(service, entity="component:alone")
    assert [one["data"] for one in alone] == [
        {"entityRef": "component:default/alone", "set": None, "by": BY}
    ]


@pytest.mark.spec("facts.changes-are-announced")
async def test_facts_that_are_pushed_tell_what_changed_from_what_to_what(
    service: Service,
) -> None:
    await service.push("shop", component("web"), component("api"))
    await define(service, pushed())
    to = f"{FACTS}/coverage"
    given: list[dict[str, Any]] = [{"lines": 1}, {"lines": 1}, {"lines": 2, "tool": "x" * 2000}]
    for hour, facts in enumerate(given):
        sent = item(WEB, f"2026-11-21T0{hour}:00:00Z", **facts)
        assert (await service.http.post(to, json={"items": [sent]})).status_code == 200
    older = item(WEB, "2026-11-20T00:00:00Z", lines=9)
    await service.http.post(to, json={"items": [older]})
    [found] = await events(service, type="fact.changed")
    assert (found["subject"], found["at"]) == (WEB, NOON_ISO)
    assert found["data"] == {
        "entityRef": WEB,
        "source": "coverage",
        "facts": {"lines": {"from": 1, "to": 2}, "tool": {"omitted": True}},
    }


async def test_events_are_narrowed_by_type_set_source_and_entity(service: Service) -> None:
    await service.push("shop", component("web"), component("we_b"))
    await service.push("other", component("api"))
    await define(service, pushed())
    for lines in (1, 2):
        sent = [item(name, f"2026-11-21T0{lines}:00:00Z", lines=lines) for name in (WEB, "api")]
        sent[1]["entity"] = "component:api"
        await service.http.post(f"{FACTS}/coverage", json={"items": sent})
    assert await said(service, set="other") == [
        ("set.replaced", "other"),
        ("entity.added", "component:default/api"),
    ]
    assert sorted(await said(service, source="coverage")) == [
        ("fact.changed", "component:default/api"),
        ("fact.changed", "component:default/web"),
    ]
    assert await said(service, entity="Component:Web") == [
        ("entity.added", WEB),
        ("fact.changed", WEB),
    ]
    assert await said(service, entity=WEB, type="fact.changed") == [("fact.changed", WEB)]
    assert await said(service, set="shop", source="coverage") == []
    two = await said(service, type=["set.replaced", "fact.changed"], limit=1)
    assert [type_ for type_, _ in two] == [*["set.replaced"] * 2, *["fact.changed"] * 2]


async def test_pages_hold_every_event_once_though_more_arrive(service: Service) -> None:
    await service.push("a", *(component(f"c{number}") for number in range(7)))
    found, query = [], {"limit": "3"}
    for _ in range(9):
        got = await page(service, **query)
        found += [one["subject"] for one in got["events"]]
        query["after"] = got["nextCursor"]
        if len(found) == 6:
            await service.push("b", component("later"))
    first = [f"component:default/c{number}" for number in range(7)]
    assert found == ["a", *first, "b", "component:default/later"]
    assert got == {"events": [], "nextCursor": query["after"], "more": False}


async def test_a_narrow_question_looks_at_a_bounded_part_of_the_feed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SCANNED", 4)
    for number in range(5):
        await service.push(f"set-{number}", component(f"c{number}"))
    got = await page(service, set="set-4")
    assert (got["events"], got["more"]) == ([], True)
    assert await said(service, set="set-4") == [
        ("set.replaced", "set-4"),
        ("entity.added", "component:default/c4"),
    ]


async def test_the_feed_begins_with_the_oldest_or_now(service: Service) -> None:
    await service.push("shop", component("web"))
    got = await page(service, after="now")
    assert (got["events"], got["more"]) == ([], False)
    await service.push("shop", component("web"), component("api"))
    assert (await said(service, after=got["nextCursor"]))[0] == ("set.replaced", "shop")
    assert len(await said(service)) == 4


async def test_who_waits_is_told_when_something_happens(service: Service) -> None:
    cursor = (await page(service))["nextCursor"]
    asked = asyncio.create_task(page(service, after=cursor, wait=30))
    await asyncio.sleep(0)
    await service.push("shop", component("web"))
    assert [one["type"] for one in (await asked)["events"]] == ["set.replaced", "entity.added"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_who_waits_in_vain_gets_a_cursor_to_go_on_with(service: Service) -> None:
    cursor = (await page(service))["nextCursor"]
    assert await page(service, after=cursor, wait=1) == {
        "events": [],
        "nextCursor": cursor,
        "more": False,
    }


async def test_events_are_forgotten_after_their_time_and_their_cursors_refused(
    start: StartService,
) -> None:
    service = await start(event_days=2)
    await service.push("old", component("web"))
    first = (await page(service, limit=1))["nextCursor"]
    service.time.advance(DAY)
    await service.push("newer", component("api"))
    sources = tuple(service.state.sources.values())
    settings = service.state.settings
    await sweep(service.state.database, settings, sources, service.time())
    assert len(await said(service)) == 4
    service.time.advance(DAY + 1)
    await sweep(service.state.database, settings, sources, service.time())
    assert [subject for _, subject in await said(service)] == ["newer", "component:default/api"]
    for cursor in (first, "99999.0"):
        refused = await service.http.get(EVENTS, params={"after": cursor})
        assert refused.status_code == 410
        assert refused.json()["error"]["name"] == "GoneError"
        assert "Start over without `after`" in refused.json()["error"]["message"]
    end = (await page(service))["nextCursor"]
    await sweep(service.state.database, settings, sources, service.time() + 9 * DAY)
    assert await page(service, after=end) == {"events": [], "nextCursor": end, "more": False}
    assert await page(service) == {"events": [], "nextCursor": end, "more": False}


@pytest.mark.spec("permissions.events-read-guards-the-feed")
async def test_only_who_may_read_events_does(service: Service) -> None:
    async with service.client(await service.token(*(PERMISSION_NAMES - {EVENTS_READ}))) as http:
        answer = await http.get(EVENTS)
    assert answer.status_code == 403
    assert EVENTS_READ in answer.json()["error"]["message"]
    async with service.client(await service.token(EVENTS_READ)) as http:
        assert (await http.get(EVENTS)).status_code == 200


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_questions_that_do_not_fit_are_refused(
    subtests: pytest.Subtests, service: Service
) -> None:
    queries = ["after=x", "after=1", "type=set.pushed", "entity=web", "limit=0", "wait=31", "x=1"]
    for query in queries:
        with subtests.test(query=query):
            answer = await service.http.get(f"{EVENTS}?{query}")
            assert answer.status_code == 400, answer.text
