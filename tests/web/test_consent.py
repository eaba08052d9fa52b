"""The page on which a person lets a client of OAuth use the tools."""

from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from factbook.auth.oauth import protocol
from tests.api.authorizing import (
    CALLBACK,
    CLIENT,
    ISSUER,
    RESOURCE,
    Documents,
    decided,
    exchanged,
    led_to,
    link_back,
    tokens_for,
    told,
    wish,
)
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import Browser, browser, signed_in, with_password, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
PATH = protocol.AUTHORIZE_PATH
LOOPBACK = "http://127.0.0.1/callback"
LOCAL = "https://local.example.com/client.json"


@pytest.fixture
def documents() -> Documents:
    found = Documents()
    found.put(LOCAL, redirect_uris=[LOOPBACK, "http://localhost/callback"], client_name="Local")
    return found


@pytest.fixture
async def service(start: StartService, documents: Documents) -> Service:
    return await start(fetch_document=documents)


async def question(visitor: Browser, **changed: str | None) -> str:
    """The page that asks for consent."""
    answer = await visitor.open(PATH, **wish(**changed))
    assert answer.status_code == 200, answer.text
    return answer.text


async def problem(visitor: Browser, **changed: str | None) -> str:
    """The page for a request that cannot be granted, which leads nowhere by itself."""
    answer = await visitor.open(PATH, **wish(**changed))
    assert answer.status_code == 400, answer.text
    assert "location" not in answer.headers
    assert "refresh" not in answer.headers
    return answer.text


async def test_a_person_is_told_who_wants_what_and_where_the_answer_goes(service: Service) -> None:
    ada = await signed_in(service)
    page = words(await question(ada))
    assert "Let Agent use Factbook?" in page
    assert RESOURCE in page
    assert "Vouched for by agent.example.com" in page
    assert "Answer goes to agent.example.com" in page
    assert "You are Ada user:default/ada" in page
    assert "Read every entity of the catalog catalog.entity.read" in page
    assert "role does not allow" not in page


async def test_the_client_is_told_the_code_its_state_and_the_issuer(service: Service) -> None:
    answer = await decided(await signed_in(service))
    address = led_to(answer)
    assert address.startswith(f"{CALLBACK}?")
    found = told(address)
    assert (found["state"], found["iss"]) == ("a state & more", ISSUER)
    assert f'href="{CALLBACK}?' in unescape(answer.text)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


async def test_who_does_not_allow_it_leads_back_without_a_code(service: Service) -> None:
    ada = await signed_in(service)
    for decision in ("deny", "", "Allow"):
        answer = await decided(ada, decision)
        assert answer.status_code == 200
        found = told(led_to(answer))
        assert found == {"error": "access_denied", "state": "a state & more", "iss": ISSUER}
    rows = await service.state.database.all("SELECT * FROM oauth_consents")
    assert rows == []


async def test_who_is_not_signed_in_does_so_first_and_comes_back(service: Service) -> None:
    await with_password(service)
    visitor = browser(service)
    asked = await visitor.open(PATH, **wish())
    assert asked.status_code == 303
    where = asked.headers["location"]
    assert where.startswith("/sign-in?next=%2Foauth%2Fauthorize")
    await visitor.open(where)
    page = await visitor.open(where)
    back = unescape(page.text.partition('name="next" value="')[2].partition('"')[0])
    answer = await visitor.sign_in("ada", next=back)
    assert answer.headers["location"] == back
    assert "Let Agent use Factbook?" in await visitor.text(back)


@ON_SQLITE
async def test_nobody_is_asked_for_a_document_before_somebody_signed_in(
    service: Service, documents: Documents
) -> None:
    await browser(service).open(PATH, **wish())
    assert not documents.asked


async def test_a_person_gives_no_more_than_the_role_allows(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    scope = "catalog.entity.read tech-insights.check.write"
    page = words(await question(vic, scope=scope))
    given, _, lacking = page.partition("your role does not allow")
    assert "catalog.entity.read" in given
    assert "tech-insights.check.write" in lacking
    tokens = await tokens_for(service, vic, scope=scope)
    assert tokens["scope"] == "catalog.entity.read"


async def test_where_the_role_allows_nothing_nothing_can_be_allowed(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    changed = {"scope": "tech-insights.check.write"}
    page = await question(vic, **changed)
    assert 'value="allow"' not in page
    answer = await vic.send(PATH, **wish(**changed), decision="allow")
    assert answer.status_code == 403


async def test_scopes_that_are_not_known_are_left_out(service: Service) -> None:
    ada = await signed_in(service)
    tokens = await tokens_for(
        service, ada, scope="openid offline_access catalog.entity.read access.token.manage"
    )
    assert tokens["scope"] == "catalog.entity.read"
    for scope in ("openid profile", "claudeai", "", None):
        page = words(await question(ada, scope=scope))
        assert "check.write" not in page
        assert len((await tokens_for(service, ada, scope=scope))["scope"].split()) == 2


# Forms and frames of others


@ON_SQLITE
async def test_a_form_of_another_site_gives_nothing(service: Service) -> None:
    ada, eve = await signed_in(service), await signed_in(service, "eve")
    await eve.open(PATH, **wish())
    for csrf in ("", "0" * 128, eve.csrf):
        answer = await ada.send(PATH, csrf=csrf, **wish(), decision="allow")
        assert answer.status_code == 403
        assert "refresh" not in answer.headers
    ada.http.headers["origin"] = "https://evil.example.com"
    assert (await ada.send(PATH, **wish(), decision="allow")).status_code == 403
    assert await service.state.database.all("SELECT * FROM oauth_consents") == []


@ON_SQLITE
async def test_no_other_site_shows_the_question_in_a_frame(service: Service) -> None:
    ada = await signed_in(service)
    for answer in (await ada.open(PATH, **wish()), await decided(ada)):
        assert answer.headers["x-frame-options"] == "DENY"
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self';" in policy


# Addresses of answers


@ON_SQLITE
async def test_only_an_address_that_the_client_has_named_is_answered(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    cases: list[str | None] = [
        "https://evil.example.com/callback",
        f"{CALLBACK}/",
        f"{CALLBACK}?a=1",
        f"{CALLBACK}#a",
        CALLBACK.upper(),
        "https://agent.example.com:8443/callback",
        "https://agent.example.com@evil.example.com/callback",
        "https://agent.example.com/callback/../other",
        "https://agent.example.com\\@evil.example.com/callback",
        "http://agent.example.com/callback",
        "javascript:alert(1)",
        "//agent.example.com/callback",
        "/callback",
        "",
        None,
        "https://agent.example.com/callback\r\nx: y",
        "x" * 2000,
    ]
    for address in cases:
        with subtests.test(address=address):
            page = await problem(ada, redirect_uri=address)
            assert "not one that the client has named" in page
            assert link_back(page) == ""
            fields = wish(redirect_uri=address)
            answer = await ada.send(PATH, **fields, decision="allow")
            assert answer.status_code == 400
            assert "refresh" not in answer.headers


@ON_SQLITE
async def test_a_program_on_the_own_machine_is_answered_at_any_port(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    for address, fits in [
        ("http://127.0.0.1:49152/callback", True),
        ("http://127.0.0.1/callback", True),
        ("http://localhost:8123/callback", True),
        ("http://127.0.0.1:49152/callback/", False),
        ("http://127.0.0.1:49152/other", False),
        ("http://127.0.0.1:49152/callback?a=1", False),
        ("http://[::1]:49152/callback", False),
        ("https://127.0.0.1:49152/callback", False),
        ("http://127.0.0.1.evil.example.com/callback", False),
        ("http://127.0.0.1:99999/callback", False),
        ("http://127.0.0.1:80@evil.example.com/callback", False),
    ]:
        with subtests.test(address=address):
            answer = await ada.open(PATH, **wish(client_id=LOCAL, redirect_uri=address))
            assert answer.status_code == (200 if fits else 400)
            assert ("goes to a program on this computer" in answer.text) is fits


@ON_SQLITE
async def test_a_mistake_of_the_client_leads_to_it_only_when_somebody_wants_to(
    service: Service,
) -> None:
    ada = await signed_in(service)
    page = await problem(ada, response_type="token")
    back = link_back(page)
    assert back.startswith(f"{CALLBACK}?")
    found = told(back)
    assert (found["error"], found["state"]) == ("unsupported_response_type", "a state & more")
    assert found["iss"] == ISSUER


@ON_SQLITE
@pytest.mark.parametrize(
    ("oauth", "client"),
    [
        ({"clients": {"our-agent": [CALLBACK]}}, "our-agent"),
        ({"client_hosts": ["agent.example.com"]}, CLIENT),
    ],
)
async def test_a_client_that_the_settings_trust_gets_its_mistakes_at_once(
    start: StartService, documents: Documents, oauth: dict[str, Any], client: str
) -> None:
    service = await start(fetch_document=documents, oauth=oauth)
    ada = await signed_in(service)
    changed = {"client_id": client, "response_type": "token"}
    answer = await ada.open(PATH, **wish(**changed))
    assert answer.status_code == 303
    back = answer.headers["location"]
    assert back.startswith(f"{CALLBACK}?")
    assert told(back) == {
        "error": "unsupported_response_type",
        "error_description": "response_type has to be code.",
        "state": "a state & more",
        "iss": ISSUER,
    }
    await ada.open(PATH, **wish(client_id=client))
    answer = await ada.send(PATH, **wish(**changed), decision="allow")
    assert answer.headers["refresh"] == f"0; url={back}"
    # Where the address isn't the client's own, nothing leads there.
    answer = await ada.open(PATH, **wish(**changed, redirect_uri="https://evil.example.com/"))
    assert answer.status_code == 400
    assert "evil.example.com" not in answer.text


# What the request has to hold


@ON_SQLITE
async def test_a_request_without_what_protects_it_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    cases: list[tuple[dict[str, str | None], str]] = [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "x" * 44}, "invalid_request"),
        ({"code_challenge": "é" * 43}, "invalid_request"),
        ({"resource": "https://elsewhere.example.com/mcp"}, "invalid_target"),
        ({"resource": "http://127.0.0.1:8000/"}, "invalid_target"),
        ({"resource": f"{RESOURCE}#a"}, "invalid_target"),
        ({"resource": f"{RESOURCE}/../api"}, "invalid_target"),
        ({"resource": "http://[bad/mcp"}, "invalid_target"),
        ({"scope": "x" * 1001}, "invalid_scope"),
    ]
    for changed, error in cases:
        with subtests.test(changed=changed):
            page = await problem(ada, **changed)
            assert told(link_back(page))["error"] == error


@ON_SQLITE
async def test_odd_and_long_parameters_are_refused_in_words(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    for text in ["x" * 4000, "\0", "é" * 900, "'\"<script>alert(1)"]:
        with subtests.test(text=text):
            for name in wish():
                answer = await ada.open(PATH, **wish(**{name: text}))
                assert answer.status_code in {200, 400}, name
                assert "<script>alert" not in answer.text


@ON_SQLITE
async def test_a_parameter_that_is_there_twice_is_refused(service: Service) -> None:
    ada = await signed_in(service)
    query = urlencode([*wish().items(), ("redirect_uri", "https://evil.example.com/")])
    answer = await ada.open(f"{PATH}?{query}")
    assert answer.status_code == 400
    assert "only once" in answer.text


# Clients


@ON_SQLITE
async def test_a_client_of_the_settings_needs_no_document(
    start: StartService, documents: Documents
) -> None:
    clients = {"desk": [CALLBACK]}
    service = await start(fetch_document=documents, oauth={"clients": clients})
    ada = await signed_in(service)
    assert "Vouched for by an administrator" in words(await question(ada, client_id="desk"))
    code = told(led_to(await decided(ada, client_id="desk")))["code"]
    assert (await exchanged(service, code, client_id="desk")).status_code == 200
    assert not documents.asked


@ON_SQLITE
async def test_a_client_that_nobody_knows_is_not_let_in(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    cases: list[str | None] = ["unknown", "", None, "x" * 600]
    for client in cases:
        with subtests.test(client=client):
            page = await problem(ada, client_id=client)
            assert "This client cannot be given access" in page
            assert link_back(page) == ""


@ON_SQLITE
async def test_the_settings_name_the_hosts_of_clients(
    start: StartService, documents: Documents
) -> None:
    service = await start(fetch_document=documents, oauth={"client_hosts": ["local.example.com"]})
    ada = await signed_in(service)
    assert "client_hosts" in await problem(ada)
    assert not documents.asked
    local = wish(client_id=LOCAL, redirect_uri=LOOPBACK)
    assert (await ada.open(PATH, **local)).status_code == 200


@ON_SQLITE
async def test_an_answer_to_another_host_than_that_of_the_document_is_pointed_out(
    service: Service, documents: Documents
) -> None:
    elsewhere = "https://elsewhere.example.com/callback"
    documents.put(redirect_uris=[elsewhere])
    ada = await signed_in(service)
    page = words(await question(ada, redirect_uri=elsewhere))
    assert "The answer goes to another host" in page


@ON_SQLITE
async def test_the_name_of_a_client_is_a_short_text_and_nothing_else(
    service: Service, documents: Documents
) -> None:
    documents.put(client_name="<img src=x onerror=alert(1)>\u202e\u200b\nFactbook " + "x" * 500)
    page = await question(await signed_in(service))
    assert "<img src=x" not in page
    assert "\u202e" not in page
    assert "x" * 101 not in page


@ON_SQLITE
@pytest.mark.parametrize("oauth", [{"enabled": False}, {"issuer": "https://id.example.com"}])
async def test_without_an_authorization_server_of_its_own_nobody_is_asked(
    start: StartService, oauth: dict[str, object]
) -> None:
    service = await start(fetch_document=Documents(), oauth=oauth)
    ada = await signed_in(service)
    assert (await ada.open(PATH, **wish())).status_code == 404
    assert (await ada.send(PATH, **wish(), decision="allow")).status_code == 404
    assert CLIENT not in (await ada.open("/administration/account")).text
