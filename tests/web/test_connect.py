"""Connecting an agent: the endpoint, each client's configuration, and the live check."""

import json
import re
from html import unescape

import pytest

from factbook.auth import permissions
from factbook.http.client_configs import AGENTS
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import Browser, browser, signed_in, words

ADDRESS = "http://127.0.0.1:8000/mcp"


def codes(page: str) -> list[str]:
    """The texts to copy."""
    return [unescape(text) for text in re.findall(r"<pre[^>]*><code>(.*?)</code>", page, re.S)]


async def checked(visitor: Browser, client: str = "") -> str:
    """The page after the check."""
    await visitor.text("/connect")
    answer = await visitor.send(f"/connect/check?client={client}" if client else "/connect/check")
    assert answer.status_code == 200, answer.text
    return answer.text


async def tokens(service: Service) -> list[tuple[object, ...]]:
    return await service.state.database.all("SELECT name, owner FROM tokens ORDER BY name")


async def test_the_page_shows_the_address_the_permissions_and_where_tokens_are_made(
    service: Service,
) -> None:
    page = await (await signed_in(service)).text("/connect")
    assert codes(page)[0] == ADDRESS
    assert "Catalog entity read (*)" in page
    assert "Tech Insights Data Source Read" in page
    assert 'href="/administration/account/api-access"' in page
    assert "Only programs on the machine of this service reach this address." in words(page)


async def test_each_client_has_its_configuration_with_and_without_the_token(
    start: StartService, subtests: pytest.Subtests
) -> None:
    service = await start(public_url="http://factbook.example.com/below/")
    visitor = await signed_in(service)
    url = "http://factbook.example.com/below/mcp"
    assert AGENTS
    for client, agent in AGENTS.items():
        with subtests.test(client=client):
            page = await visitor.text(f"/connect?client={client}")
            told = [url, agent.render(url, None), agent.render(url, "YOUR_TOKEN"), url]
            assert codes(page) == told
            assert f'<a href="/connect?client={client}#clients" aria-current="page">' in page
            for sentence in (agent.file, agent.use, agent.secret, f"factbook connect {client}"):
                assert sentence in words(page)
            assert "Only programs on the machine" not in page


async def test_an_agent_can_be_given_some_tools_and_short_answers(service: Service) -> None:
    visitor = await signed_in(service)
    for query, address in (
        ("tools=read-only", "?toolsets=facts,checks"),
        ("tools=checks&compact=yes", "?toolsets=checks&read=compact"),
        ("compact=yes", "?read=compact"),
    ):
        page = await visitor.text(f"/connect?client=cursor&{query}")
        assert codes(page)[0] == ADDRESS + address
        assert json.loads(codes(page)[1])["mcpServers"]["factbook"]["url"] == ADDRESS + address
        assert f'href="/connect?client=codex&amp;{query.replace("&", "&amp;")}#clients"' in page
    await visitor.text("/connect?tools=everything", status=404)


async def test_cursor_and_visual_studio_code_install_with_one_press(service: Service) -> None:
    visitor = await signed_in(service)
    for client, scheme in (("cursor", "cursor:"), ("vscode", "vscode:")):
        page = await visitor.text(f"/connect?client={client}")
        link = unescape(re.findall(rf'href="({scheme}[^"]+)"', page)[0])
        install = AGENTS[client].link
        assert install is not None
        assert link == install(ADDRESS)
    assert "Install in" not in await visitor.text("/connect?client=codex")


async def test_an_application_that_signs_people_in_is_given_an_address(service: Service) -> None:
    page = await (await signed_in(service)).text("/connect")
    assert codes(page)[-1] == "http://127.0.0.1:8000/mcp"
    assert 'href="/help/how-to/sign-in-agents"' in page


async def test_no_such_address_is_given_where_nobody_can_sign_in(start: StartService) -> None:
    service = await start(oauth={"enabled": False})
    page = await (await signed_in(service)).text("/connect")
    assert "Sign in without a token" not in page


async def test_there_is_no_page_of_an_unknown_client(service: Service) -> None:
    visitor = await signed_in(service)
    page = await visitor.text("/connect?client=<script>", status=404)
    assert "There is no client with this name." in words(page)
    assert "<script>" not in page.replace("<script src", "")


async def test_a_host_that_fits_into_no_configuration_is_put_into_none(
    start: StartService,
) -> None:
    odd = ("x$(id)`id`", "<b>")
    service = await start(allowed_hosts=["127.0.0.1", "[x", *odd])
    visitor = await signed_in(service)
    assert (await visitor.http.get("/connect", headers={"host": "[x"})).status_code == 200
    for host in odd:
        page = (await visitor.http.get("/connect", headers={"host": host})).text
        assert "This address cannot be used in a configuration" in page
        assert not codes(page)
        assert host not in page


# The live check


async def test_the_check_makes_the_calls_of_an_agent(service: Service) -> None:
    page = words(await checked(await signed_in(service)))
    assert "The endpoint answers" in page
    assert re.search(
        r"Handshake 200 · \d+\.\d ms initialize Factbook \S+ speaks revision 2025-11-25\.", page
    )
    assert re.search(r"List of tools 200 · \d+\.\d ms tools/list 19 tools\.", page)
    assert re.search(r"A tool call 200 · \d+\.\d ms tools/call 3 data sources, of which 0", page)
    metrics = (await service.http.get("/metrics")).text
    assert 'tool="get-data-source-discovery"' in metrics


async def test_nothing_is_left_of_the_token_of_a_check(service: Service) -> None:
    visitor = await signed_in(service)
    before = await tokens(service)
    page = await checked(visitor)
    assert await tokens(service) == before == [("test", "user:default/tester")]
    assert "fbk_" not in page
    audit = (await service.http.get("/api/access/v1/audit")).json()
    assert not [each for each in audit["records"] if each["action"].startswith("token.")]


async def test_a_check_keeps_the_client_that_was_chosen(service: Service) -> None:
    page = await checked(await signed_in(service), "codex")
    assert '<a href="/connect?client=codex#clients" aria-current="page">' in page
    assert "[mcp_servers.factbook]" in page


async def test_a_check_says_what_failed_and_what_was_not_asked_then(start: StartService) -> None:
    service = await start(token_rate=1, token_burst=1)
    visitor = await signed_in(service)
    before = await tokens(service)
    page = words(await checked(visitor))
    assert "The endpoint does not answer as it should" in page
    assert "speaks revision" in page
    assert re.search(
        r"List of tools 429 · \d+\.\d ms tools/list Too many calls at once\. This token calls "
        r"too often \(token_rate is 1 a second\)\. A tool call tools/call Skipped",
        page,
    )
    assert await tokens(service) == before


async def test_who_checks_too_often_is_told_to_wait(start: StartService) -> None:
    service = await start(token_rate=1, token_burst=1)
    visitor = await signed_in(service)
    await checked(visitor)
    page = words(await checked(visitor))
    assert "Too many calls. Try again in 1 second." in page
    assert "speaks revision" not in page


async def test_a_check_names_the_host_that_agents_name(start: StartService) -> None:
    service = await start(
        public_url="http://factbook.example.com", allowed_hosts=("127.0.0.1", "other.example.com")
    )
    page = words(await checked(await signed_in(service)))
    assert "The endpoint answers" in page
    assert "whether other machines can reach http://factbook.example.com" in page


async def test_the_address_of_a_check_leads_back(service: Service) -> None:
    visitor = await signed_in(service)
    assert "Check the endpoint" in await visitor.text("/connect/check")


async def test_a_viewer_connects_and_checks(service: Service) -> None:
    visitor = await signed_in(service, "vic", permissions.VIEWER)
    assert "The endpoint answers" in await checked(visitor)


async def test_a_check_needs_the_token_of_the_form(service: Service) -> None:
    visitor = await signed_in(service)
    await visitor.text("/connect")
    assert (await visitor.send("/connect/check", csrf="wrong")).status_code == 403


async def test_nobody_sees_these_pages_without_signing_in(
    service: Service, subtests: pytest.Subtests
) -> None:
    for path in ["/connect", "/connect/tools", "/connect/tools/get-entity-facts"]:
        with subtests.test(path=path):
            answer = await browser(service).open(path)
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/sign-in?next=")
