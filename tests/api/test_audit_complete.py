"""Over the whole table of routes: a write leaves one record, and so does a refused call."""

import re

import pytest

from factbook.api.endpoint import Route
from factbook.api.routes import list_routes
from factbook.audit.trail import ACTIONS
from factbook.settings import Settings
from tests.api.audited import READS, REFUSED_ALWAYS, every_write
from tests.api.auditing import TESTER, Watch
from tests.conftest import StartService
from tests.service import Service

NOT_GETS = [route for route in list_routes(Settings()) if route.method != "GET"]
WRITES = [route for route in NOT_GETS if f"{route.method} {route.path}" not in READS]
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def path_of(route: Route) -> str:
    return re.sub(r"\{[^}]*\}", "1", route.path)


@pytest.mark.slow
@pytest.mark.spec("audit.every-write")
async def test_every_route_that_writes_leaves_one_record_of_what_was_done(
    start: StartService,
) -> None:
    service = await start(outgoing_networks=["127.0.0.0/8"])
    watch, seen = Watch(service), set()
    async for route, call, action in every_write(service):
        await watch.new()
        answer = await call
        assert answer.status_code < 300, (route, answer.text)
        [record] = await watch.new()
        assert (record["action"], record["outcome"], record["actor"]) == (action, "done", TESTER)
        assert (record["status"], record["grant"]) == (answer.status_code, "token")
        assert action in ACTIONS
        seen.add(route)
    # Whoever adds a route adds what it leaves: tests/api/audited.py.
    assert seen | READS | REFUSED_ALWAYS == {f"{route.method} {route.path}" for route in NOT_GETS}
    assert not seen & (READS | REFUSED_ALWAYS)


@pytest.mark.slow
@ON_SQLITE
@pytest.mark.spec("audit.every-refused-call")
async def test_every_call_that_access_is_refused_leaves_one_record(service: Service) -> None:
    watch = Watch(service)
    powerless = await service.token("events.read", name="powerless")
    closed = [route for route in list_routes(Settings()) if route.permissions]
    assert len(closed) > 50
    for number, route in enumerate(closed):
        # Each from an address of its own: one address fills the audit with so many.
        address = f"192.0.2.{number}"
        async with service.client(None, address=address) as http:
            unknown = await http.request(route.method, path_of(route))
        record = await watch.refused(unknown)
        assert (unknown.status_code, record["address"]) == (401, address), route.path
        if route.permissions != ("events.read",):
            async with service.client(powerless, address=address) as http:
                record = await watch.refused(await http.request(route.method, path_of(route)))
            assert (record["status"], record["actor"]) == (403, TESTER), route.path


@ON_SQLITE
@pytest.mark.spec("audit.every-refused-call")
async def test_every_write_that_is_refused_for_what_it_asks_leaves_one_record(
    service: Service,
) -> None:
    watch, seen = Watch(service), 0
    for route in WRITES:
        if route.parameters is not None:
            answer = await service.http.request(
                route.method, path_of(route), params={"surprise": "1"}
            )
            record = await watch.refused(answer)
            assert (record["status"], record["object"]) == (400, path_of(route))
            seen += 1
            service.time.advance(60_000)  # one address fills the audit with so many a minute
    assert seen > 20
