"""The client, against a transport that answers in place of a server."""

from collections.abc import Callable
from typing import Any

import httpx2
import msgspec
import pytest

from factbook.client import (
    ApiError,
    AsyncClient,
    Client,
    ConnectionFailed,
    ProtocolError,
    ToolCallError,
    UnexpectedAnswer,
)
from tests.cli.fake_server import TOOLS, FakeServer, component, pushed, rehearsed, result, unable

SETS = "/api/catalog/factbook-entities/sets"
ENTITIES = "/api/catalog/entities"
CHANGES = {"added": 1, "updated": 2, "removed": 3, "unchanged": 4}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def client(server: FakeServer) -> Client:
    return Client("http://factbook.test", "fbk_secret", transport=httpx2.MockTransport(server))


# Sets


def test_a_push_sends_its_entities_and_reads_what_changed(
    server: FakeServer, client: Client
) -> None:
    server.on("PUT", f"{SETS}/services", pushed("a", "b"))
    answer = client.push("services", (component(name) for name in "ab"))
    assert server.sent() == {"items": [component("a"), component("b")]}
    assert server.last.headers["authorization"] == "Bearer fbk_secret"
    assert server.last.headers["content-type"] == "application/json"
    assert [item.entity_ref for item in answer.items] == [
        "component:default/a",
        "component:default/b",
    ]
    assert (answer.changes.added, answer.revision, answer.dry_run) == (2, 1, False)


def test_a_push_takes_entities_that_are_json_already(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/services", pushed("a"))
    client.push("services", [msgspec.Raw(msgspec.json.encode(component("a")))])
    assert server.sent() == {"items": [component("a")]}


def test_the_options_of_a_push_are_sent(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/services", pushed())
    client.push("services", [], dry_run=True, on_conflict="take", max_removals="10%", if_match=7)
    assert dict(server.last.url.params) == {
        "dryRun": "true",
        "onConflict": "take",
        "maxRemovals": "10%",
    }
    assert server.last.headers["if-match"] == '"7"'


def test_a_plain_push_sends_no_options(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/services", pushed())
    client.push("services", [])
    assert server.last.url.query == b""
    assert "if-match" not in server.last.headers


def test_a_dry_run_tells_the_difference(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/services", rehearsed("a"))
    answer = client.push("services", [component("a")], dry_run=True)
    assert (answer.dry_run, answer.items) == (True, [])
    (difference,) = answer.difference or []
    assert (difference.entity_ref, difference.change) == ("component:default/a", "added")


def test_a_set_id_is_one_segment_of_the_path(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/eu%2Fwest%20%7Bword%7D%3F", pushed())
    assert client.push("eu/west {word}?", []).revision == pushed()["revision"]


def test_the_push_word_can_be_another(server: FakeServer) -> None:
    server.on("GET", "/api/catalog/acme-entities/sets", {"sets": []})
    client = Client(
        "http://factbook.test", push_word="acme", transport=httpx2.MockTransport(server)
    )
    assert client.sets() == []


def test_sets_are_listed(server: FakeServer, client: Client) -> None:
    row = {"id": "s", "itemCount": 3, "revision": 2, "updatedBy": "user:default/a"}
    server.on("GET", SETS, {"sets": [{**row, "updatedAt": "now"}]})
    (summary,) = client.sets()
    assert (summary.id, summary.item_count, summary.revision) == ("s", 3, 2)


def test_a_set_is_read_page_by_page(server: FakeServer, client: Client) -> None:
    server.on("GET", f"{SETS}/services", pushed("a", nextCursor="more"))
    page = client.set("services", limit=1, cursor="start")
    assert dict(server.last.url.params) == {"limit": "1", "cursor": "start"}
    assert (page.items[0].id, page.next_cursor) == ("id-of-a", "more")


def test_a_set_is_deleted(server: FakeServer, client: Client) -> None:
    server.on("DELETE", f"{SETS}/services", pushed(changes=CHANGES))
    assert client.delete_set("services").changes.removed == 3


def test_revisions_are_listed_and_restored(server: FakeServer, client: Client) -> None:
    row = {"revision": 4, "createdBy": "user:default/a", "createdAt": "now", "changes": CHANGES}
    server.on("GET", f"{SETS}/services/revisions", {"revisions": [{**row, "restored": 2}]})
    server.on("POST", f"{SETS}/services/revisions/4/restore", pushed("a", revision=5))
    (revision,) = client.revisions("services")
    assert (revision.changes.updated, revision.restored) == (2, 2)
    assert client.restore("services", revision.revision).revision == 5


# Entities


def pages(server: FakeServer, *sizes: int, link: str = f"{ENTITIES}?after=x&fields=kind") -> None:
    """Prepare pages of the catalog with so many entities, each but the last naming the next."""
    for position, size in enumerate(sizes, 1):
        follow = f'<{link}>; rel="next"' if position < len(sizes) else ""
        server.on("GET", ENTITIES, [component(f"{position}-{n}") for n in range(size)], link=follow)


def test_entities_of_all_pages_are_iterated(server: FakeServer, client: Client) -> None:
    pages(server, 2, 2, 1)
    names = [entity["metadata"]["name"] for entity in client.entities()]
    assert names == ["1-0", "1-1", "2-0", "2-1", "3-0"]
    assert [("after", "x") in r.url.params.multi_items() for r in server.requests] == [
        False,
        True,
        True,
    ]


def test_a_selection_of_entities_is_asked_for(server: FakeServer, client: Client) -> None:
    pages(server, 0)
    selection = ["kind=component,spec.type=service", "kind=api"]
    assert not list(
        client.entities(
            filters=selection, fields=["kind", "metadata.name"], order=["asc:kind"], offset=5
        )
    )
    assert server.last.url.params.multi_items() == [
        ("filter", "kind=component,spec.type=service"),
        ("filter", "kind=api"),
        ("fields", "kind,metadata.name"),
        ("order", "asc:kind"),
        ("offset", "5"),
        ("limit", "500"),
    ]


def test_a_limit_ends_the_iteration_over_pages(server: FakeServer, client: Client) -> None:
    pages(server, 500, 100, 1)
    assert len(list(client.entities(limit=600))) == 600
    assert [request.url.params["limit"] for request in server.requests] == ["500", "100"]


def test_a_link_is_followed_to_no_other_host(server: FakeServer, client: Client) -> None:
    pages(server, 1, 1, link="http://elsewhere.test/somewhere?after=x")
    assert len(list(client.entities())) == 2
    assert {request.url.host for request in server.requests} == {"factbook.test"}


def test_a_server_may_live_below_a_path(server: FakeServer) -> None:
    server.on("GET", f"/tools/factbook{ENTITIES}", [component("a")])
    transport = httpx2.MockTransport(server)
    assert list(Client("http://factbook.test/tools/factbook/", transport=transport).entities())


@pytest.mark.parametrize("ref", ["component:default/a b", "component:a b"])
def test_an_entity_is_read_by_reference(server: FakeServer, client: Client, ref: str) -> None:
    server.on("GET", f"{ENTITIES}/by-name/component/default/a%20b", component("a b"))
    assert client.entity(ref)["metadata"]["name"] == "a b"


@pytest.mark.parametrize("ref", ["", "a", "default/a", ":a", "component:", "component:/a"])
def test_what_is_no_full_reference_is_refused(client: Client, ref: str) -> None:
    with pytest.raises(ValueError, match="kind:"):
        client.entity(ref)


def test_entities_are_read_by_references(server: FakeServer, client: Client) -> None:
    server.on("POST", f"{ENTITIES}/by-refs", {"items": [component("a"), None]})
    found = client.entities_by_refs(["component:a", "component:b"], fields=["kind"])
    assert found == [component("a"), None]
    assert server.sent() == {"entityRefs": ["component:a", "component:b"], "fields": ["kind"]}


# Tools


def test_tools_are_listed(server: FakeServer, client: Client) -> None:
    schema = {"type": "object", "properties": {}}
    server.on_tool("get-things", result, schema)
    (tool,) = client.tools()
    assert (tool.name, tool.input_schema, tool.title) == ("get-things", schema, None)


def test_a_tool_gives_its_structured_content(server: FakeServer, client: Client) -> None:
    server.on_tool("echo", result)
    assert client.call("echo", {"name": "a"}) == {"name": "a"}
    assert client.call("echo") == {}


def test_a_tool_that_cannot_answer_says_why(server: FakeServer, client: Client) -> None:
    server.on_tool("fail", lambda _: unable("No entity a. Try b."))
    with pytest.raises(ToolCallError, match=r"No entity a\. Try b\."):
        client.call("fail")


@pytest.mark.parametrize("status", [200, 400])
def test_a_json_rpc_error_keeps_its_code(server: FakeServer, client: Client, status: int) -> None:
    error = {"code": -32602, "message": "Unknown tool.", "data": {"tool": "x"}}
    server.on("POST", TOOLS, {"jsonrpc": "2.0", "id": 1, "error": error}, status)
    with pytest.raises(ProtocolError, match="Unknown tool") as caught:
        client.call("x")
    assert (caught.value.code, caught.value.data) == (-32602, {"tool": "x"})


@pytest.mark.parametrize("answer", [{"content": []}, {"structuredContent": {}}, None])
def test_a_result_of_another_shape_is_unexpected(
    server: FakeServer, client: Client, answer: Any
) -> None:
    server.on("POST", TOOLS, {"jsonrpc": "2.0", "id": 1, "result": answer})
    with pytest.raises(UnexpectedAnswer):
        client.call("x")


# Errors


def test_a_refusal_keeps_status_name_message_and_details(
    server: FakeServer, client: Client
) -> None:
    problems = [{"path": "items[0].kind", "message": "is missing"}]
    server.refuse("PUT", f"{SETS}/s", 400, "1 problem", problems=problems)
    with pytest.raises(ApiError, match="1 problem") as caught:
        client.push("s", [])
    error = caught.value
    assert (error.status, error.name, error.details) == (400, "SomeError", {"problems": problems})


def test_a_refused_token_is_read_in_the_form_of_the_tool_endpoint(
    server: FakeServer, client: Client
) -> None:
    body = {"error": "invalid_token", "error_description": "The token has expired."}
    server.on("POST", TOOLS, body, 401)
    with pytest.raises(ApiError, match="expired") as caught:
        client.tools()
    assert (caught.value.status, caught.value.name) == (401, "invalid_token")


@pytest.mark.parametrize("body", ["<html>", "[1]", '{"error": 1}', ""])
def test_an_error_of_a_proxy_is_told_by_its_status(body: str) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(502, text=body))
    with pytest.raises(ApiError, match="502 Bad Gateway") as caught:
        Client("http://factbook.test", transport=transport).sets()
    assert caught.value.status == 502


@pytest.mark.parametrize("body", ["<html>", '{"sets": 1}', "", "\xff"])
def test_an_answer_of_something_else_is_unexpected(body: str) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body.encode("latin1")))
    with pytest.raises(UnexpectedAnswer, match=r"GET http://factbook\.test"):
        Client("http://factbook.test", transport=transport).sets()


def test_a_redirect_names_the_address_to_use() -> None:
    moved = httpx2.Response(308, headers={"location": "https://factbook.test"})
    transport = httpx2.MockTransport(lambda _: moved)
    with pytest.raises(UnexpectedAnswer, match=r"redirects to https://factbook\.test"):
        Client("http://factbook.test", transport=transport).sets()


@pytest.mark.parametrize(
    "error",
    [
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("slow"),
        httpx2.RemoteProtocolError("cut off"),
        httpx2.ReadError("reset"),
    ],
)
def test_a_connection_that_fails_names_the_server(error: Exception) -> None:
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise error

    with pytest.raises(ConnectionFailed, match=r"http://factbook\.test"):
        Client("http://factbook.test", transport=httpx2.MockTransport(fail)).sets()


@pytest.mark.parametrize("server", ["", "factbook.test", "localhost:8000", "ftp://factbook.test"])
def test_an_address_without_a_known_scheme_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match="http://"):
        Client(server)


def test_a_token_from_a_file_may_end_in_a_line_break(server: FakeServer) -> None:
    server.on("GET", SETS, {"sets": []})
    Client("http://factbook.test", "fbk_a\n", transport=httpx2.MockTransport(server)).sets()
    assert server.last.headers["authorization"] == "Bearer fbk_a"


@pytest.mark.parametrize("token", ["a\nb", "a\tb", "a\u00e9"])
def test_a_token_that_no_header_can_carry_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(ValueError, match="token") as caught:
        Client("http://factbook.test", token)
    assert token not in str(caught.value)


# The two clients


def names(type_: type) -> list[str]:
    return [name for name in dir(type_) if not name.startswith("_")]


def test_both_clients_offer_the_same() -> None:
    assert names(Client) == names(AsyncClient)


@pytest.mark.parametrize("name", names(Client))
def test_every_method_says_what_it_returns(name: str) -> None:
    assert getattr(Client, name).__doc__


async def asgi(scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """A server in a few lines, which echoes what a tool is given and has two pages of entities."""
    message = await receive()
    headers = [(b"content-type", b"application/json")]
    body: Any
    if scope["path"] == TOOLS:
        arguments = msgspec.json.decode(message["body"])["params"]["arguments"]
        body = {"jsonrpc": "2.0", "id": 1, "result": result(arguments)}
    else:
        body = [component("a")]
        if b"after" not in scope["query_string"]:
            headers.append((b"link", b'</api/catalog/entities?after=x>; rel="next"'))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(body)})


async def test_the_asynchronous_client_calls_and_iterates() -> None:
    transport = httpx2.ASGITransport(asgi)
    async with AsyncClient("http://factbook.test", transport=transport) as client:
        assert await client.call("echo", {"name": "a"}) == {"name": "a"}
        assert [entity async for entity in client.entities()] == [component("a")] * 2


async def test_the_asynchronous_client_raises_the_same_errors(server: FakeServer) -> None:
    transport = httpx2.MockTransport(server)
    async with AsyncClient("http://factbook.test", transport=transport) as client:
        with pytest.raises(ApiError, match="nothing at"):
            await client.sets()
