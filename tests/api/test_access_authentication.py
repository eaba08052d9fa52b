"""Which tokens are taken over HTTP, for how long, and what a refusal says."""

import asyncio
import base64
from typing import Any

import httpx2
import pytest

from factbook.auth import tokens
from factbook.auth.permissions import CATALOG_READ, SET_WRITE
from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.storage.database_url import open_database
from tests.service import NOON, PUSH, TOOLS, Service, call

ENTITIES = "/api/catalog/entities"
INVALID = 'Bearer realm="factbook", error="invalid_token"'
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def listing(service: Service, authorization: str | None, **headers: str) -> httpx2.Response:
    """The answer to a request for the entity list with this Authorization header."""
    if authorization is not None:
        headers["authorization"] = authorization
    async with service.client(None) as http:
        return await http.get(ENTITIES, headers=headers)


async def status(service: Service, value: str) -> int:
    """The status of the entity list for a token's value."""
    return (await listing(service, f"Bearer {value}")).status_code


@ON_SQLITE
@pytest.mark.spec("auth.bearer-token-on-both-interfaces")
async def test_one_token_does_for_pushes_and_tool_calls(service: Service) -> None:
    async with service.client(await service.token()) as http:
        assert (await http.put(f"{PUSH}/sets/one", json={"items": []})).status_code == 200
        answer = await http.post(TOOLS, json=call("get-data-source-discovery", {}))
        assert answer.json()["result"]["isError"] is False


@ON_SQLITE
@pytest.mark.spec("auth.scheme-word-in-any-case")
async def test_the_scheme_word_is_taken_in_any_case(
    service: Service, subtests: pytest.Subtests
) -> None:
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer  "]:
        with subtests.test(scheme=scheme):
            assert (await listing(service, f"{scheme} {await service.token()}")).status_code == 200


@ON_SQLITE
@pytest.mark.spec(
    "auth.test-token-by-listing-entities",
    "catalog.list-accepts-json-and-bearer",
    "catalog.list-entities",
)
async def test_the_entity_list_tells_whether_a_token_is_good(service: Service) -> None:
    good, other = await service.token(CATALOG_READ), await service.token(SET_WRITE)
    answer = await listing(service, f"Bearer {good}", accept="application/json")
    assert (answer.status_code, answer.json()) == (200, [])
    assert answer.headers["content-type"].startswith("application/json")
    assert await status(service, other) == 403
    assert await status(service, tokens.generate_token()) == 401


@ON_SQLITE
@pytest.mark.spec("auth.missing-token-is-401")
async def test_no_bearer_token_is_401_and_says_how_to_send_one(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = [None, "", "Basic dTpw", "Bearer-fbk_1", "fbk_1", "Token x"]
    for header in cases:
        with subtests.test(header=header):
            answer = await listing(service, header)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == 'Bearer realm="factbook"'
            assert answer.json()["error"]["name"] == "AuthenticationError"
            assert "Bearer <token>" in answer.json()["error"]["message"]


@ON_SQLITE
@pytest.mark.spec("auth.bad-token-is-401", "token.wrong-checksum-is-refused")
async def test_a_token_that_nobody_has_is_401_and_a_mistyped_one_is_told(service: Service) -> None:
    value = await service.token()
    mistyped = value[:10] + ("A" if value[10] != "A" else "B") + value[11:]
    swapped = value[:-1] + ("A" if value[-1] != "A" else "B")
    for wrong, told in (
        (tokens.generate_token(), "The token is unknown."),
        (mistyped, "mistyped: its checksum is wrong"),
        (swapped, "mistyped: its checksum is wrong"),
        (value[:-1], "not from this service"),
        ("x", "not from this service"),
        (f"{value} {value}", "not from this service"),
        (value.upper(), "not from this service"),
    ):
        answer = await listing(service, f"Bearer {wrong}")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, INVALID), wrong
        assert told in answer.json()["error"]["message"]
    assert await status(service, value) == 200


@ON_SQLITE
async def test_a_header_that_is_no_text_is_401(service: Service) -> None:
    headers: Any = [("authorization", b"Bearer \xff\xfe")]
    async with service.client(None) as http:
        assert (await http.get(ENTITIES, headers=headers)).status_code == 401
    basic = base64.b64encode(b"user:" + (await service.token()).encode()).decode()
    assert (await listing(service, f"Basic {basic}")).status_code == 401


@pytest.mark.spec("auth.bad-token-is-401", "token.expiry-can-be-chosen")
async def test_a_token_ends_when_its_lifetime_is_over(service: Service) -> None:
    hour, for_ever = await service.token(lifetime=HOUR), await service.token(lifetime=None)
    service.time.advance(HOUR - 1)
    assert await status(service, hour) == 200
    service.time.advance(1)
    answer = await listing(service, f"Bearer {hour}")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, INVALID)
    assert answer.json()["error"]["message"] == "The token has expired."
    service.time.advance(10_000 * DAY)
    assert await status(service, for_ever) == 200


@pytest.mark.spec("token.revocation-acts-on-next-request", "auth.bad-token-is-401")
async def test_a_revocation_acts_on_the_next_request_wherever_it_was_made(
    service: Service,
) -> None:
    here, elsewhere = await service.token(name="here"), await service.token(name="elsewhere")
    ids = {item.name: item.id for item in await tokens.list_tokens(service.state.database)}
    assert [await status(service, value) for value in (here, elsewhere)] == [200, 200]

    revoked = await service.http.delete(f"/api/access/v1/tokens/{ids['here']}")
    assert (revoked.status_code, revoked.content) == (204, b"")
    answer = await listing(service, f"Bearer {here}")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, INVALID)
    assert answer.json()["error"]["message"] == "The token was revoked."

    other = await open_database(service.database_url, connections=3)
    await other.write(lambda transaction: tokens.revoke_token(transaction, "elsewhere", NOON))
    await other.close()
    assert await status(service, elsewhere) == 401
    assert (await service.http.get(ENTITIES)).status_code == 200


@pytest.mark.spec("token.remembers-last-use", "token.last-use-written-once-a-minute")
async def test_the_last_use_is_noted_at_most_once_a_minute(service: Service) -> None:
    value = await service.token(name="agent")

    async def last_used() -> int | None:
        await asyncio.gather(*service.application._tasks)  # the notes under way
        rows = await service.state.database.all(
            "SELECT last_used_at FROM tokens WHERE name = ?", ("agent",)
        )
        used: int | None = rows[0][0]
        return used

    assert await last_used() is None
    service.time.advance(5 * SECOND)
    noted = service.time()
    for _ in range(5):
        assert await status(service, value) == 200
        assert await last_used() == noted
        service.time.advance(10 * SECOND)
    service.time.advance(10 * SECOND - 1)
    await status(service, value)
    assert await last_used() == noted
    service.time.advance(1)
    await status(service, value)
    assert await last_used() == noted + MINUTE
    listed = (await service.http.get("/api/access/v1/tokens")).json()["tokens"]
    [agent] = [token for token in listed if token["name"] == "agent"]
    assert agent["lastUsedAt"] == "2026-11-21T12:01:05.000+00:00"


@ON_SQLITE
async def test_a_refused_request_is_no_use(service: Service) -> None:
    value = await service.token(name="agent", lifetime=1)
    service.time.advance(1)
    assert await status(service, value) == 401
    [agent] = [
        row for row in await tokens.list_tokens(service.state.database) if row.name == "agent"
    ]
    assert agent.last_used_at is None
