"""Calls of hosts that were reported in public, whose requests are in tests/data/reports."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.api.messages import expect_result, message, tool_call
from tests.service import TOOLS, Service, component

REPORTS = Path(__file__).parents[1] / "data" / "reports"
CHECKS = "/api/mcp/v1/tech-insights-checks"
ANY = "/mcp"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here is the protocol."""
    return sqlite_url


def requests(report: str) -> list[dict[str, Any]]:
    """The requests of a report."""
    lines = (REPORTS / report / "request.json").read_text().splitlines()
    return [msgspec.json.decode(line) for line in lines]


async def result(service: Service, path: str, body: dict[str, Any]) -> dict[str, Any]:
    return expect_result(await service.http.post(path, json=body))


async def test_null_and_an_empty_cursor_mean_that_there_is_none(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("payments"))
    for body in [
        *requests("31-null-where-nothing-is-meant"),
        message("tools/list", {"cursor": ""}),
        message("tools/list", {"_meta": None}),
        message("resources/list", {"cursor": ""}),
        {**message("resources/list"), "params": None},
        {**message("ping"), "params": None},
    ]:
        plain = {name: body[name] for name in ("jsonrpc", "id", "method")}
        if body["method"] == "tools/call":
            plain["params"] = tool_call(body["params"]["name"])
        everywhere = body["method"] in ("tools/list", "ping")
        for path in (ANY, TOOLS, CHECKS) if everywhere else (ANY,):
            with subtests.test(path, body=body):
                assert await result(service, path, body) == await result(service, path, plain)


async def test_arguments_that_a_host_sends_as_text_are_read_as_what_they_are(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("payments"), component("ledger"))
    given: list[dict[str, Any]] = [
        {"limit": 5},
        {"query": {"kind": "component"}},
        {"dataSourceId": "entity-metadata", "facts": ["hasOwner"]},
    ]
    sent = [body["params"] for body in requests("34-arguments-as-text")]
    meant = list(zip(sent, given, strict=True))
    where = {"source": "entity-metadata", "fact": "hasOwner", "operator": "equal", "value": True}
    meant += [
        (tool_call("find-entities", {"limit": 1.0}), {"limit": 1}),
        (tool_call("find-entities", {"limit": "1.0"}), {"limit": 1}),
        (
            tool_call("find-entities", {"where": str(msgspec.json.encode(where), "utf-8")}),
            {"where": where},
        ),
        (
            tool_call("find-entities", {"where": where, "unknown": "True"}),
            {"where": where, "unknown": True},
        ),
    ]
    for params, plain_arguments in meant:
        with subtests.test(params=params):
            plain = tool_call(params["name"], plain_arguments)
            found = await result(service, ANY, message("tools/call", params))
            assert found["isError"] is False, found
            assert found == await result(service, ANY, message("tools/call", plain))


async def test_text_that_is_no_json_of_the_type_is_refused_by_the_type(
    service: Service, subtests: pytest.Subtests
) -> None:
    for arguments in (
        {"query": "payments"},
        {"query": "[]"},
        {"query": "[" * 100_000},
        {"limit": "many"},
        {"limit": '5,"kind":"api"'},
        {"unknown": "perhaps"},
    ):
        with subtests.test(str(arguments)[:60]):
            text = await service.refusal("find-entities", **arguments)
            assert f"at `$.{next(iter(arguments))}`" in text
