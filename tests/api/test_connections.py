"""Connections over HTTP: made, changed and removed; their secrets are taken and never given."""

from typing import Any

import httpx2
import pytest
import structlog

from factbook.auth.permissions import OWN_WRITE, PERMISSION_NAMES, SOURCE_WRITE
from tests.api.defining import CONNECTIONS, SOURCES, define, problems, refusal
from tests.conftest import StartService
from tests.service import Service

SECRET = "Bearer a-secret-of-a-connection"
CI: dict[str, Any] = {
    "baseUrl": "https://ci.test/api",
    "headers": {"Authorization": SECRET, "x-team": "shop-team-secret"},
    "methods": ["GET", "POST"],
    "atOnce": 2,
}
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def asking(id_: str = "builds", connection: str = "ci", path: str = "/x") -> dict[str, Any]:
    """A source that asks a connection."""
    config = {"id": id_, "connection": connection, "path": path}
    return {
        "id": id_,
        "title": "Builds",
        "handlerDefinition": {"type": "http", "config": config},
        "schema": {"ok": {"type": "boolean", "extract": {"jmespath": "ok"}}},
    }


async def put(service: Service, name: str = "ci", **options: Any) -> httpx2.Response:
    return await service.http.put(f"{CONNECTIONS}/{name}", json={**CI, **options})


async def made(service: Service, name: str = "ci", **options: Any) -> dict[str, Any]:
    answer = await put(service, name, **options)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_connection_is_shown_with_the_names_of_its_headers_and_no_value(
    service: Service,
) -> None:
    found = await made(service)
    noon = "2026-11-21T12:00:00.000+00:00"
    assert found == {
        "name": "ci",
        "baseUrl": "https://ci.test/api",
        "methods": ["GET", "POST"],
        "atOnce": 2,
        "headers": [
            {"name": "authorization", "setAt": noon},
            {"name": "x-team", "setAt": noon},
        ],
        "sharedWith": [],
        "origin": "stored",
        "usedBy": [],
        "usedByCount": 0,
        "createdAt": noon,
        "createdBy": "user:default/tester",
        "updatedAt": noon,
        "updatedBy": "user:default/tester",
    }
    assert (await service.http.get(f"{CONNECTIONS}/ci")).json() == found
    assert (await service.http.get(CONNECTIONS)).json() == {"connections": [found]}


async def test_a_value_that_is_not_given_is_kept_and_a_header_that_is_not_named_removed(
    service: Service,
) -> None:
    before = await made(service)
    service.time.advance(60_000)
    after = await made(service, headers={"AUTHORIZATION": None, "x-new": "new-secret"})
    assert [one["name"] for one in after["headers"]] == ["authorization", "x-new"]
    kept, new = (one["setAt"] for one in after["headers"])
    assert kept == before["createdAt"] == after["createdAt"]
    assert new == after["updatedAt"] != kept
    known = await service.state.registry.latest()
    assert known.problems == {}
    connection = service.state.registry.connections["ci"]
    assert getattr(connection, "headers", None) == {"authorization": SECRET, "x-new": "new-secret"}


@pytest.mark.spec("sources.credential-stays-with-its-host")
async def test_a_kept_value_never_goes_to_another_host(
    service: Service, subtests: pytest.Subtests
) -> None:
    for elsewhere in [
        "https://other.test/api",
        "https://ci.test:8443/api",
        "http://ci.test/api",
        "https://ci.test.other.test/api",
    ]:
        with subtests.test(elsewhere=elsewhere):
            await made(service)
            answer = await put(
                service, baseUrl=elsewhere, headers={"authorization": None, "x-team": "t"}
            )
            assert answer.status_code == 400
            assert "given again" in problems(answer)["headers.authorization"]
            assert (await service.http.get(f"{CONNECTIONS}/ci")).json()["baseUrl"] == CI["baseUrl"]
            moved = await put(
                service, baseUrl="https://ci.test/v2", headers={"authorization": None}
            )
            assert moved.status_code == 200
            assert (await put(service, baseUrl=elsewhere)).status_code == 200


async def test_what_cannot_be_a_connection_is_told_without_its_values(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"baseUrl": "ci.test"}, "baseUrl", "begin with https://"),
        ({"baseUrl": f"https://u:{SECRET[7:]}@ci.test"}, "baseUrl", "without name, password"),
        ({"headers": {"x-token": None}}, "headers.x-token", "has no value yet"),
        ({"headers": {f"{SECRET}": "x"}}, "headers", "has an invalid name"),
        ({"headers": {"x-token": f"{SECRET}\n"}}, "headers", "cannot be sent"),
        ({"headers": {"x-a": SECRET, "X-A": SECRET}}, "headers.X-A", "twice"),
        ({"headers": {"Host": SECRET}}, "headers.Host", "not a connection's"),
        ({"headers": {"x-a": SECRET * 1_000}}, "headers.x-a", "longer than"),
    ]
    for options, path, message in cases:
        with subtests.test(options=options, path=path):
            answer = await put(service, **options)
            assert answer.status_code == 400, answer.text
            assert message in problems(answer)[path]
            assert SECRET[7:] not in answer.text
            assert (await service.http.get(CONNECTIONS)).json() == {"connections": []}


@ON_SQLITE
async def test_what_does_not_fit_is_refused_without_its_values(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, Any]] = [
        ("Upper", CI),
        ("ci", {**CI, "methods": ["DELETE"]}),
        ("ci", {**CI, "methods": []}),
        ("ci", {**CI, "atOnce": 0}),
        ("ci", {**CI, "atOnce": 101}),
        ("ci", {**CI, "headers": {"x-token": [SECRET]}}),
        ("ci", {**CI, "headers": {f"x-{n}": SECRET for n in range(21)}}),
        ("ci", {**CI, "token": SECRET}),
        ("ci", {"headers": {"x-token": SECRET}}),
        ("ci", [SECRET]),
    ]
    for name, body in cases:
        with subtests.test(name=name, body=body):
            answer = await service.http.put(f"{CONNECTIONS}/{name}", json=body)
            assert answer.status_code == 400
            assert SECRET[7:] not in answer.text


async def test_one_that_a_source_asks_is_not_removed(service: Service) -> None:
    await made(service)
    await define(service, asking("published"))
    await define(service, asking("draft"), publish=False)
    await define(service, asking("other", "cd"))
    assert (await service.http.get(f"{CONNECTIONS}/ci")).json()["usedBy"] == ["draft", "published"]
    told = refusal(await service.http.delete(f"{CONNECTIONS}/ci"), 409)
    assert "used by draft, published" in told
    for id_ in ("draft", "published"):
        assert (await service.http.delete(f"{SOURCES}/{id_}")).status_code == 204
    assert (await service.http.delete(f"{CONNECTIONS}/ci")).status_code == 204
    for method in ("GET", "DELETE"):
        assert "no connection" in refusal(
            await service.http.request(method, f"{CONNECTIONS}/ci"), 404
        )


async def test_one_that_only_the_draft_stopped_asking_is_still_used(service: Service) -> None:
    await made(service)
    await define(service, asking())
    await define(service, asking(connection="cd"), publish=False)
    assert "builds" in refusal(await service.http.delete(f"{CONNECTIONS}/ci"), 409)


async def test_one_of_the_settings_wins_and_is_changed_there_alone(
    start: StartService, service: Service
) -> None:
    await made(service)
    table = {"base_url": "https://fixed.test", "headers": {"X-Token": SECRET}}
    fixed = await start(connections={"ci": table})
    [shown] = (await fixed.http.get(CONNECTIONS)).json()["connections"]
    assert shown == {
        "name": "ci",
        "baseUrl": "https://fixed.test",
        "methods": ["GET"],
        "atOnce": 4,
        "headers": [{"name": "x-token", "setAt": None}],
        "sharedWith": [],
        "origin": "settings",
        "usedBy": [],
        "usedByCount": 0,
    }
    for answer in (await put(fixed), await fixed.http.delete(f"{CONNECTIONS}/ci")):
        assert "comes from the settings" in refusal(answer, 409)


async def test_no_secret_is_in_an_answer_a_log_a_row_or_the_audit(service: Service) -> None:
    with structlog.testing.capture_logs() as logs:
        await made(service)
        await put(service, headers={"x-token": f"{SECRET}\n"})
        await put(service, methods=["PUT"])
        await define(service, asking())
        answers = [
            await service.http.get(path)
            for path in (CONNECTIONS, f"{CONNECTIONS}/ci", f"{SOURCES}/builds")
        ]
    rows = [
        await service.state.database.all(f"SELECT * FROM {table}")  # noqa: S608 - own words
        for table in ("connections", "audit", "data_sources")
    ]
    known = await service.state.registry.latest()
    connections = service.state.registry.connections
    assert "connection.put" in [one["event"] for one in logs]
    assert rows[0]
    assert "connection.create" in repr(rows[1])
    for shown in (logs, rows, known, connections, [answer.text for answer in answers]):
        assert SECRET[7:] not in repr(shown)


@ON_SQLITE
async def test_each_call_takes_the_permission_to_write_sources(
    service: Service, subtests: pytest.Subtests
) -> None:
    for method, path in [
        ("GET", CONNECTIONS),
        ("GET", f"{CONNECTIONS}/ci"),
        ("DELETE", f"{CONNECTIONS}/ci"),
        ("PUT", f"{CONNECTIONS}/ci"),
    ]:
        with subtests.test(method=method, path=path):
            async with service.client(None) as anonymous:
                refusal(await anonymous.request(method, path, json=CI), 401)
            others = [name for name in PERMISSION_NAMES if name not in {SOURCE_WRITE, OWN_WRITE}]
            async with service.client(await service.token(*others)) as http:
                assert SOURCE_WRITE in refusal(await http.request(method, path, json=CI), 403)
            async with service.client(await service.token(SOURCE_WRITE)) as http:
                answer = await http.request(method, path, json=CI)
                assert answer.status_code in (200, 404)


@pytest.mark.slow
@ON_SQLITE
async def test_there_is_a_most_of_connections(service: Service) -> None:
    for n in range(200):
        await made(service, f"ci{n}", headers={})
    assert "200 connections" in refusal(await put(service, "one-more"), 409)
    await made(service, "ci7")
