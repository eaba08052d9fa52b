"""Addresses that are nearly right, and bodies of another type than JSON."""

import json

import pytest

from tests.service import PUSH, TOOLS, Service, call, component

BODY = json.dumps({"items": [component("a")]}).encode()


async def test_where_clients_look_for_tools_the_endpoint_is_named(
    service: Service, subtests: pytest.Subtests
) -> None:
    for path in [
        f"{TOOLS}/",
        f"{TOOLS}/sse",
        "/mcp/",
        "/mcp/v1",
        "/sse",
        "/api/mcp",
        "/api/mcp/v1",
    ]:
        with subtests.test(path=path):
            for method in ("POST", "GET"):
                answer = await service.http.request(method, path, json=call("ping", {}))
                assert answer.status_code == 404
                assert "Tools are called by POST to /mcp." in answer.json()["error"]["message"]


async def test_a_slash_at_the_end_is_said_to_be_too_much(service: Service) -> None:
    answer = await service.http.get("/api/catalog/entities/")
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert message.endswith("Addresses end without a slash: try /api/catalog/entities.")
    other = await service.http.get("/mcpx")
    assert other.json()["error"]["message"] == "There is nothing at /mcpx."


async def test_a_body_that_is_declared_as_something_else_than_json_is_415(
    service: Service, subtests: pytest.Subtests
) -> None:
    for type_ in ["text/plain", "application/yaml", "Text/Plain; charset=utf-8"]:
        with subtests.test(type_=type_):
            headers = {"content-type": type_}
            for method, path in (
                ("PUT", f"{PUSH}/sets/first"),
                ("POST", f"{PUSH}/sets/first"),
                ("POST", "/api/access/v1/tokens"),
                ("POST", "/api/catalog/entities/by-query"),
            ):
                answer = await service.http.request(method, path, content=BODY, headers=headers)
                assert answer.status_code == 415, (method, path)
                error = answer.json()["error"]
                assert error["name"] == "UnsupportedMediaTypeError"
                assert "application/json" in error["message"]
            assert (await service.http.get(f"{PUSH}/sets")).json() == {"sets": []}


async def test_json_that_is_declared_as_such_or_not_at_all_is_read(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = [
        None,
        "application/json",
        "Application/JSON;charset=utf-8",
        "application/merge-patch+json",
        "application/x-www-form-urlencoded",  # what curl sends unasked
    ]
    for type_ in cases:
        with subtests.test(type_=type_):
            headers = {} if type_ is None else {"content-type": type_}
            answer = await service.http.put(f"{PUSH}/sets/first", content=BODY, headers=headers)
            assert answer.status_code == 200, answer.text
