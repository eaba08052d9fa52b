"""Which case gets which HTTP status and which JSON-RPC error, in both eras.

What the database holds makes no difference here, so there is one of SQLite alone.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.api.messages import (
    META,
    MODERN,
    Json,
    expect_error,
    expect_result,
    message,
    metadata,
    modern_headers,
    send,
    send_modern,
    tool_call,
)
from tests.conftest import StartService
from tests.service import TOOLS, Service, component

MIB = 1024 * 1024
DISCOVERY = tool_call("get-data-source-discovery")


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here is the protocol."""
    return sqlite_url


# What is no request at all: the era makes no difference

NOT_JSON = {
    "nothing": b"",
    "half a message": b'{"jsonrpc": "2.0", "id": 1, "method": "pi',
    "text": b"ping",
    "more after the message": b'{"jsonrpc":"2.0","id":1,"method":"ping"} and more',
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "not UTF-8 within params": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}',
    "half a character": rb'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\udc00"}}',
    "nested without end": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 50_000,
}


@pytest.mark.spec("protocol.bad-json-is-400")
async def test_a_body_that_does_not_parse_is_a_parse_error(
    service: Service, subtests: pytest.Subtests
) -> None:
    eras: dict[str, dict[str, str]] = {"legacy": {}, "modern": modern_headers("ping")}
    for name, body in NOT_JSON.items():
        for era, headers in eras.items():
            with subtests.test(name, era=era):
                expect_error(await send(service, body, headers), 400, -32700)


PING: Json = {"jsonrpc": "2.0", "method": "ping"}
NOT_A_REQUEST: dict[str, object] = {
    "a batch": [message("ping")],
    "an empty batch": [],
    "a string": "ping",
    "no method": {"jsonrpc": "2.0", "id": 1},
    "a method that is no string": {"jsonrpc": "2.0", "id": 1, "method": 7},
    "no version of JSON-RPC": {"id": 1, "method": "ping"},
    "another version of JSON-RPC": {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    "an answer": {"jsonrpc": "2.0", "id": 1, "result": {}},
    "id null": PING | {"id": None},
    "id 1.5": PING | {"id": 1.5},
    "id true": PING | {"id": True},
    "id []": PING | {"id": []},
}


@pytest.mark.spec("protocol.invalid-request-is-400")
async def test_what_is_no_single_request_is_an_invalid_request(
    service: Service, subtests: pytest.Subtests
) -> None:
    eras: dict[str, dict[str, str]] = {"legacy": {}, "modern": modern_headers("ping")}
    for name, body in NOT_A_REQUEST.items():
        for era, headers in eras.items():
            with subtests.test(name, era=era):
                expect_error(await send(service, body, headers), 400, -32600)


# What a request may get wrong: 200 in the legacy era, the code's own status in the modern one


@pytest.mark.spec("protocol.unknown-method")
async def test_an_unknown_method_is_200_in_the_legacy_era(
    service: Service, subtests: pytest.Subtests
) -> None:
    for method in ["resources/list", "tools", "", "server/discover"]:
        with subtests.test(method=method):
            assert method in expect_error(
                await send(service, message(method, id=7)), 200, -32601, 7
            )


@pytest.mark.spec("protocol.unknown-method")
async def test_an_unknown_method_is_404_in_the_modern_era(
    service: Service, subtests: pytest.Subtests
) -> None:
    for method in ["initialize", "ping", "subscriptions/listen"]:
        with subtests.test(method=method):
            assert method in expect_error(await send_modern(service, method), 404, -32601, 1)


BAD_PARAMS: dict[str, tuple[str, Any]] = {
    "a tool that nobody knows": ("tools/call", tool_call("get-everything")),
    "no name": ("tools/call", {"arguments": {}}),
    "a name that is no string": ("tools/call", {"name": 7}),
    "arguments that are a list": ("tools/call", tool_call("get-data-source-discovery", [])),
    "arguments that are text": ("tools/call", tool_call("get-data-source-discovery", "{}")),
    "a cursor that was never given out": ("tools/list", {"cursor": "2"}),
    "a cursor that is no string": ("tools/list", {"cursor": 2}),
}


@pytest.mark.spec("protocol.unknown-tool-or-bad-params")
async def test_bad_params_are_200_in_the_legacy_era(
    service: Service, subtests: pytest.Subtests
) -> None:
    for name, (method, params) in BAD_PARAMS.items():
        with subtests.test(name):
            expect_error(await send(service, message(method, params)), 200, -32602, 1)


@pytest.mark.spec("protocol.unknown-tool-or-bad-params")
async def test_params_that_are_no_object_are_200_in_the_legacy_era(
    service: Service, subtests: pytest.Subtests
) -> None:
    no_objects: list[Any] = [[], "text", 7]
    for params in no_objects:
        for method in ["tools/call", "tools/list", "ping", "initialize"]:
            with subtests.test(params=params, method=method):
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                expect_error(await send(service, body), 200, -32602, 1)


# Of a name that is missing, or no string, the header that has to equal it tells first.
NAMED = {
    case: (method, params)
    for case, (method, params) in BAD_PARAMS.items()
    if method == "tools/list" or isinstance(params.get("name"), str)
}


@pytest.mark.spec("protocol.unknown-tool-or-bad-params")
async def test_bad_params_are_400_in_the_modern_era(
    service: Service, subtests: pytest.Subtests
) -> None:
    assert NAMED
    for name, (method, params) in NAMED.items():
        with subtests.test(name):
            expect_error(await send_modern(service, method, params), 400, -32602, 1)


INCOMPLETE: dict[str, Any] = {
    "none at all": {},
    "an empty one": {"_meta": {}},
    "no capabilities": {"_meta": {f"{META}protocolVersion": MODERN}},
    "no version": {"_meta": {f"{META}clientCapabilities": {}}},
    "capabilities that are no object": {"_meta": metadata() | {f"{META}clientCapabilities": []}},
    "a version that is no string": {"_meta": metadata() | {f"{META}protocolVersion": 2026}},
    "one that is no object": {"_meta": "complete"},
}


@pytest.mark.spec("protocol.incomplete-meta-is-400")
async def test_a_modern_request_with_incomplete_metadata_is_400(
    service: Service, subtests: pytest.Subtests
) -> None:
    for name, params in INCOMPLETE.items():
        for method in ["tools/list", "server/discover", "resources/list"]:
            with subtests.test(name, method=method):
                answer = await send(service, message(method, params), modern_headers(method))
                expect_error(answer, 400, -32602, 1)


@pytest.mark.spec("protocol.unknown-version-is-400")
async def test_an_unknown_revision_is_400_and_told_the_supported_ones(
    service: Service, subtests: pytest.Subtests
) -> None:
    for version in ["1999-01-01", "2024-11-05", "2099-01-01", "latest", ""]:
        with subtests.test(version=version):
            headers = {"mcp-protocol-version": version, "mcp-method": "nothing"}
            answer = await send(service, message("nothing", {"_meta": metadata(version)}), headers)
            expect_error(answer, 400, -32022, 1)
            assert answer.json()["error"]["data"] == {
                "supported": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"],
                "requested": version,
            }


# What HTTP itself says


@pytest.mark.spec("protocol.notification-is-202")
async def test_a_notification_is_202_and_empty(service: Service, subtests: pytest.Subtests) -> None:
    eras: dict[str, dict[str, str]] = {"bare": {}, "modern": modern_headers("notifications/x")}
    for method in ["notifications/initialized", "notifications/x", "tools/call"]:
        for era, headers in eras.items():
            with subtests.test(method=method, era=era):
                answer = await send(service, {"jsonrpc": "2.0", "method": method}, headers)
                assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.spec("protocol.other-methods-are-405")
async def test_other_http_methods_are_405_for_who_may_know(
    service: Service, subtests: pytest.Subtests
) -> None:
    for method in ["GET", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"]:
        with subtests.test(method=method):
            answer = await service.http.request(method, TOOLS)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
            if method != "HEAD":
                assert answer.json()["error"]["message"]
            async with service.client(None) as stranger:
                assert (await stranger.request(method, TOOLS)).status_code == 401


@pytest.mark.spec("protocol.content-type-is-415")
async def test_a_body_that_is_not_declared_json_is_415(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = ["text/plain", "application/x-www-form-urlencoded", "", None]
    for kind in cases:
        with subtests.test(kind=kind):
            headers = {} if kind is None else {"content-type": kind}
            body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
            expect_error(await service.http.post(TOOLS, content=body, headers=headers), 415, -32600)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_json_may_be_declared_in_any_spelling(service: Service, kind: str) -> None:
    expect_result(await send(service, message("ping"), {"content-type": kind}))


@pytest.mark.spec("protocol.accept-without-json-is-406")
async def test_an_accept_header_without_json_is_406(
    service: Service, subtests: pytest.Subtests
) -> None:
    for accept in ["text/event-stream", "text/html, image/*", "application/xml"]:
        with subtests.test(accept=accept):
            expect_error(await send(service, message("ping"), {"accept": accept}), 406, -32600)


@pytest.mark.spec("endpoint.accepts-plain-json")
async def test_an_accept_header_that_admits_json_is_served_json(
    service: Service, subtests: pytest.Subtests
) -> None:
    for accept in [
        "application/json",
        "application/json, text/event-stream",
        "text/event-stream;q=0.5, application/json;q=0.9",
        "Application/JSON",
        "application/*",
        "*/*",
        "text/html, */*;q=0.1",
    ]:
        with subtests.test(accept=accept):
            expect_result(await send(service, message("tools/call", DISCOVERY), {"accept": accept}))


@pytest.mark.spec("endpoint.accepts-plain-json")
async def test_no_accept_header_counts_as_any(service: Service) -> None:
    del service.http.headers["accept"]
    request = service.http.build_request("POST", TOOLS, json=message("ping"))
    assert "accept" not in request.headers
    assert (await service.http.send(request)).status_code == 200


@pytest.mark.spec("protocol.body-over-1-mib-is-413")
async def test_a_tool_call_over_one_mebibyte_is_413(service: Service) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    expect_result(await send(service, body + b" " * (MIB - len(body))))
    expect_error(await send(service, body + b" " * (MIB - len(body) + 1)), 413, -32600)


@pytest.mark.spec("protocol.body-over-1-mib-is-413")
async def test_a_tool_call_over_one_mebibyte_is_413_without_a_length_too(service: Service) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(17):
            yield b" " * (MIB // 16)

    headers = {"content-type": "application/json"}
    expect_error(await service.http.post(TOOLS, content=pieces(), headers=headers), 413, -32600)


@pytest.mark.spec("protocol.rate-limit-is-429")
async def test_tool_calls_over_the_rate_are_429_with_the_time_to_wait(
    start: StartService,
) -> None:
    service = await start(token_rate=0.5, token_burst=2)
    for _ in range(2):
        expect_result(await send(service, message("tools/call", DISCOVERY)))
    refused = await send(service, message("tools/call", DISCOVERY))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    assert refused.json()["error"] == "too_many_requests"
    service.time.advance(2_000)
    expect_result(await send(service, message("tools/call", DISCOVERY)))


@pytest.mark.spec("protocol.tool-answers-are-200")
async def test_whatever_a_tool_answers_is_200_in_both_eras(service: Service) -> None:
    await service.push("first", component("payments"))
    for name in ("payments", "nobody"):
        params = tool_call("get-entity-compliance", {"name": name})
        refused = name == "nobody"
        assert (
            expect_result(await send(service, message("tools/call", params)))["isError"] is refused
        )
        assert expect_result(await send_modern(service, "tools/call", params))["isError"] is refused
