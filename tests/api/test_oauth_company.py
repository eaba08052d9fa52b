"""Tokens of a company's own authorization server at `/mcp`."""

import asyncio
import base64
import hashlib
import hmac
from typing import Any

import httpx2
import pytest
from starlette.responses import Response

from factbook.auth import users
from factbook.auth.oauth import protocol
from factbook.auth.oauth.clients import make_oauth_options
from factbook.auth.oauth.company_tokens import CompanyTokens
from factbook.auth.oidc.provider import MOST_BYTES, MOST_SECONDS
from factbook.auth.permissions import CATALOG_READ
from factbook.clock import SECOND
from factbook.outbound.network import Sender
from factbook.storage import Transaction
from tests.api.authorizing import READING, RESOURCE, at_mcp, exchanged
from tests.conftest import StartService
from tests.service import Service
from tests.web.openid_provider import ISSUER, OpenIDProvider, forged, key_for, signed

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
OTHER = "https://other.example.com"


@pytest.fixture
def provider() -> OpenIDProvider:
    return OpenIDProvider()


async def served(
    start: StartService, provider: OpenIDProvider, people: str = "", **options: Any
) -> Service:
    """A service whose settings name the provider, with an account for its person."""
    table = {"issuer": provider.issuer, **options}
    sender = Sender(httpx2.ASGITransport(provider), seconds=MOST_SECONDS, most_bytes=MOST_BYTES)
    company = CompanyTokens(make_oauth_options(table), sender.send, provider.time, people)
    service = await start(oauth=table, company=company)
    await add(service, "jane", ISSUER, "subject-7")
    return service


async def add(
    service: Service, name: str, issuer: str | None, subject: str | None, role: str = "viewer"
) -> None:
    await service.state.database.write(
        lambda transaction: users.create_user(
            transaction,
            ref=users.make_user_ref(name),
            display_name=name,
            role=role,
            issuer=issuer,
            subject=subject,
            created_by="test",
            now=service.time(),
        )
    )


async def called(service: Service, names: dict[str, str]) -> None:
    """Record what the provider of the sign-in called people."""

    def work(transaction: Transaction) -> None:
        for name, login in names.items():
            users.record_login(transaction, users.make_user_ref(name), login)

    await service.state.database.write(work)


def token(provider: OpenIDProvider, header: Any = None, **changed: Any) -> str:
    """A token of the provider for the tools, with claims changed; None leaves one out."""
    seconds = provider.time() // 1000
    claims = {
        "iss": provider.issuer,
        "sub": "subject-7",
        "aud": RESOURCE,
        "exp": seconds + 300,
        "iat": seconds,
        "client_id": "agent",
        **changed,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    head = {"alg": "ES256", "typ": "at+jwt", "kid": provider.keys[0].kid, **(header or {})}
    return signed(head, claims, provider.keys[0])


async def refusal(service: Service, value: str, status: int = 401) -> str:
    answer = await at_mcp(service, value)
    assert answer.status_code == status, answer.text
    assert value not in answer.text
    if status == 401:
        assert "resource_metadata" in answer.headers["www-authenticate"]
        assert answer.json()["error"] == "invalid_token"
    return answer.text


async def test_a_token_of_a_person_with_an_account_is_taken(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    for changed in ({}, {"aud": [OTHER, RESOURCE]}, {"scope": " ".join(READING)}):
        assert (await at_mcp(service, token(provider, **changed))).status_code == 200
    assert provider.asked["/keys"] == 1
    async with service.client(None) as http:
        metadata = (await http.get(protocol.RESOURCE_METADATA_PATH)).json()
        assert metadata["authorization_servers"] == [ISSUER]
        assert (await http.get(protocol.SERVER_METADATA_PATH)).status_code == 404
    assert (await exchanged(service, "code")).status_code == 404
    assert (await at_mcp(service, await service.token(*READING))).status_code == 200


@ON_SQLITE
async def test_a_token_for_others_or_of_another_time_is_refused(
    start: StartService, provider: OpenIDProvider, subtests: pytest.Subtests
) -> None:
    service = await served(start, provider)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"iss": OTHER}, "another issuer"),
        ({"iss": f"{ISSUER}/"}, "another issuer"),
        ({"aud": OTHER}, "another audience"),
        ({"aud": "factbook"}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"exp": 1_700_000_000}, "expired"),
        ({"nbf": 2_000_000_000}, "not valid yet"),
        ({"aud": None}, "lacks a claim"),
        ({"exp": None}, "lacks a claim"),
        ({"exp": "soon"}, "lacks a claim"),
        ({"sub": None}, "lacks a claim"),
        ({"sub": ""}, "lacks a claim"),
        ({"scp": {"a": 1}}, "lacks a claim"),
    ]
    for changed, message in cases:
        with subtests.test(changed=changed):
            assert message in await refusal(service, token(provider, **changed))


@ON_SQLITE
async def test_a_token_that_the_server_did_not_sign_is_refused(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    right = token(provider)
    claims = {"iss": ISSUER, "sub": "subject-7", "aud": RESOURCE, "exp": 4_000_000_000}
    stranger = key_for("ES256", 1)
    public = str(provider.keys[0].as_dict(private=False)).encode()
    head, _, rest = right.partition(".")
    for value in (
        forged({"alg": "none"}, claims, lambda _: b""),
        forged({"alg": "HS256"}, claims, lambda text: hmac.digest(public, text, hashlib.sha256)),
        signed({"alg": "ES256", "kid": provider.keys[0].kid}, claims, stranger),
        signed({"alg": "ES256", "kid": "another"}, claims, stranger),
        right[:-4] + "AAAA",
        f"{head}.{base64.urlsafe_b64encode(b'{}').decode().rstrip('=')}.{rest.partition('.')[2]}",
        "a.b.c",
        "...",
        "a.b",
        "x" * 20_000,
        "fbk_" + "a" * 46,
    ):
        assert "invalid_token" in await refusal(service, value)


@ON_SQLITE
async def test_new_keys_of_the_server_are_fetched_once_a_minute(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    assert (await at_mcp(service, token(provider))).status_code == 200
    provider.keys = [key_for("ES256", 2)]
    assert (await at_mcp(service, token(provider))).status_code == 200
    stranger = signed({"alg": "ES256", "kid": "x"}, {"iss": ISSUER}, key_for("ES256", 3))
    for _ in range(5):
        await refusal(service, stranger)
    assert provider.asked["/keys"] == 2


@ON_SQLITE
async def test_a_server_that_does_not_answer_is_told_apart_from_a_bad_token(
    start: StartService, provider: OpenIDProvider
) -> None:
    provider.faults["/keys"] = Response(status_code=500)
    service = await served(start, provider)
    good = token(provider)
    said = await asyncio.gather(*(refusal(service, one, 503) for one in [good, "a.b.c"] * 5))
    assert all("does not answer" in each for each in said)
    assert provider.asked["/keys"] == 1
    del provider.faults["/keys"]
    await refusal(service, good, 503)
    provider.time.advance(5 * SECOND)
    assert (await at_mcp(service, token(provider))).status_code == 200


@ON_SQLITE
async def test_metadata_of_another_issuer_is_not_believed(
    start: StartService, provider: OpenIDProvider
) -> None:
    provider.document = {"issuer": OTHER}
    service = await served(start, provider)
    assert "does not answer" in await refusal(service, token(provider), 503)


async def test_nobody_without_an_account_is_let_in(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    await add(service, "local", None, None)
    for changed in (
        {"sub": "another"},
        {"sub": "another", "preferred_username": "jane"},
        {"sub": "user:default/local", "preferred_username": "local"},
    ):
        assert "No account here" in await refusal(service, token(provider, **changed), 403)
    await add(service, "ada", None, None, "administrator")
    now = service.time()
    await service.state.database.write(lambda tx: users.disable_user(tx, "user:default/jane", now))
    assert "No account here" in await refusal(service, token(provider), 403)


@ON_SQLITE
async def test_a_name_that_the_settings_trust_finds_an_account_of_the_sign_in(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider, people=OTHER, name_claim="upn")
    await add(service, "joe", OTHER, "of the sign-in")
    await add(service, "local", None, None)
    await add(service, "unnamed", OTHER, "without a name")
    await called(service, {"joe": "Joe@x.example", "local": "local", "unnamed": ""})
    assert (await at_mcp(service, token(provider, sub="x", upn="joe@x.example"))).status_code == 200
    for name in ("local", "jane", "nobody", "../joe", "joe", "joe@elsewhere.example", "", 7, None):
        await refusal(service, token(provider, sub="x", upn=name), 403)


@ON_SQLITE
async def test_a_token_gives_its_scopes_and_never_more_than_the_role(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    answer = await at_mcp(service, token(provider, scope=CATALOG_READ))
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert (await at_mcp(service, token(provider, scp=[*READING]))).status_code == 200
    more = token(provider, scope="tech-insights.check.write access.token.manage")
    assert (await at_mcp(service, more)).status_code == 403


@ON_SQLITE
async def test_the_settings_name_the_audience_and_what_others_get(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider, audience="api://tools", permissions=[CATALOG_READ])
    assert "audience" in await refusal(service, token(provider))
    assert (await at_mcp(service, token(provider, aud="api://tools"))).status_code == 403
