"""Two processes on one database: whoever asks cannot tell which of them answers.

They run in one process here, and share nothing but the database and the token key.
"""

from collections.abc import AsyncIterator
from itertools import cycle
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.api.defining import CONNECTIONS, FACTS, SOURCES, of_entities, pushed
from tests.api.querying import QUERY
from tests.conftest import StartService
from tests.service import PUSH, Service, component
from tests.web.openid_provider import OpenIDProvider, at
from tests.web.sessions import is_in
from tests.web.visiting import Browser, add_person, signed_in, words

pytestmark = pytest.mark.both_databases

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
WEB = "/api/catalog/entities/by-name/component/default/web"


class Two(NamedTuple):
    """Two services on one database, and clients of each with the same token."""

    one: Service
    two: Service
    a: httpx2.AsyncClient
    b: httpx2.AsyncClient


class InTurn(httpx2.AsyncBaseTransport):
    """Sends each request to another service than the one before, as a proxy does."""

    def __init__(self, *services: Service) -> None:
        transports = [httpx2.ASGITransport(one.application) for one in services]
        self._next = cycle(transports)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await next(self._next).handle_async_request(request)


def in_turn(*services: Service) -> Browser:
    """A browser whose every request goes to another service."""
    transport = InTurn(*services)
    return Browser(httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000"))


@pytest.fixture
async def two(start: StartService) -> AsyncIterator[Two]:
    one, other = await start(), await start()
    async with other.client(one.http.headers["authorization"].split()[1]) as b:
        yield Two(one, other, one.http, b)


async def ok(answer: httpx2.Response) -> Any:
    """What an answer that succeeded holds."""
    assert answer.status_code in (200, 201, 202, 204), answer.text
    return answer.json() if answer.content else None


@pytest.mark.spec("token.revocation-acts-on-next-request")
async def test_a_token_that_one_revokes_is_refused_by_the_other_at_once(two: Two) -> None:
    made = await ok(await two.a.post("/api/access/v1/tokens", json={"name": "brief"}))
    async with two.two.client(made["value"]) as brief:
        await ok(await brief.get("/api/catalog/entities"))
        await ok(await two.a.delete(f"/api/access/v1/tokens/{made['id']}"))
        assert (await brief.get("/api/catalog/entities")).status_code == 401


@pytest.mark.spec("machines.any-process-may-answer")
async def test_a_set_that_one_takes_is_the_others_too(two: Two) -> None:
    path = f"{PUSH}/sets/all"
    for version, (writer, reader) in enumerate([(two.a, two.b), (two.b, two.a)] * 2, 1):
        items = [component("web", version=version)]
        tag = f'"{version - 1}"'
        headers = {"if-match": tag} if version > 1 else {}
        told = await ok(await writer.put(path, json={"items": items}, headers=headers))
        assert told["revision"] == version
        found = await ok(await reader.get(path))
        assert (found["revision"], len(found["items"])) == (version, 1)
        assert (await ok(await reader.get(WEB)))["spec"]["version"] == version
        assert (
            await reader.put(path, json={"items": items}, headers={"if-match": tag})
        ).status_code
    await ok(await two.b.delete(path))
    assert (await two.a.get(path)).status_code == 404
    assert (await two.a.get(WEB)).status_code == 404


@pytest.mark.spec("machines.any-process-may-answer")
async def test_cursors_of_one_go_on_at_the_other(two: Two) -> None:
    names = [f"c{number}" for number in range(6)]
    await two.one.push("all", *map(component, names))
    listed, feed = list[str](), list[str]()
    query: dict[str, Any] = {"limit": 2, "orderField": "metadata.name,asc"}
    after: dict[str, Any] = {"limit": 2}
    for client in (two.a, two.b, two.a):
        page = await ok(await client.get(QUERY, params=query))
        listed += [entity["metadata"]["name"] for entity in page["items"]]
        query = {"limit": 2, "cursor": page["pageInfo"].get("nextCursor")}
        told = await ok(await client.get("/api/events", params=after))
        feed += [event["data"].get("entityRef", "") for event in told["events"]]
        after = {"limit": 2, "after": told["nextCursor"]}
    assert listed == names
    assert sorted(filter(None, feed)) == [f"component:default/{name}" for name in names][:5]


@ON_POSTGRESQL
async def test_sources_and_connections_of_one_are_the_others_at_once(two: Two) -> None:
    await two.one.push("all", component("web"))
    for writer, reader in ((two.a, two.b), (two.b, two.a)):
        await ok(await writer.put(f"{SOURCES}/coverage", json=pushed()))
        await ok(await reader.post(f"{SOURCES}/coverage/publish"))
        item = {"entity": "component:default/web", "facts": {"lines": 7}}
        await ok(await writer.post(f"{FACTS}/coverage", json={"items": [item]}))
        found = await ok(await reader.get(f"{FACTS}/coverage"))
        assert [one["facts"] for one in found["entities"]] == [{"lines": 7}]
        await ok(await writer.delete(f"{SOURCES}/coverage"))
        assert (await reader.get(f"{SOURCES}/coverage")).status_code == 404
        ci = {"baseUrl": "https://ci.test", "headers": {"Authorization": "a secret of ours"}}
        await ok(await writer.put(f"{CONNECTIONS}/ci", json=ci))
        kept = await ok(await reader.get(f"{CONNECTIONS}/ci"))
        assert [header["name"] for header in kept["headers"]] == ["authorization"]
        await ok(await reader.delete(f"{CONNECTIONS}/ci"))
        assert (await writer.get(f"{CONNECTIONS}/ci")).status_code == 404


@ON_POSTGRESQL
async def test_tools_see_a_source_of_another_process_within_a_second(two: Two) -> None:
    await two.one.push("all", component("web"))
    about = {"dataSourceId": "owners", "name": "web"}
    two.two.http = two.b
    await two.two.refusal("get-entity-facts", **about)
    await ok(await two.a.put(f"{SOURCES}/owners", json=of_entities()))
    await ok(await two.a.post(f"{SOURCES}/owners/publish"))
    two.two.time.advance(1_000)
    found = await two.two.facts("get-entity-facts", **about)
    assert found["dataSourceId"] == "owners"


@ON_POSTGRESQL
@pytest.mark.spec("machines.any-process-may-answer")
async def test_a_person_works_though_each_request_goes_to_another_process(two: Two) -> None:
    await add_person(two.one, "ada")
    browser = in_turn(two.one, two.two)
    answer = await browser.sign_in("ada")
    assert answer.status_code == 303, words(answer.text)
    for name in ("Ada L.", "Ada Lovelace"):
        await browser.open("/administration/account")
        page = await browser.done("/administration/account/name", display_name=name)
        assert name in page
    assert await is_in(browser)
    assert await is_in(browser)
    await browser.open("/administration/account")
    await browser.send("/sign-out")
    assert not await is_in(browser)
    assert not await is_in(browser)


@ON_POSTGRESQL
async def test_a_role_that_one_takes_away_and_a_session_that_one_ends_are_gone_at_the_other(
    two: Two,
) -> None:
    ada = await signed_in(two.one)
    eve = await signed_in(two.two, "eve")
    people = "/administration/people"
    assert (await eve.open(people)).status_code == 200
    await ada.open(people)
    await ada.done(f"{people}/eve/role", role="viewer")
    assert (await eve.open(people)).status_code == 403
    assert await is_in(eve)
    await ada.open(people)
    await ada.done(f"{people}/eve/disable")
    assert not await is_in(eve)


@ON_POSTGRESQL
async def test_one_begins_to_sign_a_person_in_elsewhere_and_the_other_ends_it(
    start: StartService,
) -> None:
    provider = OpenIDProvider()
    services = [await start(openid=at(provider)) for _ in range(2)]
    browser = in_turn(*services)
    begun = await browser.open("/sign-in/openid", next="/")
    query = provider.signed_in(begun.headers["location"])
    answer = await browser.open("/sign-in/openid/callback", **query)
    assert answer.status_code == 303, words(answer.text)
    assert await is_in(browser)
    assert await is_in(browser)
