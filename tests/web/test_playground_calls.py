"""The playground: the request as clients send it, and the answer."""

import json
import re
import shlex
from html import unescape
from typing import Any

import pytest

from factbook.auth import permissions
from factbook.integrations import SOURCES
from factbook.tools import TOOLS
from tests.conftest import StartService
from tests.sample_catalog import entities
from tests.service import Service, call, component
from tests.tools.sources import record
from tests.web.calling import BILLING, SOURCE, VENDOR, VENDOR_FACTS, answer, called, value_of
from tests.web.test_connect import codes
from tests.web.visiting import signed_in, words

# A call of each tool that succeeds, as it is typed and as it is sent.
CALLS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "get-data-source-discovery": ({"limit": "2"}, {"limit": 2}),
    "get-entity-facts": ({"name": BILLING, **SOURCE}, {"name": BILLING, **SOURCE}),
    "get-all-entities-facts": (
        {**SOURCE, "kind": " * ", "limit": "3", "facts": "hasOwner\r\n\r\nhasTags\r\n"},
        {**SOURCE, "kind": "*", "limit": 3, "facts": ["hasOwner", "hasTags"]},
    ),
    "get-codehost-metrics": (
        {"name": "", "entityRef": f"component:default/{BILLING}"},
        {"entityRef": f"component:default/{BILLING}"},
    ),
    "get-security-metrics": ({"name": BILLING}, {"name": BILLING}),
    "get-incident-metrics": ({"name": BILLING}, {"name": BILLING}),
    "get-observability-metrics": ({"name": BILLING}, {"name": BILLING}),
    "get-entity-compliance": (
        {"name": BILLING, "kind": "Component"},
        {"name": BILLING, "kind": "Component"},
    ),
    "get-repository-info": ({"name": BILLING, "limit": "1"}, {"name": BILLING, "limit": 1}),
    "get-fact-history": ({"name": BILLING, "limit": ""}, {"name": BILLING}),
    "get-changed-facts": ({"since": "7d"}, {"since": "7d"}),
    "get-entity": ({"name": BILLING}, {"name": BILLING}),
    "find-entities": (
        {"kind": "component", "query": '{"kind": "component"}', "limit": "2"},
        {"kind": "component", "query": {"kind": "component"}, "limit": 2},
    ),
}


@pytest.fixture
async def filled(start: StartService) -> Service:
    """A service with a catalog, and with a vendor's facts about one of its entities."""
    service = await start(sources=[*SOURCES, VENDOR])
    pushed = await service.push("shop", *entities())
    assert pushed.status_code == 200, pushed.text
    await record(service, f"component:default/{BILLING}", VENDOR_FACTS, VENDOR)
    return service


async def test_every_tool_answers_a_viewer_what_it_answers_a_client(filled: Service) -> None:
    visitor = await signed_in(filled, "vic", permissions.VIEWER)
    assert CALLS.keys() == {tool.name for tool in TOOLS}
    for tool, (typed, arguments) in CALLS.items():
        page = await called(visitor, tool, typed)
        shown, message, curl, command, *_ = codes(page)
        assert json.loads(shown) == await filled.facts(tool, **arguments), tool
        assert json.loads(message) == call(tool, arguments)
        *_, data = shlex.split(curl)
        assert json.loads(data) == call(tool, arguments)
        assert shlex.split(command)[:3] == ["factbook", "call", tool]


async def test_the_curl_line_says_what_a_client_sends(filled: Service) -> None:
    visitor = await signed_in(filled)
    page = await called(visitor, "get-entity-compliance", {"name": "it's $HOME `id`"})
    _, curl, command = codes(page)[:3]
    parts = shlex.split(curl)
    assert parts[:3] == [
        "curl", "-sS", "http://127.0.0.1:8000/mcp",
    ]  # fmt: skip
    assert "Authorization: Bearer $FACTBOOK_TOKEN" in parts
    assert shlex.split(command)[3] == "name=it's $HOME `id`"
    sent = await filled.http.post(
        "/mcp",
        content=parts[-1],
        headers={"content-type": "application/json"},
    )
    assert sent.json()["result"]["isError"] is True


async def test_what_an_answer_takes_is_counted(filled: Service) -> None:
    page = await called(await signed_in(filled), "get-entity-compliance", {"name": BILLING})
    whole = await filled.ask("get-entity-compliance", name=BILLING)
    size = len(whole["content"][0]["text"].encode())
    figures = rf"{size:,} bytes · about {-(-size // 4):,} tokens · \d+\.\d ms"
    assert re.search(figures, words(page))


async def test_what_is_not_known_is_told_with_its_reason(filled: Service) -> None:
    page = await called(await signed_in(filled), "get-codehost-metrics", {"name": BILLING})
    assert "Not known, and why" in page
    assert "No integration that determines this is configured on this server." in page
    assert answer(page)["unknownReasons"] == {"*": "not-configured"}


async def test_a_tool_about_the_same_entity_is_one_link_away(filled: Service) -> None:
    visitor = await signed_in(filled)
    page = await called(
        visitor, "get-entity-facts", CALLS["get-entity-facts"][0] | {"kind": "component"}
    )
    assert f'href="/connect/tools/get-entity-compliance?name={BILLING}&amp;kind=component"' in page
    assert f'href="/connect/tools/get-repository-info?name={BILLING}"' in page
    form = await visitor.text(f"/connect/tools/get-entity-compliance?name={BILLING}&kind=component")
    assert value_of(form, "name") == BILLING
    assert "ms</span>" not in form


async def test_calls_count_as_those_of_clients(filled: Service) -> None:
    await called(await signed_in(filled), "get-entity-compliance", {"name": BILLING})
    metrics = (await filled.http.get("/metrics")).text
    assert re.search(r'tool="get-entity-compliance"[^\n]* 1\.0', metrics)


async def test_what_entities_and_facts_hold_stays_text(filled: Service) -> None:
    visitor = await signed_in(filled)
    hostile = '<script>alert("x")</script>'
    pushed = await filled.push("hostile", component("<img src=x onerror=alert(1)>"))
    assert pushed.status_code == 200, pushed.text
    await filled.push("more", component("web"))
    facts = VENDOR_FACTS | {"repository.filePaths": [hostile, "</pre></code><b>"]}
    await record(filled, "component:default/web", facts, VENDOR)
    for tool, typed in (
        ("get-repository-info", {"name": "web"}),
        ("get-entity-facts", {"name": "web", "dataSourceId": "vendor"}),
        ("get-entity-facts", {"name": hostile, "dataSourceId": hostile, "kind": hostile}),
        ("get-all-entities-facts", {**SOURCE, "kind": "*"}),
        ("get-data-source-discovery", {}),
        ("get-fact-history", {"entityRef": hostile, "facts": hostile, "cursor": hostile}),
    ):
        page = await called(visitor, tool, typed)
        assert "<script>" not in page.replace("<script src", "")
        assert "<img src=x" not in page
        assert "</pre></code>" not in page
        assert "<b>" not in page
    page = await called(visitor, "get-repository-info", {"name": "web"})
    assert hostile in answer(page)["filePaths"]


async def test_a_tool_about_checks_answers_a_viewer_what_it_answers_a_client(
    filled: Service,
) -> None:
    visitor = await signed_in(filled, "vic", permissions.VIEWER)
    definition = {"id": "owned", "name": "Owned", "rule": {"fact": "entity-metadata.hasOwner"}}
    for tool, arguments in (
        ("get-scorecard-discovery", {}),
        ("get-entity-check-results", {"name": BILLING}),
        ("get-check-preview", {"definition": definition}),
    ):
        typed = {k: v if isinstance(v, str) else json.dumps(v) for k, v in arguments.items()}
        page = await called(visitor, tool, typed)
        sent = await filled.http.post("/mcp", json=call(tool, arguments))
        result = sent.json()["result"]
        if result["isError"]:
            assert result["content"][0]["text"][:40] in unescape(page), tool
        else:
            assert answer(page) == result["structuredContent"], tool
        assert "With the command" not in page
