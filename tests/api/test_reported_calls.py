"""Calls of hosts that were reported in public, whose requests are in tests/data/reports."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.api.messages import expect_result, message, tool_call
from tests.service import PUSH, TOOLS, Service, component
from tests.web.visiting import signed_in

REPORTS = Path(__file__).parents[1] / "data" / "reports"
CHECKS = "/api/mcp/v1/tech-insights-checks"
ANY = "/mcp"
JSON = "application/json; charset=utf-8"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here is the protocol."""
    return sqlite_url


def requests(report: str) -> list[dict[str, Any]]:
    """The requests of a report."""
    lines = (REPORTS / report / "request.json").read_text().splitlines()
    return [msgspec.json.decode(line) for line in lines]


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """Each member of each object in a value, at any depth."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str):
            yield key, one
        if isinstance(one, dict | list):
            yield from members(one)


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
        {"limit": 1e300},
        {"limit": "1e300"},
        {"limit": "9" * 40},
        {"limit": "NaN"},
        {"where": "9" * 40},
        {"query": '"{}"'},
        {"unknown": "perhaps"},
    ):
        with subtests.test(str(arguments)[:60]):
            text = await service.refusal("find-entities", **arguments)
            assert f"at `$.{next(iter(arguments))}`" in text


async def test_a_name_that_no_entity_has_is_refused_with_those_that_there_are(
    service: Service, subtests: pytest.Subtests
) -> None:
    entity = component("payments")
    entity["metadata"] |= {"tags": ["java"], "labels": {"tier": "1"}}
    await service.push("all", entity, component("ledger"))
    wanted = [
        "No entity has the kind components. Did you mean component? There are: component.",
        "No entity has the type any. There are: service.",
        "No entity has the lifecycle prod. Did you mean production? There are: production.",
        "No entity has the namespace nowhere. There are: default.",
        "No entity has the kind services. There are: component.",
    ]
    calls = [body["params"] for body in requests("35-kind-that-there-is-not")]
    cases = [
        (call["name"], call["arguments"], text) for call, text in zip(calls, wanted, strict=True)
    ]
    where = {"source": "entity-metadata", "fact": "hasOwner", "operator": "equal", "value": True}
    for arguments, text in (
        ({"tag": "jave"}, "No entity has the tag jave. Did you mean java? There are: java."),
        ({"label": "teer"}, "No entity has the label teer. Did you mean tier? There are: tier."),
        ({"label": "tier=2"}, "No entity has the label tier with the value 2. There are: 1."),
        ({"type": "libary", "where": where}, "No entity has the type libary. There are: service."),
        ({"type": "libary", "groupBy": "owner"}, "No entity has the type libary."),
        ({"type": "libary", "limit": 0}, "No entity has the type libary."),
    ):
        cases.append(("find-entities", arguments, text))
    for tool, arguments, text in cases:
        with subtests.test(tool, arguments=arguments):
            assert (await service.refusal(tool, **arguments)).startswith(text)


async def test_a_name_that_entities_have_is_answered_with_none_if_nothing_else_fits(
    service: Service,
) -> None:
    await service.push("all", component("payments"), component("ledger"))
    for arguments in (
        {"kind": "api"},
        {"kind": "component", "text": "nothing like it"},
        {"type": "service", "ownership": "none", "text": "nothing like it"},
    ):
        found = await service.facts("find-entities", **arguments)
        assert (found["entities"], found["total"]) == ([], 0)
    source = {"dataSourceId": "entity-metadata"}
    assert (await service.facts("get-all-entities-facts", **source, kind="api"))["entities"] == []


@pytest.mark.slow
async def test_entities_with_names_hard_for_addresses_are_listed_and_opened(
    service: Service, subtests: pytest.Subtests
) -> None:
    text = (REPORTS / "09-names-hard-for-addresses" / "entities.json").read_text()
    entities = msgspec.json.decode(text)
    odd = ("+", "a+b", "%", "%2F", "...", "a b", "#", "?x=1#y", "é", "İ", "src." * 50)
    entities += [component(name) for name in odd]
    entities[-1]["metadata"]["namespace"] = "d" * 63
    answer = await service.push("hard", *entities)
    assert answer.status_code == 200, answer.text
    refs = {one["entityRef"] for one in answer.json()["items"]}
    assert len(refs) == len(entities)
    for name in (".", ".."):  # which clients take out of addresses
        assert (await service.push("dots", component(name))).status_code == 400
    browser = await signed_in(service, role="viewer")
    for ref in sorted(refs):
        with subtests.test(ref):
            path = "/".join(quote(part, safe="") for part in ref.partition(":")[2].split("/"))
            entity = await service.catalog(f"component:{path}")
            assert entity is not None
            name = entity["metadata"]["name"]
            found = await service.http.get(f"{PUSH}/entities/by-ref/{quote(ref, safe='')}")
            assert found.json()["entity"]["metadata"]["name"] == name
            body = {"query": {"metadata.name": name}}
            answer = await service.http.post("/api/catalog/entities/by-query", json=body)
            assert [one["metadata"]["name"] for one in answer.json()["items"]] == [name]
            assert (await service.facts("get-entity", name=ref))["entityRef"] == ref
            listed = await service.facts("find-entities", text=name)
            assert ref in [one["entityRef"] for one in listed["entities"]]
            assert name in unescape(await browser.text(f"/catalog/component/{path}"))
    hrefs = re.findall(r'href="(/catalog/component/[^"?]*)"', await browser.text("/catalog"))
    assert len({*hrefs}) == len(refs)
    for href in hrefs:
        assert (await browser.open(unescape(href))).status_code == 200, href


async def test_a_client_with_a_header_is_never_led_to_oauth(
    service: Service, subtests: pytest.Subtests
) -> None:
    addresses = (REPORTS / "37-header-and-oauth-together" / "addresses.txt").read_text().split()
    wrong = (
        "${env:TOKEN}",
        "Bearer ${env:TOKEN}",
        "Bearer Bearer fbk_x",
        f"Bearer Bearer {await service.token()}",
    )
    async with service.client(None, address="127.0.0.2") as stranger:
        for path in addresses:
            for method in ("GET", "POST"):
                with subtests.test(path, method=method):
                    answer = await stranger.request(method, path)
                    assert (answer.status_code, answer.headers["content-type"]) == (404, JSON)
                    assert "www-authenticate" not in answer.headers
    for number, path in enumerate((ANY, TOOLS, CHECKS), 3):
        async with service.client(None, address=f"127.0.0.{number}") as stranger:
            calls = [(method, None) for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS")]
            for method, authorization in [*calls, *(("POST", one) for one in wrong)]:
                with subtests.test(path, method=method, authorization=authorization):
                    headers = {"authorization": authorization} if authorization else {}
                    answer = await stranger.request(method, path, headers=headers)
                    assert answer.status_code == 401
                    assert answer.json()["error_description"].endswith(".")
                    told = "resource_metadata=" in answer.headers["www-authenticate"]
                    assert told is (path == ANY)


async def test_tools_are_found_under_the_names_and_schemas_that_hosts_take(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("checkout"))
    [body] = requests("38-names-that-hosts-change")
    plain = message("tools/call", tool_call("get-entity", {"name": "checkout"}))
    assert await result(service, ANY, body) == await result(service, ANY, plain)
    for path in (ANY, TOOLS, CHECKS):
        for tool in (await result(service, path, message("tools/list")))["tools"]:
            with subtests.test(path, tool=tool["name"]):
                assert len(f"mcp__factbook__{tool['name']}") < 60
                keys = [*members(tool["inputSchema"])]
                assert not {"anyOf", "oneOf", "allOf", "$ref"} & {key for key, _ in keys}
                assert not [one for key, one in keys if key == "type" and isinstance(one, list)]
                under = message("tools/call", tool_call(tool["name"].replace("-", "_"), {}))
                dashed = message("tools/call", tool_call(tool["name"], {}))
                answers = [
                    (await service.http.post(path, json=one)).json() for one in (under, dashed)
                ]
                assert answers[0] == answers[1]
