"""Traces as a collector gets them from a real `factbook serve`."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from starlette.responses import Response

from tests.fakes.collector import Collector, Span
from tests.observability.traced import PARENT, TECH_INSIGHTS, VENDOR_SECRET, World, tracing
from tests.service import PUSH, TOOLS, call
from tests.webhooks.receiver import receiving

PUT_SET = f"PUT {PUSH}/sets/{{set_id}}"
TEST = f"POST {TECH_INSIGHTS}/data-sources/{{id}}/test"
RUN = f"POST {TECH_INSIGHTS}/data-sources/{{id}}/run"
BY_NAME = "GET /api/catalog/entities/by-name/{kind}/{namespace}/{name}"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
PASSWORD = "a password of this person"


def has(*names: str) -> Callable[[Collector], bool]:
    """Spans with all of these names have come."""
    return lambda collector: all(map(collector.named, names))


def chain(collector: Collector, span: Span) -> list[str]:
    """The names of a span and of those above it."""
    by_id = {one.id: one for one in collector.spans}
    names = [span.name]
    while span.parent_id in by_id:
        span = by_id[span.parent_id]
        names.append(span.name)
    return names


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    with tracing(database_url, tmp_path) as world:
        yield world


def check_push(world: World) -> None:
    collector = world.collector
    collector.wait_for(has(PUT_SET))
    request = collector.one(PUT_SET)
    assert request.kind == "server"
    assert (request.trace_id, request.parent_id) == (PARENT[3:35], PARENT[36:52])
    assert request.attributes["http.request.method"] == "PUT"
    assert request.attributes["http.route"] == f"{PUSH}/sets/{{set_id}}"
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["server.port"] == world.server.port
    assert request.resource["service.name"] == "factbook"
    check, insert = collector.one("check push"), collector.one("INSERT entities")
    assert check.parent_id == request.id
    assert check.attributes["factbook.push.items"] == 2
    assert chain(collector, insert) == ["INSERT entities", "transaction", PUT_SET]
    transaction = next(one for one in collector.spans if one.id == insert.parent_id)
    statements = collector.below(transaction)
    # On the thread of the writer: it waits for its turn, then works.
    assert statements[0].name == "wait for a writer"
    system = world.server.database_url.partition(":")[0]
    assert {one.attributes["db.system.name"] for one in statements[1:]} == {system}
    for one in (check, transaction, *statements):
        assert one.trace_id == request.trace_id
        assert request.start <= one.start <= one.end <= request.end


def check_trial(world: World) -> None:
    collector = world.collector
    collector.wait_for(has(TEST))
    request = collector.one(TEST)
    upstream = next(one for one in collector.named("GET") if one.trace_id == request.trace_id)
    assert (upstream.kind, upstream.parent_id) == ("client", request.id)
    assert upstream.attributes["server.address"] == "127.0.0.1"
    assert upstream.attributes["http.response.status_code"] == 200
    reads = [one for one in collector.below(request) if one.name.startswith("SELECT ")]
    assert reads


def check_run(world: World) -> None:
    collector = world.collector
    collector.wait_for(has("run", "batch", RUN))
    run, batch = collector.one("run"), collector.one("batch")
    assert collector.one(RUN).links == [(run.trace_id, run.id)]
    assert (batch.trace_id, batch.parent_id) == (run.trace_id, run.id)
    assert run.parent_id == ""
    assert run.attributes["factbook.source.id"] == "builds"
    assert run.attributes["factbook.run.covered"] == 1
    [upstream] = [one for one in collector.named("GET") if one.trace_id == run.trace_id]
    assert chain(collector, upstream) == ["GET", "batch", "run"]
    [stored] = [one for one in collector.named("transaction") if one.trace_id == run.trace_id]
    assert chain(collector, stored) == ["transaction", "batch", "run"]


@pytest.mark.slow
@pytest.mark.spec("traces.request-database-upstream")
def test_one_trace_holds_the_request_the_database_and_the_calls_to_others(world: World) -> None:
    assert world.push("web", "secret-web", headers={"traceparent": PARENT}).status_code == 200
    check_push(world)
    world.define()
    path = f"{TECH_INSIGHTS}/data-sources/builds"
    tried = world.http.post(f"{path}/test", json={"entity": "secret-web"})
    assert tried.json()["facts"] == {"ok": True}, tried.text
    check_trial(world)
    # Whoever is asked learns nothing of the trace.
    assert not any("traceparent" in asked.headers for asked in world.api.asked)
    asked = world.http.post(f"{path}/run", json={"entity": "component:default/secret-web"})
    assert asked.status_code == 202, asked.text
    check_run(world)


def sign_up(world: World) -> tuple[str, str]:
    """Make a person through the link of an invitation; the link's secret and a cookie."""
    invite = ("people", "invite", "kimberly", "--role", "viewer", "--server", world.server.url)
    link = world.server.invoke(*invite).strip().splitlines()[-1].strip()
    with httpx2.Client(base_url=world.server.url, timeout=60) as browser:
        page = browser.get(link)
        [csrf] = set(re.findall(r'name="csrf" value="([^"]+)"', page.text))
        form = {"name": "kimberly", "password": PASSWORD, "again": PASSWORD, "csrf": csrf}
        assert browser.post(link, data=form).status_code == 303
        assert browser.get("/").status_code == 200
        return link.rpartition("/")[2], browser.cookies["factbook"]


@pytest.mark.slow
@pytest.mark.spec("traces.no-secret")
@ON_SQLITE
def test_no_byte_that_is_sent_holds_a_secret_or_a_name(world: World) -> None:
    world.push("secret-web")
    world.define()
    world.http.post(f"{TECH_INSIGHTS}/data-sources/builds/test", json={"entity": "secret-web"})
    world.http.get("/api/catalog/entities/by-name/component/default/secret-web?token=query-secret")
    world.http.get("/api/catalog/entities", params={"filter": "metadata.name=secret-web"})
    world.http.post(TOOLS, json=call("get-entity-compliance", {"name": "secret-web"}))
    world.http.post(TOOLS, json=call("get-entity-compliance", {"name": "secret-unknown"}))
    world.http.get(f"/nowhere/{world.token}", headers={"tracestate": "a=secret-state"})
    world.http.get("/api/catalog/entities", headers={"authorization": "Bearer secret-bearer"})
    link, cookie = sign_up(world)
    with receiving() as receiver:
        address = {"url": f"{receiver.url}/hooks/secret-hook"}
        hook = world.http.post("/api/events/webhooks", json=address).json()
        world.push("secret-web", "secret-more")
        receiver.wait_for("/hooks/secret-hook", 2)
        world.collector.wait_for(has("webhook round"))
    collector = world.collector
    sent = collector.named("webhook message")[0]
    assert chain(collector, collector.below(sent)[0]) == [
        "POST",
        "webhook message",
        "webhook round",
    ]
    assert sent.attributes["factbook.event.type"] in {"set.replaced", "entity.added"}
    welcome = "/welcome/{secret}"
    collector.wait_for(has(f"GET {welcome}", f"POST {welcome}", "GET", TEST))
    known = (world.token, world.token[:12], link, cookie, hook["secret"], VENDOR_SECRET, PASSWORD)
    for word in (*known, "secret-", "query-secret", "kimberly", "tester"):
        assert word.encode() not in collector.bytes, word
    assert world.server.environment["FACTBOOK_TOKEN_KEY"].encode() not in collector.bytes


def logged(world: World, event: str) -> dict[str, str]:
    """The last line of an event in the log of the server."""
    lines = [line for line in world.server.log.read_text().splitlines() if line.startswith("{")]
    found: dict[str, str] = [one for one in map(json.loads, lines) if one["event"] == event][-1]
    return found


@pytest.mark.slow
@ON_SQLITE
def test_what_goes_wrong_is_in_the_trace_and_the_log_names_it(
    database_url: str, tmp_path: Path
) -> None:
    about = {
        "OTEL_SERVICE_NAME": "shop-catalog",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,service.name=other",
    }
    with tracing(database_url, tmp_path, **about) as world:
        collector = world.collector
        world.push("web")
        world.define()
        missing = world.http.get("/api/catalog/entities/by-name/component/default/gone")
        assert missing.status_code == 404
        world.http.post(TOOLS, json=call("get-entity-compliance", {"name": "gone"}))
        world.api.fail("/api/builds/secret-web", lambda *_: failing(), times=9)
        world.http.post(f"{TECH_INSIGHTS}/data-sources/builds/test", json={"entity": "web"})
        with closing(sqlite3.connect(tmp_path / "factbook.db")) as connection:
            connection.execute("DROP TABLE search")
        assert world.http.get("/api/catalog/entities?filter=spec.a").status_code == 500
        collector.wait_for(has("GET /api/catalog/entities", "tools/call get-entity-compliance"))
        check_failures(world)


async def failing() -> Response:
    return Response("secret-answer", 502)


def check_failures(world: World) -> None:
    collector = world.collector
    collector.wait_for(has(BY_NAME, TEST))
    missing, failed = collector.one(BY_NAME), collector.one("GET /api/catalog/entities")
    assert (missing.failed, missing.attributes["http.response.status_code"]) == (False, 404)
    assert (failed.failed, failed.attributes["error.type"]) == (True, "500")
    [statement] = [one for one in collector.below(failed) if one.failed]
    assert statement.attributes["error.type"] == "OperationalError"
    assert (statement.message, statement.events) == ("", 0)
    refused = collector.one("tools/call get-entity-compliance")
    assert (refused.failed, refused.attributes["error.type"]) == (True, "ToolError")
    upstream = collector.named("GET")[0]
    assert (upstream.failed, upstream.attributes["error.type"]) == (True, "502")
    assert b"secret-answer" not in collector.bytes
    line = logged(world, "request.failed")
    assert (line["trace_id"], line["span_id"]) == (failed.trace_id, failed.id)
    assert failed.resource["service.name"] == "shop-catalog"
    assert failed.resource["deployment.environment.name"] == "test"
