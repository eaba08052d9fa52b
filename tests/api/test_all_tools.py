"""All tools at one address, and what its query chooses of them.

What the database holds makes no difference here, so there is one of SQLite alone.
"""

import json

import httpx2
import pytest

from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_READ
from tests.api.messages import (
    LEGACY,
    Json,
    expect_error,
    expect_result,
    message,
    modern_headers,
    modern_message,
    tool_call,
)
from tests.conftest import StartService
from tests.service import TOOLS, Service, component

ALL = "/mcp"
DISCOVERY = message("tools/call", tool_call("get-data-source-discovery"))


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here is the protocol."""
    return sqlite_url


async def post(service: Service, body: Json, query: str = "") -> httpx2.Response:
    return await service.http.post(f"{ALL}{query}", json=body)


async def listed(service: Service, query: str = "") -> list[Json]:
    tools: list[Json] = expect_result(await post(service, message("tools/list"), query))["tools"]
    return tools


@pytest.mark.spec("endpoint.all-toolsets")
async def test_every_tool_of_every_server_is_at_one_address_as_its_server_lists_it(
    service: Service,
) -> None:
    found = await listed(service)
    names = [tool["name"] for tool in found]
    assert len(set(names)) == len(names)
    answer = await service.http.post(TOOLS, json=message("tools/list"))
    with_schemas = await listed(service, "?schemas=output")
    for tool in expect_result(answer)["tools"]:
        [listed_here] = [one for one in with_schemas if one["name"] == tool["name"]]
        if tool["name"] == "get-all-entities-facts":  # whose answers come in pages here
            assert "A page has 100 entities" in listed_here["description"]
            tool["description"] = listed_here["description"]
        assert listed_here == tool
        del tool["outputSchema"]
        assert tool in found


@pytest.mark.spec("endpoint.all-toolsets")
async def test_the_list_of_all_tools_costs_a_model_fewer_than_8000_tokens(
    service: Service,
) -> None:
    tools = await listed(service)
    assert len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False)) / 4 <= 8_000


@pytest.mark.spec("endpoint.all-toolsets")
async def test_a_legacy_client_shakes_hands_and_calls(
    service: Service, subtests: pytest.Subtests
) -> None:
    for version in LEGACY:
        with subtests.test(version=version):
            hello = expect_result(
                await post(service, message("initialize", {"protocolVersion": version}))
            )
            assert hello["protocolVersion"] == version
            assert hello["instructions"]
            done = await post(service, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            assert (done.status_code, done.content) == (202, b"")
            assert expect_result(await post(service, DISCOVERY))["isError"] is False


@pytest.mark.spec("endpoint.all-toolsets")
async def test_a_modern_client_discovers_and_calls(service: Service) -> None:
    headers = modern_headers("server/discover")
    asked = modern_message("server/discover")
    found = expect_result(await service.http.post(ALL, json=asked, headers=headers))
    assert found["resultType"] == "complete"
    name = "get-data-source-discovery"
    body, headers = (
        modern_message("tools/call", tool_call(name)),
        modern_headers("tools/call", name),
    )
    answer = await service.http.post(ALL, json=body, headers=headers)
    assert expect_result(answer)["structuredContent"]["dataSources"]


@pytest.mark.spec("endpoint.toolsets-are-chosen")
async def test_a_query_chooses_toolsets(service: Service) -> None:
    facts = await listed(service, "?toolsets=facts&schemas=output")
    answer = await service.http.post(TOOLS, json=message("tools/list"))
    names = [tool["name"] for tool in expect_result(answer)["tools"]]
    assert [tool["name"] for tool in facts] == names
    assert await listed(service, "?toolsets=facts,facts&toolsets=facts&schemas=output") == facts


@pytest.mark.spec("endpoint.toolsets-are-chosen")
async def test_what_a_query_cannot_choose_is_400_and_told(
    service: Service, subtests: pytest.Subtests
) -> None:
    for query, text in [
        ("toolsets=fact", 'no toolset "fact". Did you mean facts? There are: facts'),
        ("toolsets=facts,everything", 'no toolset "everything"'),
        ("toolsets=", 'no toolset ""'),
        ("toolsets=facts%00", "no toolset"),
        ("read=short", "read is one of full and compact"),
        ("read=compact&read=full", "given once"),
        ("toolset=facts", 'takes toolsets, read and schemas, not "toolset"'),
        ("schemas=input", "schemas can only be output"),
        ("&".join(["toolsets=facts"] * 30), "more than 20 parameters"),
    ]:
        with subtests.test(query=query):
            answer = await post(service, DISCOVERY, f"?{query}")
            assert text in expect_error(answer, 400, -32600)


@pytest.mark.spec("endpoint.compact-answers")
async def test_compact_answers_say_everything_once(service: Service) -> None:
    await service.push("all", component("payments"))
    arguments = {"dataSourceId": "entity-metadata", "name": "payments"}
    asked = message("tools/call", tool_call("get-entity-facts", arguments))
    full = expect_result(await post(service, asked, "?read=full"))
    compact = expect_result(await post(service, asked, "?read=compact"))
    assert compact == {"content": full["content"], "isError": False}
    assert json.loads(compact["content"][0]["text"]) == full["structuredContent"]
    # A client that is listed a schema of results expects structured ones.
    short = await listed(service, "?read=compact&schemas=output")
    assert short == await listed(service)


@pytest.mark.spec("endpoint.tools-name-permissions")
async def test_a_call_without_a_permission_names_it_in_a_tool_error_that_keeps_the_session(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[tuple[str, ...], list[str]]] = [
        ((SOURCE_READ,), [CATALOG_READ]),
        ((CATALOG_READ,), [SOURCE_READ]),
        ((SET_WRITE,), [CATALOG_READ, SOURCE_READ]),
    ]
    for held, lacking in cases:
        with subtests.test(held=held, lacking=lacking):
            async with service.client(await service.token(*held)) as client:
                answer = await client.post(ALL, json=DISCOVERY)
                found = expect_result(answer)
                assert found["isError"] is True
                text = found["content"][0]["text"]
                assert text.startswith("This needs the permission ")
                assert all(f"({name})" in text for name in lacking)
                assert "www-authenticate" not in answer.headers
                # The server of facts answers as the seed has it.
                assert (await client.post(TOOLS, json=DISCOVERY)).status_code == 403


async def test_a_token_made_by_hand_is_listed_the_tools_that_it_may_call(service: Service) -> None:
    everything = {tool["name"] for tool in await listed(service)}
    for held in ((CATALOG_READ,), (SOURCE_READ,), (SET_WRITE,)):
        async with service.client(await service.token(*held)) as client:
            answer = await client.post(ALL, json=message("tools/list"))
            names = {tool["name"] for tool in expect_result(answer)["tools"]}
            allowed = set()
            for name in everything:
                answer = await client.post(ALL, json=message("tools/call", tool_call(name)))
                told = expect_result(answer)["content"][0]["text"]
                if not told.startswith("This needs the permission"):
                    allowed.add(name)
        assert names == allowed, held
        assert names < everything
    assert names == set()


async def test_answers_about_many_entities_come_in_pages_that_hosts_do_not_cut(
    service: Service, subtests: pytest.Subtests
) -> None:
    entities = [component(f"service-{number:03}-{'x' * 40}") for number in range(250)]
    await service.push("all", *entities)

    async def page(address: str, **arguments: object) -> Json:
        asked = {"dataSourceId": "entity-metadata", **arguments}
        body = message("tools/call", tool_call("get-all-entities-facts", asked))
        answer = expect_result(await service.http.post(address, json=body))
        assert len(answer["content"][0]["text"]) < 60_000
        found: Json = answer["structuredContent"]
        return found

    whole = await page(TOOLS)
    assert len(whole["entities"]) == 250
    assert "nextCursor" not in whole
    for limit in (None, 7, 1_000):
        with subtests.test(limit=limit):
            size = {} if limit is None else {"limit": limit}
            found = await page(ALL, **size)
            assert found["totalCount"] == 250
            seen, sizes = found["entities"], [len(found["entities"])]
            while "nextCursor" in found:
                found = await page(ALL, cursor=found["nextCursor"], **size)
                seen += found["entities"]
                sizes.append(len(found["entities"]))
            assert seen == whole["entities"]
            assert max(sizes) <= (limit or 100)


async def test_who_has_no_token_is_401_whatever_is_sent(
    service: Service, subtests: pytest.Subtests
) -> None:
    for body in [b"", b"[]", b"{", b" " * (2 * 1024 * 1024)]:
        with subtests.test(body=body):
            async with service.client(None) as stranger:
                answer = await stranger.post(f"{ALL}?toolsets=nothing", content=body)
                assert answer.status_code == 401
                assert (await stranger.get(ALL)).status_code == 401


async def test_a_batch_of_the_revision_that_has_them_is_answered_message_by_message(
    service: Service, subtests: pytest.Subtests
) -> None:
    noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    ping, unknown = message("ping", id=2), message("nothing", id="three")
    batch: list[object] = [DISCOVERY, noted, ping, unknown, 7]
    old = {"mcp-protocol-version": "2025-03-26"}
    for path, headers in ((ALL, {}), (ALL, old), (TOOLS, old)):
        with subtests.test(path=path, headers=headers):
            answer = await service.http.post(path, json=batch, headers=headers)
            assert answer.status_code == 200
            first, second, third, fourth = answer.json()
            assert first["result"]["structuredContent"]["totalCount"] == 3
            assert second == {"jsonrpc": "2.0", "id": 2, "result": {}}
            assert (third["id"], third["error"]["code"]) == ("three", -32601)
            assert (fourth["id"], fourth["error"]["code"]) == (None, -32600)
            quiet = await service.http.post(path, json=[noted, noted], headers=headers)
            assert (quiet.status_code, quiet.content) == (202, b"")
            for wrong in ([], [ping] * 21):
                answer = await service.http.post(path, json=wrong, headers=headers)
                assert "1 to 20 messages" in expect_error(answer, 400, -32600)
    hello = message("initialize", {"protocolVersion": "2025-03-26"})
    [answer] = (await service.http.post(ALL, json=[hello])).json()
    assert "can't be part of a batch" in answer["error"]["message"]
    newer = {"mcp-protocol-version": "2025-06-18"}
    answer = await service.http.post(ALL, json=[ping], headers=newer)
    assert "2025-03-26 alone" in expect_error(answer, 400, -32600)


async def test_the_messages_of_a_batch_count_as_calls_of_their_token(start: StartService) -> None:
    service = await start(token_rate=1, token_burst=3)
    answer = await service.http.post(ALL, json=[message("ping", id=at) for at in range(5)])
    found = answer.json()
    assert [one["id"] for one in found] == [0, 1, 2, 3, 4]
    assert ["error" in one for one in found] == [False, False, False, True, True]
    assert "calls too often" in found[-1]["error"]["message"]


async def test_a_get_is_405(service: Service) -> None:
    assert (await service.http.get(ALL)).headers["allow"] == "POST"
