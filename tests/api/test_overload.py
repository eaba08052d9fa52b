"""What happens when more is asked than can be answered."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import msgspec
import pytest
from starlette.types import Message

from factbook.errors import OverloadedError
from factbook.http import requests
from factbook.http.admission import Admission
from factbook.http.requests import Request
from factbook.observability.metrics import Metrics
from tests.api.defining import FACTS, define, pushed
from tests.conftest import StartService
from tests.service import PUSH, TOOLS, Service, call, component

MIB = 1024 * 1024
BY_REFS = "/api/catalog/entities/by-refs"

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a request wait in line for a tenth of a second, and not for two of them."""
    monkeypatch.setattr("factbook.http.admission._PATIENCE", 0.1)


class Slow:
    """A request under way, whose client sends the body when a test says so."""

    def __init__(self, service: Service, method: str, path: str, body: object) -> None:
        self._body = msgspec.json.encode(body)
        self._may_send = asyncio.Event()
        self.asked_for = asyncio.Event()
        headers = {"content-type": "application/json", "content-length": str(len(self._body))}
        request = service.http.request(method, path, content=self._pieces(), headers=headers)
        self.answer = asyncio.ensure_future(request)

    async def _pieces(self) -> AsyncIterator[bytes]:
        self.asked_for.set()
        await self._may_send.wait()
        yield self._body

    @staticmethod
    async def nothing() -> Message:
        """Of a request that no client sends."""
        raise AssertionError

    async def finish(self) -> httpx2.Response:
        self._may_send.set()
        return await self.answer


def slow_push(service: Service, name: str, size: int = 100) -> Slow:
    entity = component(name)
    entity["metadata"]["description"] = "x" * size
    return Slow(service, "PUT", f"{PUSH}/sets/{name}", {"items": [entity]})


@asynccontextmanager
async def one_under_way(service: Service, *, writes: bool = False) -> AsyncIterator[None]:
    """A request that was let in and is being worked on."""
    admission, this = service.state.admission, request()
    await admission.enter(this, time.perf_counter(), writes=writes)
    yield
    admission.leave(this)


@pytest.mark.usefixtures("impatient")
@on_sqlite
async def test_a_read_beyond_max_requests_is_refused_after_a_moment(start: StartService) -> None:
    service = await start(max_requests=1)
    async with one_under_way(service):
        refused = await service.http.get("/api/catalog/entities")
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"]["name"] == "ServiceUnavailableError"
    assert "Try again in a second" in refused.json()["error"]["message"]
    assert (await service.http.get("/api/catalog/entities")).status_code == 200


@on_sqlite
async def test_who_waits_is_let_in_as_soon_as_another_is_answered(start: StartService) -> None:
    service = await start(max_requests=1)
    async with one_under_way(service):
        second = asyncio.ensure_future(service.http.get("/api/catalog/entities"))
        await asyncio.sleep(0)
    assert (await second).status_code == 200


@pytest.mark.usefixtures("impatient")
@on_sqlite
async def test_pushes_that_wait_keep_no_read_waiting(start: StartService) -> None:
    service = await start(max_requests=1)
    async with one_under_way(service, writes=True):
        assert (await service.http.get("/api/catalog/entities")).status_code == 200
        assert (await service.push("two", component("two"))).status_code == 503
    assert (await service.push("two", component("two"))).status_code == 200


@pytest.mark.usefixtures("impatient")
@on_sqlite
async def test_a_tool_call_is_refused_in_the_form_of_its_protocol(start: StartService) -> None:
    service = await start(max_requests=1)
    async with one_under_way(service):
        refused = await service.http.post(TOOLS, json=call("get-data-source-discovery", {}))
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == -32603


@pytest.mark.usefixtures("impatient")
@on_sqlite
async def test_a_page_is_refused_with_a_line_of_text(start: StartService) -> None:
    service = await start(max_requests=1)
    async with one_under_way(service):
        refused = await service.http.get("/sign-in")
    assert refused.status_code == 503
    assert refused.headers["content-type"] == "text/plain; charset=utf-8"
    assert refused.headers["x-frame-options"] == "DENY"


@pytest.mark.usefixtures("impatient")
@on_sqlite
async def test_health_and_metrics_are_answered_whatever_else_is_refused(
    start: StartService,
) -> None:
    service = await start(max_requests=1)
    async with one_under_way(service):
        assert (await service.http.get("/api/catalog/entities")).status_code == 503
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await service.http.get(path)).status_code == 200
    metrics = (await service.http.get("/metrics")).text
    assert 'factbook_requests_shed_total{reason="under_way"} 1.0' in metrics


@pytest.mark.slow
@on_sqlite
async def test_who_waits_for_events_takes_no_place(start: StartService) -> None:
    service = await start(max_requests=1)
    follower = asyncio.ensure_future(
        service.http.get("/api/events", params={"after": "now", "wait": "30"})
    )
    statuses: list[int] = []
    while not follower.done():
        pushed = await service.push("one", component(f"number-{len(statuses)}"))
        read = await service.http.get("/api/catalog/entities")
        statuses += [pushed.status_code, read.status_code]
    assert set(statuses) == {200}
    assert (await follower).json()["events"] != []


@on_sqlite
async def test_a_body_that_comes_slowly_takes_no_place(start: StartService) -> None:
    service = await start(max_requests=1)
    push = slow_push(service, "slow")
    read = Slow(service, "POST", BY_REFS, {"entityRefs": []})
    await push.asked_for.wait()
    await read.asked_for.wait()
    assert (await service.push("quick", component("quick"))).status_code == 200
    assert (await service.http.get("/api/catalog/entities")).status_code == 200
    assert (await push.finish()).status_code == 200
    assert (await read.finish()).status_code == 200


@on_sqlite
async def test_a_body_that_comes_too_slowly_is_given_up(
    start: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await start()
    monkeypatch.setattr(requests, "_PATIENCE", 0.0)
    monkeypatch.setattr(requests, "_SLOWEST", 1 << 40)

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b'{"items"', b":[]", b"}"):
            yield piece

    answer = await service.http.put(f"{PUSH}/sets/slow", content=pieces())
    assert answer.status_code == 408
    assert answer.json()["error"]["name"] == "RequestTimeoutError"
    assert (await service.http.get(f"{PUSH}/sets/slow")).status_code == 404


@on_sqlite
@pytest.mark.parametrize("path", [BY_REFS, f"{FACTS}/coverage"])
async def test_other_large_bodies_wait_for_room_as_well(start: StartService, path: str) -> None:
    service = await start(max_body_bytes=2 * MIB)
    await define(service, pushed())
    pushes = [slow_push(service, f"push-{number}", 3 * MIB // 2) for number in range(2)]
    for push in pushes:
        await push.asked_for.wait()
    other = Slow(service, "POST", path, {"filler": "x" * (3 * MIB // 2)})
    assert (await service.push("small", component("small"))).status_code == 200
    assert not other.asked_for.is_set()
    assert (await pushes[0].finish()).status_code == 200
    assert (await other.finish()).status_code == 400
    assert (await pushes[1].finish()).status_code == 200


@on_sqlite
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_large_calls_of_identity_providers_wait_for_room_as_well(
    start: StartService, method: str
) -> None:
    service = await start(max_body_bytes=2 * MIB)
    pushes = [slow_push(service, f"push-{number}", 3 * MIB // 2) for number in range(2)]
    for push in pushes:
        await push.asked_for.wait()
    path = "/scim/v2/Groups" if method == "POST" else "/scim/v2/Groups/1"
    other = Slow(service, method, path, {"filler": "x" * (3 * MIB // 2)})
    assert (await service.push("small", component("small"))).status_code == 200
    assert not other.asked_for.is_set()
    assert (await pushes[0].finish()).status_code == 200
    assert (await other.finish()).status_code == 400
    assert (await pushes[1].finish()).status_code == 200


@on_sqlite
async def test_large_bodies_wait_for_room_and_none_is_lost(start: StartService) -> None:
    service = await start(max_body_bytes=2 * MIB)
    first, second, third = (
        slow_push(service, f"push-{number}", 3 * MIB // 2) for number in range(3)
    )
    await first.asked_for.wait()
    await second.asked_for.wait()
    # Many turns of the loop, in which the third could have begun.
    assert (await service.push("small", component("small"))).status_code == 200
    assert not third.asked_for.is_set()
    assert (await second.finish()).status_code == 200
    await third.asked_for.wait()
    assert (await third.finish()).status_code == 200
    assert (await first.finish()).status_code == 200
    assert await service.catalog("component:default/push-2") is not None


@on_sqlite
async def test_who_hangs_up_while_waiting_for_room_leaves_it_to_others(
    start: StartService,
) -> None:
    service = await start(max_body_bytes=2 * MIB)
    first, second, third, fourth = (
        slow_push(service, f"push-{number}", 3 * MIB // 2) for number in range(4)
    )
    await second.asked_for.wait()
    third.answer.cancel()
    await asyncio.wait([third.answer])
    first.answer.cancel()
    await fourth.asked_for.wait()
    assert (await fourth.finish()).status_code == 200
    assert (await second.finish()).status_code == 200


def request() -> Request:
    return Request({"method": "GET", "headers": []}, receive=Slow.nothing)


async def let_in(came: list[tuple[str, float]]) -> list[str]:
    """Requests by their names in the order in which they are let in; each came so much later."""
    admission, now = Admission(100, MIB, Metrics()), time.perf_counter()
    order: list[str] = []

    async def enter(name: str, after: float) -> None:
        await admission.enter(request(), now + after, writes=False)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        for name, after in came:
            group.create_task(enter(name, after))
    return order


async def test_who_comes_late_in_a_turn_of_the_loop_is_let_in_during_another() -> None:
    order = await let_in([("early", 0.0)] * 16 + [("in time", 0.2), ("late", 0.3), ("behind", 0.2)])
    assert order == ["early"] * 16 + ["in time", "late", "behind"]


async def test_few_requests_are_let_in_however_long_one_of_them_takes() -> None:
    order = await let_in([(str(number), 9.0 * (number > 0)) for number in range(18)])
    assert order[:16] == [str(number) for number in range(16)]
    assert set(order[16:]) == {"16", "17"}


async def test_few_are_refused_at_once() -> None:
    """A refusal costs time as well, and whoever is refused asks again."""
    admission, long_ago = Admission(1, MIB, Metrics()), time.perf_counter() - 60
    holder = request()
    await admission.enter(holder, long_ago, writes=False)
    waiting = {asyncio.ensure_future(refused(admission, long_ago)) for _ in range(50)}
    at_once = []
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
        at_once.append(len(done))
    assert at_once == [20, 20, 10]
    admission.leave(holder)
    await admission.enter(request(), time.perf_counter(), writes=False)


async def refused(admission: Admission, now: float) -> None:
    with pytest.raises(OverloadedError):
        await admission.enter(request(), now, writes=False)


async def test_who_waits_and_hangs_up_leaves_the_place_to_the_next() -> None:
    admission, now = Admission(1, MIB, Metrics()), time.perf_counter()
    first, gone, next_one = request(), request(), request()
    await admission.enter(first, now, writes=False)
    hanging_up = asyncio.ensure_future(admission.enter(gone, now, writes=False))
    waiting = asyncio.ensure_future(admission.enter(next_one, now, writes=False))
    await asyncio.sleep(0)
    admission.leave(first)  # it is given the place, and hangs up before it knows
    hanging_up.cancel()
    await waiting
    assert hanging_up.cancelled()
    admission.leave(next_one)
    await admission.enter(request(), now, writes=False)


async def test_who_had_a_place_has_it_again_before_those_that_wait_for_one() -> None:
    admission, now = Admission(1, MIB, Metrics()), time.perf_counter()
    reading, other, new = request(), request(), request()
    order, came = list[str](), asyncio.Event()
    await admission.enter(reading, now, writes=False)

    async def come(this: Request, name: str) -> None:
        await admission.enter(this, now, writes=False)
        order.append(name)
        came.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(come(other, "other"))
        group.create_task(come(new, "new"))
        await asyncio.sleep(0)

        async def read() -> None:
            async with reading.aside():
                pass
            order.append("again")
            admission.leave(reading)

        group.create_task(read())
        await came.wait()
        admission.leave(other)
    assert order == ["other", "again", "new"]


async def test_who_is_cancelled_while_it_waits_for_its_place_gives_back_no_more_than_it_had() -> (
    None
):
    admission, now = Admission(1, MIB, Metrics()), time.perf_counter()
    reading, other = request(), request()
    await admission.enter(reading, now, writes=False)

    async def read() -> None:
        try:
            async with reading.aside():
                await admission.enter(other, now, writes=False)
        finally:
            admission.leave(reading)

    cancelled = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    waiting = asyncio.ensure_future(admission.enter(request(), now, writes=False))
    await asyncio.sleep(0)
    assert not waiting.done()
    admission.leave(other)
    await waiting
