"""Codes and tokens of OAuth: what they are exchanged for, and what ends them."""

import asyncio
import threading
from typing import Any

import pytest

from factbook.auth import users
from factbook.auth.oauth import protocol
from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.storage import Transaction
from tests.api.authorizing import (
    CALLBACK,
    CLIENT,
    READING,
    RESOURCE,
    VERIFIER,
    Documents,
    at_mcp,
    code_for,
    exchanged,
    refreshed,
    sent,
    tokens_for,
)
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import PASSWORD, Browser, add_person, browser, signed_in, words

OTHER = "https://other.example.com/oauth/client.json"
ACCOUNT = "/administration/account"


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(fetch_document=Documents(CLIENT, OTHER))


async def records(service: Service, action: str) -> list[dict[str, Any]]:
    answer = await service.http.get("/api/access/v1/audit", params={"action": action})
    found: list[dict[str, Any]] = answer.json()["records"]
    return found


async def expect_ended(service: Service, tokens: dict[str, Any]) -> None:
    """Nothing of a consent is good any more."""
    assert (await at_mcp(service, tokens["access_token"])).status_code == 401
    answer = await refreshed(service, tokens["refresh_token"])
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


async def test_a_code_is_exchanged_for_tokens_that_the_tools_take(service: Service) -> None:
    ada = await signed_in(service)
    answer = await exchanged(service, await code_for(ada))
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    found = answer.json()
    assert (found["token_type"], found["expires_in"]) == ("Bearer", 3600)
    assert found["scope"].split() == sorted(READING)
    called = await at_mcp(service, found["access_token"])
    assert called.status_code == 200
    assert called.json()["result"]["isError"] is False


async def test_no_table_holds_a_code_or_a_token(service: Service) -> None:
    ada = await signed_in(service)
    code = await code_for(ada)
    found = (await exchanged(service, code)).json()
    rows = await service.state.database.all("SELECT * FROM oauth_tokens")
    text = repr(rows) + repr(await service.state.database.all("SELECT * FROM oauth_consents"))
    assert len(rows) == 3
    for secret in (code, found["access_token"], found["refresh_token"]):
        assert secret not in text
        assert secret[4:20] not in text


@pytest.mark.spec("endpoint.oauth-ends-what-leaked")
async def test_a_code_that_comes_twice_ends_the_tokens_of_the_first(service: Service) -> None:
    ada = await signed_in(service)
    code = await code_for(ada)
    tokens = (await exchanged(service, code)).json()
    answer = await exchanged(service, code)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    await expect_ended(service, tokens)
    [record] = await records(service, "consent.revoke")
    assert record["actor"] == "user:default/ada"
    assert record["detail"] == {"client": CLIENT, "why": "The code was used already."}


@pytest.mark.both_databases
async def test_of_many_who_come_with_a_code_at_once_at_most_one_gets_tokens(
    service: Service,
) -> None:
    code = await code_for(await signed_in(service))
    answers = await asyncio.gather(*(exchanged(service, code) for _ in range(4)))
    given = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(given) == 1
    await expect_ended(service, given[0])


async def test_tokens_end_with_the_password_that_they_were_given_under(service: Service) -> None:
    await add_person(service, "ada")
    ada = browser(service)
    await ada.sign_in("ada")
    tokens, others = await tokens_for(service, ada), await tokens_for(service, await kim(service))
    code = await code_for(ada)
    new = "another long password"
    page = await ada.done(f"{ACCOUNT}/password", current=PASSWORD, password=new, again=new)
    assert "every client has to ask again" in page
    await expect_ended(service, tokens)
    assert (await exchanged(service, code)).json()["error"] == "invalid_grant"
    assert (await at_mcp(service, others["access_token"])).status_code == 200


async def test_tokens_end_where_a_person_is_signed_out_everywhere(service: Service) -> None:
    tokens = await tokens_for(service, await kim(service))
    ada = await signed_in(service)
    page = await ada.done("/administration/people/kim/sessions")
    assert "signed out everywhere" in page
    await expect_ended(service, tokens)


async def test_tokens_end_where_a_link_sets_a_password(service: Service) -> None:
    tokens = await tokens_for(service, await kim(service))
    await service.state.database.write(lambda tx: users.set_password(tx, "user:default/kim", "x"))
    await expect_ended(service, tokens)


async def test_tokens_that_are_made_up_are_refused_beside_a_write_that_takes_long(
    service: Service,
) -> None:
    begun, done = asyncio.Event(), threading.Event()
    loop, made_up = asyncio.get_running_loop(), "fbk_" + "a" * 46

    def slow(_: Transaction) -> None:
        loop.call_soon_threadsafe(begun.set)
        done.wait(60)

    write = asyncio.ensure_future(service.state.database.write(slow))
    await begun.wait()
    try:
        async with asyncio.timeout(30):
            for answer in (await exchanged(service, made_up), await refreshed(service, made_up)):
                assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
            answer = await sent(
                service, protocol.REVOKE_PATH, {"token": made_up, "client_id": CLIENT}
            )
            assert answer.status_code == 200
    finally:
        done.set()
        await write


async def kim(service: Service) -> Browser:
    """A browser of another person."""
    return await signed_in(service, "kim", "viewer")


async def test_a_code_is_good_for_a_minute(service: Service) -> None:
    code = await code_for(await signed_in(service))
    service.time.advance(MINUTE)
    assert (await exchanged(service, code)).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": OTHER},
        {"code_verifier": "another-verifier-" * 4},
        {"redirect_uri": f"{CALLBACK}/"},
        {"redirect_uri": "https://evil.example.com/callback"},
    ],
    ids=["client", "verifier", "slash", "host"],
)
async def test_a_code_with_anything_else_than_it_was_asked_with_counts_no_more(
    service: Service, changed: dict[str, str]
) -> None:
    code = await code_for(await signed_in(service))
    answer = await exchanged(service, code, **changed)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert (await exchanged(service, code)).json()["error"] == "invalid_grant"
    assert await records(service, "consent.revoke")


async def test_a_request_that_lacks_something_is_told_by_the_codes_of_oauth(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    cases: list[tuple[dict[str, str | None], str]] = [
        ({"code_verifier": None}, "invalid_grant"),
        ({"code_verifier": "short"}, "invalid_grant"),
        ({"code_verifier": "x" * 129}, "invalid_grant"),
        ({"client_id": None}, "invalid_client"),
        ({"client_id": "x" * 501}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": None}, "unsupported_grant_type"),
        ({"resource": "https://elsewhere.example.com/mcp"}, "invalid_target"),
        ({"resource": "http://127.0.0.1:8000/api/catalog"}, "invalid_target"),
        ({"resource": "x" * 3000}, "invalid_target"),
        ({"code": ""}, "invalid_grant"),
        ({"code": "fbk_" + "é" * 46}, "invalid_grant"),
        ({"code": "x" * 10_000}, "invalid_grant"),
    ]
    for changed, error in cases:
        with subtests.test(changed=changed):
            code = await code_for(visitor)
            answer = await exchanged(service, **{"code": code, **changed})  # type: ignore[arg-type]
            assert (answer.status_code, answer.json()["error"]) == (400, error)
            assert answer.headers["cache-control"] == "no-store"


async def test_a_parameter_that_is_there_twice_is_refused(service: Service) -> None:
    async with service.client(None) as http:
        answer = await http.post(
            protocol.TOKEN_PATH,
            content=b"grant_type=authorization_code&client_id=a&client_id=b",
            headers={"content-type": "application/x-www-form-urlencoded"},
        )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_a_form_that_cannot_be_read_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    for body in [b"\xff", b"a=%FF", b"&".join([b"a%d=1" % n for n in range(99)])]:
        with subtests.test(body=body):
            async with service.client(None) as http:
                answer = await http.post(
                    protocol.TOKEN_PATH,
                    content=body,
                    headers={"content-type": "application/x-www-form-urlencoded"},
                )
                assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
                answer = await http.post(protocol.TOKEN_PATH, json={"grant_type": "refresh_token"})
                assert (answer.status_code, answer.json()["error"]) == (415, "invalid_request")
                large = {"grant_type": "x" * 20_000}
                answer = await http.post(protocol.TOKEN_PATH, data=large)
                assert (answer.status_code, answer.json()["error"]) == (413, "invalid_request")


async def test_an_access_token_is_good_for_an_hour_and_a_refresh_token_gets_the_next(
    service: Service,
) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    service.time.advance(HOUR)
    answer = await at_mcp(service, tokens["access_token"])
    assert answer.status_code == 401
    assert "expired" in answer.json()["error_description"]
    renewed = (await refreshed(service, tokens["refresh_token"])).json()
    assert renewed["refresh_token"] != tokens["refresh_token"]
    assert (await at_mcp(service, renewed["access_token"])).status_code == 200


@pytest.mark.spec("endpoint.oauth-ends-what-leaked")
async def test_a_refresh_token_that_comes_twice_ends_all_tokens_of_its_consent(
    service: Service,
) -> None:
    ada = await signed_in(service)
    tokens, untouched = await tokens_for(service, ada), await tokens_for(service, ada)
    renewed = (await refreshed(service, tokens["refresh_token"])).json()
    answer = await refreshed(service, tokens["refresh_token"])
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    await expect_ended(service, renewed)
    [record] = await records(service, "consent.revoke")
    assert record["detail"]["why"] == "The refresh token was used already."
    assert (await at_mcp(service, untouched["access_token"])).status_code == 200


@pytest.mark.both_databases
async def test_of_many_who_refresh_at_once_at_most_one_gets_tokens_and_they_end(
    service: Service,
) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    sent_ = (refreshed(service, tokens["refresh_token"]) for _ in range(4))
    given = [answer.json() for answer in await asyncio.gather(*sent_) if answer.status_code == 200]
    assert len(given) == 1
    await expect_ended(service, given[0])


@pytest.mark.slow
@pytest.mark.both_databases
async def test_a_client_that_renews_without_pause_keeps_its_newest_hundred_access_tokens(
    service: Service,
) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    first = [tokens["access_token"]]
    for _ in range(100):
        service.time.advance(SECOND)
        tokens = (await refreshed(service, tokens["refresh_token"])).json()
        first.append(tokens["access_token"])
    statuses = [(await at_mcp(service, first[number])).status_code for number in (0, 1, 100)]
    assert statuses == [401, 200, 200]


async def test_a_refresh_token_of_another_client_ends_its_consent(service: Service) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    answer = await refreshed(service, tokens["refresh_token"], client_id=OTHER)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    await expect_ended(service, tokens)


async def test_a_refresh_token_ends_after_thirty_days_without_use(service: Service) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    service.time.advance(29 * DAY)
    tokens = (await refreshed(service, tokens["refresh_token"])).json()
    service.time.advance(30 * DAY)
    assert (await refreshed(service, tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_refresh_token_gives_less_when_asked_and_never_more(service: Service) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    answer = await refreshed(service, tokens["refresh_token"], scope="tech-insights.check.write")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")
    for asked, given in (
        ("audit.read", sorted(READING)),
        (f"{CATALOG_READ} tech-insights.check.write", [CATALOG_READ]),
    ):
        tokens = (await refreshed(service, tokens["refresh_token"], scope=asked)).json()
        assert tokens["scope"].split() == given
    less = (await refreshed(service, tokens["refresh_token"], scope=CATALOG_READ)).json()
    assert less["scope"] == CATALOG_READ
    assert (await at_mcp(service, less["access_token"])).status_code == 403
    whole = (await refreshed(service, less["refresh_token"])).json()
    assert whole["scope"].split() == sorted(READING)


async def test_the_use_of_each_client_is_shown_to_the_person(service: Service) -> None:
    ada = await signed_in(service)
    used, _ = await tokens_for(service, ada), await tokens_for(service, ada)
    size = 0
    for _ in range(2):
        answer = await at_mcp(service, used["access_token"])
        size += len(answer.json()["result"]["content"][0]["text"])
    shown = words((await ada.open(ACCOUNT)).text)
    assert f"2 calls, about {size // 4:,} model tokens" in shown
    assert "0 calls" in shown


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_a_client_revokes_its_tokens(service: Service, kind: str) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    answer = await sent(service, protocol.REVOKE_PATH, {"token": tokens[kind], "client_id": CLIENT})
    assert answer.status_code == 200
    assert (await at_mcp(service, tokens["access_token"])).status_code == 401
    refreshed_ = await refreshed(service, tokens["refresh_token"])
    assert refreshed_.status_code == (200 if kind == "access_token" else 400)


async def test_a_client_learns_nothing_of_tokens_that_it_has_not_and_ends_none(
    service: Service,
) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    for token, client in ((tokens["refresh_token"], OTHER), ("nothing", CLIENT)):
        answer = await sent(service, protocol.REVOKE_PATH, {"token": token, "client_id": client})
        assert (answer.status_code, answer.json()) == (200, {})
    assert (await at_mcp(service, tokens["access_token"])).status_code == 200


async def connected(service: Service, name: str = "vic") -> tuple[Browser, dict[str, Any]]:
    visitor = await signed_in(service, name)
    scope = "catalog.entity.read tech-insights.data-source.read tech-insights.check.write"
    return visitor, await tokens_for(service, visitor, scope=scope)


async def test_a_person_who_is_disabled_has_no_tokens_and_gets_none_back(service: Service) -> None:
    await signed_in(service, "ada")
    _, tokens = await connected(service)
    ref, now = "user:default/vic", service.time()
    await service.state.database.write(lambda tx: users.disable_user(tx, ref, now))
    await expect_ended(service, tokens)
    await service.state.database.write(lambda tx: users.enable_user(tx, ref))
    await expect_ended(service, tokens)


async def test_a_person_with_another_role_lends_no_more_than_that_role(service: Service) -> None:
    await signed_in(service, "ada")
    _, tokens = await connected(service)
    ref, now = "user:default/vic", service.time()
    await service.state.database.write(lambda tx: users.change_user_role(tx, ref, "viewer", now))
    assert (await at_mcp(service, tokens["access_token"])).status_code == 200
    renewed = (await refreshed(service, tokens["refresh_token"])).json()
    assert renewed["scope"].split() == sorted(READING)
    # What was lost does not come back with the role.
    await service.state.database.write(
        lambda tx: users.change_user_role(tx, ref, "administrator", now)
    )
    renewed = (await refreshed(service, renewed["refresh_token"])).json()
    assert renewed["scope"].split() == sorted(READING)


async def test_a_code_of_a_person_who_was_disabled_meanwhile_is_refused(service: Service) -> None:
    await signed_in(service, "ada")
    code = await code_for(await signed_in(service, "vic"))
    now = service.time()
    await service.state.database.write(lambda tx: users.disable_user(tx, "user:default/vic", now))
    assert (await exchanged(service, code)).json()["error"] == "invalid_grant"


async def test_a_person_sees_who_acts_for_them_and_ends_it(service: Service) -> None:
    ada, bob = await signed_in(service), await signed_in(service, "bob")
    tokens = await tokens_for(service, ada)
    assert (await at_mcp(service, tokens["access_token"])).status_code == 200
    assert "Clients that act for you" not in await bob.text(ACCOUNT)
    page = await ada.text(ACCOUNT)
    assert "agent.example.com" in page
    id_ = page.partition('name="consent" value="')[2].partition('"')[0]
    assert (await bob.send(f"{ACCOUNT}/consents", consent=id_)).status_code == 404
    assert (await at_mcp(service, tokens["access_token"])).status_code == 200
    page = await ada.done(f"{ACCOUNT}/consents", consent=id_)
    assert "Agent no longer has access." in page
    await expect_ended(service, tokens)
    [given] = await records(service, "consent.give")
    assert given["detail"] == {
        "client": CLIENT,
        "name": "Agent",
        "host": "agent.example.com",
        "permissions": sorted(READING),
    }


async def test_too_many_failures_of_an_address_have_to_wait_and_good_tokens_have_not(
    start: StartService,
) -> None:
    service = await start(fetch_document=Documents(), failed_logins=3)
    tokens = await tokens_for(service, await signed_in(service))
    statuses = [(await refreshed(service, "fbk_" + "a" * 46)).status_code for _ in range(5)]
    assert statuses[-1] == 429
    assert (await refreshed(service, tokens["refresh_token"])).status_code == 200


async def test_a_token_of_oauth_is_in_no_log_and_no_audit(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    ada = await signed_in(service)
    code = await code_for(ada)
    tokens = (await exchanged(service, code)).json()
    await exchanged(service, code)
    async with service.client(None) as http:
        await http.get("/api/catalog/entities", params={"token": tokens["access_token"]})
    audit = (await service.http.get("/api/access/v1/audit")).text
    written = audit + "".join(capsys.readouterr())
    for secret in (code, tokens["access_token"], tokens["refresh_token"], VERIFIER):
        assert secret not in written


def test_scopes_are_the_names_of_permissions() -> None:
    assert {CATALOG_READ, SOURCE_READ} == set(READING)
    assert RESOURCE.endswith(protocol.RESOURCE_PATH)
