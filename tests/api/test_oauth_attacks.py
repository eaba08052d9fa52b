"""Attacks on OAuth with a client of one's own, or a program on the person's machine."""

from typing import Any

import httpx2
import pytest

from factbook.auth.oauth import protocol
from factbook.auth.oauth.clients import OAuthOptions
from factbook.errors import ConfigurationError
from tests.api.authorizing import (
    CALLBACK,
    CLIENT,
    TOOL,
    VERIFIER,
    Documents,
    at_mcp,
    challenge,
    code_for,
    decided,
    exchanged,
    led_to,
    link_back,
    refreshed,
    sent,
    tokens_for,
    told,
    wish,
)
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import signed_in, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
CURSOR = "cursor://anysphere.cursor-mcp/oauth/callback"
DEEP = "https://claude.ai.evil.example/client.json"
# What browsers would run, or an operating system opens.
HARMFUL = (
    *("javascript:alert(1)", "JAVASCRIPT:alert(1)", "jAvAsCrIpT://x/%0aalert(1)"),
    *("java\tscript:alert(1)", "java\nscript:alert(1)", "java\r\nscript://x/", " javascript://x/"),
    *("\x01javascript://x/", "javascript\t://x/", "javascript:/x", "javascript:///x"),
    *("javascript&colon;alert(1)", "javascript%3aalert(1)", "view-source:javascript://x/"),
    *("data:text/html,x", "DATA://text/html,x", "vbscript://x/", "file:///etc/passwd"),
    *("blob:https://a.example/1", "filesystem://a.example/x", "intent://a.example/#Intent"),
    *("ms-msdt://id", "search-ms://query", "smb://a.example/x", "ssh://a.example/x"),
)


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(oauth={"registration": True}, fetch_document=Documents())


async def registered(service: Service, **client: Any) -> str:
    """The id of a client that registered itself."""
    answer = await registration(service, **client)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["client_id"])


async def registration(service: Service, **client: Any) -> httpx2.Response:
    async with service.client(None) as http:
        return await http.post(protocol.REGISTER_PATH, json=client)


# Codes and tokens


@pytest.mark.both_databases
async def test_two_clients_of_one_private_use_address_have_no_use_of_each_others_codes(
    service: Service,
) -> None:
    ada = await signed_in(service)
    cursor, squatter = [await registered(service, redirect_uris=[CURSOR]) for _ in range(2)]
    at = {"redirect_uri": CURSOR}
    tokens = await tokens_for(service, ada, client_id=cursor, **at)
    for stolen in (
        {"client_id": squatter},
        {"client_id": squatter, "code_verifier": "squatter-" * 6},
        {"client_id": cursor, "code_verifier": "squatter-" * 6},
        {"client_id": cursor, "code_verifier": challenge()},
        {"client_id": CLIENT},
    ):
        code = await code_for(ada, client_id=cursor, **at)
        answer = await exchanged(service, code, **(at | stolen))
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
        # The code counts no more for anybody.
        answer = await exchanged(service, code, client_id=cursor, **at)
        assert answer.json()["error"] == "invalid_grant"
    assert (await at_mcp(service, tokens["access_token"])).status_code == 200


async def test_no_kind_of_token_stands_for_another(service: Service) -> None:
    ada = await signed_in(service)
    tokens = await tokens_for(service, ada)
    code = await code_for(ada)
    for value in (code, tokens["access_token"]):
        assert (await refreshed(service, value)).json()["error"] == "invalid_grant"
    for value in (tokens["refresh_token"], tokens["access_token"]):
        assert (await exchanged(service, value)).json()["error"] == "invalid_grant"
    for value in (code, tokens["refresh_token"]):
        assert (await at_mcp(service, value)).status_code == 401
    assert (await exchanged(service, code)).status_code == 200


async def test_no_request_without_proof_of_possession_gets_a_code(service: Service) -> None:
    ada = await signed_in(service)
    await ada.open(protocol.AUTHORIZE_PATH, **wish())
    for changed in (
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge": VERIFIER, "code_challenge_method": "plain"},
        {"code_challenge_method": "s256"},
        {"code_challenge_method": None},
    ):
        answer = await ada.send(protocol.AUTHORIZE_PATH, **wish(**changed), decision="allow")
        assert answer.status_code == 400
        assert "refresh" not in answer.headers


@ON_SQLITE
async def test_a_token_outside_the_header_is_none(service: Service) -> None:
    token = (await tokens_for(service, await signed_in(service)))["access_token"]
    async with service.client(None) as http:
        for query, headers in (
            (f"?access_token={token}", {}),
            (f"?token={token}", {}),
            ("", {"cookie": f"access_token={token}"}),
            ("", {"x-access-token": token}),
        ):
            answer = await http.post(f"{protocol.RESOURCE_PATH}{query}", json=TOOL, headers=headers)
            assert answer.status_code == 401
            assert token not in answer.text
        answer = await http.post(protocol.RESOURCE_PATH, data={"access_token": token})
        assert answer.status_code == 401


# Addresses of answers


@ON_SQLITE
async def test_no_address_that_runs_or_opens_something_is_accepted(
    service: Service, start: StartService, subtests: pytest.Subtests
) -> None:
    documents = Documents()
    other = await start(fetch_document=documents, failed_logins=100)
    ada = await signed_in(other)
    for at, uri in enumerate(HARMFUL):
        with subtests.test(uri=uri):
            async with service.client(None, address=f"198.51.100.{at}") as http:
                answer = await http.post(
                    protocol.REGISTER_PATH, json={"redirect_uris": [CALLBACK, uri]}
                )
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
            with pytest.raises(ConfigurationError):
                OAuthOptions(clients={"desk": [CALLBACK, uri]})
            id_ = f"https://agent.example.com/{at}.json"
            documents.put(id_, redirect_uris=[CALLBACK, uri])
            page = await ada.open(protocol.AUTHORIZE_PATH, **wish(client_id=id_, redirect_uri=uri))
            assert page.status_code == 400
            assert link_back(page.text) == ""


async def test_no_other_spelling_of_a_private_use_address_is_answered(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    named = [CURSOR, "http://localhost:8787/callback", "com.example.app:/cb"]
    id_ = await registered(service, redirect_uris=named)
    for uri in (
        f"{CURSOR}/",
        f"{CURSOR}?a=1",
        f"{CURSOR}#a",
        f"{CURSOR}/../other",
        f"x{CURSOR}",
        CURSOR.upper(),
        CURSOR.replace("cursor:", "Cursor:"),
        CURSOR.replace("anysphere", "Anysphere"),
        CURSOR.replace("//", "//me@"),
        CURSOR.replace("-mcp/", "-mcp:80/"),
        CURSOR.replace("//", "/"),
        CURSOR.replace("/oauth/", "/%6fauth/"),
        CURSOR.replace("/oauth/", "/./oauth/"),
        "cursor://evil.example/oauth/callback",
        "vscode://anysphere.cursor-mcp/oauth/callback",
        "http://anysphere.cursor-mcp/oauth/callback",
        "https://localhost:8787/callback",
        "http://localhost.evil.example:8787/callback",
        "http://localhost:8787@evil.example/callback",
        "http://127.0.0.1:8787/callback",
        "com.example.app://cb",
        "com.example.app:/cb/",
        "com.example.application:/cb",
    ):
        with subtests.test(uri=uri):
            asked = wish(client_id=id_, redirect_uri=uri)
            for answer in (
                await ada.open(protocol.AUTHORIZE_PATH, **asked),
                await ada.send(protocol.AUTHORIZE_PATH, **asked, decision="allow"),
            ):
                assert answer.status_code == 400
                assert not {"location", "refresh"} & set(answer.headers)
                assert link_back(answer.text) == ""


@ON_SQLITE
async def test_mistakes_return_to_the_private_use_address_of_a_trusted_client_alone(
    start: StartService,
) -> None:
    service = await start(oauth={"clients": {"desk": [CURSOR]}, "registration": True})
    ada = await signed_in(service)
    wrong = wish(client_id="desk", redirect_uri=CURSOR, response_type="token")
    answer = await ada.open(protocol.AUTHORIZE_PATH, **wrong)
    assert answer.headers["location"].startswith(f"{CURSOR}?error=unsupported_response_type&")
    other = wrong | {"redirect_uri": "cursor://evil.example/"}
    answer = await ada.open(protocol.AUTHORIZE_PATH, **other)
    assert (answer.status_code, "location" in answer.headers) == (400, False)
    # Anybody can register, so nothing opens before a click.
    anybody = wrong | {"client_id": await registered(service, redirect_uris=[CURSOR])}
    answer = await ada.open(protocol.AUTHORIZE_PATH, **anybody)
    assert (answer.status_code, "location" in answer.headers) == (400, False)
    assert "refresh" not in answer.headers


# Clients that pretend


@ON_SQLITE
async def test_a_look_alike_is_told_from_what_it_looks_like_by_its_hosts(
    start: StartService,
) -> None:
    documents = Documents(DEEP)
    documents.put(
        DEEP, client_name="Claude", redirect_uris=["https://xn--clude-3ve.example/callback"]
    )
    service = await start(oauth={"registration": True}, fetch_document=documents)
    ada = await signed_in(service)
    asked = wish(client_id=DEEP, redirect_uri="https://xn--clude-3ve.example/callback")
    page = words((await ada.open(protocol.AUTHORIZE_PATH, **asked)).text)
    assert "Vouched for by claude.ai.evil.example" in page
    assert "The answer goes to another host" in page
    assert "Answer goes to xn--clude-3ve.example" in page
    name = "Claude\u200b \u202e(vouched for by\nclaude.ai)\u0000 Vouched for by an administrator"
    id_ = await registered(service, client_name=name, redirect_uris=["https://evil.example/cb"])
    asked = wish(client_id=id_, redirect_uri="https://evil.example/cb")
    html = (await ada.open(protocol.AUTHORIZE_PATH, **asked)).text
    assert "<dt>Vouched for by</dt>" not in html
    page = words(html)
    assert "Nobody has checked who this is." in page
    assert "Answer goes to evil.example" in page
    assert not {"\u200b", "\u202e", "\u0000"} & set(page)


@ON_SQLITE
async def test_a_host_that_only_begins_or_ends_like_a_listed_one_vouches_for_nobody(
    start: StartService, subtests: pytest.Subtests
) -> None:
    documents = Documents()
    service = await start(fetch_document=documents, oauth={"client_hosts": ["claude.ai"]})
    ada = await signed_in(service)
    for id_ in (
        "https://claude.ai.evil.example/client.json",
        "https://evil-claude.ai/client.json",
        "https://claude.ai:8443/client.json",
        "https://claude.ai@evil.example/client.json",
        "https://claude.ai\\@evil.example/client.json",
        "https://evil.example/https://claude.ai/client.json",
        "HTTPS://claude.ai/client.json",
        "http://claude.ai/client.json",
    ):
        with subtests.test(id_=id_):
            answer = await ada.open(protocol.AUTHORIZE_PATH, **wish(client_id=id_))
            assert (answer.status_code, "location" in answer.headers) == (400, False)
    assert not documents.asked


async def test_a_registration_takes_no_other_clients_place(service: Service) -> None:
    first = await registered(service, redirect_uris=[CURSOR], client_name="Cursor")
    for id_ in (first, CLIENT):
        mine = await registered(service, redirect_uris=[CALLBACK], client_id=id_)
        assert mine not in {first, CLIENT}
    ada = await signed_in(service)
    answer = await ada.open(protocol.AUTHORIZE_PATH, **wish(client_id=first))
    assert answer.status_code == 400


@pytest.mark.both_databases
async def test_an_id_that_no_database_can_hold_is_not_known(service: Service) -> None:
    ada = await signed_in(service)
    for id_ in ("\0", "a\0b", "\ufffe", "' OR 1=1 --", "é" * 400):
        answer = await ada.open(protocol.AUTHORIZE_PATH, **wish(client_id=id_))
        assert answer.status_code == 400
        form = {"grant_type": "refresh_token", "refresh_token": "fbk_\0", "client_id": id_}
        assert (await sent(service, protocol.TOKEN_PATH, form)).status_code == 400
        form = {"token": "fbk_\0", "client_id": id_}
        assert (await sent(service, protocol.REVOKE_PATH, form)).status_code == 200


@ON_SQLITE
async def test_an_address_that_a_document_names_no_more_gets_no_code(start: StartService) -> None:
    documents = Documents()
    service = await start(fetch_document=documents)
    ada = await signed_in(service)
    assert told(led_to(await decided(ada)))["code"]
    documents.put(redirect_uris=["https://agent.example.com/new"])
    service.time.advance(3_600_000)
    answer = await ada.send(protocol.AUTHORIZE_PATH, **wish(), decision="allow")
    assert (answer.status_code, "refresh" in answer.headers) == (400, False)


@ON_SQLITE
async def test_a_batch_gives_a_client_no_more_than_its_calls_alone(service: Service) -> None:
    tokens = await tokens_for(service, await signed_in(service), scope="catalog.entity.read")
    answer = await at_mcp(service, tokens["access_token"], message=[TOOL, TOOL])
    for each in answer.json():
        assert "result" not in each
        assert "tech-insights.data-source.read" in each["error"]["message"]
    assert (await at_mcp(service, tokens["refresh_token"], message=[TOOL, TOOL])).status_code == 401
