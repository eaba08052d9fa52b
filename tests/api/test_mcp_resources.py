"""Resources at the address of all tools: listed, read, and their names completed."""

import json
from typing import Any

import httpx2
import pytest

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SET_WRITE, SOURCE_READ
from tests.api.checking import OWNED, SCORECARDS, check, evaluated, put, scorecard
from tests.api.messages import (
    Json,
    expect_error,
    expect_result,
    message,
    modern_headers,
    modern_message,
)
from tests.conftest import StartService
from tests.service import TOOLS, Service, component, resource

ALL = "/mcp"
ENTITY = "factbook://entities/{kind}/{namespace}/{name}"
SCORECARD = "factbook://scorecards/{id}"
WEB = "factbook://entities/component/default/web"


@pytest.fixture
async def service(start: StartService) -> Service:
    """A few entities and a scorecard."""
    service = await start()
    items = [component("web"), component("web-shop"), component("zahlung äöü"), resource("db")]
    assert (await service.push("all", *items)).status_code == 200
    await put(service, check("covered", rule=OWNED), publish=True)
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=scorecard())
    assert answer.status_code == 200, answer.text
    await evaluated(service)
    return service


async def ask(service: Service, method: str, **params: Any) -> Json:
    answer = await service.http.post(ALL, json=message(method, params))
    return expect_result(answer)


async def modern(
    service: Service, method: str, name: str | None = None, **params: Any
) -> httpx2.Response:
    body, headers = modern_message(method, params), modern_headers(method, name)
    return await service.http.post(ALL, json=body, headers=headers)


async def completed(service: Service, uri: str, name: str, value: str, **known: str) -> Json:
    found = await ask(
        service,
        "completion/complete",
        ref={"type": "ref/resource", "uri": uri},
        argument={"name": name, "value": value},
        context={"arguments": known},
    )
    completion: Json = found["completion"]
    return completion


@pytest.mark.spec("endpoint.resources-are-read")
async def test_they_are_offered_where_all_tools_are_and_nowhere_else(service: Service) -> None:
    hello = await ask(service, "initialize", protocolVersion="2025-11-25")
    assert hello["capabilities"] == {"tools": {}, "resources": {}, "completions": {}}
    found = expect_result(await modern(service, "server/discover"))
    assert found["capabilities"] == hello["capabilities"]
    seed = await service.http.post(TOOLS, json=message("initialize", {}))
    assert expect_result(seed)["capabilities"] == {"tools": {}}
    for method in ("resources/list", "resources/templates/list", "resources/read"):
        answer = await service.http.post(TOOLS, json=message(method, {"uri": WEB}))
        expect_error(answer, 200, -32601, 1)


@pytest.mark.spec("endpoint.resources-are-read")
async def test_scorecards_are_listed_and_entities_page_by_page(service: Service) -> None:
    many = [component(f"c{number:03}") for number in range(150)]
    assert (await service.push("many", *many)).status_code == 200
    first = await ask(service, "resources/list")
    uris = [one["uri"] for one in first["resources"]]
    assert uris[0] == "factbook://scorecards/readiness"
    assert len(uris) == 101
    rest = await ask(service, "resources/list", cursor=first["nextCursor"])
    uris += [one["uri"] for one in rest["resources"]]
    assert len(uris) == len(set(uris)) == 155
    assert "factbook://entities/component/default/zahlung%20%C3%A4%C3%B6%C3%BC" in uris
    assert "nextCursor" not in rest


@pytest.mark.spec("endpoint.resources-are-read")
async def test_what_is_listed_can_be_read_and_holds_what_the_tools_answer(
    service: Service,
) -> None:
    for one in (await ask(service, "resources/list"))["resources"]:
        [content] = (await ask(service, "resources/read", uri=one["uri"]))["contents"]
        assert (content["uri"], content["mimeType"]) == (one["uri"], "application/json")
        assert json.loads(content["text"])
    [web] = (await ask(service, "resources/read", uri=WEB))["contents"]
    assert json.loads(web["text"]) == await service.facts("get-entity", name="web")
    uri = "factbook://scorecards/readiness"
    [card] = (await ask(service, "resources/read", uri=uri))["contents"]
    assert json.loads(card["text"])["scorecards"][0]["id"] == "readiness"


@pytest.mark.spec("endpoint.resources-are-read")
async def test_in_the_modern_era_answers_are_private_and_named_in_a_header(
    service: Service,
) -> None:
    for method in ("resources/list", "resources/templates/list"):
        found = expect_result(await modern(service, method))
        assert (found["resultType"], found["cacheScope"]) == ("complete", "private")
    found = expect_result(await modern(service, "resources/read", WEB, uri=WEB))
    assert found["contents"][0]["uri"] == WEB
    expect_error(await modern(service, "resources/read", None, uri=WEB), 400, -32020, 1)
    expect_error(await modern(service, "resources/read", f"{WEB}x", uri=WEB), 400, -32020, 1)


async def test_what_there_is_not_is_an_error_with_its_address(
    service: Service, subtests: pytest.Subtests
) -> None:
    for uri in [
        "",
        "file:///etc/passwd",
        "factbook://entities/component/default",
        "factbook://entities/component/default/none",
        "factbook://entities/component/default/web/more",
        "factbook://entities/component/default/a%00b",
        "factbook://scorecards/none%2Fmore",
        "factbook://people/all",
        "https://example.com/web",
    ]:
        with subtests.test(uri=uri):
            answer = await service.http.post(ALL, json=message("resources/read", {"uri": uri}))
            expect_error(answer, 200, -32002, 1)
            assert answer.json()["error"]["data"] == {"uri": uri}
            if uri:
                expect_error(await modern(service, "resources/read", uri, uri=uri), 400, -32602, 1)


async def test_a_template_that_another_list_would_give_out_is_refused(service: Service) -> None:
    for method, params in (
        ("resources/read", {}),
        ("resources/read", {"uri": 7}),
        ("resources/list", {"cursor": "nowhere"}),
        ("resources/list", {"cursor": 7}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": {"type": "ref/prompt"}, "argument": {}}),
    ):
        answer = await service.http.post(ALL, json=message(method, params))
        expect_error(answer, 200, -32602, 1)


@pytest.mark.both_databases
@pytest.mark.spec("endpoint.names-are-completed")
async def test_names_are_completed_from_their_beginning(service: Service) -> None:
    templates = (await ask(service, "resources/templates/list"))["resourceTemplates"]
    assert [one["uriTemplate"] for one in templates] == [ENTITY, SCORECARD]
    assert await completed(service, ENTITY, "name", "we") == {
        "values": ["web", "web-shop"],
        "hasMore": False,
    }
    assert (await completed(service, ENTITY, "name", "", kind="Resource"))["values"] == ["db"]
    assert (await completed(service, ENTITY, "kind", ""))["values"] == ["component", "resource"]
    assert (await completed(service, ENTITY, "namespace", "d"))["values"] == ["default"]
    assert (await completed(service, SCORECARD, "id", "read"))["values"] == ["readiness"]
    for hostile in ("zz", "%", "_", "'", "\0", "web\0", "é" * 1_000):
        assert (await completed(service, ENTITY, "name", hostile))["values"] == []


@pytest.mark.spec("endpoint.names-are-completed")
async def test_a_hundred_values_are_given_at_most(service: Service) -> None:
    many = [component(f"c{number:03}") for number in range(150)]
    assert (await service.push("many", *many)).status_code == 200
    found = await completed(service, ENTITY, "name", "c")
    assert (len(found["values"]), found["hasMore"]) == (100, True)


async def test_other_arguments_are_not_completed(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Json, str]] = [
        ({"type": "ref/resource", "uri": "factbook://people/{name}"}, "name"),
        ({"type": "ref/resource", "uri": ENTITY}, "owner"),
        ({"type": "ref/resource", "uri": ENTITY}, "name}/{kind"),
        ({"type": "ref/prompt", "name": "hello"}, "name"),
    ]
    for ref, name in cases:
        with subtests.test(ref=ref, name=name):
            params = {"ref": ref, "argument": {"name": name, "value": ""}}
            answer = await service.http.post(ALL, json=message("completion/complete", params))
            expect_error(answer, 200, -32602, 1)


@pytest.mark.spec("endpoint.tools-name-permissions")
async def test_each_resource_needs_the_permissions_of_its_tool(service: Service) -> None:
    scorecard_uri = "factbook://scorecards/readiness"
    cases = [
        ("resources/list", {}, {CATALOG_READ}),
        ("resources/read", {"uri": WEB}, {CATALOG_READ, SOURCE_READ}),
        ("resources/read", {"uri": scorecard_uri}, {CHECK_READ}),
    ]
    for method, params, needed in cases:
        for lacking in needed:
            held = needed - {lacking} or {SET_WRITE}
            async with service.client(await service.token(*held)) as client:
                answer = await client.post(ALL, json=message(method, params))
                assert f"({lacking})." in expect_error(answer, 200, -32600, id=1), method
        async with service.client(await service.token(*needed)) as client:
            assert (await client.post(ALL, json=message(method, params))).status_code == 200
    async with service.client(await service.token(CATALOG_READ)) as client:
        answer = await client.post(ALL, json=message("resources/list"))
        assert scorecard_uri not in answer.text
