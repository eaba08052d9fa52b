"""Tokens that are narrowed to sets, namespaces, sources and tools, and ways around it."""

from typing import Any

import httpx2
import pytest

from factbook.auth.permissions import PERMISSION_NAMES
from factbook.auth.tokens import Narrowing
from tests.api.defining import FACTS, SOURCES, define, item, pushed
from tests.conftest import StartService
from tests.service import PUSH, TOOLS, Service, call, component

ACCESS = "/api/access/v1/tokens"
OF_SHOP = Narrowing(sets=("shop",))


def in_namespace(namespace: str, name: str = "web") -> dict[str, Any]:
    found = component(name)
    found["metadata"]["namespace"] = namespace
    return found


def is_refused(answer: httpx2.Response, told: str) -> bool:
    """Whether the answer is 403, says what the token is narrowed to, and nothing else."""
    assert answer.status_code == 403, answer.text
    message = answer.json()["error"]["message"]
    assert message == f"This token is narrowed to {told}."
    return True


@pytest.mark.spec("token.narrowed-is-kept-within")
async def test_a_token_of_a_set_pushes_and_reads_that_set_alone(service: Service) -> None:
    await service.push("secret", component("vault"))
    async with service.client(await service.token(narrowing=OF_SHOP)) as http:
        body = {"items": [component("web")]}
        assert (await http.put(f"{PUSH}/sets/shop", json=body)).status_code == 200
        assert (await http.get(f"{PUSH}/sets/shop")).status_code == 200
        listed = (await http.get(f"{PUSH}/sets")).json()["sets"]
        assert [one["id"] for one in listed] == ["shop"]
        entities = await http.get(f"{PUSH}/entities", params={"set": "shop"})
        assert len(entities.json()["items"]) == 1
        for other in ("secret", "Shop", "SHOP", "%53hop", "shop%20", "sho%70s", "%EF%BD%93hop"):
            for method in ("GET", "PUT", "POST", "DELETE"):
                answer = await http.request(method, f"{PUSH}/sets/{other}", json=body)
                assert is_refused(answer, "the sets shop"), other
        # Encoded, it is the same set.
        assert (await http.get(f"{PUSH}/sets/%73hop")).status_code == 200
        assert is_refused(await http.get(f"{PUSH}/entities"), "the sets shop")
        assert is_refused(await http.post(f"{PUSH}/entities", json=component("x")), "the sets shop")
        assert is_refused(await http.get("/api/catalog/entities"), "the sets shop")
    assert await service.catalog("component:default/vault") is not None


async def test_a_token_of_a_set_takes_nothing_from_another_one(service: Service) -> None:
    await service.push("secret", component("vault"))
    await service.http.post(f"{PUSH}/entities", json=component("alone"))
    async with service.client(await service.token(narrowing=OF_SHOP)) as http:
        for name in ("vault", "alone"):
            for path in (f"{PUSH}/sets/shop", f"{PUSH}/sets/shop?dryRun=true"):
                body = {"items": [component(name)]}
                taken = await http.put(path, json=body, params={"onConflict": "take"})
                assert is_refused(taken, "the sets shop")
            taken = await http.post(
                f"{PUSH}/sets/shop", json=component(name), params={"onConflict": "take"}
            )
            assert is_refused(taken, "the sets shop")
        conflict = await http.put(f"{PUSH}/sets/shop", json={"items": [component("vault")]})
        assert conflict.status_code == 409
        assert "secret" not in conflict.text
    both = Narrowing(sets=("shop", "secret"))
    async with service.client(await service.token(narrowing=both)) as http:
        body = {"items": [component("vault")]}
        taken = await http.put(f"{PUSH}/sets/shop", json=body, params={"onConflict": "take"})
        assert taken.status_code == 200, taken.text


async def test_a_token_of_a_set_deletes_no_entity_of_another_by_its_uid(service: Service) -> None:
    await service.push("secret", component("vault"))
    await service.push("shop", component("web"))
    vault, web = [
        (await service.catalog(f"component:default/{name}") or {})["metadata"]["uid"]
        for name in ("vault", "web")
    ]
    async with service.client(await service.token(narrowing=OF_SHOP)) as http:
        for path in (f"{PUSH}/entities", "/api/catalog/entities/by-uid"):
            assert is_refused(await http.delete(f"{path}/{vault}"), "the sets shop")
        assert (await http.delete(f"{PUSH}/entities/{web}")).status_code == 204


async def test_a_token_of_a_namespace_writes_its_entities_alone_in_whatever_set(
    service: Service,
) -> None:
    both = [in_namespace("shop"), in_namespace("secret")]
    await service.push("mixed", *both)
    found = await service.catalog("component:secret/web")
    assert found is not None
    other = {**in_namespace("secret"), "spec": {**component("web")["spec"], "type": "website"}}
    refusals = []
    narrowing = Narrowing(sets=("mixed",), namespaces=("shop",))
    async with service.client(await service.token(narrowing=narrowing)) as http:
        for items in ([both[0]], [both[0], other], [*both, in_namespace("shop2")], []):
            refusals.append(await http.put(f"{PUSH}/sets/mixed", json={"items": items}))
        refusals.append(await http.post(f"{PUSH}/sets/mixed", json=other))
        refusals.append(await http.post(f"{PUSH}/sets/mixed", json=component("in-default")))
        refusals.append(await http.delete(f"{PUSH}/sets/mixed"))
        uid = found["metadata"]["uid"]
        refusals.append(await http.delete(f"{PUSH}/entities/{uid}"))
        assert all(is_refused(one, "the namespaces shop") for one in refusals)
        # What stays as it is, is not written.
        answer = await http.put(
            f"{PUSH}/sets/mixed", json={"items": [*both, in_namespace("SHOP", "api")]}
        )
        assert answer.status_code == 400
        answer = await http.put(
            f"{PUSH}/sets/mixed", json={"items": [*both, in_namespace("shop", "api")]}
        )
        assert answer.status_code == 200, answer.text
        restored = await http.post(f"{PUSH}/sets/mixed/revisions/1/restore")
        assert restored.status_code == 200, restored.text
    await service.push("mixed", both[0])
    async with service.client(await service.token(narrowing=narrowing)) as http:
        restored = await http.post(f"{PUSH}/sets/mixed/revisions/1/restore")
        assert is_refused(restored, "the namespaces shop")


async def test_a_token_of_a_source_pushes_and_reads_its_facts_alone(service: Service) -> None:
    await service.push("all", component("web"), in_namespace("other"))
    for source in ("coverage", "secret"):
        await define(service, pushed(source))
    narrowing = Narrowing(sources=("coverage",), namespaces=("default",))
    async with service.client(await service.token(narrowing=narrowing)) as http:
        own = {"items": [item("component:default/web")]}
        assert (await http.post(f"{FACTS}/coverage", json=own)).status_code == 200
        assert (await http.get(f"{FACTS}/coverage")).status_code == 200
        assert (await http.get(f"{SOURCES}/coverage")).status_code == 200
        for path in (f"{FACTS}/secret", f"{SOURCES}/secret", f"{SOURCES}/secret/runs"):
            assert is_refused(await http.get(path), "the sources coverage")
        assert is_refused(await http.get(f"{FACTS}/Coverage"), "the sources coverage")
        assert is_refused(await http.post(f"{FACTS}/secret", json=own), "the sources coverage")
        history = {"entity": "component:default/web"}
        assert is_refused(await http.get(FACTS, params=history), "the sources coverage")
        for named in ("secret", "coverage,secret"):
            answer = await http.get(FACTS, params={**history, "dataSourceIds": named})
            assert is_refused(answer, "the sources coverage")
        answer = await http.get(FACTS, params={**history, "dataSourceIds": "coverage"})
        assert answer.status_code == 200
        foreign = {"items": [item("component:default/web"), item("component:other/web")]}
        answer = await http.post(f"{FACTS}/coverage", json=foreign)
        assert is_refused(answer, "the namespaces default")
        assert is_refused(await http.get("/api/catalog/entities"), "the sources coverage")
        assert is_refused(
            await http.put(f"{SOURCES}/coverage", json=pushed("coverage")), "the sources coverage"
        )
        asked = await http.post(TOOLS, json=call("get-entity", {"name": "web"}))
        assert asked.status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_token_of_a_tool_lists_and_calls_that_tool_alone_at_every_address(
    start: StartService,
) -> None:
    service = await start(agent_writes=True)
    await service.push("all", component("web"))
    for allowed in ("get-entity", "get-scorecard-discovery", "request-check-exemption"):
        token = await service.token(narrowing=Narrowing(tools=(allowed,)))
        listed, answered = set(), set()
        async with service.client(token) as http:
            for path in (
                *(TOOLS, "/api/mcp/v1/tech-insights-checks"),
                *("/api/mcp/v1/tech-insights-checks-manage", "/mcp", "/mcp?toolsets=facts,checks"),
            ):
                found = await http.post(path, json=rpc("tools/list"))
                listed |= {tool["name"] for tool in found.json()["result"]["tools"]}
                for tool in service.state.every_tool:
                    for name in (tool, tool.replace("-", "_")):
                        answer = await http.post(path, json=call(name, {"name": "web"}))
                        if f"narrowed to the tools {allowed}." in answer.text:
                            continue
                        if "result" in answer.json():
                            answered.add(tool)
                    batch = await http.post(path, json=[call(tool, {"name": "web"})])
                    told = f"narrowed to the tools {allowed}." in batch.text
                    assert tool == allowed or told or '"result"' not in batch.text
        assert listed == answered == {allowed}


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}


async def test_resources_and_completion_are_of_the_tools_that_answer_them(service: Service) -> None:
    await service.push("all", component("web"))
    uri = "factbook://entities/component/default/web"
    complete = rpc(
        "completion/complete",
        ref={"type": "ref/resource", "uri": "factbook://entities/{kind}/{namespace}/{name}"},
        argument={"name": "name", "value": "w"},
    )
    seen = {}
    for tool in ("get-entity", "get-entity-facts"):
        token = await service.token(narrowing=Narrowing(tools=(tool,)))
        async with service.client(token) as http:
            read = await http.post("/mcp", json=rpc("resources/read", uri=uri))
            listed = await http.post("/mcp", json=rpc("resources/list"))
            completed = await http.post("/mcp", json=complete)
        seen[tool] = (
            "error" in read.json(),
            len(listed.json()["result"]["resources"]),
            completed.json()["result"]["completion"]["values"],
        )
    assert seen == {"get-entity": (False, 1, ["web"]), "get-entity-facts": (True, 0, [])}


async def test_a_list_of_some_tools_is_kept_by_no_cache_for_others(service: Service) -> None:
    token = await service.token(narrowing=Narrowing(tools=("get-entity",)))
    modern = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with service.client(token) as http:
        answer = await http.post(
            "/mcp",
            json=rpc("tools/list", _meta=modern),
            headers={"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"},
        )
    assert answer.json()["result"]["cacheScope"] == "private"


@pytest.mark.spec("token.narrowed-never-widens")
async def test_a_narrowed_token_makes_none_that_reaches_further(service: Service) -> None:
    wide = {"sets": ["shop-*"], "namespaces": ["eu", "us"]}
    body = {"name": "ci", "permissions": sorted(PERMISSION_NAMES), "narrowing": wide}
    made = await service.http.post(ACCESS, json=body)
    assert made.status_code == 201
    assert made.json()["narrowing"] == wide
    async with service.client(made.json()["value"]) as http:
        for asked in (
            {"sets": ["*"]},
            {"sets": ["shop-a", "Shop-b"]},
            {"sets": ["shop-a"], "namespaces": ["eu", "secret"]},
            {"sets": ["shop-a"], "namespaces": ["eu*"]},
        ):
            answer = await http.post(ACCESS, json={"name": "x", "narrowing": asked})
            assert answer.status_code == 403
            assert "Shop-b" not in answer.text
            assert "secret" not in answer.text
        inherited: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({}, wide),
            ({"narrowing": {"sets": ["shop-eu-*"]}}, {**wide, "sets": ["shop-eu-*"]}),
            ({"narrowing": {"tools": ["get-entity"]}}, {**wide, "tools": ["get-entity"]}),
        ]
        for more, found in inherited:
            answer = await http.post(ACCESS, json={"name": "x", **more})
            assert answer.status_code == 201, answer.text
            assert answer.json()["narrowing"] == found
        assert (await http.get(ACCESS)).status_code == 403
        assert (await http.delete(f"{ACCESS}/{made.json()['id']}")).status_code == 403
        assert (await http.get("/scim/v2/Users")).status_code == 403
    tokens = (await service.http.get(ACCESS)).json()["tokens"]
    assert {"ci": wide}.items() <= {t["name"]: t.get("narrowing") for t in tokens}.items()
    refused: list[dict[str, list[str]]] = [
        {},
        {"sets": []},
        {"people": ["kim"]},
        {"namespaces": ["SHOP"]},
    ]
    for wrong in refused:
        answer = await service.http.post(ACCESS, json={"name": "x", "narrowing": wrong})
        assert answer.status_code == 400, wrong
