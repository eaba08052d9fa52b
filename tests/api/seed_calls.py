"""Requests to the address of the first nine tools, and the answers to them.

`tests/data/seed-answers.jsonl` has the answers of commit 6ab2b0dd, the last before agents connected
to `/mcp`. To record them again, copy this module into a worktree of that commit and run
`python -m tests.api.seed_calls FILE` there.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2

from factbook import __version__
from factbook.auth.permissions import PERMISSION_NAMES
from factbook.clock import DAY
from factbook.facts import schema
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES
from factbook.settings import Settings
from tests.api.messages import LEGACY, modern_headers, modern_message
from tests.facts.shapes import everything
from tests.service import TOOLS, Service, call, component, resource, started
from tests.tools.sources import COVERAGE, DRAFT, TREE, record

NINE: Final = (
    "get-data-source-discovery",
    "get-entity-facts",
    "get-all-entities-facts",
    "get-codehost-metrics",
    "get-security-metrics",
    "get-incident-metrics",
    "get-observability-metrics",
    "get-entity-compliance",
    "get-repository-info",
)
_TYPES: Final[Mapping[type, Any]] = {bool: "boolean", int: "integer", list: "set", str: "string"}
_FIGURES: Final = {
    f"{shape.name}.{path}": value
    for shape in schema.SHAPES
    if shape is not schema.COMPLIANCE
    for path, value in everything(shape).items()
}
VENDOR: Final = DataSource(
    id="vendor",
    title="Vendor",
    version="1.0.0",
    lifecycle=None,
    entity_filter=[{"kind": "component"}],
    schema=tuple(Fact(name, _TYPES[type(value)]) for name, value in _FIGURES.items()),
)
ALL_SOURCES: Final = (*SOURCES, COVERAGE, DRAFT, TREE, VENDOR)
_PAYMENTS: Final = {"name": "payments"}
_ORDERS: Final = {"name": "orders"}
_COVERAGE: Final = {"dataSourceId": "coverage"}
_JSON: Final = {"content-type": "application/json"}


class SeedCall(NamedTuple):
    """A request; a body that is text goes as it is, `bearer` names the token."""

    body: object
    headers: Mapping[str, str] = {}
    bearer: str = "all"
    method: str = "POST"


async def fill(service: Service) -> None:
    """Push entities and store facts: all, some, unknown ones with reasons, and none."""
    about = {
        "title": "Payments API",
        "description": "Takes money.",
        "tags": ["java"],
        "labels": {"tier": "1"},
    }
    full = component("payments", dependsOn=["component:orders"], system="shop")
    full["metadata"] |= about
    other = component("Zahlung äöü")
    other["metadata"]["namespace"] = "emea"
    bare = component("bare")
    del bare["spec"]["owner"]
    answer = await service.push(
        "all", full, component("orders"), component("ledger"), bare, other, resource("account")
    )
    assert answer.status_code == 200, answer.text
    payments, orders = "component:default/payments", "component:default/orders"
    await record(service, payments, _FIGURES, VENDOR)
    reasons = dict.fromkeys(list(_FIGURES)[20:], "forbidden: The token may not read this.")
    await record(service, orders, dict(list(_FIGURES.items())[:20]), VENDOR, reasons)
    await record(service, "component:default/ledger", {}, VENDOR, {"*": "no-annotation"})
    values = {
        "lines": 10,
        "share": 99.5,
        "tool": "pytest",
        "green": True,
        "ranAt": "2026-11-20T08:00:00.000+00:00",
        "branches": ["main", "next"],
        "raw": {"a": [1, None]},
    }
    await record(service, payments, values)
    await record(service, orders, {"lines": 5}, reasons={"tool": "feature-off: No tests run."})
    await record(service, "component:emea/zahlung äöü", {"lines": 7}, DRAFT)
    files = {"repo.files": ["README.md", "src/app.py"], "repo.about": "Text", "stars": 3}
    await record(service, payments, files, TREE)
    # Entities were there before, so that no change tells of them.
    await service.state.database.write(lambda tx: tx.run("DELETE FROM revisions"))


def calls() -> Iterator[tuple[str, SeedCall]]:
    """Every request, by what it is."""
    yield from _protocol()
    yield from _refusals()
    for tool in NINE:
        for arguments in _arguments(tool):
            text = json.dumps(arguments, ensure_ascii=False)
            yield f"{tool} {text}", SeedCall(call(tool, arguments), _JSON)
    for tool, arguments in (NINE[1], _COVERAGE | _PAYMENTS), (NINE[7], {"name": "nobody"}):
        params = {"name": tool, "arguments": arguments}
        yield (
            f"modern {tool}",
            SeedCall(modern_message("tools/call", params), modern_headers("tools/call", tool)),
        )


def _protocol() -> Iterator[tuple[str, SeedCall]]:
    for version in (*LEGACY, "2024-11-05"):
        params = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        yield f"initialize {version}", SeedCall(_message("initialize", params))
    yield "initialized", SeedCall({"jsonrpc": "2.0", "method": "notifications/initialized"})
    yield "ping", SeedCall(_message("ping"))
    yield "list", SeedCall(_message("tools/list"))
    yield (
        "modern list",
        SeedCall(modern_message("tools/list"), modern_headers("tools/list")),
    )
    yield (
        "modern discover",
        SeedCall(modern_message("server/discover"), modern_headers("server/discover")),
    )
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        yield f"method {method}", SeedCall("", {}, method=method)


def _refusals() -> Iterator[tuple[str, SeedCall]]:
    asked = call(NINE[1], _COVERAGE | _PAYMENTS)
    for bearer in ("none", "wrong", "no catalog", "no sources", "nothing"):
        yield f"token: {bearer}", SeedCall(asked, bearer=bearer)
        yield f"token: {bearer}, list", SeedCall(_message("tools/list"), bearer=bearer)
    yield "accept", SeedCall(asked, {"accept": "text/html"})
    yield "accept stream", SeedCall(asked, {"accept": "application/json, text/event-stream"})
    yield "content type", SeedCall("a=b", {"content-type": "application/x-www-form-urlencoded"})
    yield "origin", SeedCall(asked, {"origin": "https://evil.example"})
    yield "host", SeedCall(asked, {"host": "evil.example"})
    yield "revision", SeedCall(asked, {"mcp-protocol-version": "1999-01-01"})
    yield "modern revision", SeedCall(asked, {"mcp-protocol-version": "2026-07-28"})
    bodies = {
        "empty": "",
        "no JSON": "{",
        "not UTF-8": "\udcff",
        "number": "7",
        "null": "null",
        "empty batch": "[]",
        "no version": '{"id":1,"method":"ping"}',
        "version 1": '{"jsonrpc":"1.0","id":1,"method":"ping"}',
        "no method": '{"jsonrpc":"2.0","id":1}',
        "method 7": '{"jsonrpc":"2.0","id":1,"method":7}',
        "id list": '{"jsonrpc":"2.0","id":[1],"method":"ping"}',
        "unknown method": '{"jsonrpc":"2.0","id":"a","method":"tools/burn"}',
        "params list": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        "no params": '{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        "no name": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
        "name 7": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
        "unknown tool": json.dumps(call("get-weather", {})),
        "check tool": json.dumps(call("get-check-results", {})),
        "deep": json.dumps(call(NINE[0], {"a": json.loads("[" * 70 + "]" * 70)})),
        "long": json.dumps(call(NINE[0], {"a": "x" * 1_048_576})),
    }
    for case, body in bodies.items():
        yield f"body: {case}", SeedCall(body)


def _arguments(tool: str) -> Iterator[dict[str, Any]]:
    """Arguments of one of the tools, good and bad."""
    match tool:
        case "get-data-source-discovery":
            yield from ({}, {"limit": 2}, {"verbose": True}, {"limit": 0})
        case "get-entity-facts":
            sources = ("coverage", "tree", "draft", "vendor", "entity-metadata", "techdocs")
            for source in (*sources, "entity-ownership"):
                yield from ({"dataSourceId": source, **one} for one in (_PAYMENTS, _ORDERS))
            yield {"dataSourceId": "coverage", "name": "account", "kind": "resource"}
            yield {"dataSourceId": "draft", "name": "zahlung äöü", "namespace": "emea"}
            yield {"dataSourceId": "coverage", "name": "component:default/payments"}
            yield from ({"dataSourceId": "none"} | _PAYMENTS, _COVERAGE, _PAYMENTS, {})
            yield _COVERAGE | {"name": "paymnts"}
            yield _COVERAGE | {"name": "a:b:c/d"}
            yield _COVERAGE | {"name": "payments", "kind": "widget"}
        case "get-all-entities-facts":
            for source in ("coverage", "tree", "draft", "vendor", "entity-metadata"):
                yield {"dataSourceId": source}
                yield {"dataSourceId": source, "kind": "*", "unknown": True}
            yield _COVERAGE | {"limit": 1}
            yield _COVERAGE | {"limit": 1, "cursor": "Y29tcG9uZW50OmRlZmF1bHQvb3JkZXJz"}
            yield {"dataSourceId": "entity-ownership", "kind": "*", "limit": 2}
            yield _COVERAGE | {"facts": ["lines", "tool"]}
            yield {"dataSourceId": "entity-metadata", "namespace": "emea"}
            yield {"dataSourceId": "entity-metadata", "kind": "Resource"}
            yield {"dataSourceId": "entity-metadata", "kind": "widget"}
            yield {"dataSourceId": "entity-metadata", "namespace": "nowhere"}
            yield from (_COVERAGE | {"facts": ["lins"]}, {"dataSourceId": "none"}, {})
            yield from (_COVERAGE | {"limit": 0}, _COVERAGE | {"cursor": "2"})
        case _:
            yield from (_PAYMENTS, _ORDERS, {"name": "ledger"}, {"name": "bare"})
            yield from ({"name": "Zahlung äöü", "namespace": "EMEA"}, {"name": "paymnts"}, {})
            yield from ({"name": "account", "kind": "resource"}, {"name": "component:payments"})
            yield from (_PAYMENTS | {"color": "red"}, {"name": "/"})
            if tool in ("get-codehost-metrics", "get-security-metrics"):
                yield {"entityRef": "component:default/payments"}
                yield {"entityRef": "component:default/payments"} | _PAYMENTS
                yield {"entityRef": "component:default/payments"} | _ORDERS
                yield {"entityRef": "payments/"}


def _message(method: str, params: object = None) -> dict[str, Any]:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method}
    return asked if params is None else {**asked, "params": params}


async def answers(service: Service, query: str = "") -> dict[str, Any]:
    """The answer to every request, by its name: status, headers and body."""
    names = {
        "all": PERMISSION_NAMES,
        "no catalog": ["tech-insights.data-source.read"],
        "no sources": ["catalog.entity.read"],
        "nothing": ["events.read"],
    }
    tokens = {bearer: await service.token(*given) for bearer, given in names.items()}
    tokens["wrong"] = "fbk_wrong"
    service.time.advance(DAY // 2)
    found: dict[str, Any] = {}
    async with service.client(None) as http:
        for case, one in calls():
            known = (
                {"authorization": f"Bearer {tokens[one.bearer]}"} if one.bearer in tokens else {}
            )
            body = one.body if isinstance(one.body, str) else json.dumps(one.body)
            answer = await http.request(
                one.method,
                TOOLS + query,
                content=body.encode(errors="surrogateescape"),
                headers={**_JSON, **known, **one.headers},
            )
            assert case not in found, case
            text = _of_the_nine(answer) if case in LISTS else answer.text
            headers = {name: value for name, value in answer.headers.items() if name not in _OFF}
            found[case] = [answer.status_code, headers, text.replace(_VERSION, '"version":""')]
    return found


LISTS: Final = ("list", "modern list")
_OFF: Final = frozenset(["content-length", "date"])
_VERSION: Final = f'"version":"{__version__}"'


def _of_the_nine(answer: httpx2.Response) -> str:
    """The list of tools with the nine alone, without their input schemas."""
    body = answer.json()
    tools = [one for one in body["result"]["tools"] if one["name"] in NINE]
    body["result"]["tools"] = [
        {name: value for name, value in tool.items() if name != "inputSchema"} for tool in tools
    ]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


async def _recorded() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            database_url=f"sqlite:///{folder}/seed.db", token_key="x" * 40, people_sets=["*"]
        )
        async with started(settings, sources=ALL_SOURCES) as service:
            await fill(service)
            return await answers(service)


if __name__ == "__main__":
    rows = asyncio.run(_recorded()).items()
    lines = [json.dumps([case, *one], ensure_ascii=False) for case, one in rows]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", "utf-8")
