"""Each refused call leaves a record, without what was sent, and not too many of them."""

from typing import Any

import pytest

from factbook.auth import tokens
from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_READ, TOKEN_MANAGE
from factbook.clock import HOUR, MINUTE, SECOND
from factbook.settings import Settings
from tests.api.auditing import ENTITIES, TESTER, TOKENS, Watch, records, token_id
from tests.api.defining import SOURCES, pushed
from tests.conftest import StartService
from tests.service import PUSH, TOOLS, Service, component, started

REFRESH = "/api/catalog/refresh"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_a_write_that_is_refused_leaves_the_refusal_alone(service: Service) -> None:
    http, shop = service.http, f"{PUSH}/sets/shop"
    await service.push("shop", component("web"))
    watch, mine = Watch(service), await token_id(service)
    await watch.new()
    nothing: dict[str, Any] = {"json": {"items": []}}
    for sent, error in (
        (nothing | {"headers": {"if-match": '"9"'}}, "PreconditionFailedError"),
        (nothing | {"params": {"maxRemovals": "0"}}, "ConflictError"),
        ({"json": {"items": [{"kind": "secret!"}]}}, "InputError"),
        ({"content": b"{"}, "InputError"),
    ):
        record = await watch.refused(await http.put(shop, **sent))
        assert record["detail"] == {"method": "PUT", "error": error}
        assert (record["actor"], record["token"], record["object"]) == (TESTER, mine, shop)
        assert record["address"] == "127.0.0.1"
    large = await http.post(TOKENS, content=b" " * 1024 * 1024 + b"{}")
    assert (large.status_code, (await watch.refused(large))["object"]) == (413, TOKENS)


async def test_whom_access_is_refused_is_recorded_on_every_route(service: Service) -> None:
    watch = Watch(service)
    reader = await service.token(CATALOG_READ, owner="user:default/kim", name="reader")
    async with service.client(reader, address="192.0.2.7") as http:
        for method, path, missing in (
            ("GET", TOKENS, [TOKEN_MANAGE]),
            ("POST", TOOLS, [SOURCE_READ]),
            ("PUT", f"{PUSH}/sets/shop", [SET_WRITE]),
        ):
            record = await watch.refused(await http.request(method, path, json={}))
            assert (record["actor"], record["address"]) == ("user:default/kim", "192.0.2.7")
            assert record["token"] == await token_id(service, "reader")
            assert record["detail"]["missing"] == missing
            assert (record["object"], record["detail"]["method"]) == (path, method)
            assert missing[0] in record["detail"]["message"]
        foreign = await http.get(ENTITIES, headers={"origin": "https://example.com"})
        record = await watch.refused(foreign)
        assert (foreign.status_code, record["actor"]) == (403, "")
        assert "allowed_origins" in record["detail"]["message"]


async def test_a_token_that_is_no_good_any_more_is_recorded_by_its_id(service: Service) -> None:
    watch = Watch(service)
    old = await service.token(name="old", lifetime=HOUR)
    gone = await service.token(name="gone")
    ids = [await token_id(service, name) for name in ("old", "gone")]
    await service.http.delete(f"{TOKENS}/{ids[1]}")
    await watch.new()
    service.time.advance(HOUR)
    for value, id_, word in (
        (old, ids[0], "expired"),
        (gone, ids[1], "revoked"),
        (tokens.generate_token(), "", "unknown"),
        (None, "", "Missing"),
    ):
        async with service.client(value) as http:
            record = await watch.refused(await http.get(ENTITIES))
        assert (record["actor"], record["token"], record["status"]) == ("", id_, 401)
        assert word in record["detail"]["message"]


@ON_SQLITE
async def test_calling_too_often_is_recorded_with_whose_token_it_is(start: StartService) -> None:
    service = await start(token_rate=0.001, token_burst=1)
    mine = await service.token(CATALOG_READ, owner="user:default/kim", name="kims")
    async with service.client(mine) as http:
        assert (await http.get(ENTITIES)).status_code == 200
        assert (await http.get(ENTITIES)).status_code == 429
    [record] = await records(service)
    assert (record["actor"], record["status"]) == ("user:default/kim", 429)
    assert record["detail"]["error"] == "TooManyRequestsError"


async def test_what_was_refused_just_before_a_stop_is_there_after_the_next_start(
    database_url: str,
) -> None:
    settings = Settings(database_url=database_url, token_key="k" * 32)
    async with started(settings) as service, service.client(None) as http:
        await http.get(ENTITIES)
        await http.get(TOKENS)
    async with started(settings) as service:
        found = [record["object"] for record in await records(service)]
    assert found == [ENTITIES, TOKENS]


async def dropped(service: Service) -> int:
    text = (await service.http.get("/metrics")).text
    [line] = [line for line in text.splitlines() if line.startswith("factbook_audit_dropped_total")]
    return int(float(line.split()[1]))


@ON_SQLITE
async def test_an_address_cannot_fill_the_audit_with_refusals(start: StartService) -> None:
    service = await start()
    async with service.client(None, address="192.0.2.7") as http:
        for _ in range(60):
            for _ in range(5):
                assert (await http.get(ENTITIES)).status_code in (401, 429)
            service.time.advance(SECOND)
        flood = await records(service)
        assert 50 <= len(flood) <= 60
        assert await dropped(service) == 300 - len(flood)
        assert {record["status"] for record in flood} == {401, 429}
    async with service.client(None, address="192.0.2.8") as other:
        await other.get(ENTITIES)
    # Nobody's flood keeps a write, or the refusal of another, out.
    async with service.client(await service.token(), address="192.0.2.7") as http:
        assert (await http.put(f"{PUSH}/sets/a", json={"items": []})).status_code == 200
    last = (await records(service))[-2:]
    assert [record["address"] for record in last] == ["192.0.2.8", "192.0.2.7"]
    service.time.advance(MINUTE)
    async with service.client(None, address="192.0.2.7") as http:
        await http.get(ENTITIES)
    assert len(await records(service)) == len(flood) + 3


@pytest.mark.slow
@ON_SQLITE
async def test_many_addresses_together_cannot_fill_it_either(start: StartService) -> None:
    service = await start(trusted_proxies=["127.0.0.1"])
    async with service.client(None) as http:
        for number in range(3_700):
            await http.get(ENTITIES, headers={"x-forwarded-for": f"2001:db8::{number:x}"})
    assert await dropped(service) == 100
    async with service.client(await service.token(CATALOG_READ), address="192.0.2.9") as http:
        await http.get(TOKENS)
    [record] = await records(service, actor=TESTER)
    assert record["address"] == "192.0.2.9"


async def test_no_token_gets_into_the_audit_wherever_a_client_puts_it(service: Service) -> None:
    value, other = await service.token(name="leaked"), tokens.generate_token()
    headers = {"authorization": f"Bearer {value}", "x-forwarded-for": value, "user-agent": value}
    async with service.client(None) as http:
        http.headers.update(headers)
        for method, path, body in (
            ("PUT", f"{PUSH}/sets/{value}", {"items": [component("web", owner=value)]}),
            ("PUT", f"{PUSH}/sets/{value}", {"items": [{"kind": value}]}),
            ("PUT", f"{PUSH}/sets/a?maxRemovals={value}", {"items": []}),
            ("POST", f"{PUSH}/entities", component(value[:50], owner=value)),
            ("POST", TOKENS, {"name": value}),
            ("POST", TOKENS, {"name": "x", "permissions": [value]}),
            ("DELETE", f"{TOKENS}/{value}", None),
            ("POST", SOURCES, pushed(value)),
            ("POST", REFRESH, {"entityRef": value}),
            (value, ENTITIES, None),
        ):
            await http.request(method, path, json=body)
        for wrong in (other, f"{other}x", f"x {other}"):
            http.headers["authorization"] = f"Bearer {wrong}"
            await http.get(f"{PUSH}/sets/{wrong}?token={wrong}")
    assert len(await records(service)) >= 10
    rows = str(await service.state.database.all("SELECT * FROM audit")).lower()
    assert "[redacted]" in rows
    for secret in (value, other):
        assert secret[4:].lower() not in rows
        assert secret[:12].lower() not in rows


@ON_SQLITE
async def test_what_is_sent_in_bodies_is_not_in_the_audit(service: Service) -> None:
    await service.push("a", component("web", note="hunter2"))
    await service.http.put(f"{PUSH}/sets/a", json={"items": [{"hunter2": 1}, "hunter2"]})
    await service.http.put(f"{PUSH}/sets/a?maxRemovals=hunter2", json={"items": []})
    assert len(await records(service)) == 3
    assert "hunter2" not in str(await service.state.database.all("SELECT * FROM audit"))
