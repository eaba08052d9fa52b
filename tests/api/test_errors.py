"""The form of REST errors, and what never stands in one."""

from typing import Any

import httpx2
import pytest

from factbook.auth import tokens
from tests.conftest import TOKEN_KEY
from tests.service import PUSH, Service, component

ENTITIES = "/api/catalog/entities"
SECRET = "s3cr3t-v4lue"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def failing(service: Service, **headers: str) -> list[httpx2.Response]:
    """Answers of every class of error, to requests with these headers."""
    http, found = service.http, []
    asked: list[tuple[str, str, Any]] = [
        ("GET", f"{ENTITIES}?limit=0", None),
        ("GET", f"{ENTITIES}/by-name/component/default/nobody", None),
        ("GET", "/nowhere?a=b", None),
        ("PATCH", ENTITIES, None),
        ("POST", f"{ENTITIES}/by-refs", {"entityRefs": 7}),
        ("PUT", f"{PUSH}/sets/a", {"items": [{}]}),
        ("PUT", f"{PUSH}/sets/b", {"items": [component("web")]}),
        ("DELETE", "/api/access/v1/tokens/nobody", None),
    ]
    assert (await service.push("a", component("web"))).status_code == 200
    for method, path, body in asked:
        found.append(await http.request(method, path, json=body, headers=headers))
    async with service.client(tokens.generate_token()) as stranger:
        found.append(await stranger.get(ENTITIES, headers=headers))
    async with service.client(await service.token("events.read")) as reader:
        found.append(await reader.get(ENTITIES, headers=headers))
    found.append(await http.get(ENTITIES, headers=headers | {"host": "evil.example.com"}))
    found.append(await http.get(ENTITIES, headers=headers | {"origin": "https://evil.example"}))
    return found


@ON_SQLITE
@pytest.mark.spec("errors.rest-shape")
async def test_every_error_has_the_same_three_members(service: Service) -> None:
    statuses = set()
    for answer in await failing(service):
        body = answer.json()
        assert answer.headers["content-type"].startswith("application/json")
        assert body.keys() == {"error", "request", "response"}
        assert {"name", "message"} <= body["error"].keys()
        assert isinstance(body["error"]["message"], str)
        assert body["error"]["name"].endswith("Error")
        request = answer.request
        assert body["request"] == {"method": request.method, "url": request.url.raw_path.decode()}
        assert body["response"] == {"statusCode": answer.status_code}
        statuses.add(answer.status_code)
    assert statuses == {400, 401, 403, 404, 405, 409, 421}


@ON_SQLITE
@pytest.mark.spec("errors.no-header-value", "errors.no-secret")
async def test_no_error_repeats_a_header_or_shows_a_secret(service: Service) -> None:
    own = service.http.headers["authorization"].removeprefix("Bearer ")
    given = {"x-secret": SECRET, "cookie": SECRET, "if-match": f'"{SECRET}"', "accept": SECRET}
    for answer in await failing(service, **given):
        assert answer.status_code >= 400
        for value in (SECRET, own[4:20], "evil", TOKEN_KEY, service.database_url):
            assert value not in answer.text, answer.text


@ON_SQLITE
@pytest.mark.spec("errors.no-secret")
async def test_a_token_that_was_sent_where_none_belongs_is_not_repeated(service: Service) -> None:
    own = service.http.headers["authorization"].removeprefix("Bearer ")
    for path in (
        f"{ENTITIES}?access_token={own}",
        f"{ENTITIES}?limit={own}",
        f"{ENTITIES}/by-uid/{own}",
        f"{ENTITIES}/by-name/token/default/{own}",
        f"/{own}",
    ):
        answer = await service.http.get(path)
        assert answer.status_code in (400, 404)
        assert own not in answer.text
        assert "[redacted]" in answer.json()["request"]["url"]


@pytest.mark.spec("errors.no-stack-trace", "errors.no-secret")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{ENTITIES}?filter=spec.type=service"),  # a stream, which has not begun yet
        ("GET", f"{ENTITIES}?filter=spec.type=service&limit=1"),
        ("PUT", f"{PUSH}/sets/new"),
    ],
)
async def test_an_internal_fault_says_only_that_there_was_one(
    service: Service, method: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await service.state.database.write(lambda transaction: transaction.run("DROP TABLE search"))
    body = {"items": [component("web")]} if method == "PUT" else None
    answer = await service.http.request(method, path, json=body)
    assert answer.status_code == 500
    assert answer.json() == {
        "error": {
            "name": "InternalError",
            "message": "The service encountered an unexpected error.",
        },
        "request": {"method": method, "url": path},
        "response": {"statusCode": 500},
    }
    logged = capsys.readouterr().out
    assert "request.failed" in logged
    assert "Traceback" in logged


async def test_a_fault_that_is_over_leaves_nothing_behind(service: Service) -> None:
    database = service.state.database
    await database.write(lambda tx: tx.run("ALTER TABLE search RENAME TO hidden"))
    assert (await service.push("set", component("web"))).status_code == 500
    await database.write(lambda tx: tx.run("ALTER TABLE hidden RENAME TO search"))
    assert (await service.http.get(ENTITIES)).json() == []
    assert (await service.push("set", component("web"))).status_code == 200
