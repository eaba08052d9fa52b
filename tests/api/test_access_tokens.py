"""`/api/access/v1/tokens`: making, listing and revoking tokens over HTTP."""

from typing import Any

import httpx2
import pytest

from factbook.auth import tokens
from factbook.auth.permissions import (
    CATALOG_READ,
    PERMISSION_NAMES,
    SET_WRITE,
    SOURCE_READ,
    TOKEN_MANAGE,
)
from factbook.storage import Database
from tests.service import Service

TOKENS = "/api/access/v1/tokens"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def make(service: Service, **body: Any) -> dict[str, Any]:
    """A new token as the answer shows it."""
    answer = await service.http.post(TOKENS, json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def listed(service: Service) -> dict[str, Any]:
    """The tokens in the list, by name."""
    answer = await service.http.get(TOKENS)
    assert answer.status_code == 200
    return {token["name"]: token for token in answer.json()["tokens"]}


async def everything(database: Database) -> str:
    """All that every table holds, as text."""
    if database.dialect == "sqlite":
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    else:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    tables = [row[0] for row in await database.all(query)]
    assert "tokens" in tables
    rows = [await database.all("SELECT * FROM " + table) for table in tables]  # noqa: S608
    return "\n".join(map(str, rows))


@pytest.mark.spec(
    "token.management-interface",
    "token.value-shown-once",
    "token.has-a-name",
    "token.has-an-owner",
    "token.has-permissions",
)
async def test_a_token_is_made_used_listed_and_revoked(service: Service) -> None:
    made = await make(service, name="agent", permissions=[CATALOG_READ], expires="12h")
    value = made.pop("value")
    assert tokens.is_well_formed(value)
    assert made == {
        "id": made["id"],
        "name": "agent",
        "owner": "user:default/tester",
        "permissions": [CATALOG_READ],
        "createdAt": "2026-11-21T12:00:00.000+00:00",
        "expiresAt": "2026-11-22T00:00:00.000+00:00",
        "lastUsedAt": None,
        "usage": {"calls": 0, "characters": 0, "estimatedTokens": 0},
    }
    assert (await listed(service))["agent"] == made
    async with service.client(value) as http:
        assert (await http.get("/api/catalog/entities")).status_code == 200
        assert (await http.get(TOKENS)).status_code == 403
        assert (await service.http.delete(f"{TOKENS}/{made['id']}")).status_code == 204
        assert (await http.get("/api/catalog/entities")).status_code == 401
    assert "agent" not in await listed(service)
    assert (await service.http.delete(f"{TOKENS}/{made['id']}")).status_code == 404


@pytest.mark.spec("token.stored-as-keyed-hash", "token.value-shown-once")
async def test_no_table_holds_a_tokens_value_only_its_keyed_hash(service: Service) -> None:
    made = await make(service, name="agent")
    value, key = made["value"], service.state.token_key
    stored = await everything(service.state.database)
    assert "agent" in stored
    assert tokens.hash_token(value, key) in stored
    setting = service.state.settings.token_key
    assert setting is not None
    for part in (value, value[4:], value[4:-6], value[:20], key.hex(), setting):
        assert part not in stored
    answer = await service.http.get(TOKENS)
    assert value[:12] not in answer.text
    assert tokens.hash_token(value, key) not in answer.text


@ON_SQLITE
@pytest.mark.spec("token.expires-after-90-days", "token.expiry-can-be-chosen")
async def test_a_token_lives_90_days_unless_another_time_is_chosen(service: Service) -> None:
    ends = {
        text: (await make(service, name=text, **({} if text == "none" else {"expires": text})))[
            "expiresAt"
        ]
        for text in ("none", "1d", "30m", "12h", "never")
    }
    assert ends == {
        "none": "2027-02-19T12:00:00.000+00:00",
        "1d": "2026-11-22T12:00:00.000+00:00",
        "30m": "2026-11-21T12:30:00.000+00:00",
        "12h": "2026-11-22T00:00:00.000+00:00",
        "never": None,
    }


@ON_SQLITE
@pytest.mark.spec("token.never-exceeds-its-creator")
async def test_a_token_is_never_given_more_than_its_maker_has(service: Service) -> None:
    maker = await service.token(TOKEN_MANAGE, CATALOG_READ, owner="user:default/kim")
    async with service.client(maker) as http:

        async def ask(*permissions: str) -> httpx2.Response:
            body = {"name": "child", "permissions": list(permissions)}
            return await http.post(TOKENS, json=body)

        refused = await ask(CATALOG_READ, SET_WRITE)
        assert refused.status_code == 403
        assert SET_WRITE in refused.json()["error"]["message"]
        assert f'scope="{SET_WRITE}"' in refused.headers["www-authenticate"]
        assert "child" not in await listed(service)

        child = (await ask(CATALOG_READ)).json()
        assert (child["permissions"], child["owner"]) == ([CATALOG_READ], "user:default/kim")
        assert (await ask()).json()["permissions"] == [CATALOG_READ]


@ON_SQLITE
@pytest.mark.spec("token.least-privilege")
async def test_a_token_reads_unless_its_permissions_are_named(service: Service) -> None:
    assert (await make(service, name="new"))["permissions"] == sorted([CATALOG_READ, SOURCE_READ])
    async with service.client(await service.token(TOKEN_MANAGE)) as http:
        answer = await http.post(TOKENS, json={"name": "reads nothing"})
    assert answer.status_code == 400
    assert "Name the permissions" in answer.json()["error"]["message"]


@ON_SQLITE
@pytest.mark.spec("permissions.the-nine-names")
async def test_exactly_the_permissions_that_there_are_can_be_given(service: Service) -> None:
    assert (await make(service, name="all", permissions=sorted(PERMISSION_NAMES)))[
        "permissions"
    ] == [
        "access.token.manage",
        "audit.read",
        "catalog.entity-set.write",
        "catalog.entity.read",
        "events.read",
        "operations.manage",
        "own.write",
        "scim.write",
        "tech-insights.check.read",
        "tech-insights.check.write",
        "tech-insights.data-source.read",
        "tech-insights.data-source.write",
        "tech-insights.exemption.decide",
        "tech-insights.exemption.request",
        "tech-insights.fact.write",
        "tech-insights.scorecard.write",
        "tech-insights.source.run",
    ]
    for name in ("catalog.entity.write", "CATALOG.ENTITY.READ", "*", ""):
        answer = await service.http.post(TOKENS, json={"name": "x", "permissions": [name]})
        assert answer.status_code == 400, name
        assert CATALOG_READ in answer.json()["error"]["message"]


@ON_SQLITE
async def test_a_body_that_cannot_be_meant_is_400_and_makes_nothing(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [
        {},
        {"name": ""},
        {"name": "n" * 201},
        {"name": 7},
        {"name": "x", "permissions": "all"},
        {"name": "x", "permissions": [1]},
        {"name": "x", "expires": "soon"},
        {"name": "x", "expires": "0d"},
        {"name": "x", "expires": "-1d"},
        {"name": "x", "expires": 90},
        {"name": "x", "owner": "user:default/somebody"},
        [],
    ]
    for body in cases:
        with subtests.test(body=body):
            answer = await service.http.post(TOKENS, json=body)
            assert answer.status_code == 400, answer.text
            assert list(await listed(service)) == ["test"]


@ON_SQLITE
async def test_what_is_no_token_cannot_be_revoked(service: Service) -> None:
    for id_ in ("nobody", "6e1f3f0c-0000-4000-8000-000000000000", "%00"):
        answer = await service.http.delete(f"{TOKENS}/{id_}")
        assert answer.status_code == 404, id_
    assert (await service.http.get(f"{TOKENS}?all=true")).status_code == 400


@ON_SQLITE
async def test_a_token_named_like_anothers_id_does_not_shield_it(service: Service) -> None:
    victim = await make(service, name="victim")
    await make(service, name=victim["id"])
    assert (await service.http.delete(f"{TOKENS}/{victim['id']}")).status_code == 204
    assert set(await listed(service)) == {"test", victim["id"]}
